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

// A reviewer sees text that the command itself contains, so sending it is not recorded as sending
// local data. Data counts as sent only if it comes from a file or a command's output.

// taintLabels maps taints to labels.
var taintLabels = [...]struct {
	taint abstract.Taint
	label effect.Label
}{
	{abstract.Secret, effect.LabelSecret},
	{abstract.Credential | abstract.EnvironmentDump | abstract.StoredCredential, effect.LabelCredential},
	{abstract.Private, effect.LabelPrivate},
	{abstract.Network, effect.LabelNetwork},
	{abstract.Decoded, effect.LabelDecoded},
	{abstract.Untrusted, effect.LabelUntrusted},
	{abstract.DatabaseRows, effect.LabelDatabaseRows},
}

// localTaints are the taints of values that come from this machine.
const localTaints = abstract.Local | abstract.Secret | abstract.Credential | abstract.EnvironmentDump | abstract.StoredCredential | abstract.Private | abstract.DatabaseRows

func labelsOf(t abstract.Taint) []effect.Label {
	var out []effect.Label
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

// emitForEachPeer records e for each machine that a program contacts, or once without a machine if it names none.
func (s *state) emitForEachPeer(e effect.Effect, peers []effect.Effect) {
	if len(peers) == 0 {
		s.emitOnce(e)
	}
	for _, p := range peers[:min(len(peers), maxNetworkPeers)] {
		e.Host, e.URL, e.Target = p.Host, p.URL, p.Target
		s.emitOnce(e)
	}
}

// maxNetworkPeers is the maximum number of machines for which one sent value is recorded.
const maxNetworkPeers = 8

// recordSentValue records that a value goes to the machines that a program contacts.
func (s *state) recordSentValue(v abstract.Value, base string, peers []effect.Effect, at effect.Span) {
	if v.Taint&localTaints == 0 {
		return
	}
	e := effect.Effect{Kind: effect.SendData, Program: base, Labels: labelsOf(v.Taint), Span: at}
	if v.IsPattern && v.Display != "" {
		e.Reason = "sends " + abstract.Clip(v.Display)
	}
	s.emitForEachPeer(e, peers)
}

// recordSentData records the data that a network program sends.
func (s *state) recordSentData(base string, argv []abstract.Value, use command.Interpretation, f programIO, io abstract.Streams) {
	at := wordsSpan(argv)
	if keepsSecrets(base, argv) { // storing a secret is the program's purpose; it needs approval as a whole
		if len(f.sentFiles) > 0 || slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return v.Taint&(localTaints|abstract.Credential) != 0 }) || io.In.Taint&localTaints != 0 {
			s.emitForEachPeer(effect.Effect{Kind: effect.SendData, Program: base, Span: at, Reason: base + " stores a secret"}, f.networkPeers)
		}
		return
	}
	s.recordMisdirectedCredential(base, argv[1:], f.networkPeers, io.In)
	for _, file := range f.sentFiles[:min(len(f.sentFiles), maxItems)] {
		s.sendFile(base, file, f.networkPeers)
	}
	if command.Transferrers[base] && io.In.Known() {
		for _, t := range command.Transfers(io.In.Text) {
			name := abstract.Value{Text: t.Path, From: at}
			s.sendFile(base, sentFile{name, s.readFile(effect.ReadFile, name), t.Tree}, f.networkPeers)
		}
	}
	if use.Stdin == command.Upload || hasStdinArgument(argv) {
		s.recordUpload(io.In, base, at)
		if io.In.Taint&abstract.ShellOutput != 0 && command.Relays[base] {
			s.emitOnce(effect.Effect{Kind: effect.RemoteShell, Program: base, Reason: "sends a shell's output to a network connection", Span: at})
		}
	}
	if use.Stdin == command.Upload {
		s.recordSentValue(io.In, base, f.networkPeers, at)
	}
	if f.readContent.Taint&abstract.Secret != 0 && use.Stdout != command.Input {
		s.recordUpload(f.readContent, base, at)
	}
	own := len(argv)
	if len(use.Nested) == 1 && use.Nested[0].Language == "argv" && !use.Nested[0].Remote && command.HasEntry(use.Nested[0].Words[0].Text) {
		own = max(1, len(argv)-len(use.Nested[0].Words)) // the other arguments belong to the command that it runs, which is judged separately
	}
	for i, v := range argv[1:own] {
		switch {
		case mayBeAddress(v) && (use.VariableIsDatabase || isPeerAddress(v, f.networkPeers)):
			continue
		case v.Taint&(abstract.Secret|abstract.EnvironmentDump) == 0 && isLoginArgument(argv, i+1):
			v.Taint &^= abstract.Credential
			if owner := credentialOwner(v); owner != nil && allBelongToService(owner, f.networkPeers) {
				v.Taint &^= abstract.StoredCredential // a secret from a store may only go to the service that it belongs to
			}
		case v.Taint&(abstract.Secret|abstract.EnvironmentDump|abstract.Credential) != 0:
			s.recordUpload(v, base, at)
		}
		if (use.SendsArguments || len(f.networkPeers) > 0) && !onlyHostUnknown(v) {
			s.recordSentValue(v, base, f.networkPeers, v.From)
		}
	}
}

// recordMisdirectedCredential records that a credential of a known service is sent to a host of another service. It checks every
// argument, because the agent chooses which host a text names.
func (s *state) recordMisdirectedCredential(base string, argv []abstract.Value, peers []effect.Effect, in abstract.Value) {
	for _, v := range append(slices.Clip(argv), in) {
		owner := credentialOwner(v)
		if owner == nil || allBelongToService(owner, peers) {
			continue
		}
		for _, p := range peers[:min(len(peers), maxNetworkPeers)] {
			if p.Host == "" {
				p.Host = hostAfterUserinfo(p.URL)
			}
			to := p.Host
			if to == "" && strings.Contains(p.URL, "://") && !strings.ContainsAny(p.URL, "$*`") { // a literal URL without a host
				to = abstract.Clip(p.URL)
			}
			if to == "" || effect.Loopback(p.Host) || owner.Serves(p.Host) {
				continue
			}
			s.emitOnce(effect.Effect{Kind: effect.SendData, Program: base, Host: p.Host, URL: p.URL, Labels: []effect.Label{effect.LabelCredential}, Span: v.From,
				Reason: "sends " + to + " a credential of " + owner.Hosts[0]})
		}
	}
}

// allBelongToService reports whether all hosts that a program contacts belong to the service of a credential; false if it
// contacts none.
func allBelongToService(owner *knowledge.Owner, peers []effect.Effect) bool {
	return len(peers) > 0 && !slices.ContainsFunc(peers, func(p effect.Effect) bool {
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
	return effect.Host(host)
}

// valueSourcePattern matches the variables and command substitutions in a value's text for messages.
var valueSourcePattern = prefilter.Lazy(`\$\{?([A-Za-z_]\w{1,99})|\$\(([a-z][^()]{1,99})\)`)

// credentialOwner returns the service whose credential a value holds, by the name of its variable or command; nil if
// unknown.
func credentialOwner(v abstract.Value) *knowledge.Owner {
	text := v.Display[:min(len(v.Display), 4096)] + " " + v.SecretDescription
	for _, m := range valueSourcePattern().FindAllStringSubmatch(text, 16) {
		if o := knowledge.OwnerOfVariable(m[1]); o != nil && m[1] != "" {
			return o
		}
		if o := knowledge.OwnerPrintedBy(m[2]); o != nil && m[2] != "" {
			return o
		}
	}
	return nil
}

// keepsSecrets reports whether a program, or its subcommand, stores secrets.
func keepsSecrets(base string, argv []abstract.Value) bool {
	return command.SecretKeepers[base] || slices.ContainsFunc(argv[1:min(len(argv), 6)], func(v abstract.Value) bool { return command.SecretKeepers[base+"/"+v.Text] })
}

// sendFile records that a file goes to the machines that a program contacts.
func (s *state) sendFile(base string, file sentFile, peers []effect.Effect) {
	e := effect.Effect{Kind: effect.SendData, Program: base, Recursive: file.isFolder, Labels: labelsOf(file.content.Taint), Span: file.pathWord.From}
	e.Path, e.Pattern = s.place().Path(file.pathWord.Text, file.pathWord.IsPattern)
	if file.pathWord.FullyUnknown {
		e.Path, e.Pattern = "", true
	}
	if file.content.Known() && file.content.Taint&localTaints == 0 {
		return // the command itself contains the content
	}
	if len(e.Labels) == 0 && e.Path != "" && len(s.fileValues(e.Path, e.Pattern)) == 0 && effect.IsPublishedFile(e.Path, e.Pattern) {
		e.Labels = []effect.Label{effect.LabelPublic}
	}
	s.emitForEachPeer(e, peers)
}

// onlyHostUnknown reports whether the unknown part of a word is only the host, and not data sent to it: "http://$(minikube
// ip):8080/".
func onlyHostUnknown(v abstract.Value) bool {
	if !v.IsPattern {
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

// mayBeAddress reports whether a word is completely unknown, so that it may be an address, and holds no data of secret
// files or stores: "psql $DATABASE_URL".
func mayBeAddress(v abstract.Value) bool {
	return v.FullyUnknown && v.Taint&(abstract.Secret|abstract.EnvironmentDump|abstract.StoredCredential) == 0
}

// isPeerAddress reports whether an unknown word is the address of a contacted host. In nested code all words have
// the same span.
func isPeerAddress(v abstract.Value, peers []effect.Effect) bool {
	return slices.ContainsFunc(peers, func(p effect.Effect) bool { return p.Span == v.From && p.Host == "" })
}

// recordPublishedData records data that is sent to the remote or registry that a word names.
func (s *state) recordPublishedData(base string, v abstract.Value) {
	e := effect.Effect{Kind: effect.SendData, Program: base, Pattern: v.IsPattern, Span: v.From}
	switch {
	case base != "git":
		e.Service = "registry"
		e.Host, e.URL = registryHost(v.Text), v.String()
	case isURLOrPath(v.Text):
		e.Host, e.URL = remoteHost(v.Text), v.String()
	default:
		if v.Text != "." { // "." means the remote of the current branch
			e.Target = v.String()
		}
		for _, r := range s.gitRemotes {
			if r.Name == v.Text || r.Name == "" || v.Text == "." {
				e.Target, e.Pattern = "", r.Address.Pattern
				e.Host, e.URL = remoteHost(r.Address.Text), r.Address.Text
			}
		}
	}
	if e.Host == "" && e.Target == "" {
		if e.URL == "" {
			return
		}
		e.Target = e.URL
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
	return effect.Host(first)
}

// isURLOrPath reports whether the target of a git push is a URL or path, and not the name of a remote.
func isURLOrPath(text string) bool { return strings.ContainsAny(text, ":/\\") }

// remoteHost returns the host in a git URL, "" for a path.
func remoteHost(text string) string {
	if strings.Contains(text, "://") {
		_, host := effect.URL(text)
		return host
	}
	host, _, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(host, "*?[/") {
		return ""
	}
	return effect.Host(host[strings.LastIndexByte(host, '@')+1:])
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

// isLoginArgument reports whether argument i is for authentication, where tokens are expected.
func isLoginArgument(argv []abstract.Value, i int) bool {
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
		if v.From != w.Span {
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

// lastNetworkPeer returns the host that was contacted last: code names a host before it sends.
func (s *state) lastNetworkPeer() []effect.Effect {
	for i := len(s.effects) - 1; i >= 0; i-- {
		switch s.effects[i].Kind {
		case effect.HTTPRequest, effect.Connect:
			return s.effects[i : i+1]
		}
	}
	return nil
}
