package shell

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// Whoever reviews a command sees the text that the command itself contains. Sending this text is therefore not
// recorded as sending local data. Data counts as local data only if it comes from a file, from the output of a
// command, or from a variable whose name says that it holds a credential.

// taintLabels lists the label that effects and stored files get for each taint of their data. All other taints
// have no label.
var taintLabels = [...]struct {
	taint abstract.Taint
	label effect.TaintLabel
}{
	{abstract.TaintReadCredentials, effect.LabelFromCredentialLocation},
	{abstract.TaintCredentialVariable | abstract.TaintEnvironmentDump | abstract.TaintUnprintedKeyStoreCredential, effect.LabelCredential},
	{abstract.TaintClipboardOrScreen, effect.LabelPersonalData},
	{abstract.TaintNetwork, effect.LabelFromNetwork},
	{abstract.TaintDecoded, effect.LabelDecoderOutput},
	{abstract.TaintUntrustedText, effect.LabelUntrusted},
	{abstract.TaintDatabaseRows, effect.LabelDatabaseRows},
}

// thisMachineTaints are the taints of values that come from this machine.
const thisMachineTaints = abstract.TaintLocalMachineData | abstract.TaintReadCredentials | abstract.TaintCredentialVariable | abstract.TaintEnvironmentDump | abstract.TaintUnprintedKeyStoreCredential | abstract.TaintClipboardOrScreen | abstract.TaintDatabaseRows

func labelsOf(t abstract.Taint) []effect.TaintLabel {
	var out []effect.TaintLabel
	for _, l := range taintLabels {
		if t&l.taint != 0 {
			out = append(out, l.label)
		}
	}
	return out
}

// A sentFile is a file that a program sends.
type sentFile struct {
	pathWord abstract.Value
	content  abstract.Value
	isFolder bool
}

// emitForEachContactedHost records e for each machine that a program contacts, or once without a machine if it names none.
func (s *analysisState) emitForEachContactedHost(e effect.Effect, peers []effect.Effect) {
	if len(peers) == 0 {
		s.emitOnce(e)
	}
	for _, p := range peers[:min(len(peers), maxContactedHosts)] {
		e.Host, e.URL, e.RemoteTargetName = p.Host, p.URL, p.RemoteTargetName
		s.emitOnce(e)
	}
}

// maxContactedHosts is the maximum number of machines for which one sent value is recorded.
const maxContactedHosts = 8

// recordSentValue records that a value goes to the machines that a program contacts.
func (s *analysisState) recordSentValue(v abstract.Value, base string, peers []effect.Effect, at effect.CommandTextSpan) {
	if v.Taint&thisMachineTaints == 0 {
		return
	}
	e := effect.Effect{Kind: effect.SendData, Program: base, DataLabels: labelsOf(v.Taint), Span: at}
	if v.IsGlobPattern && v.Display != "" {
		e.Reason = "sends " + abstract.ClipForMessage(v.Display)
	}
	s.emitForEachContactedHost(e, peers)
}

// recordSentData records the data that a network program sends.
func (s *analysisState) recordSentData(base string, argv []abstract.Value, use command.Interpretation, f programIO, io abstract.Streams) {
	at := wordsSpan(argv)
	if isSecretStoreCommand(base, argv) { // storing a secret is the program's purpose; it needs approval as a whole
		if len(f.sentFiles) > 0 || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return v.Taint&(thisMachineTaints|abstract.TaintCredentialVariable) != 0 }) || io.Stdin.Taint&thisMachineTaints != 0 {
			s.emitForEachContactedHost(effect.Effect{Kind: effect.SendData, Program: base, Span: at, Reason: base + " stores a secret"}, f.networkContactEffects)
		}
		return
	}
	s.recordCredentialForOtherService(base, argv[1:], f.networkContactEffects, io.Stdin)
	for _, file := range f.sentFiles[:min(len(f.sentFiles), maxItemsPerAnalyzedList)] {
		s.recordSentFile(base, file, f.networkContactEffects)
	}
	if command.Transferrers[base] && io.Stdin.IsLiteral() {
		for _, t := range command.ParseFTPUploads(io.Stdin.Text) {
			name := abstract.Value{Text: t.Path, SourceSpan: at}
			s.recordSentFile(base, sentFile{name, s.readFile(effect.ReadFile, name), t.IsRecursive}, f.networkContactEffects)
		}
	}
	if use.Stdin == command.StreamUpload || hasStdinArgument(argv) {
		s.recordUpload(io.Stdin, base, at)
		if io.Stdin.Taint&abstract.TaintStdinInterpreterOutput != 0 && command.Relays[base] {
			s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "sends a shell's output to a network connection", Span: at})
		}
	}
	if use.Stdin == command.StreamUpload {
		s.recordSentValue(io.Stdin, base, f.networkContactEffects, at)
	}
	if f.readContent.Taint&abstract.TaintReadCredentials != 0 && use.Stdout != command.StreamFilteredStdin {
		s.recordUpload(f.readContent, base, at)
	}
	own := len(argv)
	if len(use.NestedCommandsAndCode) == 1 && use.NestedCommandsAndCode[0].Language == "argv" && !use.NestedCommandsAndCode[0].Remote && command.IsProgramWithKnownSyntax(use.NestedCommandsAndCode[0].Words[0].Text) {
		own = max(1, len(argv)-len(use.NestedCommandsAndCode[0].Words)) // the other arguments belong to the command that it runs, which is judged separately
	}
	for i, v := range argv[1:own] {
		switch {
		case isPossibleServerAddress(v) && (use.VariableOnlyArgIsDatabaseAddress || isPeerAddress(v, f.networkContactEffects)):
			continue
		case v.Taint&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump) == 0 && isAuthenticationArgument(argv, i+1):
			v.Taint &^= abstract.TaintCredentialVariable
			if owner := credentialOwner(v); owner != nil && allHostsBelongToCredentialService(owner, f.networkContactEffects) {
				v.Taint &^= abstract.TaintUnprintedKeyStoreCredential // no leak: all contacted hosts belong to the service that the credential is for
			}
		case v.Taint&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintCredentialVariable) != 0:
			s.recordUpload(v, base, at)
		}
		if (use.SendsArgumentsToOtherMachine || len(f.networkContactEffects) > 0) && !isOnlyURLHostUnknown(v) {
			s.recordSentValue(v, base, f.networkContactEffects, v.SourceSpan)
		}
	}
}

// recordCredentialForOtherService records that a credential of a known service is sent to a host of another service. It checks every
// argument, because the agent chooses which host a text names.
func (s *analysisState) recordCredentialForOtherService(base string, argv []abstract.Value, peers []effect.Effect, in abstract.Value) {
	for _, v := range append(slices.Clip(argv), in) {
		owner := credentialOwner(v)
		if owner == nil || allHostsBelongToCredentialService(owner, peers) {
			continue
		}
		for _, p := range peers[:min(len(peers), maxContactedHosts)] {
			if p.Host == "" {
				p.Host = hostAfterUserinfo(p.URL)
			}
			to := p.Host
			if to == "" && strings.Contains(p.URL, "://") && !strings.ContainsAny(p.URL, "$*`") { // a literal URL without a host
				to = abstract.ClipForMessage(p.URL)
			}
			if to == "" || effect.IsLoopbackHost(p.Host) || owner.Serves(p.Host) {
				continue
			}
			s.emitOnce(effect.Effect{Kind: effect.SendData, Program: base, Host: p.Host, URL: p.URL, DataLabels: []effect.TaintLabel{effect.LabelCredential}, Span: v.SourceSpan,
				Reason: "sends " + to + " a credential of " + owner.Hosts[0]})
		}
	}
}

// allHostsBelongToCredentialService reports whether all hosts that a program contacts belong to the service of a credential; false if it
// contacts none.
func allHostsBelongToCredentialService(owner *knowledge.CredentialOwner, contactedHostEffects []effect.Effect) bool {
	return len(contactedHostEffects) > 0 && !slices.ContainsFunc(contactedHostEffects, func(p effect.Effect) bool {
		return !owner.Serves(p.Host) && (p.Host != "" || !owner.Serves(hostAfterUserinfo(p.URL)))
	})
}

// hostAfterUserinfo returns the host of a URL whose user part is unknown, "" if the URL names none.
func hostAfterUserinfo(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	_, host, ok := strings.Cut(rest, "@")
	if !ok || strings.ContainsAny(host, "$*@") {
		return ""
	}
	return effect.CanonicalHost(host)
}

// variableOrSubstitutionPattern matches the variables and command substitutions in a value's text for messages.
var variableOrSubstitutionPattern = prefilter.LazyRegexp(`\$\{?([A-Za-z_]\w{1,99})|\$\(([a-z][^()]{1,99})\)`)

// credentialOwner returns the service whose credential a value holds, by the name of its variable or command; nil if
// unknown.
func credentialOwner(v abstract.Value) *knowledge.CredentialOwner {
	text := v.Display[:min(len(v.Display), 4096)] + " " + v.SecretDescription
	for _, m := range variableOrSubstitutionPattern().FindAllStringSubmatch(text, 16) {
		if o := knowledge.OwnerOfVariable(m[1]); o != nil && m[1] != "" {
			return o
		}
		if o := knowledge.OwnerOfPrintedCredential(m[2]); o != nil && m[2] != "" {
			return o
		}
	}
	return nil
}

// isSecretStoreCommand reports whether a program, or its subcommand, stores secrets.
func isSecretStoreCommand(base string, argv []abstract.Value) bool {
	return command.SecretKeepers[base] || slices.ContainsFunc(argv[1:min(len(argv), 6)], func(v abstract.Value) bool { return command.SecretKeepers[base+"/"+v.Text] })
}

// recordSentFile records that a file goes to the machines that a program contacts.
func (s *analysisState) recordSentFile(base string, file sentFile, peers []effect.Effect) {
	e := effect.Effect{Kind: effect.SendData, Program: base, Recursive: file.isFolder, DataLabels: labelsOf(file.content.Taint), Span: file.pathWord.SourceSpan}
	e.Path, e.PathIsPattern = s.workingFolderContext().CanonicalPath(file.pathWord.Text, file.pathWord.IsGlobPattern)
	if file.pathWord.FullyUnknown {
		e.Path, e.PathIsPattern = "", true
	}
	if file.content.IsLiteral() && file.content.Taint&thisMachineTaints == 0 {
		return // the command itself contains the content
	}
	if len(e.DataLabels) == 0 && e.Path != "" && len(s.writtenFileContents(e.Path, e.PathIsPattern)) == 0 && effect.IsMeantForPublication(e.Path, e.PathIsPattern) {
		e.DataLabels = []effect.TaintLabel{effect.LabelPublishableData}
	}
	s.emitForEachContactedHost(e, peers)
}

// isOnlyURLHostUnknown reports whether the unknown part of a word is only the host, and not data sent to it: "http://$(minikube
// ip):8080/".
func isOnlyURLHostUnknown(v abstract.Value) bool {
	if !v.IsGlobPattern {
		return false
	}
	text := v.Text
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	text = text[strings.LastIndexByte(text, '@')+1:]
	host, rest, _ := strings.Cut(text, "/")
	host, _, _ = strings.Cut(host, ":")
	return strings.Trim(host, "*") == "" && !v.FullyUnknown && !strings.ContainsAny(rest, "*?")
}

// isPossibleServerAddress reports whether a word is completely unknown, so that it may be an address, and holds no data of secret
// files or stores: "psql $DATABASE_URL".
func isPossibleServerAddress(v abstract.Value) bool {
	return v.FullyUnknown && v.Taint&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintUnprintedKeyStoreCredential) == 0
}

// isPeerAddress reports whether an unknown word is the address of a contacted host: peers contains a contact
// with an unknown host at the position of the word. All words of nested code have the same position. If nested
// code contacts an unknown host, the result is true for each of its words.
func isPeerAddress(v abstract.Value, peers []effect.Effect) bool {
	return slices.ContainsFunc(peers, func(p effect.Effect) bool { return p.Span == v.SourceSpan && p.Host == "" })
}

// recordPushOrPublish records data that is sent to the remote or registry that a word names.
func (s *analysisState) recordPushOrPublish(base string, v abstract.Value) {
	e := effect.Effect{Kind: effect.SendData, Program: base, PathIsPattern: v.IsGlobPattern, Span: v.SourceSpan}
	switch {
	case base != "git":
		e.RemoteServiceName = "registry"
		e.Host, e.URL = registryHost(v.Text), v.String()
	case isURLOrPath(v.Text):
		e.Host, e.URL = hostOfGitURL(v.Text), v.String()
	default:
		if v.Text != "." { // "." means the remote of the current branch
			e.RemoteTargetName = v.String()
		}
		for _, r := range s.gitRemotes {
			if r.Name == v.Text || r.Name == "" || v.Text == "." {
				e.RemoteTargetName, e.PathIsPattern = "", r.Address.IsGlobPattern
				e.Host, e.URL = hostOfGitURL(r.Address.Text), r.Address.Text
			}
		}
	}
	if e.Host == "" && e.RemoteTargetName == "" {
		if e.URL == "" {
			return
		}
		e.RemoteTargetName = e.URL
	}
	s.emitOnce(e)
}

// registryHost returns the registry host in an image name; docker.io if the name has none, "" if it is unknown.
func registryHost(image string) string {
	first, _, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(first, ".:") && first != "localhost" {
		first = "docker.io"
	}
	if strings.ContainsAny(first, "*?[") {
		return ""
	}
	first, _, _ = strings.Cut(first, ":")
	return effect.CanonicalHost(first)
}

// isURLOrPath reports whether the target of a git push is a URL or path, and not the name of a remote.
func isURLOrPath(text string) bool { return strings.ContainsAny(text, ":/\\") }

// hostOfGitURL returns the host in a git URL, "" for a path.
func hostOfGitURL(urlOrPath string) string {
	if strings.Contains(urlOrPath, "://") {
		_, host := effect.NormalizeURL(urlOrPath)
		return host
	}
	host, _, ok := strings.Cut(urlOrPath, ":")
	if !ok || strings.ContainsAny(host, "*?[/") {
		return ""
	}
	return effect.CanonicalHost(host[strings.LastIndexByte(host, '@')+1:])
}

// hasStdinArgument reports whether an argument means standard input.
func hasStdinArgument(argv []abstract.Value) bool {
	for _, v := range argv[1:] {
		if v.Text == "-" || strings.HasSuffix(v.Text, "@-") || v.Text == "/dev/stdin" {
			return true
		}
	}
	return false
}

// isAuthenticationArgument reports whether argument i is for authentication, where tokens are expected.
func isAuthenticationArgument(argv []abstract.Value, i int) bool {
	for _, text := range [...]string{argv[i].Text, argv[i-1].Text} {
		name, _, _ := strings.Cut(text, "=")
		if command.LoginOptions[strings.ToLower(name)] {
			return true
		}
	}
	text := strings.ToLower(argv[i].Text)
	return strings.HasPrefix(text, "authorization:") || strings.HasPrefix(text, "http.extraheader=authorization:") || strings.HasPrefix(text, "-h") || strings.HasPrefix(text, "-p") || strings.Contains(text, "://") && strings.Contains(text, "@") && strings.Index(text, "@") > strings.Index(text, "**")
}

// isCredentialFileOperand reports whether a word is the operand of an option that names a credential file; the program
// uses that file and does not send it.
func isCredentialFileOperand(argv []abstract.Value, w command.Word) bool {
	for i, v := range argv {
		if v.SourceSpan != w.Span {
			continue
		}
		opt := ""
		if v.Text != w.Text {
			opt, _, _ = strings.Cut(v.Text, "=")
		} else if i > 0 {
			opt = argv[i-1].Text
		}
		if command.CredentialFileOptions[opt] {
			return !(opt == "-F" && argv[0].Text == "curl")
		}
	}
	return false
}

// lastNetworkContactEffects returns the last effect that contacts a host, as a slice of length 1;
// nil if there is none. In code, the call that names the host comes before the call that sends
// data.
func (s *analysisState) lastNetworkContactEffects() []effect.Effect {
	for i := len(s.effects) - 1; i >= 0; i-- {
		switch s.effects[i].Kind {
		case effect.HTTPRequest, effect.Connect:
			return s.effects[i : i+1]
		}
	}
	return nil
}
