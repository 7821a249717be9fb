package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// takesAll reports whether a role covers all remaining words.
func (r role) takesAll() bool { return r >= roleArgv }

// languages are the languages of the code roles, in their order.
var languages = [...]string{"shell", "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "encoded", "cmd", "ipython", "code"}

// scriptLanguages are the languages of the script roles, in their order.
var scriptLanguages = [...]string{"", "shell", "python", "perl", "ruby", "node", "php", "awk", "applescript", "lua", "powershell", "code"}

// applyRoles applies the roles of values and operands after all arguments are parsed.
func (r *argParser) applyRoles() {
	for d := range r.levelCount {
		if len(r.levels[d].texts) > 0 {
			r.applyTextsInArgs(r.levels[d].texts)
		}
	}
	if r.flags&(urls|runURLs) != 0 {
		r.addURLsInArgs()
	}
	for _, v := range r.values {
		if v.role == roleEnter && !v.word.Pattern {
			r.baseFolder = r.resolveInBaseFolder(v.word).Text
		}
	}
	for _, v := range r.values {
		codeRead := r.stdinIsCode
		r.stdinIsCode = codeRead && !v.runsBeforeMain
		r.applyRole(v.role, v.word, false)
		r.stdinIsCode = codeRead && (v.runsBeforeMain || r.stdinIsCode)
	}
	r.appendListedOperands()
	r.applyOperandRoles()
	if entry := r.entryPointCommand(); len(entry) > 0 && !slices.ContainsFunc(r.result.Nested, func(n Nested) bool { return n.Remote }) {
		r.addNestedCode(Nested{Language: "argv", Words: entry, Remote: true})
	}
	if r.workingFolderRole != 0 {
		r.applyRole(r.workingFolderRole, r.workingFolder(), false)
	}
	if r.flags&remove != 0 {
		r.deleteFoundFiles()
	}
	if r.class > readOnly {
		r.addOperandEffect(effect.WriteFile, r.databaseFile, false)
	}
	if r.flags&(dry|wet) == dry && r.result.WhyNotUnderstood == "" {
		r.reduceToDryRun()
	}
	if r.databaseInMemory && !slices.ContainsFunc(r.result.OperandEffects, func(t OperandEffect) bool { return t.Kind == effect.WriteFile }) {
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == effect.Destroy })
	}
	if r.flags&recorded != 0 {
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == effect.ReadClipboard })
		r.result.Harms = slices.DeleteFunc(r.result.Harms, func(h effect.Harm) bool { return h == effect.RecordsUser })
	}
}

// reduceToDryRun turns the effects of a program into those of its dry run: it reads the files that it would otherwise
// change or run.
func (r *argParser) reduceToDryRun() {
	for i, t := range r.result.OperandEffects {
		if t.Kind != effect.ListDirectory {
			r.result.OperandEffects[i].Kind = effect.ReadFile
		}
	}
	for _, n := range r.result.Nested {
		if n.Language == "file" {
			r.addOperandEffect(effect.ReadFile, n.Words[0], false)
		}
	}
	r.result.Effects, r.result.Harms, r.result.Nested, r.result.Stdin, r.result.OtherLosses = nil, nil, nil, Data, 0
	if r.result.Stdout == Secret {
		r.result.Stdout = Data
	}
	r.class = readOnly
}

// workingFolder returns the working folder, with the span of the program's name.
func (r *argParser) workingFolder() Word { return Word{Text: ".", Span: r.args[0].Span} }

// applyOperandRoles applies to each operand the role of its position.
func (r *argParser) applyOperandRoles() {
	s, n := r.operandShape, len(r.operands)
	head, tail := len(s.head), len(s.tail)
	if head+tail > n {
		if tail > n {
			tail = n
		}
		if s.rest == 0 || head+tail > n {
			head = n - tail
		}
	}
	middle := n - head - tail
	if middle > 0 && s.rest == 0 {
		if !r.allowsUnlistedOptions() {
			r.setNotUnderstood("too many operands: %s", r.args[r.operands[head]].Text)
		}
		s = &shape{head: s.head, rest: roleText, tail: s.tail}
	}
	if (s.rest == roleArgvRemote || s.rest == roleShellRemote) && middle <= 0 && head < 2 && n >= head && (r.result.Stdin == Data || r.result.Stdin == Upload) && !r.hasNestedCommand() {
		r.result.Stdin, r.result.RunsStdinRemotely = Code, true
	}
	entered := r.baseFolder
	for k, i := range r.operands {
		role := s.rest
		switch {
		case k < head:
			role = s.head[k]
		case k >= n-tail:
			role = s.tail[len(s.tail)-(n-k)]
		}
		r.enterFoldersBefore(k)
		r.applyRole(role, r.args[i], true)
	}
	r.baseFolder = entered
	if middle <= 0 && r.noOperandsRole != 0 && !s.rest.takesAll() {
		r.applyRole(r.noOperandsRole, r.workingFolder(), true)
	}
}

// hasNestedCommand reports whether the arguments already hold a command or code for the other machine.
func (r *argParser) hasNestedCommand() bool {
	return slices.ContainsFunc(r.result.Nested, func(n Nested) bool { return n.Remote || n.Language == "argv" })
}

// changedRole returns the role to which other options change a role.
func (r *argParser) changedRole(role role) role {
	for k := r.roleChangeCount - 1; k >= 0; k-- {
		if r.roleChanges[k].oldRole == role {
			return r.roleChanges[k].newRole
		}
	}
	return role
}

// addOperandEffect records an effect on w.
func (r *argParser) addOperandEffect(k effect.Kind, w Word, tree bool) {
	r.raiseClass(minClassRank(k))
	if k == effect.Listen {
		// The effect has an operand, so the effect without one does not apply.
		r.result.Effects = slices.DeleteFunc(r.result.Effects, func(e effect.Kind) bool { return e == k })
	}
	if w.Text == "" && !w.Pattern {
		return
	}
	if r.result.OperandEffects == nil {
		r.result.OperandEffects = make([]OperandEffect, 0, max(2, min(len(r.operands)+len(r.values), 64)))
	}
	switch k {
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.SendData, effect.ChangeRemote:
	default:
		w = r.resolveInBaseFolder(w)
	}
	r.result.OperandEffects = append(r.result.OperandEffects, OperandEffect{Kind: k, Word: w, Recursive: tree})
}

// addSentFile records that a file's content is sent to another machine.
func (r *argParser) addSentFile(w Word, tree bool) {
	n := len(r.result.OperandEffects)
	r.addOperandEffect(effect.ReadFile, w, tree)
	if len(r.result.OperandEffects) > n {
		r.result.OperandEffects[n].Sent = true
	}
}

// keepCopiesLocal records that copied files stay on this machine, because the destination is local.
func (r *argParser) keepCopiesLocal() {
	for _, i := range r.copyEffectIndexes {
		r.result.OperandEffects[i].Sent = false
	}
}

// addNestedCode records nested code or a script.
//
//go:noinline
func (r *argParser) addNestedCode(n Nested) {
	if r.stdinIsCode {
		r.result.Stdin, r.stdinIsCode = Data, false
	}
	r.result.Nested = append(r.result.Nested, n)
}

// applyRole applies a role to a word. operand is false for values of options.
func (r *argParser) applyRole(role role, w Word, operand bool) {
	role = r.changedRole(role)
	if operand && role == roleText && r.allowsUnlistedOptions() {
		// The word can be the value of an option that the program's entry does not list.
		role = roleMaybeFile
	}
	if role == roleWord {
		r.addUnrecognized(w, false)
		return
	}
	if role == roleNone || role == roleText || role == roleEntry || role == roleFolder || role == roleEnter || role == roleStep || role.takesAll() {
		return
	}
	if w.Text == "-" && role != roleChange {
		r.applyDash(role)
		return
	}
	tree := operand && r.flags&recursive != 0
	switch {
	case role >= roleScript:
		r.addScript(scriptLanguages[role-roleScript], w)
	case role >= roleShell:
		r.addNestedCode(Nested{Language: languages[role-roleShell], Words: []Word{w}})
	case role >= roleURL:
		r.applyOtherRole(role, w)
	default:
		r.applyPathRole(role, w, tree)
	}
}

// applyPathRole applies the roles of paths.
func (r *argParser) applyPathRole(role role, w Word, tree bool) {
	switch role {
	case roleRead, roleArchive:
		r.addOperandEffect(effect.ReadFile, w, tree)
	case roleReadTree:
		r.addOperandEffect(effect.ReadFile, w, true)
	case roleSendFile:
		r.addSentFile(w, tree)
	case roleSendTree:
		r.addSentFile(w, true)
	case roleWrite:
		r.addOperandEffect(effect.WriteFile, w, false)
	case roleOutput:
		if hasPrefix(w.Text, "|") {
			r.addNestedCode(Nested{Language: "shell", Words: []Word{skipBytes(w, 1)}})
		} else {
			r.addOperandEffect(effect.WriteFile, w, false)
		}
	case roleWriteTree:
		r.addOperandEffect(effect.WriteFile, w, true)
	case roleWriteTo:
		r.noteCopies(w, tree, false)
	case roleIntoDir:
		r.noteCopies(w, r.flags&recursive != 0, true)
	case roleEdit:
		r.noteEditedFile(w, tree)
	case roleCompress:
		r.noteCompressedFile(w, tree)
	case roleBeside:
		r.addOperandEffect(effect.ReadFile, w, tree)
		r.noteSuffixedFile(w)
	case roleFormat:
		r.addOperandEffect(effect.WriteFile, w, false)
		if w.Pattern {
			r.addEffect(effect.Destroy)
			r.addEffect(effect.ChangeSystem)
		}
	case roleMend:
		r.addPossibleWrite(w, false)
	case roleStore:
		if r.databaseInMemory = w.Text == memoryDatabaseName && !w.Pattern; !r.databaseInMemory {
			r.addOperandEffect(effect.ReadFile, w, false)
			r.databaseFile = w
		}
	case roleEditTree:
		r.addOperandEffect(effect.ReadFile, w, true)
		r.addOperandEffect(effect.WriteFile, w, true)
	case roleBind:
		r.addOperandEffect(effect.ReadFile, w, true)
		r.addPossibleWrite(w, true)
	case roleDelete:
		r.addOperandEffect(effect.DeleteFile, w, tree)
	case roleCleanTree:
		r.addOperandEffect(effect.DeleteFile, w, true)
		r.result.OperandEffects[len(r.result.OperandEffects)-1].RefusesUnversioned = true
	case roleDeleteTree:
		r.addOperandEffect(effect.DeleteFile, w, true)
	case roleRmdir:
		r.addOperandEffect(effect.DeleteDirectory, w, false)
	case roleMove:
		r.addOperandEffect(effect.MoveFile, w, true)
	case roleList:
		r.addOperandEffect(effect.ListDirectory, w, tree)
	case roleListTree, roleStart:
		r.addOperandEffect(effect.ListDirectory, w, true)
	case roleMkdir:
		r.addOperandEffect(effect.CreateDirectory, w, false)
	case roleChmod:
		r.addOperandEffect(effect.ChangePermissions, w, tree)
	case roleOver:
		r.addOperandEffect(effect.ChangeSystem, w, false)
	}
}

// applyOtherRole applies roles that are neither paths nor code.
func (r *argParser) applyOtherRole(role role, w Word) {
	switch role {
	case roleURL:
		r.addURL(w)
	case roleSource:
		r.addOperandEffect(effect.ChangeRemote, w, false)
	case roleImageSource:
		r.addImageRegistries(w)
	case roleFetch:
		r.addURL(w)
		r.addDownloadedFile(w)
	case roleHost:
		r.addHost(w)
	case roleListen:
		r.addOperandEffect(effect.Listen, w, false)
	case roleSend:
		r.addOperandEffect(effect.SendMessage, w, false)
	case roleNamed:
		if i := strings.IndexByte(w.Text, '='); i >= 0 {
			r.addOperandEffect(effect.ReadFile, skipBytes(w, i+1), false)
		}
	case roleData, roleForm, roleMaybeFile, roleMaybePath:
		r.addRequestData(role, w)
	case roleWebItem:
		r.applyHTTPieOperand(w)
	case roleSocket:
		r.addSocatAddress(w)
	case roleRepo:
		r.addGitRemote(w)
	case rolePush:
		if w.Text != "." { // "." means no operand: git pushes to the configured remote
			r.addGitRemote(w)
		}
		r.addOperandEffect(effect.SendData, w, false)
	case roleImage:
		r.addOperandEffect(effect.SendData, w, false)
	case roleRemoteName:
		r.gitRemoteName = w.Text
	case roleRemoteURL:
		r.addGitRemote(w)
		r.result.GitRemotes = append(r.result.GitRemotes, GitRemote{Name: r.gitRemoteName, Address: w})
	case roleClone:
		r.addGitRemote(w)
		r.addCloneFolder(w)
	case roleRemoteSrc, roleRemoteDst:
		r.addRemotePath(w, role == roleRemoteDst)
	case roleMaybeURL:
		if urlScheme(w.Text) != "" {
			r.addURL(w)
		} else {
			r.addOperandEffect(effect.ReadFile, w, false)
		}
	case rolePackage, roleNPMPackage, roleFromPackage, roleCreator, roleTemplate, roleModulePath, roleModuleProgram:
		r.applyPackageRole(role, w)
	case roleObject, roleObjectDst:
		r.addCloudObject(w, role == roleObjectDst)
	case roleVolume:
		r.addVolume(w)
	case roleMount:
		r.addMount(w)
	case roleSSHOption:
		r.applySSHOption(w)
	case roleGitConfig, roleGitKey, roleGitValue:
		r.applyGitRole(role, w)
	case roleSed:
		r.applySedScript(w)
	case roleSQL:
		r.applySQL(w)
	case roleTransfer:
		r.addTransfers(w)
	case roleEx:
		r.applyExText(w)
	case roleSetting:
		r.addEnvSetting(w)
		r.addVariableCode(w)
	default:
		r.applyEffectRole(role, w)
	}
}

// applyEffectRole applies roles of words that only show that an effect happens.
func (r *argParser) applyEffectRole(role role, w Word) {
	switch role {
	case roleSuffix:
		r.noteBackupSuffix(w)
	case roleDate:
		if !hasPrefix(w.Text, "+") {
			r.addEffect(effect.ChangeSystem)
		}
	case roleSecret:
		if knowledge.SecretWord(w.Text) || w.Pattern {
			r.addEffect(effect.ReadSecret)
			r.result.Stdout = Secret
		}
	case roleSecretAll:
		r.addEffect(effect.ReadSecret)
		r.result.Stdout = Secret
	case roleChange:
		r.raiseClass(localWrite)
	case roleSystem:
		r.addEffect(effect.ChangeSystem)
	case roleRemote:
		r.addEffect(effect.ChangeRemote)
	case roleDestroy:
		r.addEffect(effect.Destroy)
	case roleCore:
		if strings.Trim(w.Text, "0123456789*") != "" {
			r.addOperandEffect(effect.ReadFile, w, false)
			break
		}
		r.addEffect(effect.ReadClipboard)
		r.addStoppedProcess(w)
	case roleProcess:
		r.addStoppedProcess(w)
	case roleProcessName, roleProcessPattern, roleProcessLine, roleProcessExact, roleProcessGroup, roleProcessParent, roleProcessFile:
		r.addEffect(effect.StopProcess)
		r.result.Signals = append(r.result.Signals, Signal{ProcessByName + ProcessSelection(role-roleProcessName), w})
	case rolePrivilege:
		r.addEffect(effect.ChangePrivilege)
	case roleKey, roleSetKey:
		r.result.RegistryKeys = append(r.result.RegistryKeys, RegistryKey{Word: w, Write: role == roleSetKey})
	case roleMaybeScript:
		if isStdinPath(w.Text) || strings.HasPrefix(w.Text, "/dev/fd/") { // a process substitution
			r.addScript("", w)
		} else if language := FileLanguage(w.Text); language != "" {
			r.addNestedCode(Nested{Language: "file", FileLanguage: language, Words: []Word{w}})
		}
	case roleReject:
		r.setNotUnderstood("operand %s cannot be judged", w.Text)
	default:
		r.applyInputRole(role, w)
	}
}

// addEffect records an effect without an operand, once.
func (r *argParser) addEffect(k effect.Kind) {
	r.raiseClass(minClassRank(k))
	for _, e := range r.result.Effects {
		if e == k {
			return
		}
	}
	r.result.Effects = append(r.result.Effects, k)
}

// entryPointCommand returns the command that replaces a container's entry point; later words are its arguments.
func (r *argParser) entryPointCommand() (words []Word) {
	for _, v := range r.values {
		if v.role != roleEntry {
			continue
		}
		words = words[:0]
		if strings.ContainsAny(v.word.Text, "'\"\\;|&$`") { // compose splits it like a shell
			r.addNestedCode(Nested{Language: "shell", Words: []Word{v.word}, Remote: true})
		}
		for part := range strings.FieldsSeq(v.word.Text) {
			w := v.word
			w.Text = part
			words = append(words, w)
		}
	}
	return words
}

// addNestedWords records the words of a nested command.
func (r *argParser) addNestedWords(role role, words []Word) {
	switch role {
	case roleArgv, roleArgvSemi, roleArgvRemote, roleArgvStdin:
		if role == roleArgvRemote {
			words = append(r.entryPointCommand(), words...)
		}
		for _, words := range r.fillPlaceholders(role, words) {
			r.addNestedCode(Nested{Language: "argv", Words: words, Remote: role == roleArgvRemote, ArgsFromStdin: role == roleArgvStdin})
		}
	case roleArgvScript:
		switch language := FileLanguage(words[0].Text); {
		case words[0].Text == "-", isStdinPath(words[0].Text):
			r.result.Stdin, r.stdinIsCode = Code, false
		case language != "" && !words[0].Pattern:
			r.addNestedCode(Nested{Language: "file", FileLanguage: language, Words: words})
		default:
			r.addNestedCode(Nested{Language: "argv", Words: words})
		}
	case roleArgvListed:
		if words[0].Text == "-" || isStdinPath(words[0].Text) {
			r.result.Stdin, r.stdinIsCode = Code, false
		} else if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.addScript("", words[0])
		} else if _, name := baseName(words[0].Text); !words[0].Pattern && lookupProgram(name) != nil && !scriptNames[name] {
			r.addNestedCode(Nested{Language: "argv", Words: words})
		} else if language := FileLanguage(words[0].Text); language != "" && !words[0].Pattern {
			r.addNestedCode(Nested{Language: "file", FileLanguage: language, Words: words[:1]})
		} else if r.levelCount == 1 && r.innermostLevel.language == "" {
			r.setNotUnderstood("unknown subcommand %s", words[0].Text)
		}
	case roleArgvPackage:
		r.addNestedCode(Nested{Language: "argv", Words: r.addProgramPackage(words)})
	case roleCmdWords:
		r.addNestedCode(Nested{Language: "cmd", Words: words})
	case rolePowerShellWords:
		if words[0].Text == "-" || isStdinPath(words[0].Text) {
			r.result.Stdin, r.stdinIsCode = Code, false
			break
		}
		if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.addScript("powershell", words[0])
			break
		}
		r.addNestedCode(Nested{Language: "powershell", Words: words})
	case roleShellWords, roleShellRemote:
		r.addNestedCode(Nested{Language: "shell", Words: []Word{joinWords(words)}, Remote: role == roleShellRemote})
	case roleKeys:
		r.addNestedCode(Nested{Language: "shell", Words: []Word{typedText(words)}})
	case roleShellArgs:
		argv := []Word{{Text: "sh", Span: words[0].Span}}
		for _, v := range r.values {
			if v.role == roleShell {
				argv = append(argv, Word{Text: "-c", Span: v.word.Span}, v.word)
			}
		}
		r.addNestedCode(Nested{Language: "argv", Words: append(argv, words...)})
	case roleModule:
		// The entry py:NAME describes the Python module of that name. A module without such an
		// entry is the command of the same name (python -m pytest).
		m := words[0]
		m.Text = "py:" + m.Text
		if findEntry(programs[:], m.Text) == nil && findEntry(programs[:], words[0].Text) != nil {
			m.Text = words[0].Text
		}
		argv := append([]Word{m}, words[1:]...)
		r.addNestedCode(Nested{Language: "argv", Words: argv})
	default:
	}
}

// scriptNames are names of listed programs that package scripts also often have.
var scriptNames = map[string]bool{
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
		w.Pattern = w.Pattern || v.Pattern
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

// typedText returns the text that words and key names type into a shell; nothing is inserted between them.
func typedText(words []Word) Word {
	w := joinWords(words)
	if w.Pattern {
		return w
	}
	var b strings.Builder
	for _, v := range words {
		switch key := strings.ToLower(v.Text); {
		case key == "space":
			b.WriteByte(' ')
		case key == "tab" || key == "btab":
			b.WriteByte('\t')
		case lineEditingKeys[key] || len(key) > 2 && key[1] == '-' && strings.ContainsAny(key[:1], "cms^"):
			b.WriteByte('\n') // the key ends a line or starts a new one
		default:
			b.WriteString(v.Text)
		}
	}
	w.Text = b.String()
	return w
}

// lineEditingKeys are the names of keys that end, cancel or edit a line.
var lineEditingKeys = map[string]bool{
	"enter": true, "kpenter": true, "escape": true, "bspace": true, "dc": true, "ic": true, "up": true, "down": true, "left": true, "right": true,
	"home": true, "end": true, "npage": true, "pagedown": true, "ppage": true, "pageup": true,
}
