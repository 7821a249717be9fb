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

// Interpret returns the effect of running args[0] with the other args. It takes time linear in the
// size of args and never panics. listed are further operands: those read from the files in
// Interpretation.OperandFiles of an earlier call, or from its standard input if that is Listed; nil
// if they are unknown.
func Interpret(args []Word, listed ...Word) Interpretation {
	if len(args) == 0 {
		return Interpretation{WhyNotUnderstood: "no program"}
	}
	if args[0].Pattern {
		return Interpretation{WhyNotUnderstood: "cannot tell which program runs"}
	}
	dir, name := baseName(args[0].Text)
	g := lookupProgram(name)
	at := programFolderKindOf(args[0].Text, dir)
	if g == nil {
		use := interpretUnlisted(name, args)
		if at == inOtherFolder {
			use.Nested = []Nested{{Language: "file", Words: args[:1]}}
		}
		return use
	}
	r := argParserPool.Get().(*argParser)
	defer r.returnToPool()
	r.args = args
	r.enterSyntax(g)
	r.parseArgs()
	r.listedOperands = listed
	if onlyPrintsHelp(g, args) {
		r.flags = r.flags&^wet | dry
	}
	r.applyRoles()
	r.noteTextOptions()
	r.setRemoteChange()
	r.result.RemoteDatabase = r.remoteDatabaseHost()
	switch at {
	case inOtherFolder:
		r.setNotUnderstood("%s is not in a system folder", args[0].Text)
		r.result.Nested = append(r.result.Nested, Nested{Language: "file", Words: args[:1]})
	case inProjectEnvironment:
		r.raiseClass(localWrite)
	case inSearchPath, inSystemFolder:
	}
	r.result.Understood = r.result.WhyNotUnderstood == ""
	r.result.StdinKnown = r.result.StdinKnown || r.result.Stdin != Data || r.result.Stdout == Input || r.result.Stdout == Decoded || r.flags&dry != 0
	r.result.Language = g.language
	if g.input != 0 {
		r.result.Language = queryPrefix + name
	}
	r.result.IsWindowsProgram = g.style&slash != 0
	r.result.WritesDecoded = r.flags&decodes != 0
	r.result.SendsArguments, r.result.VariableIsDatabase = r.flags&tells != 0, r.flags&database != 0
	if r.flags&remoteDestination == 0 || r.flags&(near|dry) != 0 {
		r.keepCopiesLocal()
	}
	r.result.InstallsByName = r.result.Understood && r.operandShape.rest == rolePackage && len(r.result.OperandEffects) == 0
	r.result.Class = r.class.class()
	if r.result.OtherLosses != 0 {
		r.result.Folder = r.resolveInBaseFolder(r.workingFolder())
	}
	if !r.result.Understood {
		r.addPossibleHarms()
	}
	return r.result
}

// noteTextOptions records the option values that are plain text.
func (r *argParser) noteTextOptions() {
	for _, v := range r.values {
		if role := r.changedRole(v.role); (role == roleText || role == roleWord) && !v.word.Pattern && strings.IndexByte(v.word.Text, ' ') > 0 {
			r.result.FreeTexts = append(r.result.FreeTexts, v.word)
		}
	}
}

// returnToPool returns a parser, with its emptied buffers, to argParserPool.
func (r *argParser) returnToPool() {
	clear(r.values)
	*r = argParser{values: r.values[:0], operands: r.operands[:0], copyEffectIndexes: r.copyEffectIndexes[:0]}
	argParserPool.Put(r)
}

// argParserPool is a pool of parsers with their buffers.
var argParserPool = sync.Pool{New: func() any {
	return &argParser{values: make([]valueWithRole, 0, 8), operands: make([]int, 0, 24)}
}}

// An argParser parses the arguments of one program in one pass and collects their effects.
type argParser struct {
	args   []Word
	result Interpretation
	class  classRank

	levels         [maxDepth]*syntax // the program, then its subcommands
	levelCount     int
	innermostLevel *syntax // the innermost syntax
	operandShape   *shape
	sawOperand     bool // an operand that is not a subcommand was seen
	optionsEnded   bool // all further arguments are operands
	stdinIsCode    bool // standard input is the code by default

	roleChanges                       [8]turn // changes of roles by options; more than 8 are ignored
	roleChangeCount                   int
	workingFolderRole, noOperandsRole role
	flags                             flags

	values            []valueWithRole
	checkedValues     int    // number of entries of values that were already checked for folder options such as tar -C
	operands          []int  // indices in args
	listedOperands    []Word // further operands from files or standard input
	baseFolder        string // base folder of relative paths, "" for the working folder
	gitRemoteName     string // git: the remote that gets a URL
	copyEffectIndexes []int  // indices in OperandEffects of files that are sent if the destination is another machine
	gitSettingKey     Word   // key of a git setting, until its value is read
	databaseFile      Word   // a database in a file
	backupSuffix      string // suffix of backup copies of edited files
	databaseInMemory  bool   // the database is not in a file

	remoteVerb        string // verb of a remote change: the most severe one, see verbsBySeverity
	targets           []Word // hosts, databases, clusters and accounts that the command works on
	requestMethod     string // method of a request that changes something, in capitals
	controlledService string // the service whose control socket is used
}

// A valueWithRole is a word with its role. Roles are applied after all options are parsed, since a later option may change
// them (tar f x.tar -c).
type valueWithRole struct {
	role           role
	word           Word
	operandsBefore int  // number of operands before it
	runsBeforeMain bool // its code runs before the main program, which is given by other arguments: perl -MFILE, bash --rcfile FILE
}

// valueRunsFirst reports whether the code in an option's value runs before the main program, as in
// perl -MFILE, and is not the main program itself. An option that gives the main program also
// changes the meaning of the operands.
func (a *action) valueRunsFirst() bool { return a.operands == nil && a.flags&stop == 0 }

// enterSyntax makes g the innermost syntax.
func (r *argParser) enterSyntax(g *syntax) {
	if r.levelCount < maxDepth {
		r.levels[r.levelCount] = g
		r.levelCount++
	}
	r.innermostLevel, r.operandShape, r.noOperandsRole = g, &g.operands, 0
	if g.why != "" {
		r.result.EffectsDescription = g.why
	}
	if g.base != nil {
		r.applyAction(g.base)
		if g.base.flags&reject != 0 {
			r.setNotUnderstood("cannot judge what %s does", r.args[0].Text)
		}
	}
}

// applyAction applies an action except its values.
func (r *argParser) applyAction(a *action) {
	r.raiseClass(a.class)
	for _, k := range a.effects {
		r.addEffect(k)
	}
	r.noteVerb(a.verb)
	r.addHarm(a.harm)
	r.result.OtherLosses |= a.undo
	if a.streams.setIn {
		r.result.Stdin, r.result.StdinKnown = a.streams.in, true
		r.stdinIsCode = a == r.innermostLevel.base && a.streams.in == Code
	}
	if a.streams.setOut {
		r.result.Stdout = a.streams.out
	}
	if a.operands != nil {
		r.operandShape = a.operands
	}
	for _, t := range a.turns {
		if r.roleChangeCount < len(r.roleChanges) {
			r.roleChanges[r.roleChangeCount] = t
			r.roleChangeCount++
		}
	}
	if a.here != 0 && r.flags&notHere == 0 {
		r.workingFolderRole = a.here
	}
	if a.empty != 0 {
		r.noOperandsRole = a.empty
	}
	r.flags |= a.flags
	if a.flags&notHere != 0 {
		r.workingFolderRole = 0
	}
	if a.flags&stop != 0 {
		r.optionsEnded = true
	}
}

// parseArgs parses the arguments.
func (r *argParser) parseArgs() {
	for i := 1; i < len(r.args); {
		w := r.args[i]
		if r.innermostLevel.style&bare != 0 && i == 1 && w.Text != "" && w.Text[0] != '-' && !w.Pattern {
			i = r.parseBundledOptions(i, w.Text)
			continue
		}
		if !r.optionsEnded {
			next, ok := r.parseOption(i)
			if ok {
				i = next
				continue
			}
		}
		i = r.parseOperand(i)
	}
}

// parseOperand handles args[i], which is not an option, and returns the index of the next argument.
func (r *argParser) parseOperand(i int) int {
	w := r.args[i]
	if !r.sawOperand && len(r.innermostLevel.subs)+len(r.innermostLevel.groups) > 0 {
		if r.enterSubcommand(w) {
			return i + 1
		}
	}
	if r.innermostLevel.style&settings != 0 && len(r.operands) == 0 && isSetting(w.Text) {
		r.addEnvSetting(w)
		if n, ok := VariableCode(w); ok {
			r.result.Nested = append(r.result.Nested, n)
		}
		return i + 1
	}
	if len(r.innermostLevel.keys) > 0 {
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			if a := findEntry(r.innermostLevel.keys, w.Text[:eq]); a != nil {
				r.applyOption(a, skipBytes(w, eq+1))
				return i + 1
			}
		}
	}
	r.sawOperand = true
	if r.operandShape.rest.takesAll() && len(r.operands) == len(r.operandShape.head) {
		r.values = append(r.values, valueWithRole{role: r.operandShape.rest})
		r.addNestedWords(r.operandShape.rest, r.args[i:])
		return len(r.args)
	}
	r.operands = append(r.operands, i)
	if r.innermostLevel.style&first != 0 {
		r.optionsEnded = true
	}
	return i + 1
}

// enterSubcommand enters the subcommand w; it reports whether w is a subcommand or can be skipped.
func (r *argParser) enterSubcommand(w Word) bool {
	if !w.Pattern {
		name := w.Text
		if r.innermostLevel.style&slash != 0 {
			name = strings.ToLower(name)
		}
		g := findEntry(r.innermostLevel.subs, name)
		if g == nil && r.innermostLevel.isSkippableWord(name) {
			return true
		}
		if g == nil {
			g = findLongestPrefix(r.innermostLevel.subs, name, 0)
		}
		if g != nil {
			r.enterSyntax(g)
			return true
		}
	}
	r.sawOperand = true
	if r.innermostLevel.operands.rest == 0 && len(r.innermostLevel.operands.head) == 0 {
		r.setNotUnderstood("unknown subcommand %s", w.Text)
	}
	return false
}

// isSkippableWord reports whether a word may precede a subcommand.
func (g *syntax) isSkippableWord(name string) bool {
	return slices.ContainsFunc(g.groups, func(g string) bool {
		prefix, any := strings.CutSuffix(g, "*")
		return name == g || any && hasPrefix(name, prefix)
	})
}

// applyOption applies an option with one known value.
func (r *argParser) applyOption(a *action, w Word) {
	r.applyAction(a)
	if len(a.values) > 0 {
		r.values = append(r.values, valueWithRole{a.values[0], w, len(r.operands), a.valueRunsFirst()})
	}
}

// raiseClass makes the class at least c.
func (r *argParser) raiseClass(c classRank) {
	if c > r.class {
		r.class = c
	}
}

// setNotUnderstood records the first thing that was not understood.
func (r *argParser) setNotUnderstood(format, what string) {
	if r.result.WhyNotUnderstood == "" {
		r.result.WhyNotUnderstood = strings.Replace(format, "%s", shortenForMessage(what), 1)
	}
}

// shortenForMessage shortens text for a message and replaces control characters.
func shortenForMessage(s string) string {
	return brief.Text(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '�' {
			return '?'
		}
		return c
	}, s), 40)
}

// skipBytes returns a word without its first n bytes.
func skipBytes(w Word, n int) Word {
	w.Text = w.Text[n:]
	return w
}

// minClassRank returns the lowest class of a program with an effect.
func minClassRank(k effect.Kind) classRank {
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

// applyDash handles "-", which means standard input or output in place of a file.
func (r *argParser) applyDash(role role) {
	if role >= roleScript || role >= roleShell && role <= roleCode || role == roleScriptInput || role == roleReadInput || role == roleMaybeScript {
		r.result.Stdin, r.stdinIsCode = Code, false
	}
	if role == roleNames {
		r.result.Stdin = Listed
	}
	if role == roleData || role == roleForm || role == roleSendFile {
		r.result.Stdin = Upload
	}
}

// addScript records a code file that runs.
func (r *argParser) addScript(language string, w Word) {
	if isStdinPath(w.Text) {
		r.result.Stdin, r.stdinIsCode = Code, false
		return
	}
	if i := slices.IndexFunc(r.args, func(a Word) bool { return a.Text == w.Text }); language == "node" && i > 0 && r.addPrefixedPackage(w) { // deno run npm:PACKAGE
		if hasPrefix(w.Text, "npm:") {
			words := slices.Clone(r.args[i:])
			words[0] = skipBytes(words[0], len("npm:"))
			r.addNestedCode(Nested{Language: "argv", Words: packageCommand(words)})
		}
		return
	}
	r.addNestedCode(Nested{Language: "file", FileLanguage: language, Words: []Word{w}})
}

// isStdinPath reports whether a path means standard input.
func isStdinPath(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return true
	}
	return false
}
