package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// coversRemainingArgs reports whether a role covers all remaining words.
func (r argRole) coversRemainingArgs() bool { return r >= argRoleArgv }

// codeRoleLanguages are the languages of the roles for code in an argument. The index of a role is
// its distance from argRoleShellCode.
var codeRoleLanguages = [...]string{"shell", "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "encoded", "cmd", "ipython", "code"}

// scriptFileRoleLanguages are the languages of the roles for script files; "" is any language. The
// index of a role is its distance from argRoleScriptFile.
var scriptFileRoleLanguages = [...]string{"", "shell", "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "code"}

// applyRoles applies the roles of values and operands after all arguments are parsed.
func (r *argParser) applyRoles() {
	for d := range r.enteredSyntaxCount {
		if len(r.syntaxBySubcommandDepth[d].argTextPatterns) > 0 {
			r.applyArgTextPatternActions(r.syntaxBySubcommandDepth[d].argTextPatterns)
		}
	}
	if r.activeActionFlags&(actionFlagContactsURLsInArgs|actionFlagRunsURLResponses) != 0 {
		r.addURLsInArgs()
	}
	for _, v := range r.values {
		if v.role == argRoleChdirForAllArgs && !v.word.IsGlobPattern {
			r.baseFolderFromChdirOptions = r.resolveInBaseFolder(v.word).Text
		}
	}
	for _, v := range r.values {
		codeRead := r.stdinIsCode
		r.stdinIsCode = codeRead && !v.runsBeforeMainScript
		r.applyRole(v.role, v.word, false)
		r.stdinIsCode = codeRead && (v.runsBeforeMainScript || r.stdinIsCode)
	}
	r.appendOperandsFromFileOrStdin()
	r.applyOperandRolesByPosition()
	if entry := r.containerEntryPointCommand(); len(entry) > 0 && !slices.ContainsFunc(r.result.NestedCommandsAndCode, func(n NestedCommandOrCode) bool { return n.Remote }) {
		r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: entry, Remote: true})
	}
	if r.workingFolderRole != 0 {
		r.applyRole(r.workingFolderRole, r.workingFolder(), false)
	}
	if r.activeActionFlags&actionFlagDeletesFoundFiles != 0 {
		r.addFindDeleteEffects()
	}
	if r.programClassRank > readOnlyProgramClassRank {
		r.addOperandEffect(effect.WriteFile, r.databaseFile, false)
	}
	if r.activeActionFlags&(actionFlagDryRun|actionFlagCancelsDryRun) == actionFlagDryRun && r.result.WhyNotUnderstood == "" {
		r.reduceToDryRun()
	}
	if r.databaseInMemory && !slices.ContainsFunc(r.result.OperandEffects, func(t OperandEffect) bool { return t.Kind == effect.WriteFile }) {
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == effect.DestroyData })
	}
	if r.activeActionFlags&actionFlagReadsPcapFile != 0 {
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == effect.ReadClipboard })
		r.result.Harms = slices.DeleteFunc(r.result.Harms, func(h effect.Harm) bool { return h == effect.Eavesdrops })
	}
}

// reduceToDryRun turns the effects of a program into those of its dry run: it reads the files that it would otherwise
// change or run. git runs its hooks, helpers and transport commands in a dry run too, with the settings of -c.
func (r *argParser) reduceToDryRun() {
	kept, nested := []effect.Kind(nil), []NestedCommandOrCode(nil)
	if r.programName() == "git" {
		nested = r.result.NestedCommandsAndCode
		if slices.Contains(r.result.Effects, effect.UnknownEffect) {
			kept = append(kept, effect.UnknownEffect)
		}
		if r.remoteChangeVerb == "weaken" || r.remoteChangeVerb == "redirect" {
			kept = append(kept, effect.ChangeRemoteSystem)
		}
	}
	for i, t := range r.result.OperandEffects {
		if t.Kind != effect.ListDirectory {
			r.result.OperandEffects[i].Kind = effect.ReadFile
		}
	}
	for _, n := range r.result.NestedCommandsAndCode {
		if n.Language == "file" {
			r.addOperandEffect(effect.ReadFile, n.Words[0], false)
		}
	}
	r.result.Effects, r.result.Harms, r.result.NestedCommandsAndCode, r.result.Stdin, r.result.NonOperandDataLosses = kept, nil, nested, StreamPlainData, 0
	if r.result.Stdout == StreamCredentials {
		r.result.Stdout = StreamPlainData
	}
	r.programClassRank = readOnlyProgramClassRank
}

// workingFolder returns the working folder, with the span of the program's name.
func (r *argParser) workingFolder() Word { return Word{Text: ".", Span: r.args[0].Span} }

// applyOperandRolesByPosition applies to each operand the role of its position.
func (r *argParser) applyOperandRolesByPosition() {
	s, n := r.operandRoles, len(r.operandArgIndexes)
	head, tail := len(s.firstRoles), len(s.lastRoles)
	if head+tail > n {
		if tail > n {
			tail = n
		}
		if s.middleRole == 0 || head+tail > n {
			head = n - tail
		}
	}
	middle := n - head - tail
	if middle > 0 && s.middleRole == 0 {
		if !r.allowsUnlistedOptions() {
			r.setNotUnderstood("too many operands: %s", r.args[r.operandArgIndexes[head]].Text)
		}
		s = &operandRoles{firstRoles: s.firstRoles, middleRole: argRoleInertText, lastRoles: s.lastRoles}
	}
	if (s.middleRole == argRoleArgvOnRemote || s.middleRole == argRoleRemoteShellCodeWords) && middle <= 0 && head < 2 && n >= head && (r.result.Stdin == StreamPlainData || r.result.Stdin == StreamUpload) && !r.hasNestedCommand() {
		r.result.Stdin, r.result.RunsStdinRemotely = StreamExecutedCode, true
	}
	entered := r.baseFolderFromChdirOptions
	for k, i := range r.operandArgIndexes {
		role := s.middleRole
		switch {
		case k < head:
			role = s.firstRoles[k]
		case k >= n-tail:
			role = s.lastRoles[len(s.lastRoles)-(n-k)]
		}
		r.applyChdirOptionsBefore(k)
		r.applyRole(role, r.args[i], true)
	}
	r.baseFolderFromChdirOptions = entered
	if middle <= 0 && r.implicitOperandRole != 0 && !s.middleRole.coversRemainingArgs() {
		r.applyRole(r.implicitOperandRole, r.workingFolder(), true)
	}
}

// hasNestedCommand reports whether the arguments already contain a command or code that runs on the
// remote machine.
func (r *argParser) hasNestedCommand() bool {
	return slices.ContainsFunc(r.result.NestedCommandsAndCode, func(n NestedCommandOrCode) bool { return n.Remote || n.Language == "argv" })
}

// roleAfterOptionChanges returns the role that words of the given role have after the role changes by options
// (argRoleOverrides). The last change counts; without a change, it is the same role.
func (r *argParser) roleAfterOptionChanges(role argRole) argRole {
	for k := r.argRoleOverrideCount - 1; k >= 0; k-- {
		if r.argRoleOverrides[k].oldRole == role {
			return r.argRoleOverrides[k].newRole
		}
	}
	return role
}

// addOperandEffect records an effect on w.
func (r *argParser) addOperandEffect(k effect.Kind, w Word, isRecursive bool) {
	r.raiseProgramClass(minProgramClassRank(k))
	if k == effect.Listen {
		// The effect has an operand, so the effect without one does not apply.
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == k })
	}
	if w.Text == "" && !w.IsGlobPattern {
		return
	}
	if r.result.OperandEffects == nil {
		r.result.OperandEffects = make([]OperandEffect, 0, max(2, min(len(r.operandArgIndexes)+len(r.values), 64)))
	}
	switch k {
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.SendData, effect.ChangeRemoteSystem:
	default:
		w = r.resolveInBaseFolder(w)
	}
	r.result.OperandEffects = append(r.result.OperandEffects, OperandEffect{Kind: k, Word: w, Recursive: isRecursive})
}

// addSentFile records that a file's content is sent to another machine.
func (r *argParser) addSentFile(w Word, isRecursive bool) {
	n := len(r.result.OperandEffects)
	r.addOperandEffect(effect.ReadFile, w, isRecursive)
	if len(r.result.OperandEffects) > n {
		r.result.OperandEffects[n].IsFileContentSent = true
	}
}

// markCopiedFilesKeptLocal records that copied files stay on this machine, because the destination is local.
func (r *argParser) markCopiedFilesKeptLocal() {
	for _, i := range r.copySourceEffectIndexes {
		r.result.OperandEffects[i].IsFileContentSent = false
	}
}

// addNestedCode records nested code or a script.
//
//go:noinline
func (r *argParser) addNestedCode(n NestedCommandOrCode) {
	if r.stdinIsCode {
		r.result.Stdin, r.stdinIsCode = StreamPlainData, false
	}
	r.result.NestedCommandsAndCode = append(r.result.NestedCommandsAndCode, n)
}

// applyRole applies a role to a word. isOperand is false for the value of an option.
func (r *argParser) applyRole(role argRole, w Word, isOperand bool) {
	role = r.roleAfterOptionChanges(role)
	if isOperand && role == argRoleInertText && r.allowsUnlistedOptions() {
		// The word can be the value of an option that the program's entry does not list.
		role = argRoleTextOrFileReference
	}
	if role == argRoleTextOrSensitivePath {
		r.addUnrecognizedWord(w, false)
		return
	}
	if role == argRoleNone || role == argRoleInertText || role == argRoleContainerEntryPoint || role == argRoleWorkingFolder || role == argRoleChdirForAllArgs || role == argRoleChdirForLaterOperands || role.coversRemainingArgs() {
		return
	}
	if w.Text == "-" && role != argRoleWritesLocally {
		r.applyStdioDashOperand(role)
		return
	}
	tree := isOperand && r.activeActionFlags&actionFlagRecursive != 0
	switch {
	case role >= argRoleScriptFile:
		r.addScript(scriptFileRoleLanguages[role-argRoleScriptFile], w)
	case role >= argRoleShellCode:
		r.addNestedCode(NestedCommandOrCode{Language: codeRoleLanguages[role-argRoleShellCode], Words: []Word{w}})
	case role >= argRoleURL:
		r.applyNonPathRole(role, w)
	default:
		r.applyPathRole(role, w, tree)
	}
}

// applyPathRole records the effects on the path w that its role implies, such as a read or a deletion. If
// isRecursive is true, most of them cover everything in a folder.
func (r *argParser) applyPathRole(role argRole, w Word, isRecursive bool) {
	switch role {
	case argRoleReadFile, argRoleArchiveReadOrWritten:
		r.addOperandEffect(effect.ReadFile, w, isRecursive)
	case argRoleReadFolderTree:
		r.addOperandEffect(effect.ReadFile, w, true)
	case argRoleSendFile:
		r.addSentFile(w, isRecursive)
	case argRoleSendFolderTree:
		r.addSentFile(w, true)
	case argRoleWriteFile:
		r.addOperandEffect(effect.WriteFile, w, false)
	case argRoleOutputFileOrPipe:
		if hasPrefix(w.Text, "|") {
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{skipBytes(w, 1)}})
		} else {
			r.addOperandEffect(effect.WriteFile, w, false)
		}
	case argRoleWriteFolderTree:
		r.addOperandEffect(effect.WriteFile, w, true)
	case argRoleCopyDestination:
		r.addCopyWrites(w, isRecursive, false)
	case argRoleCopyDestinationFolder:
		r.addCopyWrites(w, r.activeActionFlags&actionFlagRecursive != 0, true)
	case argRoleEditFile:
		r.addEditedFileEffects(w, isRecursive)
	case argRoleCompressFile:
		r.addCompressedFileEffects(w, isRecursive)
	case argRoleReadFileWriteSuffixed:
		r.addOperandEffect(effect.ReadFile, w, isRecursive)
		r.addWriteWithAnySuffix(w)
	case argRoleOverwriteDisk:
		r.addOperandEffect(effect.WriteFile, w, false)
		if w.IsGlobPattern {
			r.addEffect(effect.DestroyData)
			r.addEffect(effect.ChangeSystem)
		}
	case argRoleRepairDisk:
		r.addConditionalFileWrite(w, false)
	case argRoleDatabaseFile:
		if r.databaseInMemory = w.Text == memoryDatabaseName && !w.IsGlobPattern; !r.databaseInMemory {
			r.addOperandEffect(effect.ReadFile, w, false)
			r.databaseFile = w
		}
	case argRoleEditFolderTree:
		r.addOperandEffect(effect.ReadFile, w, true)
		r.addOperandEffect(effect.WriteFile, w, true)
	case argRoleBindMountFolder:
		r.addOperandEffect(effect.ReadFile, w, true)
		r.addConditionalFileWrite(w, true)
	case argRoleDeleteFile:
		r.addOperandEffect(effect.DeleteFile, w, isRecursive)
	case argRoleDeleteCleanGitTree:
		r.addOperandEffect(effect.DeleteFile, w, true)
		r.result.OperandEffects[len(r.result.OperandEffects)-1].RefusesDeletingUnversionedData = true
	case argRoleDeleteFolderTree:
		r.addOperandEffect(effect.DeleteFile, w, true)
	case argRoleDeleteEmptyFolder:
		r.addOperandEffect(effect.DeleteDirectory, w, false)
	case argRoleMoveSource:
		r.addOperandEffect(effect.MoveFile, w, true)
	case argRoleListFolder:
		r.addOperandEffect(effect.ListDirectory, w, isRecursive)
	case argRoleListFolderTree, argRoleFindStartFolder:
		r.addOperandEffect(effect.ListDirectory, w, true)
	case argRoleCreateFolder:
		r.addOperandEffect(effect.CreateDirectory, w, false)
	case argRoleChangePermissions:
		r.addOperandEffect(effect.ChangePermissions, w, isRecursive)
	case argRoleMountPoint:
		r.addOperandEffect(effect.ChangeSystem, w, false)
	}
}

// applyNonPathRole applies roles that are neither paths nor code.
func (r *argParser) applyNonPathRole(role argRole, w Word) {
	switch role {
	case argRoleURL:
		r.addURL(w)
	case argRolePackageSourceURLs:
		r.addOperandEffect(effect.ChangeRemoteSystem, w, false)
	case argRoleDeployedContainerImage:
		r.addImageRegistries(w)
	case argRoleDownloadURL:
		r.addURL(w)
		r.addDownloadedFile(w)
	case argRoleHost:
		r.addHost(w)
	case argRoleListenAddress:
		r.addOperandEffect(effect.Listen, w, false)
	case argRoleMessageRecipient:
		r.addOperandEffect(effect.SendMessage, w, false)
	case argRoleNameEqualsFile:
		if i := strings.IndexByte(w.Text, '='); i >= 0 {
			r.addOperandEffect(effect.ReadFile, skipBytes(w, i+1), false)
		}
	case argRoleRequestData, argRoleRequestFormField, argRoleTextOrFileReference, argRoleTextOrPath:
		r.addRequestData(role, w)
	case argRoleHTTPieItem:
		r.applyHTTPieOperand(w)
	case argRoleSocatAddress:
		r.addSocatAddress(w)
	case argRoleGitRemote:
		r.addGitRemote(w)
	case argRoleGitPushRemote:
		if w.Text != "." { // "." means no operand: git pushes to the configured remote
			r.addGitRemote(w)
		}
		r.addOperandEffect(effect.SendData, w, false)
	case argRolePushedImage:
		r.addOperandEffect(effect.SendData, w, false)
	case argRoleGitRemoteName:
		r.gitRemoteName = w.Text
	case argRoleGitRemoteURL:
		r.addGitRemote(w)
		r.result.GitRemotes = append(r.result.GitRemotes, GitRemote{Name: r.gitRemoteName, Address: w})
	case argRoleGitCloneRemote:
		r.addGitRemote(w)
		r.addCloneFolder(w)
	case argRoleRemoteCopySource, argRoleRemoteCopyDestination:
		r.addRemotePath(w, role == argRoleRemoteCopyDestination)
	case argRoleURLOrFile:
		if urlScheme(w.Text) != "" {
			r.addURL(w)
		} else {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	case argRolePackage, argRoleNPMPackage, argRolePackageProvidingProgram, argRoleNPMCreateTemplate, argRoleTemplateRepository, argRoleGoModulePath, argRoleGoProgram:
		r.applyPackageRole(role, w)
	case argRoleCloudObjectSource, argRoleCloudObjectDestination:
		r.addCloudObject(w, role == argRoleCloudObjectDestination)
	case argRoleDockerVolume:
		r.addVolume(w)
	case argRoleDockerMount:
		r.addMount(w)
	case argRoleSSHOption:
		r.applySSHOption(w)
	case argRoleGitConfigSetting, argRoleGitConfigKey, argRoleGitConfigValue:
		r.applyGitRole(role, w)
	case argRoleSedScript:
		r.applySedScript(w)
	case argRoleSQLText:
		r.applySQL(w)
	case argRoleFTPCommands:
		r.addFTPUploads(w)
	case argRoleExEditorCommands:
		r.applyExEditorCommands(w)
	case argRoleEnvironmentAssignment:
		r.addEnvSetting(w)
		r.addCodeRunByEnvVariable(w)
	default:
		r.applyEffectRole(role, w)
	}
}

// applyEffectRole applies a role whose word causes one specific effect, such as the process to stop
// or the user to switch to.
func (r *argParser) applyEffectRole(role argRole, w Word) {
	switch role {
	case argRoleBackupSuffix:
		r.setBackupSuffix(w)
	case argRoleDateFormatOrTime:
		if !hasPrefix(w.Text, "+") {
			r.addEffect(effect.ChangeSystem)
		}
	case argRolePrintedVariable:
		if knowledge.HasSecretNamePart(w.Text) || w.IsGlobPattern {
			r.addEffect(effect.ReadSecret)
			r.result.Stdout = StreamCredentials
		}
	case argRolePrintsAllVariables:
		r.addEffect(effect.ReadSecret)
		r.result.Stdout = StreamCredentials
	case argRoleWritesLocally:
		r.raiseProgramClass(localWriteProgramClassRank)
	case argRoleChangesOperatingSystem:
		r.addEffect(effect.ChangeSystem)
	case argRoleChangesRemoteResource:
		r.addEffect(effect.ChangeRemoteSystem)
	case argRoleDestroyedResource:
		r.addEffect(effect.DestroyData)
	case argRoleCoreDumpOrPID:
		if strings.Trim(w.Text, "0123456789*") != "" {
			r.addOperandEffect(effect.ReadFile, w, false)
			break
		}
		r.addEffect(effect.ReadClipboard)
		r.addStoppedProcess(w)
	case argRoleStoppedProcess:
		r.addStoppedProcess(w)
	case argRoleProcessName, argRoleProcessNameRegexp, argRoleProcessCommandLineRegexp, argRoleProcessWholeNameRegexp, argRoleProcessGroup, argRoleProcessParent, argRoleProcessesUsingFile:
		r.addEffect(effect.StopProcess)
		r.result.ProcessSignals = append(r.result.ProcessSignals, ProcessSignal{ProcessSelectionByName + ProcessSelection(role-argRoleProcessName), w})
	case argRoleSwitchUser:
		r.addEffect(effect.ChangePrivilege)
	case argRoleReadRegistryKey, argRoleChangeRegistryKey:
		r.result.RegistryKeys = append(r.result.RegistryKeys, RegistryKey{Word: w, Write: role == argRoleChangeRegistryKey})
	case argRoleTextOrScriptFile:
		if isStdinPath(w.Text) || strings.HasPrefix(w.Text, "/dev/fd/") { // a process substitution
			r.addScript("", w)
		} else if language := FileLanguage(w.Text); language != "" {
			r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: language, Words: []Word{w}})
		}
	case argRoleUnjudgeable:
		r.setNotUnderstood("operand %s cannot be judged", w.Text)
	default:
		r.applyProgramSpecificRole(role, w)
	}
}

// addEffect records an effect without an operand, once.
func (r *argParser) addEffect(k effect.Kind) {
	r.raiseProgramClass(minProgramClassRank(k))
	for _, e := range r.result.Effects {
		if e == k {
			return
		}
	}
	r.result.Effects = append(r.result.Effects, k)
}

// containerEntryPointCommand returns the command that replaces a container's entry point; later words are its arguments.
func (r *argParser) containerEntryPointCommand() (words []Word) {
	for _, v := range r.values {
		if v.role != argRoleContainerEntryPoint {
			continue
		}
		words = words[:0]
		if strings.ContainsAny(v.word.Text, "'\"\\;|&$`") { // docker compose splits the value into words as a shell does
			r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{v.word}, Remote: true})
		}
		for part := range strings.FieldsSeq(v.word.Text) {
			w := v.word
			w.Text = part
			words = append(words, w)
		}
	}
	return words
}

// addNestedCommand records the words of a nested command.
func (r *argParser) addNestedCommand(role argRole, words []Word) {
	switch role {
	case argRoleArgv, argRoleArgvUntilSemicolon, argRoleArgvOnRemote, argRoleArgvPlusStdinArgs:
		if role == argRoleArgvOnRemote {
			words = append(r.containerEntryPointCommand(), words...)
		}
		for _, words := range r.fillPlaceholders(role, words) {
			r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: words, Remote: role == argRoleArgvOnRemote, ArgsFromStdin: role == argRoleArgvPlusStdinArgs})
		}
	case argRoleArgvOrScriptFile:
		switch language := FileLanguage(words[0].Text); {
		case words[0].Text == "-", isStdinPath(words[0].Text):
			r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
		case language != "" && !words[0].IsGlobPattern:
			r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: language, Words: words})
		default:
			r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: words})
		}
	case argRoleArgvIfProgramSyntaxKnown:
		if words[0].Text == "-" || isStdinPath(words[0].Text) {
			r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
		} else if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.addScript("", words[0])
		} else if _, name := splitProgramPath(words[0].Text); !words[0].IsGlobPattern && lookupProgram(name) != nil && !programNamesCommonAsPackageScripts[name] {
			r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: words})
		} else if language := FileLanguage(words[0].Text); language != "" && !words[0].IsGlobPattern {
			r.addNestedCode(NestedCommandOrCode{Language: "file", ScriptFileLanguage: language, Words: words[:1]})
		} else if r.enteredSyntaxCount == 1 && r.innermostSyntax.language == "" {
			r.setNotUnderstood("unknown subcommand %s", words[0].Text)
		}
	case argRoleArgvFromPackage:
		r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: r.addPackageAndReturnCommand(words)})
	case argRoleCmdExeCodeWords:
		r.addNestedCode(NestedCommandOrCode{Language: "cmd", Words: words})
	case argRolePowerShellCodeWords:
		if words[0].Text == "-" || isStdinPath(words[0].Text) {
			r.result.Stdin, r.stdinIsCode = StreamExecutedCode, false
			break
		}
		if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.addScript("powershell", words[0])
			break
		}
		r.addNestedCode(NestedCommandOrCode{Language: "powershell", Words: words})
	case argRoleShellCodeWords, argRoleRemoteShellCodeWords:
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{joinWords(words)}, Remote: role == argRoleRemoteShellCodeWords})
	case argRoleKeystrokes:
		r.addNestedCode(NestedCommandOrCode{Language: "shell", Words: []Word{keystrokesToText(words)}})
	case argRoleArgsPassedToShell:
		argv := []Word{{Text: "sh", Span: words[0].Span}}
		for _, v := range r.values {
			if v.role == argRoleShellCode {
				argv = append(argv, Word{Text: "-c", Span: v.word.Span}, v.word)
			}
		}
		r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: append(argv, words...)})
	case argRolePythonModuleArgv:
		// The entry py:NAME describes the Python module of that name. A module without such an
		// entry is the command of the same name (python -m pytest).
		m := words[0]
		m.Text = "py:" + m.Text
		if findEntry(programs[:], m.Text) == nil && findEntry(programs[:], words[0].Text) != nil {
			m.Text = words[0].Text
		}
		argv := append([]Word{m}, words[1:]...)
		r.addNestedCode(NestedCommandOrCode{Language: "argv", Words: argv})
	default:
	}
}

// programNamesCommonAsPackageScripts are names of listed programs that package scripts also often have.
var programNamesCommonAsPackageScripts = map[string]bool{
	"format": true, "watch": true, "start": true, "clean": true, "deploy": true, "make": true, "sync": true, "time": true, "sort": true, "which": true, "node-gyp": true,
	"test": true, "compile": true, "docs": true, "release": true, "wait": true, "lint": true, "install": true, "clear": true, "reset": true, "move": true, "copy": true,
	"set": true, "tree": true, "help": true, "history": true, "print": true, "replace": true, "dir": true, "type": true, "more": true, "go": true, "screen": true,
}

// joinWords joins words with spaces to one word.
func joinWords(words []Word) Word {
	if len(words) == 1 {
		return words[0]
	}
	w := Word{Span: words[0].Span}
	w.Span.End = words[len(words)-1].Span.End
	n := len(words)
	for _, v := range words {
		n += len(v.Text)
		w.IsGlobPattern = w.IsGlobPattern || v.IsGlobPattern
	}
	var b strings.Builder
	b.Grow(n)
	for k, v := range words {
		if k > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(v.Text)
	}
	w.Text = b.String()
	return w
}

// keystrokesToText returns the text that words and key names type into a shell; nothing is inserted between them.
func keystrokesToText(words []Word) Word {
	w := joinWords(words)
	if w.IsGlobPattern {
		return w
	}
	var b strings.Builder
	for _, v := range words {
		switch key := strings.ToLower(v.Text); {
		case key == "space":
			b.WriteByte(' ')
		case key == "tab" || key == "btab":
			b.WriteByte('\t')
		case lineEditingKeystrokeNames[key] || len(key) > 2 && key[1] == '-' && strings.ContainsAny(key[:1], "cms^"):
			b.WriteByte('\n') // the key ends, cancels or edits a line, so the text after it begins a new line
		default:
			b.WriteString(v.Text)
		}
	}
	w.Text = b.String()
	return w
}

// lineEditingKeystrokeNames are the names of keys that end, cancel or edit a line.
var lineEditingKeystrokeNames = map[string]bool{
	"enter": true, "kpenter": true, "escape": true, "bspace": true, "dc": true, "ic": true, "up": true, "down": true, "left": true, "right": true,
	"home": true, "end": true, "npage": true, "pagedown": true, "ppage": true, "pageup": true,
}
