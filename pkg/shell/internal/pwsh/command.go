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
	name.From = p.at
	lower := strings.ToLower(strings.TrimSuffix(name.Text, ".exe"))
	if reader := aliased(lower); reader != "" {
		lower = reader
	}
	c := findCmdlet(lower)
	if strings.HasSuffix(strings.ToLower(name.Text), ".exe") {
		c = nil
	}
	if v, ok := p.w.Get("psalias:" + lower); ok && v.Known() {
		name = v
		c = findCmdlet(strings.ToLower(name.Text))
	}
	if in.IsPathList && c != nil && (c.special == each || c.special == same) {
		p.w.Set("ps:_", in)
		p.w.Set("ps:psitem", in)
		defer func() {
			p.w.Set("ps:_", abstract.Variable("_", 0))
			p.w.Set("ps:psitem", abstract.Variable("PSItem", 0))
		}()
	}
	var args []psArg
	var io abstract.Streams
	defer p.w.DeferEffects(func() { args, io = p.parseCommandArguments(c, in) })()
	if !name.Known() {
		return p.w.CallUnknown(append([]abstract.Value{name}, argumentValues(args)...), io)
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
		argv[i].From = p.at
	}
	out := abstract.Value{}
	switch {
	case c != nil:
		class := c.class
		p.w.Execute(argv, c.name, class)
		out = p.walkCmdlet(c, args, io)
		if lower != c.name && hasUnixOptions(args) { // on systems that have a program of this name, PowerShell has no such alias
			out.Taint |= p.w.CallWindows(argv, io).Taint
		}
	case isVerbNoun(lower):
		class := effect.UnknownClass
		if isReader(lower) {
			class = effect.ReadOnly
		}
		p.w.Execute(argv, lower, class)
		p.recordRemoteChange(argv, lower)
		out = abstract.UnknownOutput(lower, in.Taint)
		for _, v := range argv[1:] {
			p.w.Suspect(v)
			out.Taint |= v.Taint
		}
		if in.IsPathList && selectionCommands[lower] {
			out = unknownSelection(in)
			if slices.ContainsFunc(argv[1:], func(v abstract.Value) bool { return nameProperties[strings.ToLower(v.Text)] }) {
				out = abstract.UnknownWithoutSlash("what "+lower+" writes", abstract.FromCommand)
			}
		}
	default:
		out = p.w.CallWindows(argv, io)
	}
	return p.w.DeliverOutput(io, out)
}

// hasUnixOptions reports whether an argument has the form of bundled Unix options such as -rf, which is no prefix of
// a parameter's name.
func hasUnixOptions(args []psArg) bool {
	for _, a := range args {
		if a.param != "" && a.use == unlisted && len(a.param) < 4 && !commonParameterAliases[a.param] {
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
	io := abstract.Streams{In: in}
	var args []psArg
	position := 0
	for p.i < len(p.text) && !p.w.Ended() && len(args) < abstract.MaxFields {
		p.skipChars(" \t")
		if p.i >= len(p.text) {
			break
		}
		ch := p.text[p.i]
		if strings.IndexByte("\r\n;|)}&", ch) >= 0 { // a single & runs the command in the background
			break
		}
		if p.atRedirection() {
			p.parseRedirection(&io)
			continue
		}
		start := p.i
		if ch == '-' && p.i+1 < len(p.text) && (plain.IsWordByte(p.text[p.i+1]) && (p.text[p.i+1] < '0' || p.text[p.i+1] > '9')) && c != nil {
			args = append(args, p.parseParameter(c))
		} else {
			a := psArg{val: p.parseArgument(), hasValue: true}
			if c != nil {
				_, a.use = c.positionalParam(position)
				position++
			}
			args = append(args, a)
		}
		if p.i == start {
			p.i++
		}
	}
	return args, io
}

// atRedirection reports whether a redirection comes next.
func (p *analyzer) atRedirection() bool {
	rest := p.text[p.i:]
	return rest != "" && (rest[0] == '>' || len(rest) > 1 && rest[1] == '>' && strings.IndexByte("123456*", rest[0]) >= 0)
}

func (p *analyzer) parseRedirection(io *abstract.Streams) {
	n := ""
	if p.text[p.i] != '>' {
		n = p.text[p.i : p.i+1]
		p.i++
	}
	add := strings.HasPrefix(p.text[p.i:], ">>")
	p.skipChars("> \t")
	if p.i < len(p.text) && p.text[p.i] == '&' {
		p.i = min(len(p.text), p.i+2)
		return
	}
	w := p.parseArgument()
	if strings.EqualFold(w.Text, "$null") {
		io.Out = &abstract.Target{Discard: true}
		return
	}
	p.w.Redirect(io, strings.Trim(n, "*"), w, add)
}

// parseParameter parses -Name, -Name:value and -Name value.
func (p *analyzer) parseParameter(c *cmdlet) psArg {
	p.i++
	start := p.i
	for p.i < len(p.text) && plain.IsWordByte(p.text[p.i]) {
		p.i++
	}
	full, use := c.param(strings.ToLower(p.text[start:p.i]))
	a := psArg{param: full, use: use}
	if p.i < len(p.text) && p.text[p.i] == ':' {
		p.i++
		a.val, a.hasValue = p.parseArgument(), use != switches
		return a
	}
	if use == switches {
		return a
	}
	mark := p.i
	p.skipChars(" \t")
	if p.i >= len(p.text) || strings.IndexByte("\r\n;|)}-", p.text[p.i]) >= 0 && !(use != unlisted && p.text[p.i] == '-' && p.i+1 < len(p.text) && p.text[p.i+1] >= '0' && p.text[p.i+1] <= '9') {
		p.i = mark
		return a
	}
	a.val, a.hasValue = p.parseArgument(), true
	return a
}

// parseArgument parses one argument; adjacent words form one argument.
func (p *analyzer) parseArgument() abstract.Value {
	var b abstract.Builder
	text, names := "", ""
	start := p.i
	for p.i < len(p.text) && !p.w.Ended() {
		c := p.text[p.i]
		if strings.IndexByte(" \t\r\n;|)}", c) >= 0 || p.i == start && c == '>' {
			break
		}
		before := p.i
		switch {
		case c == ',':
			b.AddLiteral(" ")
			p.i++
			p.skipChars(" \t\r\n")
		case c == '\'' || c == '"' || c == '(' || c == '$' || c == '@' || c == '{' || c == '[' && p.i == start:
			v := p.parseOperand()
			text, names = v.Text, v.ListedNames
			b.Add(v)
		default:
			b.AddLiteral(p.parseBareWord())
		}
		if p.i == before {
			if c == '&' || c == '<' {
				b.AddLiteral(string(c))
			}
			p.i++
		}
	}
	v := b.Value()
	if v.IsPathList && names != "" && v.Text == text { // the argument consists only of the list of paths
		v.ListedNames = names
	}
	v.From = p.at
	return v
}

// walkCmdlet records the effects of a cmdlet's arguments and returns its output.
func (p *analyzer) walkCmdlet(c *cmdlet, args []psArg, io abstract.Streams) abstract.Value {
	in := io.In
	out := abstract.UnknownOutput(c.name, in.Taint)
	if c.effect != "" {
		e := effect.WithRuleKind(c.effect)
		e.Program, e.Reason, e.Span = c.name, c.name, p.at
		p.w.Report(e)
	}
	args = addPipedArguments(c, args, in)
	recursive, posts := false, false
	var program abstract.Value
	var programArgs []abstract.Value
	var written []abstract.Target
	read := abstract.Value{}
	for _, a := range args {
		recursive = recursive || a.param == "recurse"
		posts = posts || a.use == sends || a.param == "infile"
	}
	for _, a := range args {
		v := a.val
		v.From = p.at
		if !a.hasValue {
			continue
		}
		switch a.use {
		case reads:
			read = p.w.Read(abstract.WindowsGlob(v))
			if recursive {
				p.w.Path(effect.ReadFile, abstract.WindowsGlob(v), true)
			}
			out.Taint |= read.Taint
			if read.Known() && c.special == content {
				out = read
			}
			if posts && c.class == effect.Network {
				p.w.Send(read, c.name, p.at)
			}
		case writes, deletes, moves, setsMode, creates, lists:
			written = append(written, p.recordPathEffect(c, a.use, v, recursive)...)
			if name, ok := strings.CutPrefix(strings.ToLower(v.Text), "env:"); ok && a.use == writes {
				p.w.SetEnvironment(strings.ToUpper(strings.TrimLeft(name, `\/`)), assignedValue(args), p.at)
			}
			if strings.HasPrefix(strings.ToLower(v.Text), "env:") && a.use == lists {
				out.Taint |= abstract.EnvironmentDump
			}
		case calls:
			p.callMethodOnEach(in, v)
		case contactsURL:
			p.w.URL(effect.HTTPRequest, v)
			out.Taint |= abstract.Network
			if v.Taint&(abstract.Secret|abstract.EnvironmentDump|abstract.Credential) != 0 {
				p.w.Send(v, c.name, p.at)
			}
		case contactsHost:
			p.w.Host(effect.Connect, v)
		case sends:
			p.w.Send(v, c.name, p.at)
		case evaluates:
			return p.evaluateText(v)
		case starts:
			program = v
		case passesOn:
			programArgs = splitWords(v)
		case runsBlock:
			out.Taint |= v.Taint
		}
	}
	p.recordRemoteDeletion(c, args)
	p.recordSpecialEffect(c, args, in, program, programArgs)
	if c.special == evaluate {
		return p.evaluateText(in)
	}
	p.storeWrittenFiles(c, args, written, in, read)
	switch c.special {
	case output:
		return abstract.JoinValues(argumentValues(args))
	case joins:
		return joinedPath(args)
	case same:
		if in.IsPathList {
			return unknownSelection(in)
		}
		return abstract.Unknown("…", out.Taint)
	case items:
		return listedFiles(c, args, out)
	case passes, each:
		return abstract.Unknown("…", out.Taint)
	case asks:
		v := abstract.Unknown("…", abstract.Credential)
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
		case a.use == contactsURL && a.hasValue:
			_, to = effect.URL(a.val.Text)
		case a.use == requests && strings.EqualFold(a.val.Text, "delete"):
			says = "the method is DELETE"
		case a.use == sends && a.hasValue:
			if word := apicall.Destroys(a.val.Text); word != "" {
				says = "the request body contains the verb " + word
			}
		}
	}
	if says != "" && !effect.ThisMachine(to) {
		p.w.Report(effect.Effect{Kind: effect.ChangeRemote, Program: c.name, Host: to, Verb: "delete", Harms: []effect.Harm{effect.Destroys}, Reason: says, Span: p.at})
	}
}

// assignedValue returns the value that a cmdlet assigns to the item that it names.
func assignedValue(args []psArg) abstract.Value {
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

// selectionCommands are the commands that output some of their input objects.
var selectionCommands = map[string]bool{"select-object": true, "sort-object": true, "get-unique": true}

// unknownSelection returns an unknown selection of the files in a list.
func unknownSelection(list abstract.Value) abstract.Value {
	if list.ListedNames == "" && strings.HasSuffix(list.Text, "/**") {
		list.ListedNames = "?*"
	}
	return list
}

// addPipedArguments passes the input objects to the parameters that accept pipeline input, unless
// an argument sets the parameter. Parameters that list or read paths get no unknown text.
// Parameters that read paths get known text only for Get-Content, because other cmdlets may search
// the text itself.
func addPipedArguments(c *cmdlet, args []psArg, in abstract.Value) []psArg {
	for _, p := range c.params {
		if !p.piped || in.Text == "" || slices.ContainsFunc(args, func(a psArg) bool {
			return a.hasValue && a.use == p.use && (a.param == "" || a.param == p.name || a.param == "literalpath")
		}) {
			continue
		}
		if in.IsPathList || p.use != reads && p.use != lists || in.Known() && (c.special == content || p.use == lists) {
			args = append(args, psArg{param: p.name, use: p.use, val: in, hasValue: true})
		}
	}
	return args
}

// listedFiles returns the output of a cmdlet that lists files: the content of folders for Get-ChildItem, else the named
// files.
func listedFiles(c *cmdlet, args []psArg, out abstract.Value) abstract.Value {
	v := abstract.Value{Text: ".", Display: "what " + c.name + " lists", IsPattern: true, IsPathList: true, IsSearchedTree: true, Taint: out.Taint}.WithOrigin(abstract.FromCommand)
	folders, tail := 0, "/**"
	has := func(name string) bool {
		return slices.ContainsFunc(args, func(a psArg) bool { return a.param == name })
	}
	var names []string
	for _, a := range args {
		switch {
		case !a.hasValue:
		case a.use == lists && folders == 0:
			root := abstract.WindowsGlob(a.val)
			v.IsSearchedTree = root.Known()
			if root.IsPattern && !root.FullyUnknown { // a glob lists the files that match it, not the content of a folder
				tail = ""
			}
			if root.Known() {
				root.Text = strings.ReplaceAll(root.Text, `\`, "/")
			}
			v.Text, v.Taint = strings.TrimSuffix(root.AsPattern(), "/"), v.Taint|root.Taint
			folders++
			if a.val.Known() && strings.ContainsAny(a.val.Text, " ") {
				folders++
			}
		case a.use == lists:
			folders++
		case (a.param == "filter" || a.param == "include") && a.val.Known():
			names = append(names, strings.Fields(a.val.Text)...)
		}
	}
	if folders > 1 {
		v.Text, v.IsSearchedTree = "**", false
		v.FullyUnknown = true
	} else if c.name == "get-childitem" {
		if has("name") { // names without their folder
			return abstract.UnknownWithoutSlash(v.Display, abstract.FromCommand)
		}
		if len(names) > 0 && tail != "" && !has("recurse") {
			tail = "/*"
		}
		v.Text += tail
		v.ListedNames = strings.Join(names, "\n")
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
		if b.HasParts {
			b.AddLiteral("/")
		}
		b.Add(a.val)
	}
	return b.Value()
}

// callMethodOnEach calls a method on each input object.
func (p *analyzer) callMethodOnEach(in, name abstract.Value) {
	if name.Known() {
		p.recordMethodCall(abstract.Unknown("…", in.Taint), "."+strings.ToLower(name.Text), nil)
	}
}

// storeWrittenFiles records the new content of the files that a cmdlet writes.
func (p *analyzer) storeWrittenFiles(c *cmdlet, args []psArg, written []abstract.Target, in, read abstract.Value) {
	for _, t := range written {
		v := in
		switch {
		case c.class == effect.Network:
			v = abstract.Unknown("a download", abstract.Network)
		case read.Taint != 0 || read.IsPattern:
			v = read
		default:
			for _, a := range args {
				if a.use == holds {
					v = a.val
				}
			}
		}
		p.w.Store(t.Path, t.Pattern, v)
	}
}

// recordPathEffect records an effect on a path or registry key.
func (p *analyzer) recordPathEffect(c *cmdlet, u parameterUse, v abstract.Value, recursive bool) []abstract.Target {
	lower := strings.ToLower(v.Text)
	registry := strings.HasPrefix(lower, "hk") && strings.Contains(lower[:min(len(lower), 6)], ":") || strings.HasPrefix(lower, "registry::")
	if registry {
		if u != lists {
			p.w.SetRegistry(c.name, []abstract.Value{v}, p.at)
		} else if IsSecretHive(strings.ReplaceAll(lower, ":", "")) {
			p.w.Report(effect.Effect{Kind: effect.ReadSecret, Program: c.name, Reason: "reads " + abstract.Clip(v.Text), Span: p.at})
		}
		return nil
	}
	if name, ok := strings.CutPrefix(lower, "env:"); ok && u != reads && u != lists && u != writes {
		p.w.SetEnvironment(strings.ToUpper(strings.TrimLeft(name, `\/`)), abstract.Unknown("…", v.Taint), p.at)
	}
	for _, drive := range [...]string{"env:", "function:", "variable:", "alias:", "cert:", "wsman:"} {
		if strings.HasPrefix(lower, drive) {
			return nil
		}
	}
	kind := map[parameterUse]effect.Kind{writes: effect.WriteFile, deletes: effect.DeleteFile, moves: effect.MoveFile, setsMode: effect.ChangePermissions, creates: effect.CreateDirectory, lists: effect.ListDirectory}[u]
	var out []abstract.Target
	for _, one := range p.splitPaths(v) {
		path, pattern := p.w.Path(kind, abstract.WindowsGlob(one), recursive)
		if u == writes {
			out = append(out, abstract.Target{Path: path, Pattern: pattern})
		}
	}
	return out
}

// splitPaths splits a list of paths that parseArgument joined with spaces.
func (p *analyzer) splitPaths(v abstract.Value) []abstract.Value {
	if names := strings.Fields(v.ListedNames); v.IsPathList && len(names) > 0 {
		out := make([]abstract.Value, 0, len(names))
		for _, name := range names {
			one := v
			one.ListedNames, one.Text = "", v.Text+"/"+name
			if folder, ok := strings.CutSuffix(v.Text, "/*"); ok {
				one.Text, one.IsSearchedTree = folder+"/"+name, false
			}
			out = append(out, one)
		}
		return out
	}
	if v.IsSingleWord || !v.Known() || !strings.Contains(v.Text, " ") {
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
		case a.use == reads:
			from = a.val
		case a.use == creates:
			into = a.val
		}
	}
	if from.Known() && from.Text != "" && into.Known() {
		p.w.Call([]abstract.Value{abstract.Lit("bsdtar"), abstract.Lit("-xf"), from, abstract.Lit("-C"), into})
	}
}

// recordLink records a new item that is a link.
func (p *analyzer) recordLink(args []psArg) {
	is := false
	var at, to abstract.Value
	for _, a := range args {
		switch {
		case !a.hasValue:
		case a.use == writes:
			at = a.val
		case a.use == holds:
			to = a.val
		case strings.HasSuffix(strings.ToLower(a.val.Text), "link") || strings.EqualFold(a.val.Text, "junction"):
			is = true
		}
	}
	if is {
		p.w.Link(at, to)
	}
}

// recordSpecialEffect records the special effects of a cmdlet.
func (p *analyzer) recordSpecialEffect(c *cmdlet, args []psArg, in, program abstract.Value, programArgs []abstract.Value) {
	switch {
	case program.Text != "" && program.Known():
		if plain.IsURL(program.Text) {
			p.w.URL(effect.HTTPRequest, program)
			return
		}
		p.runsCode = true
		for _, a := range args {
			if a.param == "verb" && strings.EqualFold(a.val.Text, "runas") {
				p.w.Report(effect.Effect{Kind: effect.ChangePrivilege, Program: c.name, Span: p.at})
			}
		}
		p.w.CallWindows(append([]abstract.Value{program}, programArgs...), abstract.Streams{In: in})
	case program.IsPattern:
		p.w.CallUnknown(append([]abstract.Value{program}, programArgs...), abstract.Streams{In: in})
	}
	switch c.special {
	case object:
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
	case folder:
		if len(args) > 0 {
			p.w.ChangeFolder(args[0].val)
		}
	case alias:
		if vals := argumentValues(args); len(vals) > 1 && vals[0].Known() {
			p.w.Set("psalias:"+strings.ToLower(vals[0].Text), vals[1])
		}
	case variable:
		if vals := argumentValues(args); len(vals) > 1 && vals[0].Known() {
			p.w.Set("ps:"+strings.ToLower(vals[0].Text), vals[1])
		}
	case module:
		for _, a := range args {
			if strings.ContainsAny(a.val.Text, `/\`) {
				p.w.RunFile(a.val, "powershell", p.at)
			}
		}
	case remote:
		p.runsCode = true
	case reveals:
		if slices.ContainsFunc(args, func(a psArg) bool { return a.param == "asplaintext" }) {
			p.recordRevealedPassword()
		}
	case types:
		p.recordAddType(c, args)
	case unpacks:
		p.recordUnpacking(args)
	case makes:
		p.recordLink(args)
	}
}
