package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/effect"
)

// maxDepth is the maximum nesting of subcommands.
const maxDepth = 8

// Interpret returns the effect of running args[0] with the other args. It takes time linear in the size of args
// and never panics. listed are the operands in the files or input that an earlier call returned as lists
// (Use.Lists, Listed); nil if they are unknown.
func Interpret(args []Word, listed ...Word) Use {
	if len(args) == 0 {
		return Use{Reason: "no program"}
	}
	if args[0].Pattern {
		return Use{Reason: "cannot tell which program runs"}
	}
	dir, name := baseName(args[0].Text)
	g := lookup(name)
	at := placeOf(args[0].Text, dir)
	if g == nil {
		use := useOfUnlisted(name, args)
		if at == elsewhere {
			use.Nested = []Nested{{Language: "file", Words: args[:1]}}
		}
		return use
	}
	r := readers.Get().(*reader)
	defer r.release()
	r.args = args
	r.enter(g)
	r.read()
	r.listed = listed
	if asksHelp(g, args) {
		r.flags = r.flags&^wet | dry
	}
	r.finish()
	r.noteTextOptions()
	r.elsewhere()
	r.use.Away = r.remoteHost()
	switch at {
	case elsewhere:
		r.doubt("%s is not in a system folder", args[0].Text)
		r.use.Nested = append(r.use.Nested, Nested{Language: "file", Words: args[:1]})
	case environment:
		r.raiseClass(localWrite)
	case searched, system:
	}
	r.use.Known = r.use.Reason == ""
	r.use.Input = r.use.Input || r.use.Stdin != Data || r.use.Stdout == Input || r.use.Stdout == Decoded || r.flags&dry != 0
	r.use.Language = g.language
	if g.input != 0 {
		r.use.Language = queryPrefix + name
	}
	r.use.Windows = g.style&slash != 0
	r.use.Decodes = r.flags&decodes != 0
	r.use.Tells, r.use.Database = r.flags&tells != 0, r.flags&database != 0
	if r.flags&elsewhereTo == 0 || r.flags&(near|dry) != 0 {
		r.keep()
	}
	r.use.ByName = r.use.Known && r.shape.rest == rolePackage && len(r.use.Touches) == 0
	r.use.Class = r.class.class()
	if r.use.Loses != 0 {
		r.use.Folder = r.inEntered(r.dot())
	}
	if !r.use.Known {
		r.mayHarm()
	}
	return r.use
}

// noteTextOptions records the option values that are plain text.
func (r *reader) noteTextOptions() {
	for _, v := range r.values {
		if role := r.turn(v.role); (role == roleText || role == roleWord) && !v.word.Pattern && strings.IndexByte(v.word.Text, ' ') > 0 {
			r.use.Prose = append(r.use.Prose, v.word)
		}
	}
}

// release returns a reader's buffers to the pool.
func (r *reader) release() {
	clear(r.values)
	*r = reader{values: r.values[:0], operands: r.operands[:0], copies: r.copies[:0]}
	readers.Put(r)
}

// readers is a pool of readers with their buffers.
var readers = sync.Pool{New: func() any {
	return &reader{values: make([]value, 0, 8), operands: make([]int, 0, 24)}
}}

// A reader parses the arguments of one program in one pass and collects their effects.
type reader struct {
	args  []Word
	use   Use
	class rank

	levels   [maxDepth]*syntax // the program, then its subcommands
	depth    int
	level    *syntax // the innermost syntax
	shape    *shape
	chosen   bool // an operand that is not a subcommand was seen
	ended    bool // all further arguments are operands
	codeRead bool // standard input is the code by default

	turned      [8]turn // the first role changes (turn)
	turns       int
	here, empty role
	flags       flags

	values   []value
	stepped  int    // number of values checked for folders to enter
	operands []int  // indices in args
	listed   []Word // further operands from files or standard input
	entered  string // base folder of relative paths, "" for the working folder
	remote   string // git: the remote that gets a URL
	copies   []int  // indices of touches that are sent if the destination is on another machine
	key      Word   // key of a git setting, until its value is read
	store    Word   // a database in a file
	suffix   string // suffix of backup copies of edited files
	memory   bool   // the database is not in a file

	verb   string // verb of a remote change, see severity
	places []Word // hosts, databases, clusters and accounts that the command works on
	sends  string // method of a request that changes something, in capitals
	plane  string // the service whose control socket is used
}

// A value is a word with its role. Roles are applied after all options are parsed, since a later option may change
// them (tar f x.tar -c).
type value struct {
	role   role
	word   Word
	before int  // number of operands before it
	beside bool // its code runs before the main program, which is given by other arguments: perl -MFILE, bash --rcfile FILE
}

// loads reports whether the code in an option's value only runs first. An option that gives the main program also
// changes the meaning of the operands.
func (a *action) loads() bool { return a.operands == nil && a.flags&stop == 0 }

// enter makes g the innermost syntax.
func (r *reader) enter(g *syntax) {
	if r.depth < maxDepth {
		r.levels[r.depth] = g
		r.depth++
	}
	r.level, r.shape, r.empty = g, &g.operands, 0
	if g.why != "" {
		r.use.Why = g.why
	}
	if g.base != nil {
		r.act(g.base)
		if g.base.flags&reject != 0 {
			r.doubt("cannot judge what %s does", r.args[0].Text)
		}
	}
}

// act applies an action except its values.
func (r *reader) act(a *action) {
	r.raiseClass(a.class)
	for _, k := range a.effects {
		r.effect(k)
	}
	r.noteVerb(a.verb)
	r.harms(a.harm)
	r.use.Loses |= a.undo
	if a.streams.setIn {
		r.use.Stdin, r.use.Input = a.streams.in, true
		r.codeRead = a == r.level.base && a.streams.in == Code
	}
	if a.streams.setOut {
		r.use.Stdout = a.streams.out
	}
	if a.operands != nil {
		r.shape = a.operands
	}
	for _, t := range a.turns {
		if r.turns < len(r.turned) {
			r.turned[r.turns] = t
			r.turns++
		}
	}
	if a.here != 0 && r.flags&notHere == 0 {
		r.here = a.here
	}
	if a.empty != 0 {
		r.empty = a.empty
	}
	r.flags |= a.flags
	if a.flags&notHere != 0 {
		r.here = 0
	}
	if a.flags&stop != 0 {
		r.ended = true
	}
}

// read parses the arguments.
func (r *reader) read() {
	for i := 1; i < len(r.args); {
		w := r.args[i]
		if r.level.style&bare != 0 && i == 1 && w.Text != "" && w.Text[0] != '-' && !w.Pattern {
			i = r.cluster(i, w.Text)
			continue
		}
		if !r.ended {
			next, ok := r.option(i)
			if ok {
				i = next
				continue
			}
		}
		i = r.operand(i)
	}
}

// operand handles args[i], which is not an option, and returns the index of the next argument.
func (r *reader) operand(i int) int {
	w := r.args[i]
	if !r.chosen && len(r.level.subs)+len(r.level.groups) > 0 {
		if r.sub(w) {
			return i + 1
		}
	}
	if r.level.style&settings != 0 && len(r.operands) == 0 && isSetting(w.Text) {
		r.setting(w)
		if n, ok := Variable(w); ok {
			r.use.Nested = append(r.use.Nested, n)
		}
		return i + 1
	}
	if len(r.level.keys) > 0 {
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			if a := find(r.level.keys, w.Text[:eq]); a != nil {
				r.take(a, cut(w, eq+1))
				return i + 1
			}
		}
	}
	r.chosen = true
	if r.shape.rest.takesAll() && len(r.operands) == len(r.shape.head) {
		r.values = append(r.values, value{role: r.shape.rest})
		r.nest(r.shape.rest, r.args[i:])
		return len(r.args)
	}
	r.operands = append(r.operands, i)
	if r.level.style&first != 0 {
		r.ended = true
	}
	return i + 1
}

// sub enters the subcommand w; it reports whether w is a subcommand or can be skipped.
func (r *reader) sub(w Word) bool {
	if !w.Pattern {
		name := w.Text
		if r.level.style&slash != 0 {
			name = strings.ToLower(name)
		}
		g := find(r.level.subs, name)
		if g == nil && r.level.hasGroup(name) {
			return true
		}
		if g == nil {
			g = findPrefixed(r.level.subs, name, 0)
		}
		if g != nil {
			r.enter(g)
			return true
		}
	}
	r.chosen = true
	if r.level.operands.rest == 0 && len(r.level.operands.head) == 0 {
		r.doubt("unknown subcommand %s", w.Text)
	}
	return false
}

// hasGroup reports whether a word may precede a subcommand.
func (g *syntax) hasGroup(name string) bool {
	return slices.ContainsFunc(g.groups, func(g string) bool {
		prefix, any := strings.CutSuffix(g, "*")
		return name == g || any && hasPrefix(name, prefix)
	})
}

// take applies an option with one known value.
func (r *reader) take(a *action, w Word) {
	r.act(a)
	if len(a.values) > 0 {
		r.values = append(r.values, value{a.values[0], w, len(r.operands), a.loads()})
	}
}

// raiseClass makes the class at least c.
func (r *reader) raiseClass(c rank) {
	if c > r.class {
		r.class = c
	}
}

// doubt records the first thing that was not understood.
func (r *reader) doubt(format, what string) {
	if r.use.Reason == "" {
		r.use.Reason = strings.Replace(format, "%s", clip(what), 1)
	}
}

// clip shortens text for a message and replaces control characters.
func clip(s string) string {
	return brief.Text(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '�' {
			return '?'
		}
		return c
	}, s), 40)
}

// cut returns a word without its first n bytes.
func cut(w Word, n int) Word {
	w.Text = w.Text[n:]
	return w
}

// rankOf returns the lowest class of a program with an effect.
func rankOf(k effect.Kind) rank {
	switch k {
	case effect.WriteFile, effect.MoveFile, effect.CreateDirectory, effect.ChangePermissions, effect.Persist, effect.StopProcess:
		return localWrite
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.ChangeRemote, effect.SendData:
		return network
	case effect.DeleteFile, effect.DeleteDirectory, effect.Destroy:
		return destructive
	case effect.ChangePrivilege, effect.ChangeSystem, effect.ChangeGuard:
		return privileged
	case effect.ReadFile, effect.ListDirectory, effect.Execute, effect.ReadSecret, effect.ReadClipboard,
		effect.RunDownload, effect.RunDecoded, effect.RunInput, effect.SendSecret, effect.RunCode, effect.RemoteShell, effect.Dynamic:
	}
	return readOnly
}

// dash handles "-", which means standard input or output in place of a file.
func (r *reader) dash(role role) {
	if role >= roleScript || role >= roleShell && role <= roleCode || role == roleScriptInput || role == roleReadInput || role == roleMaybeScript {
		r.use.Stdin, r.codeRead = Code, false
	}
	if role == roleNames {
		r.use.Stdin = Listed
	}
	if role == roleData || role == roleForm || role == roleSendFile {
		r.use.Stdin = Upload
	}
}

// script records a code file that runs.
func (r *reader) script(language string, w Word) {
	if isStdin(w.Text) {
		r.use.Stdin, r.codeRead = Code, false
		return
	}
	if i := slices.IndexFunc(r.args, func(a Word) bool { return a.Text == w.Text }); language == "node" && i > 0 && r.prefixedPackage(w) { // deno run npm:PACKAGE
		if hasPrefix(w.Text, "npm:") {
			words := slices.Clone(r.args[i:])
			words[0] = cut(words[0], len("npm:"))
			r.code(Nested{Language: "argv", Words: programOf(words)})
		}
		return
	}
	r.code(Nested{Language: "file", Of: language, Words: []Word{w}})
}

// isStdin reports whether a path means standard input.
func isStdin(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return true
	}
	return false
}
