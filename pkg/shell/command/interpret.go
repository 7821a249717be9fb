package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/pkg/effect"
)

// maxSubcommandDepth is the maximum nesting of subcommands.
const maxSubcommandDepth = 8

// Interpret returns the effect of running the program args[0] with the other args. It takes time
// linear in the size of args and never panics. operandsFromFileOrStdin are further operands, which
// the caller read from the files in Interpretation.OperandListFiles of an earlier call, or from
// standard input if Interpretation.Stdin is StreamOperandList; nil if they are unknown.
func Interpret(args []Word, operandsFromFileOrStdin ...Word) Interpretation {
	if len(args) == 0 {
		return Interpretation{WhyNotUnderstood: "no program"}
	}
	if args[0].IsGlobPattern {
		return Interpretation{WhyNotUnderstood: "cannot tell which program runs"}
	}
	dir, name := splitProgramPath(args[0].Text)
	g := lookupProgram(name)
	at := programLocationOf(args[0].Text, dir)
	if g == nil {
		use := interpretUnlisted(name, args)
		if at == programLocationOtherFolder {
			use.NestedCommandsAndCode = []NestedCommandOrCode{{Language: "file", Words: args[:1]}}
		}
		return use
	}
	r := argParserPool.Get().(*argParser)
	defer r.returnToPool()
	r.args = args
	r.enterSyntax(g)
	r.parseArgs()
	r.operandsFromFileOrStdin = operandsFromFileOrStdin
	if onlyPrintsHelp(g, args) {
		r.activeActionFlags = r.activeActionFlags&^actionFlagCancelsDryRun | actionFlagDryRun
	}
	r.applyRoles()
	r.addFreeTextOptionValues()
	r.deriveRemoteServiceChange()
	r.result.RemoteDatabaseHostOrURL = r.remoteDatabaseHost()
	switch at {
	case programLocationOtherFolder:
		r.setNotUnderstood("%s is not in a system folder", args[0].Text)
		r.result.NestedCommandsAndCode = append(r.result.NestedCommandsAndCode, NestedCommandOrCode{Language: "file", Words: args[:1]})
	case programLocationProjectEnvironment:
		r.raiseProgramClass(localWriteProgramClassRank)
	case programLocationSearchPath, programLocationSystemFolder:
	}
	r.result.Understood = r.result.WhyNotUnderstood == ""
	r.result.IsStdinUseKnown = r.result.IsStdinUseKnown || r.result.Stdin != StreamPlainData || r.result.Stdout == StreamFilteredStdin || r.result.Stdout == StreamDecodedStdin || r.activeActionFlags&actionFlagDryRun != 0
	r.result.StdinCodeLanguage = g.language
	if g.stdinRole != 0 {
		r.result.StdinCodeLanguage = queryLanguagePrefix + name
	}
	r.result.IsWindowsProgram = g.argStyle&argStyleWindowsSlashOptions != 0
	r.result.WritesDecodedInputToFiles = r.activeActionFlags&actionFlagWritesDecoded != 0
	r.result.SendsArgumentsToOtherMachine, r.result.VariableOnlyArgIsDatabaseAddress = r.activeActionFlags&actionFlagSendsArguments != 0, r.activeActionFlags&actionFlagVariableIsDatabaseURL != 0
	if r.activeActionFlags&actionFlagDestinationIsRemote == 0 || r.activeActionFlags&(actionFlagColonPrefixNamesContainer|actionFlagDryRun) != 0 {
		r.markCopiedFilesKeptLocal()
	}
	r.result.InstallsPackagesByNameOnly = r.result.Understood && r.operandRoles.middleRole == argRolePackage && len(r.result.OperandEffects) == 0
	r.result.Class = r.programClassRank.programClass()
	if r.result.NonOperandDataLosses != 0 {
		r.result.FolderLosingFiles = r.resolveInBaseFolder(r.workingFolder())
	}
	if !r.result.Understood {
		r.addHarmsOfListedArgs()
	}
	return r.result
}

// addFreeTextOptionValues records the option values that are plain text.
func (r *argParser) addFreeTextOptionValues() {
	for _, v := range r.values {
		if role := r.roleAfterOptionChanges(v.role); (role == argRoleInertText || role == argRoleTextOrSensitivePath) && !v.word.IsGlobPattern && strings.IndexByte(v.word.Text, ' ') > 0 {
			r.result.FreeTexts = append(r.result.FreeTexts, v.word)
		}
	}
}

// returnToPool returns a parser, with its emptied buffers, to argParserPool.
func (r *argParser) returnToPool() {
	clear(r.values)
	*r = argParser{values: r.values[:0], operandArgIndexes: r.operandArgIndexes[:0], copySourceEffectIndexes: r.copySourceEffectIndexes[:0]}
	argParserPool.Put(r)
}

// argParserPool is a pool of parsers with their buffers.
var argParserPool = sync.Pool{New: func() any {
	return &argParser{values: make([]valueWithRole, 0, 8), operandArgIndexes: make([]int, 0, 24)}
}}

// An argParser parses the arguments of one program in one pass and collects their effects.
type argParser struct {
	args             []Word
	result           Interpretation
	programClassRank programClassRank

	syntaxBySubcommandDepth [maxSubcommandDepth]*syntax // the program, then its subcommands
	enteredSyntaxCount      int
	innermostSyntax         *syntax // syntax of the last subcommand that was found; before the first one, of the program
	operandRoles            *operandRoles
	sawOperand              bool // an operand that is not a subcommand was seen
	optionsEnded            bool // all further arguments are operands
	stdinIsCode             bool // standard input is the code by default

	argRoleOverrides                       [8]argRoleOverrideByOption // changes of roles by options; more than 8 are ignored
	argRoleOverrideCount                   int
	workingFolderRole, implicitOperandRole argRole
	activeActionFlags                      actionFlags

	values                     []valueWithRole
	valuesCheckedForChdir      int    // number of entries of values that were already checked for folder options such as tar -C
	operandArgIndexes          []int  // indices in args
	operandsFromFileOrStdin    []Word // further operands from files or standard input
	baseFolderFromChdirOptions string // base folder of relative paths, "" for the working folder
	gitRemoteName              string // git remote add and set-url: name of the remote whose URL is set
	copySourceEffectIndexes    []int  // indices in OperandEffects of files that are sent if the destination is another machine
	gitSettingKey              Word   // key of a git setting, until its value is read
	databaseFile               Word   // a database in a file
	backupSuffix               string // suffix of backup copies of edited files
	databaseInMemory           bool   // the database is not in a file

	remoteChangeVerb        string // verb of a remote change: the most severe one, see verbsBySeverity
	targetHostsAndDatabases []Word // hosts, databases, clusters and accounts that the command works on
	requestMethod           string // method of a request that changes something, in capitals
	controlledLocalService  string // the service whose control socket is used
}

// A valueWithRole is a word with its role. Roles are applied after all options are parsed, since a later option may change
// them (tar f x.tar -c).
type valueWithRole struct {
	role                 argRole
	word                 Word
	operandsBefore       int  // number of operands before the word
	runsBeforeMainScript bool // its code runs before the main program, which is given by other arguments: perl -MFILE, bash --rcfile FILE
}

// valueRunsBeforeMainScript reports whether the value of an option is code that runs before the
// main script, as in perl -MFILE. It returns false for an option whose value is the main script
// itself, as in perl -e CODE: such an option ends the options or changes the roles of the operands.
func (a *optionOrCommandAction) valueRunsBeforeMainScript() bool {
	return a.operandRoles == nil && a.actionFlags&actionFlagEndsOptions == 0
}

// enterSyntax makes g the innermost syntax.
func (r *argParser) enterSyntax(g *syntax) {
	if r.enteredSyntaxCount < maxSubcommandDepth {
		r.syntaxBySubcommandDepth[r.enteredSyntaxCount] = g
		r.enteredSyntaxCount++
	}
	r.innermostSyntax, r.operandRoles, r.implicitOperandRole = g, &g.operandRoles, 0
	if g.effectsDescription != "" {
		r.result.EffectsDescription = g.effectsDescription
	}
	if g.unconditionalAction != nil {
		r.applyAction(g.unconditionalAction)
		if g.unconditionalAction.actionFlags&actionFlagUnjudgeable != 0 {
			r.setNotUnderstood("cannot judge what %s does", r.args[0].Text)
		}
	}
}

// applyAction applies an action, except the roles of the words after an option (valueRoles).
func (r *argParser) applyAction(a *optionOrCommandAction) {
	r.raiseProgramClass(a.programClassRank)
	for _, k := range a.effects {
		r.addEffect(k)
	}
	r.recordRemoteChangeVerb(a.remoteChangeVerb)
	r.addHarm(a.harm)
	r.result.NonOperandDataLosses |= a.nonOperandDataLosses
	if a.streams.setsStdin {
		r.result.Stdin, r.result.IsStdinUseKnown = a.streams.stdin, true
		r.stdinIsCode = a == r.innermostSyntax.unconditionalAction && a.streams.stdin == StreamExecutedCode
	}
	if a.streams.setsStdout {
		r.result.Stdout = a.streams.stdout
	}
	if a.operandRoles != nil {
		r.operandRoles = a.operandRoles
	}
	for _, t := range a.argRoleOverrides {
		if r.argRoleOverrideCount < len(r.argRoleOverrides) {
			r.argRoleOverrides[r.argRoleOverrideCount] = t
			r.argRoleOverrideCount++
		}
	}
	if a.workingFolderRole != 0 && r.activeActionFlags&actionFlagCancelsWorkingFolderRole == 0 {
		r.workingFolderRole = a.workingFolderRole
	}
	if a.implicitOperandRole != 0 {
		r.implicitOperandRole = a.implicitOperandRole
	}
	r.activeActionFlags |= a.actionFlags
	if a.actionFlags&actionFlagCancelsWorkingFolderRole != 0 {
		r.workingFolderRole = 0
	}
	if a.actionFlags&actionFlagEndsOptions != 0 {
		r.optionsEnded = true
	}
}

// parseArgs parses the arguments after the program's name. It applies the actions of options and subcommands,
// and collects option values and operands, whose roles applyRoles applies later.
func (r *argParser) parseArgs() {
	for i := 1; i < len(r.args); {
		w := r.args[i]
		if r.innermostSyntax.argStyle&argStyleDashlessFirstWord != 0 && i == 1 && w.Text != "" && w.Text[0] != '-' && !w.IsGlobPattern {
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
	if !r.sawOperand && len(r.innermostSyntax.subcommands)+len(r.innermostSyntax.skippableCommandGroups) > 0 {
		if r.enterSubcommand(w) {
			return i + 1
		}
	}
	if r.innermostSyntax.argStyle&argStyleLeadingAssignments != 0 && len(r.operandArgIndexes) == 0 && isEnvironmentAssignment(w.Text) {
		r.addEnvSetting(w)
		if n, ok := CodeRunByEnvVariable(w); ok {
			r.result.NestedCommandsAndCode = append(r.result.NestedCommandsAndCode, n)
		}
		return i + 1
	}
	if len(r.innermostSyntax.keyValueOperands) > 0 {
		if eq := strings.IndexByte(w.Text, '='); eq > 0 {
			if a := findEntry(r.innermostSyntax.keyValueOperands, w.Text[:eq]); a != nil {
				r.applyOption(a, skipBytes(w, eq+1))
				return i + 1
			}
		}
	}
	r.sawOperand = true
	if r.operandRoles.middleRole.coversRemainingArgs() && len(r.operandArgIndexes) == len(r.operandRoles.firstRoles) {
		r.values = append(r.values, valueWithRole{role: r.operandRoles.middleRole})
		r.addNestedCommand(r.operandRoles.middleRole, r.args[i:])
		return len(r.args)
	}
	r.operandArgIndexes = append(r.operandArgIndexes, i)
	if r.innermostSyntax.argStyle&argStyleOptionsEndAtOperand != 0 {
		r.optionsEnded = true
	}
	return i + 1
}

// enterSubcommand enters the subcommand w; it reports whether w is a subcommand or can be skipped.
func (r *argParser) enterSubcommand(w Word) bool {
	if !w.IsGlobPattern {
		name := w.Text
		if r.innermostSyntax.argStyle&argStyleWindowsSlashOptions != 0 {
			name = strings.ToLower(name)
		}
		g := findEntry(r.innermostSyntax.subcommands, name)
		if g == nil && r.innermostSyntax.isSkippableCommandGroup(name) {
			return true
		}
		if g == nil {
			g = findLongestPrefix(r.innermostSyntax.subcommands, name, 0)
		}
		if g != nil {
			r.enterSyntax(g)
			return true
		}
	}
	r.sawOperand = true
	if r.innermostSyntax.operandRoles.middleRole == 0 && len(r.innermostSyntax.operandRoles.firstRoles) == 0 {
		r.setNotUnderstood("unknown subcommand %s", w.Text)
	}
	return false
}

// isSkippableCommandGroup reports whether a word may precede a subcommand.
func (g *syntax) isSkippableCommandGroup(name string) bool {
	return slices.ContainsFunc(g.skippableCommandGroups, func(g string) bool {
		prefix, any := strings.CutSuffix(g, "*")
		return name == g || any && hasPrefix(name, prefix)
	})
}

// applyOption applies an option with one known value.
func (r *argParser) applyOption(a *optionOrCommandAction, w Word) {
	r.applyAction(a)
	if len(a.valueRoles) > 0 {
		r.values = append(r.values, valueWithRole{a.valueRoles[0], w, len(r.operandArgIndexes), a.valueRunsBeforeMainScript()})
	}
}

// raiseProgramClass makes the class at least c.
func (r *argParser) raiseProgramClass(c programClassRank) {
	if c > r.programClassRank {
		r.programClassRank = c
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
	return brief.TruncateWithEllipsis(strings.Map(func(c rune) rune {
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

// minProgramClassRank returns the lowest class, by severity, that a program with an effect of kind k can have.
func minProgramClassRank(k effect.Kind) programClassRank {
	switch k {
	case effect.WriteFile, effect.MoveFile, effect.CreateDirectory, effect.ChangePermissions, effect.Persist, effect.StopProcess:
		return localWriteProgramClassRank
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.ChangeRemoteSystem, effect.SendData:
		return networkProgramClassRank
	case effect.DeleteFile, effect.DeleteDirectory, effect.DestroyData:
		return destructiveProgramClassRank
	case effect.ChangePrivilege, effect.ChangeSystem, effect.TamperWithShield:
		return privilegedProgramClassRank
	case effect.ReadFile, effect.ListDirectory, effect.Execute, effect.ReadSecret, effect.ReadClipboard,
		effect.RunDownload, effect.RunDecodedText, effect.RunCommandOutput, effect.SendSecret, effect.RunCode, effect.RemoteShell, effect.UnknownEffect:
	}
	return readOnlyProgramClassRank
}

// applyStdioDashOperand handles "-", which means standard input or output in place of a file.
func (r *argParser) applyStdioDashOperand(role argRole) {
	if role >= argRoleScriptFile || role >= argRoleShellCode && role <= argRoleOtherLanguageCode || role == argRoleQueryLanguageFile || role == argRoleReadFileOrRunStdin || role == argRoleTextOrScriptFile {
		r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
	}
	if role == argRoleOperandListFile {
		r.result.Stdin = StreamOperandList
	}
	if role == argRoleRequestData || role == argRoleRequestFormField || role == argRoleSendFile {
		r.result.Stdin = StreamUpload
	}
}

// addScript records a code file that runs.
func (r *argParser) addScript(language string, w Word) {
	if isStdinPath(w.Text) {
		r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
		return
	}
	if i := slices.IndexFunc(r.args, func(a Word) bool { return a.Text == w.Text }); language == "node" && i > 0 && r.addRegistryPrefixedPackage(w) { // deno run npm:PACKAGE
		if hasPrefix(w.Text, "npm:") {
			words := slices.Clone(r.args[i:])
			words[0] = skipBytes(words[0], len("npm:"))
			r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: stripPackageVersionAndScope(words)})
		}
		return
	}
	r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: language, Words: []Word{w}})
}

// isStdinPath reports whether a path means standard input.
func isStdinPath(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
		return true
	}
	return false
}
