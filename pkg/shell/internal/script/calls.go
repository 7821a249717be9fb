package script

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A callEffect is the effect of a call in code.
type callEffect uint8

const (
	callEffectRunShellText       callEffect = iota + 1 // its first argument is shell text
	callEffectRunArgv                                  // its arguments are a command
	callEffectRunArgvOrShellText                       // a list argument is a command, a string argument shell text
	callEffectOpenFile                                 // arguments: a path and a mode
	callEffectReadFile
	callEffectWriteFile
	callEffectDeleteFile
	callEffectDeleteTree
	callEffectListFolder
	callEffectMoveFile
	callEffectCopyFile
	callEffectLinkFile
	callEffectSetPermissions
	callEffectMakeFolder
	callEffectHTTPRequest         // an HTTP request
	callEffectDownloadFile        // an HTTP download from a URL to a file
	callEffectHTTPRequestWithBody // an HTTP request with a body
	callEffectSendFile            // sends a file, given by path or as an open file, to another machine
	callEffectOpenConnection
	callEffectListen
	callEffectEvaluateCode // its first argument is code of the same language
	callEffectRunCallback  // its first argument is a function, or code of the same language
	callEffectUnpickleFile // its first argument is a file of serialized objects, which can run code when loaded
	callEffectDuplicateDescriptor
	callEffectChangeUser
	callEffectReceiveFromSocket
	callEffectReadEnvironment
	callEffectLoadCodeFile // its first argument is a file of code
	callEffectKillProcess
	callEffectRunSQL        // its first argument is SQL
	callEffectDeleteAllRows // deletes all rows of a table or database
	callEffectChangeFolder
	callEffectOpenArchive   // arguments: a path and a mode
	callEffectUnpackArchive // unpacks an archive into a folder
	callEffectUnpackArchiveMember
)

// A callEffectRule is the effect of a call. It applies if the receiver or module before the call's
// last dot, and the language, match.
type callEffectRule struct {
	callEffect                                           callEffect
	receiverOrModuleGlobs, excludedReceiverOrModuleGlobs []string // globs for the call's name before the last dot: one of the first list must match, unless it is nil, and none of the second
	onlyLanguages, excludedLanguages                     []string // languages
}

//go:generate go run ./gen

// callEffectOf returns the effect of a call, by its dotted name; 0 if it has none.
func callEffectOf(dottedCallName, language string) callEffect {
	last := dottedCallName[strings.LastIndexByte(dottedCallName, '.')+1:]
	owner := strings.TrimSuffix(strings.TrimSuffix(dottedCallName, last), ".")
	for _, c := range calls()[last] {
		if (c.receiverOrModuleGlobs == nil || matchesAnyCallOwnerGlob(c.receiverOrModuleGlobs, owner)) && !matchesAnyCallOwnerGlob(c.excludedReceiverOrModuleGlobs, owner) &&
			(c.onlyLanguages == nil || slices.Contains(c.onlyLanguages, language)) && !slices.Contains(c.excludedLanguages, language) {
			return c.callEffect
		}
	}
	return 0
}

func matchesAnyCallOwnerGlob(globs []string, dottedOwner string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		if _, part, ok := strings.Cut(glob, ":"); ok {
			return slices.Contains(strings.Split(strings.ToLower(dottedOwner), "."), part)
		}
		return glob == "''" && dottedOwner == "" || abstract.Match(glob, dottedOwner)
	})
}

// recordCall records the effects of a call in code and returns its result.
func (p *script) recordCall(f operand, args []operand) operand {
	for i := range args {
		args[i].SourceSpan = p.spanInAnalyzedText
	}
	if f.dottedName == "" && p.language == "php" && f.IsLiteral() && !f.isList {
		f.dottedName = f.Text // PHP calls the function that a string names
	}
	if f.dottedName == "" {
		return operand{Value: abstract.Unknown("…()", f.Taint|combinedTaint(args)), isUsedByCall: true}
	}
	full := f.dottedName
	if full == ".then" {
		p.recordCallbacks(f, full, args)
	}
	if full[0] == '.' { // a method of a value
		if v, ok := p.computeMethodCallResult(full[1:], f, args); ok {
			return v
		}
	}
	if v, ok := p.computeCallResult(full, args); ok {
		return v
	}
	first := operand{}
	if len(args) > 0 {
		first = args[0]
		if first.dottedName != "" {
			first.Value = abstract.Unknown(first.dottedName, first.Taint)
		}
	}
	recv := f
	recv.dottedName = ""
	r := callEffectOf(strings.TrimPrefix(full, "."), p.language)
	if r == callEffectUnpackArchiveMember && !f.isArchive {
		r = 0 // the receiver is not an archive, so this is another method with the same name
	}
	if r == 0 {
		p.recordCallbacks(f, full, args)
		if root, _, _ := strings.Cut(full, "."); remoteServiceClientPackages[root] {
			if verb, list := knowledge.ToolNameVerb(full[strings.LastIndexByte(full, '.')+1:]); list == "destroys" {
				p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeRemoteSystem, Program: root, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, Reason: "calls " + verb + " on a remote service", Span: p.spanInAnalyzedText})
			}
		}
		writes := len(args) > 0 && hasDataChangingName(full)
		for _, a := range args {
			p.recordEffectsUnlessUsedByCall(a)
			if writes && isRootOrHomePath(a) {
				p.analysisContext.RecordPathEffect(effect.WriteFile, a.Value, false)
			}
		}
		t := f.Taint | combinedTaint(args)
		name := full
		if full[0] == '.' {
			name = ""
		}
		return operand{dottedName: name, Value: abstract.Unknown(abstract.ClipForMessage(full)+"()", t), isUsedByCall: true}
	}
	if (r == callEffectDeleteFile || r == callEffectDeleteTree) && len(args) == 0 && strings.Contains(full, ".") && (full[0] != '.' || recv.FullyUnknown || recv.Text == "") {
		recv.Value = abstract.Unknown("…", recv.Taint) // p.unlink(): the path is unknown
		args, first = []operand{recv}, recv
	}
	if (r == callEffectUnpackArchive || r == callEffectUnpackArchiveMember) && full[0] == '.' {
		args = append([]operand{recv}, args...)
		first = recv
	}
	// Path("x").read_text(): the receiver is the path.
	if full[0] == '.' && len(recv.Text) > 0 && (r == callEffectReadFile || r == callEffectWriteFile || r == callEffectDeleteFile || r == callEffectListFolder || r == callEffectDeleteTree || r == callEffectOpenFile || r == callEffectSetPermissions || r == callEffectMakeFolder) && !recv.FullyUnknown {
		args = append([]operand{recv}, args...)
		if r == callEffectWriteFile && len(args) > 1 {
			first = args[1]
		}
		first = recv
	}
	if r == callEffectLinkFile && full[0] == '.' && len(args) == 1 && recv.IsLiteral() { // Path("x").symlink_to(target)
		args = append(args, recv)
	}
	out := p.recordCallEffect(r, full, first, args)
	out.Taint |= f.Taint
	out.isUsedByCall = true
	return out
}

// remoteServiceClientPackages are the client libraries of services on other machines.
var remoteServiceClientPackages = map[string]bool{
	"boto3": true, "botocore": true, "kubernetes": true, "azure": true, "googleapiclient": true, "openstack": true, "digitalocean": true, "hcloud": true, "linode_api4": true,
	"github": true, "gitlab": true, "stripe": true, "heroku3": true, "cloudflare": true, "pulumi": true, "@aws-sdk": true, "@octokit": true, "@kubernetes": true,
}

// hasDataChangingName reports whether the name of an unlisted call suggests that it changes something.
func hasDataChangingName(dottedName string) bool {
	switch _, list := knowledge.ToolNameVerb(dottedName[strings.LastIndexByte(dottedName, '.')+1:]); list {
	case "changes", "destroys", "sends":
		return true
	}
	last := strings.ToLower(dottedName[strings.LastIndexByte(dottedName, '.')+1:])
	return strings.HasPrefix(last, "save") || strings.HasPrefix(last, "write") || strings.HasPrefix(last, "to_") || strings.HasPrefix(last, "dump") || strings.HasSuffix(last, "handler") || strings.HasSuffix(last, "writer")
}

// isRootOrHomePath reports whether an operand is a known path that begins with / and has at least one folder,
// such as /etc/hosts, or a known path below the home folder (~/).
func isRootOrHomePath(o operand) bool {
	return o.dottedName == "" && !o.isList && o.IsLiteral() && len(o.Text) > 2 && len(o.Text) < 1024 && !strings.ContainsAny(o.Text, " \n<>|*") &&
		(o.Text[0] == '/' && strings.IndexByte(o.Text[1:], '/') > 0 || strings.HasPrefix(o.Text, "~/"))
}

// recordCallEffect records the effect of a call and returns the call's result.
func (p *script) recordCallEffect(r callEffect, dottedName string, first operand, args []operand) operand {
	result := operand{Value: abstract.Unknown(abstract.ClipForMessage(dottedName)+"()", 0)}
	if r == callEffectDeleteAllRows {
		p.recordDatabaseWipe(dottedName)
		return result
	}
	if len(args) == 0 {
		if r == callEffectReceiveFromSocket {
			p.receivesFromSocket = true
			result.Taint |= abstract.TaintSocket
		}
		return result
	}
	path := first.Value
	path.SourceSpan = p.spanInAnalyzedText
	switch r {
	case callEffectRunShellText:
		if len(args) > 1 && (p.language == "perl" || p.language == "ruby") && args[1].IsLiteral() && args[1].dottedName == "" && !args[1].isList {
			p.walkArgvCommand(args)
		} else if first.isList {
			p.walkArgvCommand(args[:1])
		} else {
			p.walkShellText(path)
		}
		result.Taint |= abstract.TaintUnknownText
	case callEffectRunArgv:
		p.walkArgvCommand(dropNonArgvArguments(dottedName, args))
	case callEffectRunArgvOrShellText:
		if first.isList {
			p.walkArgvCommand(args[:1])
		} else {
			p.walkShellText(path)
		}
	case callEffectOpenArchive:
		return p.recordArchiveOpen(args, path)
	case callEffectUnpackArchive:
		p.recordUnpacking(args, "")
	case callEffectUnpackArchiveMember:
		p.recordMemberUnpacking(args)
	case callEffectOpenFile, callEffectReadFile, callEffectWriteFile, callEffectDeleteFile, callEffectDeleteTree, callEffectListFolder, callEffectMoveFile, callEffectCopyFile, callEffectLinkFile, callEffectSetPermissions, callEffectMakeFolder:
		return p.recordFileEffect(r, dottedName, path, args, result)
	case callEffectSendFile:
		p.recordSentFile(args)
	case callEffectHTTPRequest, callEffectHTTPRequestWithBody:
		p.recordRequest(r, path, args)
		result.Taint |= abstract.TaintNetwork
	case callEffectDownloadFile:
		p.recordDownload(args)
		result.Taint |= abstract.TaintNetwork
	case callEffectOpenConnection:
		p.opensConnection, p.sendsData, p.sendsFileContents = true, true, true
		p.recordConnection(args)
		result.Taint |= abstract.TaintSocket
	case callEffectListen:
		p.recordNetworkListener(dottedName, first)
	case callEffectRunCallback:
		if !first.isList && !first.FullyUnknown && first.dottedName == "" {
			p.walkEvaluatedCode(dottedName, path)
		}
	case callEffectEvaluateCode:
		p.walkEvaluatedCode(dottedName, path)
	case callEffectUnpickleFile:
		p.walkEvaluatedCode("pickle", p.readFile(path))
	case callEffectDuplicateDescriptor:
		p.duplicatesDescriptors = true
	case callEffectChangeUser:
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangePrivilege, Program: p.language, Span: p.spanInAnalyzedText})
	case callEffectReceiveFromSocket:
		p.receivesFromSocket = true
		result.Taint |= abstract.TaintSocket
	case callEffectReadEnvironment:
		return operand{Value: p.analysisContext.Environment(path.Text)}
	case callEffectLoadCodeFile:
		p.walkLoadedCodeFile(dottedName, path)
	case callEffectChangeFolder:
		p.analysisContext.ChangeFolder(path)
	case callEffectRunSQL:
		p.recordQuery(path)
	case callEffectKillProcess:
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.StopProcess, Program: p.language, Span: p.spanInAnalyzedText})
	}
	return result
}

// dropNonArgvArguments drops the arguments of exec and spawn calls that are not words of the command: the mode
// of os.spawnl, a repeated program name, and options objects.
func dropNonArgvArguments(dottedName string, args []operand) []operand {
	last := dottedName[strings.LastIndexByte(dottedName, '.')+1:]
	if last == "Command" && len(args) > 1 { // Deno: the arguments are in an options object
		for _, o := range args[1].elements {
			if o.isList {
				return []operand{args[0], o}
			}
		}
	}
	if strings.HasPrefix(last, "spawnl") || strings.HasPrefix(last, "spawnv") {
		args = args[min(1, len(args)):]
	}
	if strings.HasPrefix(last, "exec") && last != "execFile" && last != "execFileSync" || strings.HasPrefix(last, "spawnl") || strings.HasPrefix(last, "spawnv") || last == "posix_spawn" {
		if len(args) > 1 {
			rest := args[1:]
			if rest[0].isList && len(rest[0].elements) > 0 {
				rest = append([]operand{{elements: rest[0].elements[1:], isList: true}}, rest[min(1, len(rest)):min(1, len(rest))]...)
			} else {
				rest = rest[1:]
			}
			args = append([]operand{args[0]}, rest...)
		}
	}
	if len(args) > 2 && args[1].isList {
		args = args[:2] // drops the third argument: the options object of node's spawn
	}
	kept := args[:0:0]
	for _, a := range args {
		if !(a.isBraced && len(kept) > 0) {
			kept = append(kept, a)
		}
	}
	return kept
}

// recordOpen handles open(path, mode).
func (p *script) recordOpen(args []operand, path abstract.Value) operand {
	mode := ""
	if len(args) > 1 {
		mode = args[1].Text
	}
	if p.language == "perl" {
		// open(F, "<", "x"), open(F, "> x"), open(F, "cmd |")
		rest := args
		if len(rest) > 1 {
			rest = rest[1:]
		}
		mode, path = perlOpenMode(rest[0].Text), rest[len(rest)-1].Value
		path.SourceSpan = p.spanInAnalyzedText
		text := strings.TrimSpace(rest[0].Text)
		if strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|") || strings.Contains(text, "-|") {
			path.Text = strings.Trim(path.Text, "|- ")
			p.walkShellText(path)
			return operand{Value: abstract.Unknown("open()", abstract.TaintUnknownText), isUsedByCall: true}
		}
		if strings.Contains(text, "&") { // open(STDIN, ">&C") duplicates a file handle
			p.duplicatesDescriptors = true
			return operand{isUsedByCall: true}
		}
		path.Text = strings.TrimLeft(path.Text, "<>+ ")
	}
	if path.IsLiteral() && plain.IsURL(path.Text) {
		p.analysisContext.RecordURLContact(effect.HTTPRequest, path)
		return operand{Value: abstract.Unknown("open()", abstract.TaintNetwork), isUsedByCall: true}
	}
	if path.IsLiteral() && strings.HasPrefix(path.Text, "|") && p.language == "ruby" {
		path.Text = path.Text[1:]
		p.walkShellText(path)
		return operand{Value: abstract.Unknown("open()", abstract.TaintUnknownText), isUsedByCall: true}
	}
	if strings.ContainsAny(mode, "wax+>") {
		p.writeFile(path, abstract.Value{})
		return operand{Value: abstract.Unknown("open()", 0), isUsedByCall: true}
	}
	return operand{Value: p.readFile(path), isUsedByCall: true}
}

// recordSysopen handles Perl's sysopen(HANDLE, path, flags).
func (p *script) recordSysopen(args []operand) operand {
	path := args[1].Value
	path.SourceSpan = p.spanInAnalyzedText
	if flags := args[min(2, len(args)-1)]; flags.Text == "0" || flags.dottedName == "O_RDONLY" {
		return operand{Value: p.readFile(path), isUsedByCall: true}
	}
	p.writeFile(path, abstract.Value{})
	return operand{Value: abstract.Unknown("open()", 0), isUsedByCall: true}
}

// perlOpenMode returns the mode of Perl's open, which may precede the path in one string.
func perlOpenMode(text string) string {
	text = strings.TrimLeft(text, " \t\n")
	return text[:len(text)-len(strings.TrimLeft(text, "<>+"))]
}

// walkLoadedCodeFile records that a code file runs. For JavaScript's import(), only URLs, and packages with npm: or jsr:, count:
// other names are modules.
func (p *script) walkLoadedCodeFile(dottedName string, path abstract.Value) {
	if dottedName != "import" {
		p.analysisContext.WalkCodeFile(path, p.language, p.spanInAnalyzedText)
		return
	}
	if data, ok := path.DecodeDataURL(); ok {
		p.walkEvaluatedCode(dottedName, data)
	} else if plain.IsURL(path.Text) {
		p.analysisContext.WalkCodeFile(path, p.language, p.spanInAnalyzedText)
	} else if path.IsLiteral() && (strings.HasPrefix(path.Text, "npm:") || strings.HasPrefix(path.Text, "jsr:")) {
		p.analysisContext.WalkCommand([]abstract.Value{abstract.Lit("deno"), abstract.Lit("run"), path})
	}
}

// recordCallbacks records the effects of functions passed as arguments: an evaluating function that
// gets downloaded code, as in fetch(url).then(eval), and PHP functions passed by name, as in
// array_map('system', $list).
func (p *script) recordCallbacks(f operand, dottedName string, args []operand) {
	for _, a := range args {
		if a.dottedName != "" && f.Taint&abstract.TaintNetwork != 0 && callEffectOf(a.dottedName, p.language) == callEffectEvaluateCode {
			p.walkEvaluatedCode(a.dottedName, f.Value)
		}
	}
	if p.language != "php" || len(args) < 2 || !strings.HasPrefix(dottedName, "array_") && !strings.HasPrefix(dottedName, "call_user_func") {
		return
	}
	callee, given := args[0], args[1:]
	if callee.isList { // array_filter and array_walk take the list first, and then the function
		callee, given = args[1], args[:1]
	}
	r := callEffectOf(callee.Text, p.language)
	switch {
	case !callee.IsLiteral() || callee.dottedName != "" || r == 0:
	case dottedName == "call_user_func_array" && given[0].isList && len(given[0].elements) > 0:
		p.recordCallEffect(r, callee.Text, given[0].elements[0], given[0].elements)
	case strings.HasPrefix(dottedName, "array_") && given[0].isList:
		for _, e := range given[0].elements {
			p.recordCallEffect(r, callee.Text, e, []operand{e})
		}
	default:
		p.recordCallEffect(r, callee.Text, given[0], given)
	}
}

func (p *script) walkEvaluatedCode(dottedName string, code abstract.Value) {
	code.SourceSpan = p.spanInAnalyzedText
	if strings.Contains(dottedName, "pickle") || strings.Contains(dottedName, "marshal") {
		if code.Taint&(abstract.TaintNetwork|abstract.TaintDecoded|abstract.TaintUntrustedText) == 0 {
			return
		}
	}
	if !code.IsLiteral() && code.HasOnlyTaintsHarmlessToRun() && code.FullyUnknown {
		p.analysisContext.RecordUnknownEffect(code.CauseOfUnknownCode(), p.language+" code evaluates unknown text", p.spanInAnalyzedText)
		return
	}
	if p.receivesFromSocket && !code.IsLiteral() {
		code.Taint |= abstract.TaintSocket
	}
	p.analysisContext.WalkCode(p.language, code, p.language+" code", p.spanInAnalyzedText)
}

// operandTexts returns the strings in a list; false if an element is not a known string.
func operandTexts(list []operand) ([]string, bool) {
	out := make([]string, 0, len(list))
	for _, o := range list {
		if !o.IsLiteral() || o.dottedName != "" {
			return nil, false
		}
		out = append(out, o.Text)
	}
	return out, true
}

func combinedTaint(list []operand) (t abstract.Taint) {
	for _, o := range list {
		t |= o.Taint
		if slices.ContainsFunc(o.elements, func(e operand) bool { return e.Taint != 0 }) {
			t |= combinedTaint(o.elements)
		}
	}
	return t
}
