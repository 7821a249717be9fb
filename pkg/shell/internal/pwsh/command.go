package pwsh

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/apicall"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A psArg is an argument of a PowerShell command.
type psArg struct {
	param    string // full parameter name in lower case, "" if positional
	use      parameterUse
	val      abstract.Value
	hasValue bool
}

// walkCommand walks a command after its name: it parses the arguments and records the effects.
func (p *analyzer) walkCommand(name, in abstract.Value) abstract.Value {
	name.SourceSpan = p.textSpanInCommand
	lower := strings.ToLower(strings.TrimSuffix(name.Text, ".exe"))
	if reader := aliased(lower); reader != "" {
		lower = reader
	}
	c := findCmdlet(lower)
	if strings.HasSuffix(strings.ToLower(name.Text), ".exe") {
		c = nil
	}
	if v, ok := p.analysisContext.LookupVariable("psalias:" + lower); ok && v.IsLiteral() {
		name = v
		c = findCmdlet(strings.ToLower(name.Text))
	}
	if in.HasPathPerLine && c != nil && (c.behavior == cmdletBehaviorRunsCodePerInput || c.behavior == cmdletBehaviorOutputsInputSubset) {
		p.analysisContext.SetVariable("ps:_", in)
		p.analysisContext.SetVariable("ps:psitem", in)
		defer func() {
			p.analysisContext.SetVariable("ps:_", abstract.UnsetVariableValue("_", 0))
			p.analysisContext.SetVariable("ps:psitem", abstract.UnsetVariableValue("PSItem", 0))
		}()
	}
	var args []psArg
	var io abstract.Streams
	defer p.analysisContext.HoldBackEffects(func() { args, io = p.parseCommandArguments(c, in) })()
	if !name.IsLiteral() {
		return p.analysisContext.WalkUnknownProgram(append([]abstract.Value{name}, argumentValues(args)...), io)
	}
	argv := []abstract.Value{name}
	for _, a := range args {
		if a.param != "" {
			argv = append(argv, abstract.Lit("-"+a.param))
		}
		if a.hasValue {
			argv = append(argv, a.val)
		}
	}
	for i := range argv {
		argv[i].SourceSpan = p.textSpanInCommand
	}
	out := abstract.Value{}
	switch {
	case c != nil:
		class := c.class
		p.analysisContext.RecordExecuteEffect(argv, c.name, class)
		out = p.walkCmdlet(c, args, io)
		if lower != c.name && hasUnixOptions(args) { // on systems that have a program of this name, PowerShell has no such alias
			out.Taint |= p.analysisContext.WalkWindowsCommand(argv, io).Taint
		}
	case isVerbNounCmdletName(lower):
		class := effect.UnknownClass
		if isReader(lower) {
			class = effect.ReadOnly
		}
		p.analysisContext.RecordExecuteEffect(argv, lower, class)
		p.recordRemoteChange(argv, lower)
		out = abstract.UnknownOutput(lower, in.Taint)
		for _, v := range argv[1:] {
			p.analysisContext.RecordPathOrURL(v)
			out.Taint |= v.Taint
		}
		if in.HasPathPerLine && commandsForwardingInputObjects[lower] {
			out = unknownSubsetOfFiles(in)
			if slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return filePropertiesWithoutFolderPath[strings.ToLower(v.Text)] }) {
				out = abstract.UnknownTextWithoutSlash("what "+lower+" writes", abstract.OriginCommandOutput)
			}
		}
	default:
		out = p.analysisContext.WalkWindowsCommand(argv, io)
	}
	return p.analysisContext.DeliverOutput(io, out)
}

// hasUnixOptions reports whether an argument looks like bundled Unix options such as -rf: it has at most three
// letters, no parameter of the cmdlet begins with them, and they are not the short name of a parameter that all
// cmdlets have.
func hasUnixOptions(args []psArg) bool {
	for _, a := range args {
		if a.param != "" && a.use == paramUseUnlisted && len(a.param) < 4 && !commonParameterAliases[a.param] {
			return true
		}
	}
	return false
}

// commonParameterAliases are the short names of the parameters that all cmdlets have.
var commonParameterAliases = map[string]bool{
	"ea": true, "ev": true, "wa": true, "wv": true, "infa": true, "iv": true, "ov": true, "ob": true, "pv": true, "vb": true, "db": true, "wi": true, "cf": true,
}

func argumentValues(args []psArg) []abstract.Value {
	out := make([]abstract.Value, 0, len(args))
	for _, a := range args {
		out = append(out, a.val)
	}
	return out
}

// parseCommandArguments parses the arguments of a command.
func (p *analyzer) parseCommandArguments(c *cmdlet, in abstract.Value) ([]psArg, abstract.Streams) {
	io := abstract.Streams{Stdin: in}
	var args []psArg
	position := 0
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() && len(args) < abstract.MaxExpandedWords {
		p.skipCharSetAndComments(" \t")
		if p.pos >= len(p.text) {
			break
		}
		ch := p.text[p.pos]
		if strings.IndexByte("\r\n;|)}&", ch) >= 0 { // a single & runs the command in the background
			break
		}
		if p.atRedirection() {
			p.parseRedirection(&io)
			continue
		}
		start := p.pos
		if ch == '-' && p.pos+1 < len(p.text) && (plain.IsWordByte(p.text[p.pos+1]) && (p.text[p.pos+1] < '0' || p.text[p.pos+1] > '9')) && c != nil {
			args = append(args, p.parseParameter(c))
		} else {
			a := psArg{val: p.parseArgument(), hasValue: true}
			if c != nil {
				_, a.use = c.positionalParamNameAndUse(position)
				position++
			}
			args = append(args, a)
		}
		if p.pos == start {
			p.pos++
		}
	}
	return args, io
}

// atRedirection reports whether a redirection comes next.
func (p *analyzer) atRedirection() bool {
	rest := p.text[p.pos:]
	return rest != "" && (rest[0] == '>' || len(rest) > 1 && rest[1] == '>' && strings.IndexByte("123456*", rest[0]) >= 0)
}

func (p *analyzer) parseRedirection(io *abstract.Streams) {
	n := ""
	if p.text[p.pos] != '>' {
		n = p.text[p.pos : p.pos+1]
		p.pos++
	}
	add := strings.HasPrefix(p.text[p.pos:], ">>")
	p.skipCharSetAndComments("> \t")
	if p.pos < len(p.text) && p.text[p.pos] == '&' {
		p.pos = min(len(p.text), p.pos+2)
		return
	}
	w := p.parseArgument()
	if strings.EqualFold(w.Text, "$null") {
		io.Out = &abstract.OutputTarget{Discard: true}
		return
	}
	p.analysisContext.RedirectOutput(io, strings.Trim(n, "*"), w, add)
}

// parseParameter parses -Name, -Name:value and -Name value.
func (p *analyzer) parseParameter(c *cmdlet) psArg {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) && plain.IsWordByte(p.text[p.pos]) {
		p.pos++
	}
	full, use := c.findParamUse(strings.ToLower(p.text[start:p.pos]))
	a := psArg{param: full, use: use}
	if p.pos < len(p.text) && p.text[p.pos] == ':' {
		p.pos++
		a.val, a.hasValue = p.parseArgument(), use != paramUseSwitch
		return a
	}
	if use == paramUseSwitch {
		return a
	}
	mark := p.pos
	p.skipCharSetAndComments(" \t")
	if p.pos >= len(p.text) || strings.IndexByte("\r\n;|)}-", p.text[p.pos]) >= 0 && !(use != paramUseUnlisted && p.text[p.pos] == '-' && p.pos+1 < len(p.text) && p.text[p.pos+1] >= '0' && p.text[p.pos+1] <= '9') {
		p.pos = mark
		return a
	}
	a.val, a.hasValue = p.parseArgument(), true
	return a
}

// parseArgument parses one argument; adjacent words form one argument.
func (p *analyzer) parseArgument() abstract.Value {
	var b abstract.Builder
	text, names := "", ""
	start := p.pos
	for p.pos < len(p.text) && !p.analysisContext.IsAnalysisAborted() {
		c := p.text[p.pos]
		if strings.IndexByte(" \t\r\n;|)}", c) >= 0 || p.pos == start && c == '>' {
			break
		}
		before := p.pos
		switch {
		case c == ',':
			b.AddLiteral(" ")
			p.pos++
			p.skipCharSetAndComments(" \t\r\n")
		case c == '\'' || c == '"' || c == '(' || c == '$' || c == '@' || c == '{' || c == '[' && p.pos == start:
			v := p.parseOperand()
			text, names = v.Text, v.ListedFileNamePatterns
			b.Add(v)
		default:
			b.AddLiteral(p.parseBareWord())
		}
		if p.pos == before {
			if c == '&' || c == '<' {
				b.AddLiteral(string(c))
			}
			p.pos++
		}
	}
	v := b.Value()
	if v.HasPathPerLine && names != "" && v.Text == text { // the argument consists only of the list of paths
		v.ListedFileNamePatterns = names
	}
	v.SourceSpan = p.textSpanInCommand
	return v
}

// walkCmdlet records the effects of a cmdlet's arguments and returns its output.
func (p *analyzer) walkCmdlet(c *cmdlet, args []psArg, io abstract.Streams) abstract.Value {
	in := io.Stdin
	out := abstract.UnknownOutput(c.name, in.Taint)
	if c.effect != "" {
		e := effect.EffectOfPolicyKind(c.effect)
		e.Program, e.Reason, e.Span = c.name, c.name, p.textSpanInCommand
		p.analysisContext.RecordEffect(e)
	}
	args = addPipedArguments(c, args, in)
	recursive, posts := false, false
	var program abstract.Value
	var programArgs []abstract.Value
	var written []abstract.OutputTarget
	read := abstract.Value{}
	for _, a := range args {
		recursive = recursive || a.param == "recurse"
		posts = posts || a.use == paramUseSentData || a.param == "infile"
	}
	for _, a := range args {
		v := a.val
		v.SourceSpan = p.textSpanInCommand
		if !a.hasValue {
			continue
		}
		switch a.use {
		case paramUseReadPath:
			read = p.analysisContext.RecordFileRead(abstract.PatternFromWindowsGlob(v))
			if recursive {
				p.analysisContext.RecordPathEffect(effect.ReadFile, abstract.PatternFromWindowsGlob(v), true)
			}
			out.Taint |= read.Taint
			if read.IsLiteral() && c.behavior == cmdletBehaviorOutputsFileContent {
				out = read
			}
			if posts && c.class == effect.Network {
				p.analysisContext.RecordSentValue(read, c.name, p.textSpanInCommand)
			}
		case paramUseWritePath, paramUseDeletePath, paramUseMovePathAway, paramUseSetPermissions, paramUseCreateFolder, paramUseListPath:
			written = append(written, p.recordPathEffect(c, a.use, v, recursive)...)
			if name, ok := strings.CutPrefix(strings.ToLower(v.Text), "env:"); ok && a.use == paramUseWritePath {
				p.analysisContext.SetEnvironment(strings.ToUpper(strings.TrimLeft(name, `\/`)), valueAssignedByItemCmdlet(args), p.textSpanInCommand)
			}
			if strings.HasPrefix(strings.ToLower(v.Text), "env:") && a.use == paramUseListPath {
				out.Taint |= abstract.TaintEnvironmentDump
			}
		case paramUseCalledMember:
			p.callMethodOnEach(in, v)
		case paramUseContactURL:
			p.analysisContext.RecordURLContact(effect.HTTPRequest, v)
			out.Taint |= abstract.TaintNetwork
			if v.Taint&(abstract.TaintReadCredentials|abstract.TaintEnvironmentDump|abstract.TaintCredentialVariable) != 0 {
				p.analysisContext.RecordSentValue(v, c.name, p.textSpanInCommand)
			}
		case paramUseContactHost:
			p.analysisContext.RecordHostContact(effect.Connect, v)
		case paramUseSentData:
			p.analysisContext.RecordSentValue(v, c.name, p.textSpanInCommand)
		case paramUsePowerShellCode:
			return p.walkEvaluatedCode(v)
		case paramUseProgram:
			program = v
		case paramUseProgramArgs:
			programArgs = splitWords(v)
		case paramUseScriptBlock:
			out.Taint |= v.Taint
		}
	}
	p.recordRemoteDeletion(c, args)
	p.recordCmdletBehavior(c, args, in, program, programArgs)
	if c.behavior == cmdletBehaviorRunsInputCode {
		return p.walkEvaluatedCode(in)
	}
	p.storeWrittenFiles(c, args, written, in, read)
	switch c.behavior {
	case cmdletBehaviorOutputsArgs:
		return abstract.JoinWithSpaces(argumentValues(args))
	case cmdletBehaviorOutputsJoinedPath:
		return joinedPath(args)
	case cmdletBehaviorOutputsInputSubset:
		if in.HasPathPerLine {
			return unknownSubsetOfFiles(in)
		}
		return abstract.Unknown("…", out.Taint)
	case cmdletBehaviorOutputsFileList:
		return listingCmdletOutput(c, args, out)
	case cmdletBehaviorOutputsUnknownValue, cmdletBehaviorRunsCodePerInput:
		return abstract.Unknown("…", out.Taint)
	case cmdletBehaviorAsksUserPassword:
		v := abstract.Unknown("…", abstract.TaintCredentialVariable)
		v.SecretDescription = "what the user types in"
		return v
	default:
		return out
	}
}

// recordRemoteDeletion records that a web request deletes data on another machine, by its method or its body.
func (p *analyzer) recordRemoteDeletion(c *cmdlet, args []psArg) {
	var to, says string
	for _, a := range args {
		switch {
		case a.use == paramUseContactURL && a.hasValue:
			_, to = effect.NormalizeURL(a.val.Text)
		case a.use == paramUseHTTPMethod && strings.EqualFold(a.val.Text, "delete"):
			says = "the method is DELETE"
		case a.use == paramUseSentData && a.hasValue:
			if word := apicall.FindDestructiveWord(a.val.Text); word != "" {
				says = "the request body contains the verb " + word
			}
		}
	}
	if says != "" && !effect.MayBeThisMachine(to) {
		p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangeRemoteSystem, Program: c.name, Host: to, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, Reason: says, Span: p.textSpanInCommand})
	}
}

// valueAssignedByItemCmdlet returns the new value in the arguments of a cmdlet that sets an item, such as
// Set-Item env:NAME VALUE. The value is the parameter -Value, or the second of two arguments.
func valueAssignedByItemCmdlet(args []psArg) abstract.Value {
	for _, a := range args {
		if a.param == "value" && a.hasValue {
			return a.val
		}
	}
	if vals := argumentValues(args); len(vals) == 2 {
		return vals[1]
	}
	return abstract.Unknown("…", 0)
}

// commandsForwardingInputObjects are the commands that output some of their input objects.
var commandsForwardingInputObjects = map[string]bool{"select-object": true, "sort-object": true, "get-unique": true}

// unknownSubsetOfFiles returns an unknown selection of the files in a list.
func unknownSubsetOfFiles(fileList abstract.Value) abstract.Value {
	if fileList.ListedFileNamePatterns == "" && strings.HasSuffix(fileList.Text, "/**") {
		fileList.ListedFileNamePatterns = "?*"
	}
	return fileList
}

// addPipedArguments passes the input objects to the parameters that accept pipeline input, unless
// an argument sets the parameter. A list of paths is passed to all of them. Other input is passed
// to a parameter that lists paths only if it is a literal text, and to a parameter that reads paths
// only if it is a literal text and the cmdlet is Get-Content, because other cmdlets may search the
// text itself.
func addPipedArguments(c *cmdlet, args []psArg, in abstract.Value) []psArg {
	for _, p := range c.params {
		if !p.acceptsPipedInput || in.Text == "" || slices.ContainsFunc(args, func(a psArg) bool {
			return a.hasValue && a.use == p.valueUse && (a.param == "" || a.param == p.name || a.param == "literalpath")
		}) {
			continue
		}
		if in.HasPathPerLine || p.valueUse != paramUseReadPath && p.valueUse != paramUseListPath || in.IsLiteral() && (c.behavior == cmdletBehaviorOutputsFileContent || p.valueUse == paramUseListPath) {
			args = append(args, psArg{param: p.name, use: p.valueUse, val: in, hasValue: true})
		}
	}
	return args
}

// listingCmdletOutput returns the output of a cmdlet that lists files: the content of folders for Get-ChildItem, else the named
// files.
func listingCmdletOutput(c *cmdlet, args []psArg, unknownOutput abstract.Value) abstract.Value {
	v := abstract.Value{Text: ".", Display: "what " + c.name + " lists", IsGlobPattern: true, HasPathPerLine: true, DoubleStarExcludesDotDot: true, Taint: unknownOutput.Taint}.WithOrigin(abstract.OriginCommandOutput)
	folders, tail := 0, "/**"
	has := func(name string) bool {
		return slices.ContainsFunc(args, func(a psArg) bool { return a.param == name })
	}
	var names []string
	for _, a := range args {
		switch {
		case !a.hasValue:
		case a.use == paramUseListPath && folders == 0:
			root := abstract.PatternFromWindowsGlob(a.val)
			v.DoubleStarExcludesDotDot = root.IsLiteral()
			if root.IsGlobPattern && !root.FullyUnknown { // a glob lists the files that match it, not the content of a folder
				tail = ""
			}
			if root.IsLiteral() {
				root.Text = strings.ReplaceAll(root.Text, `\`, "/")
			}
			v.Text, v.Taint = strings.TrimSuffix(root.AsPattern(), "/"), v.Taint|root.Taint
			folders++
			if a.val.IsLiteral() && strings.ContainsAny(a.val.Text, " ") {
				folders++
			}
		case a.use == paramUseListPath:
			folders++
		case (a.param == "filter" || a.param == "include") && a.val.IsLiteral():
			names = append(names, strings.Fields(a.val.Text)...)
		}
	}
	if folders > 1 {
		v.Text, v.DoubleStarExcludesDotDot = "**", false
		v.FullyUnknown = true
	} else if c.name == "get-childitem" {
		if has("name") { // names without their folder
			return abstract.UnknownTextWithoutSlash(v.Display, abstract.OriginCommandOutput)
		}
		if len(names) > 0 && tail != "" && !has("recurse") {
			tail = "/*"
		}
		v.Text += tail
		v.ListedFileNamePatterns = strings.Join(names, "\n")
	}
	return v
}

// joinedPath returns the path that join-path builds from its arguments.
func joinedPath(args []psArg) abstract.Value {
	var b abstract.Builder
	for _, a := range args {
		if !a.hasValue {
			continue
		}
		if b.HasAddedPart {
			b.AddLiteral("/")
		}
		b.Add(a.val)
	}
	return b.Value()
}

// callMethodOnEach calls a method on each input object.
func (p *analyzer) callMethodOnEach(in, name abstract.Value) {
	if name.IsLiteral() {
		p.recordMethodCall(abstract.Unknown("…", in.Taint), "."+strings.ToLower(name.Text), nil)
	}
}

// storeWrittenFiles records the new content of the files that a cmdlet writes.
func (p *analyzer) storeWrittenFiles(c *cmdlet, args []psArg, written []abstract.OutputTarget, in, read abstract.Value) {
	for _, t := range written {
		v := in
		switch {
		case c.class == effect.Network:
			v = abstract.Unknown("a download", abstract.TaintNetwork)
		case read.Taint != 0 || read.IsGlobPattern:
			v = read
		default:
			for _, a := range args {
				if a.use == paramUseWrittenContent {
					v = a.val
				}
			}
		}
		p.analysisContext.StoreFileContent(t.Path, t.PathIsGlobPattern, v)
	}
}

// recordPathEffect records an effect on a path or registry key.
func (p *analyzer) recordPathEffect(c *cmdlet, u parameterUse, v abstract.Value, recursive bool) []abstract.OutputTarget {
	lower := strings.ToLower(v.Text)
	registry := strings.HasPrefix(lower, "hk") && strings.Contains(lower[:min(len(lower), 6)], ":") || strings.HasPrefix(lower, "registry::")
	if registry {
		if u != paramUseListPath {
			p.analysisContext.RecordWindowsRegistryChange(c.name, []abstract.Value{v}, p.textSpanInCommand)
		} else if IsSecretHive(strings.ReplaceAll(lower, ":", "")) {
			p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ReadSecret, Program: c.name, Reason: "reads " + abstract.ClipForMessage(v.Text), Span: p.textSpanInCommand})
		}
		return nil
	}
	if name, ok := strings.CutPrefix(lower, "env:"); ok && u != paramUseReadPath && u != paramUseListPath && u != paramUseWritePath {
		p.analysisContext.SetEnvironment(strings.ToUpper(strings.TrimLeft(name, `\/`)), abstract.Unknown("…", v.Taint), p.textSpanInCommand)
	}
	for _, drive := range [...]string{"env:", "function:", "variable:", "alias:", "cert:", "wsman:"} {
		if strings.HasPrefix(lower, drive) {
			return nil
		}
	}
	kind := map[parameterUse]effect.Kind{paramUseWritePath: effect.WriteFile, paramUseDeletePath: effect.DeleteFile, paramUseMovePathAway: effect.MoveFile, paramUseSetPermissions: effect.ChangePermissions, paramUseCreateFolder: effect.CreateDirectory, paramUseListPath: effect.ListDirectory}[u]
	var out []abstract.OutputTarget
	for _, one := range p.splitPaths(v) {
		path, pattern := p.analysisContext.RecordPathEffect(kind, abstract.PatternFromWindowsGlob(one), recursive)
		if u == paramUseWritePath {
			out = append(out, abstract.OutputTarget{Path: path, PathIsGlobPattern: pattern})
		}
	}
	return out
}

// splitPaths splits a list of paths that parseArgument joined with spaces.
func (p *analyzer) splitPaths(v abstract.Value) []abstract.Value {
	if names := strings.Fields(v.ListedFileNamePatterns); v.HasPathPerLine && len(names) > 0 {
		out := make([]abstract.Value, 0, len(names))
		for _, name := range names {
			one := v
			one.ListedFileNamePatterns, one.Text = "", v.Text+"/"+name
			if folder, ok := strings.CutSuffix(v.Text, "/*"); ok {
				one.Text, one.DoubleStarExcludesDotDot = folder+"/"+name, false
			}
			out = append(out, one)
		}
		return out
	}
	if v.IsSingleWord || !v.IsLiteral() || !strings.Contains(v.Text, " ") {
		return []abstract.Value{v}
	}
	return splitWords(v)
}

// recordUnpacking records the unpacking of an archive into the named folder, else into the working folder.
func (p *analyzer) recordUnpacking(args []psArg) {
	from, into := abstract.Value{}, abstract.Lit(".")
	for _, a := range args {
		switch {
		case !a.hasValue:
		case a.use == paramUseReadPath:
			from = a.val
		case a.use == paramUseCreateFolder:
			into = a.val
		}
	}
	if from.IsLiteral() && from.Text != "" && into.IsLiteral() {
		p.analysisContext.WalkCommand([]abstract.Value{abstract.Lit("bsdtar"), abstract.Lit("-xf"), from, abstract.Lit("-C"), into})
	}
}

// recordFileSystemLink records a new item that is a link.
func (p *analyzer) recordFileSystemLink(args []psArg) {
	is := false
	var at, to abstract.Value
	for _, a := range args {
		switch {
		case !a.hasValue:
		case a.use == paramUseWritePath:
			at = a.val
		case a.use == paramUseWrittenContent:
			to = a.val
		case strings.HasSuffix(strings.ToLower(a.val.Text), "link") || strings.EqualFold(a.val.Text, "junction"):
			is = true
		}
	}
	if is {
		p.analysisContext.RecordLink(at, to)
	}
}

// recordCmdletBehavior walks the program that the arguments of a cmdlet name, if there is one, and records the
// effect c.behavior, which the parameters of the cmdlet cannot describe.
func (p *analyzer) recordCmdletBehavior(c *cmdlet, args []psArg, in, program abstract.Value, programArgs []abstract.Value) {
	switch {
	case program.Text != "" && program.IsLiteral():
		if plain.IsURL(program.Text) {
			p.analysisContext.RecordURLContact(effect.HTTPRequest, program)
			return
		}
		p.scriptEvaluatesTextOrStartsShell = true
		for _, a := range args {
			if a.param == "verb" && strings.EqualFold(a.val.Text, "runas") {
				p.analysisContext.RecordEffect(effect.Effect{Kind: effect.ChangePrivilege, Program: c.name, Span: p.textSpanInCommand})
			}
		}
		p.analysisContext.WalkWindowsCommand(append([]abstract.Value{program}, programArgs...), abstract.Streams{Stdin: in})
	case program.IsGlobPattern:
		p.analysisContext.WalkUnknownProgram(append([]abstract.Value{program}, programArgs...), abstract.Streams{Stdin: in})
	}
	switch c.behavior {
	case cmdletBehaviorCreatesDotNetObject:
		for _, a := range args {
			lower := strings.ToLower(a.val.Text)
			if strings.Contains(lower, "tcpclient") || strings.Contains(lower, "sockets.socket") {
				host := abstract.Value{}
				if _, after, ok := strings.Cut(a.val.Text, "("); ok {
					host.Text = after
				}
				for _, o := range args[1:] {
					if o.hasValue && o.val.Text != a.val.Text {
						host = o.val
						break
					}
				}
				p.recordConnection(host)
			}
		}
	case cmdletBehaviorChangesWorkingFolder:
		if len(args) > 0 {
			p.analysisContext.ChangeFolder(args[0].val)
		}
	case cmdletBehaviorSetsAlias:
		if vals := argumentValues(args); len(vals) > 1 && vals[0].IsLiteral() {
			p.analysisContext.SetVariable("psalias:"+strings.ToLower(vals[0].Text), vals[1])
		}
	case cmdletBehaviorSetsVariable:
		if vals := argumentValues(args); len(vals) > 1 && vals[0].IsLiteral() {
			p.analysisContext.SetVariable("ps:"+strings.ToLower(vals[0].Text), vals[1])
		}
	case cmdletBehaviorLoadsModulePath:
		for _, a := range args {
			if strings.ContainsAny(a.val.Text, `/\`) {
				p.analysisContext.WalkCodeFile(a.val, "powershell", p.textSpanInCommand)
			}
		}
	case cmdletBehaviorMayRunProgram:
		p.scriptEvaluatesTextOrStartsShell = true
	case cmdletBehaviorRevealsPassword:
		if slices.ContainsFunc(args, func(a psArg) bool { return a.param == "asplaintext" }) {
			p.recordRevealedPassword()
		}
	case cmdletBehaviorLoadsTypes:
		p.recordAddType(c, args)
	case cmdletBehaviorUnpacksArchive:
		p.recordUnpacking(args)
	case cmdletBehaviorCreatesItem:
		p.recordFileSystemLink(args)
	}
}
