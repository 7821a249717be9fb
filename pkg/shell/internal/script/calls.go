package script

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/plain"
)

// A role is the effect of a call in code.
type role uint8

const (
	runsShell  role = iota + 1 // its first argument is shell text
	runsArgv                   // its arguments are a command
	runsEither                 // a list argument is a command, a string argument shell text
	opens                      // arguments: a path and a mode
	readsFile
	writesFile
	deletes
	deletesTree
	lists
	moves
	copies
	links
	setsMode
	makesFolder
	requests  // an HTTP request
	downloads // an HTTP download from a URL to a file
	posts     // an HTTP request with a body
	sendsFile // sends a file, given by path or as an open file, to another machine
	connects
	listens
	evaluates // its first argument is code of the same language
	callsBack // its first argument is a function, or code of the same language
	unpickles // its first argument is a file of serialized objects, which can run code when loaded
	duplicates
	changesUser
	receives
	readsEnvironment
	loadsFile // its first argument is a file of code
	kills
	queries // its first argument is SQL
	wipes   // deletes all rows of a table or database
	changesFolder
	opensArchive // arguments: a path and a mode
	unpacks      // unpacks an archive into a folder
	unpacksMember
)

// A callRole is the effect of a call if its owner and language match.
type callRole struct {
	role          role
	owner, unless []string // globs for the part of the call's name before the last dot: one of owner must match, and none of unless
	in, notIn     []string // languages
}

//go:generate go run ./gen

// roleOf returns the effect of a call, by its dotted name; 0 if it has none.
func roleOf(name, language string) role {
	last := name[strings.LastIndexByte(name, '.')+1:]
	owner := strings.TrimSuffix(strings.TrimSuffix(name, last), ".")
	for _, c := range calls()[last] {
		if (c.owner == nil || ownerMatches(c.owner, owner)) && !ownerMatches(c.unless, owner) &&
			(c.in == nil || slices.Contains(c.in, language)) && !slices.Contains(c.notIn, language) {
			return c.role
		}
	}
	return 0
}

func ownerMatches(globs []string, owner string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		if _, part, ok := strings.Cut(glob, ":"); ok {
			return slices.Contains(strings.Split(strings.ToLower(owner), "."), part)
		}
		return glob == "''" && owner == "" || abstract.Match(glob, owner)
	})
}

// recordCall records the effects of a call in code and returns its result.
func (p *script) recordCall(f operand, args []operand) operand {
	for i := range args {
		args[i].From = p.at
	}
	if f.name == "" && p.language == "php" && f.Known() && !f.isList {
		f.name = f.Text // PHP calls the function that a string names
	}
	if f.name == "" {
		return operand{Value: abstract.Unknown("…()", f.Taint|combinedTaint(args)), isConsumed: true}
	}
	full := f.name
	if full == ".then" {
		p.recordCallbacks(f, full, args)
	}
	if full[0] == '.' { // a method of a value
		if v, ok := p.computeMethod(full[1:], f, args); ok {
			return v
		}
	}
	if v, ok := p.computeFunction(full, args); ok {
		return v
	}
	first := operand{}
	if len(args) > 0 {
		first = args[0]
		if first.name != "" {
			first.Value = abstract.Unknown(first.name, first.Taint)
		}
	}
	recv := f
	recv.name = ""
	r := roleOf(strings.TrimPrefix(full, "."), p.language)
	if r == unpacksMember && !f.isArchive {
		r = 0 // a method of the same name, but not of an archive
	}
	if r == 0 {
		p.recordCallbacks(f, full, args)
		if root, _, _ := strings.Cut(full, "."); remoteClients[root] {
			if verb, list := knowledge.Verb(full[strings.LastIndexByte(full, '.')+1:]); list == "destroys" {
				p.w.Report(effect.Effect{Kind: effect.ChangeRemote, Program: root, Verb: "delete", Harms: []effect.Harm{effect.Destroys}, Reason: "calls " + verb + " on a remote service", Span: p.at})
			}
		}
		writes := len(args) > 0 && mayWrite(full)
		for _, a := range args {
			p.checkUnusedValue(a)
			if writes && isRootOrHomePath(a) {
				p.w.Path(effect.WriteFile, a.Value, false)
			}
		}
		t := f.Taint | combinedTaint(args)
		name := full
		if full[0] == '.' {
			name = ""
		}
		return operand{name: name, Value: abstract.Unknown(abstract.Clip(full)+"()", t), isConsumed: true}
	}
	if (r == deletes || r == deletesTree) && len(args) == 0 && strings.Contains(full, ".") && (full[0] != '.' || recv.FullyUnknown || recv.Text == "") {
		recv.Value = abstract.Unknown("…", recv.Taint) // p.unlink(): the path is unknown
		args, first = []operand{recv}, recv
	}
	if (r == unpacks || r == unpacksMember) && full[0] == '.' {
		args = append([]operand{recv}, args...)
		first = recv
	}
	// Path("x").read_text(): the receiver is the path.
	if full[0] == '.' && len(recv.Text) > 0 && (r == readsFile || r == writesFile || r == deletes || r == lists || r == deletesTree || r == opens || r == setsMode || r == makesFolder) && !recv.FullyUnknown {
		args = append([]operand{recv}, args...)
		if r == writesFile && len(args) > 1 {
			first = args[1]
		}
		first = recv
	}
	if r == links && full[0] == '.' && len(args) == 1 && recv.Known() { // Path("x").symlink_to(target)
		args = append(args, recv)
	}
	out := p.recordCallEffect(r, full, first, args)
	out.Taint |= f.Taint
	out.isConsumed = true
	return out
}

// remoteClients are the client libraries of services on other machines.
var remoteClients = map[string]bool{
	"boto3": true, "botocore": true, "kubernetes": true, "azure": true, "googleapiclient": true, "openstack": true, "digitalocean": true, "hcloud": true, "linode_api4": true,
	"github": true, "gitlab": true, "stripe": true, "heroku3": true, "cloudflare": true, "pulumi": true, "@aws-sdk": true, "@octokit": true, "@kubernetes": true,
}

// mayWrite reports whether the name of an unlisted call suggests that it changes something.
func mayWrite(full string) bool {
	switch _, list := knowledge.Verb(full[strings.LastIndexByte(full, '.')+1:]); list {
	case "changes", "destroys", "sends":
		return true
	}
	last := strings.ToLower(full[strings.LastIndexByte(full, '.')+1:])
	return strings.HasPrefix(last, "save") || strings.HasPrefix(last, "write") || strings.HasPrefix(last, "to_") || strings.HasPrefix(last, "dump") || strings.HasSuffix(last, "handler") || strings.HasSuffix(last, "writer")
}

// isRootOrHomePath reports whether an operand is a known absolute path with at least one folder,
// such as /etc/hosts, or a known path below the home folder.
func isRootOrHomePath(o operand) bool {
	return o.name == "" && !o.isList && o.Known() && len(o.Text) > 2 && len(o.Text) < 1024 && !strings.ContainsAny(o.Text, " \n<>|*") &&
		(o.Text[0] == '/' && strings.IndexByte(o.Text[1:], '/') > 0 || strings.HasPrefix(o.Text, "~/"))
}

// recordCallEffect records the effects of a role and returns the call's result.
func (p *script) recordCallEffect(r role, full string, first operand, args []operand) operand {
	result := operand{Value: abstract.Unknown(abstract.Clip(full)+"()", 0)}
	if r == wipes {
		p.recordWipe(full)
		return result
	}
	if len(args) == 0 {
		if r == receives {
			p.receivesFromSocket = true
			result.Taint |= abstract.Socket
		}
		return result
	}
	path := first.Value
	path.From = p.at
	switch r {
	case runsShell:
		if len(args) > 1 && (p.language == "perl" || p.language == "ruby") && args[1].Known() && args[1].name == "" && !args[1].isList {
			p.runArguments(args)
		} else if first.isList {
			p.runArguments(args[:1])
		} else {
			p.runShell(path)
		}
		result.Taint |= abstract.UnknownText
	case runsArgv:
		p.runArguments(commandArguments(full, args))
	case runsEither:
		if first.isList {
			p.runArguments(args[:1])
		} else {
			p.runShell(path)
		}
	case opensArchive:
		return p.recordArchiveOpen(args, path)
	case unpacks:
		p.recordUnpacking(args, "")
	case unpacksMember:
		p.recordMemberUnpacking(args)
	case opens, readsFile, writesFile, deletes, deletesTree, lists, moves, copies, links, setsMode, makesFolder:
		return p.recordFileEffect(r, full, path, args, result)
	case sendsFile:
		p.recordSentFile(args)
	case requests, posts:
		p.recordRequest(r, path, args)
		result.Taint |= abstract.Network
	case downloads:
		p.recordDownload(args)
		result.Taint |= abstract.Network
	case connects:
		p.opensConnection, p.sendsData, p.sendsFileContents = true, true, true
		p.recordConnection(args)
		result.Taint |= abstract.Socket
	case listens:
		p.recordListener(full, first)
	case callsBack:
		if !first.isList && !first.FullyUnknown && first.name == "" {
			p.runCode(full, path)
		}
	case evaluates:
		p.runCode(full, path)
	case unpickles:
		p.runCode("pickle", p.readFile(path))
	case duplicates:
		p.duplicatesDescriptors = true
	case changesUser:
		p.w.Report(effect.Effect{Kind: effect.ChangePrivilege, Program: p.language, Span: p.at})
	case receives:
		p.receivesFromSocket = true
		result.Taint |= abstract.Socket
	case readsEnvironment:
		return operand{Value: p.w.Environment(path.Text)}
	case loadsFile:
		p.loadCode(full, path)
	case changesFolder:
		p.w.ChangeFolder(path)
	case queries:
		p.recordQuery(path)
	case kills:
		p.w.Report(effect.Effect{Kind: effect.StopProcess, Program: p.language, Span: p.at})
	}
	return result
}

// commandArguments drops the arguments of exec and spawn calls that are not words of the command: the mode of os.spawnl,
// and a repeated program name.
func commandArguments(full string, args []operand) []operand {
	last := full[strings.LastIndexByte(full, '.')+1:]
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
		args = args[:2] // the options object of node's spawn
	}
	kept := args[:0:0]
	for _, a := range args {
		if !(a.isList && len(kept) > 0 && len(a.elements) > 0 && a.elements[0].name != "") {
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
		path.From = p.at
		text := strings.TrimSpace(rest[0].Text)
		if strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|") || strings.Contains(text, "-|") {
			path.Text = strings.Trim(path.Text, "|- ")
			p.runShell(path)
			return operand{Value: abstract.Unknown("open()", abstract.UnknownText), isConsumed: true}
		}
		if strings.Contains(text, "&") { // open(STDIN, ">&C") duplicates a file handle
			p.duplicatesDescriptors = true
			return operand{isConsumed: true}
		}
		path.Text = strings.TrimLeft(path.Text, "<>+ ")
	}
	if path.Known() && plain.IsURL(path.Text) {
		p.w.URL(effect.HTTPRequest, path)
		return operand{Value: abstract.Unknown("open()", abstract.Network), isConsumed: true}
	}
	if path.Known() && strings.HasPrefix(path.Text, "|") && p.language == "ruby" {
		path.Text = path.Text[1:]
		p.runShell(path)
		return operand{Value: abstract.Unknown("open()", abstract.UnknownText), isConsumed: true}
	}
	if strings.ContainsAny(mode, "wax+>") {
		p.writeFile(path, abstract.Value{})
		return operand{Value: abstract.Unknown("open()", 0), isConsumed: true}
	}
	return operand{Value: p.readFile(path), isConsumed: true}
}

// recordSysopen handles Perl's sysopen(HANDLE, path, flags).
func (p *script) recordSysopen(args []operand) operand {
	path := args[1].Value
	path.From = p.at
	if flags := args[min(2, len(args)-1)]; flags.Text == "0" || flags.name == "O_RDONLY" {
		return operand{Value: p.readFile(path), isConsumed: true}
	}
	p.writeFile(path, abstract.Value{})
	return operand{Value: abstract.Unknown("open()", 0), isConsumed: true}
}

// perlOpenMode returns the mode of Perl's open, which may precede the path in one string.
func perlOpenMode(text string) string {
	text = strings.TrimLeft(text, " \t\n")
	return text[:len(text)-len(strings.TrimLeft(text, "<>+"))]
}

// loadCode records that a code file runs. For JavaScript's import(), only URLs, and packages with npm: or jsr:, count:
// other names are modules.
func (p *script) loadCode(full string, path abstract.Value) {
	if full != "import" {
		p.w.RunFile(path, p.language, p.at)
		return
	}
	if data, ok := path.DataURL(); ok {
		p.runCode(full, data)
	} else if plain.IsURL(path.Text) {
		p.w.RunFile(path, p.language, p.at)
	} else if path.Known() && (strings.HasPrefix(path.Text, "npm:") || strings.HasPrefix(path.Text, "jsr:")) {
		p.w.Call([]abstract.Value{abstract.Lit("deno"), abstract.Lit("run"), path})
	}
}

// recordCallbacks records the effects of functions passed as arguments: an evaluating function that
// gets downloaded code, as in fetch(url).then(eval), and PHP functions passed by name, as in
// array_map('system', $list).
func (p *script) recordCallbacks(f operand, full string, args []operand) {
	for _, a := range args {
		if a.name != "" && f.Taint&abstract.Network != 0 && roleOf(a.name, p.language) == evaluates {
			p.runCode(a.name, f.Value)
		}
	}
	if p.language != "php" || len(args) < 2 || !strings.HasPrefix(full, "array_") && !strings.HasPrefix(full, "call_user_func") {
		return
	}
	callee, given := args[0], args[1:]
	if callee.isList { // array_filter and array_walk take the list first, and then the function
		callee, given = args[1], args[:1]
	}
	r := roleOf(callee.Text, p.language)
	switch {
	case !callee.Known() || callee.name != "" || r == 0:
	case full == "call_user_func_array" && given[0].isList && len(given[0].elements) > 0:
		p.recordCallEffect(r, callee.Text, given[0].elements[0], given[0].elements)
	case strings.HasPrefix(full, "array_") && given[0].isList:
		for _, e := range given[0].elements {
			p.recordCallEffect(r, callee.Text, e, []operand{e})
		}
	default:
		p.recordCallEffect(r, callee.Text, given[0], given)
	}
}

func (p *script) runCode(full string, code abstract.Value) {
	code.From = p.at
	if strings.Contains(full, "pickle") || strings.Contains(full, "marshal") {
		if code.Taint&(abstract.Network|abstract.Decoded|abstract.Untrusted) == 0 {
			return
		}
	}
	if !code.Known() && code.HasHarmlessTaint() && code.FullyUnknown {
		p.w.Dynamic(code.CodeCause(), p.language+" code evaluates unknown text", p.at)
		return
	}
	if p.receivesFromSocket && !code.Known() {
		code.Taint |= abstract.Socket
	}
	p.w.Run(p.language, code, p.language+" code", p.at)
}

// operandTexts returns the strings in a list; false if an element is not a known string.
func operandTexts(list []operand) ([]string, bool) {
	out := make([]string, 0, len(list))
	for _, o := range list {
		if !o.Known() || o.name != "" {
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
