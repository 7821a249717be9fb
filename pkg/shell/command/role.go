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

// finish applies the roles of values and operands after all arguments are parsed.
func (r *reader) finish() {
	for d := range r.depth {
		if len(r.levels[d].texts) > 0 {
			r.findTexts(r.levels[d].texts)
		}
	}
	if r.flags&(urls|runURLs) != 0 {
		r.findURLs()
	}
	for _, v := range r.values {
		if v.role == roleEnter && !v.word.Pattern {
			r.entered = r.inEntered(v.word).Text
		}
	}
	for _, v := range r.values {
		codeRead := r.codeRead
		r.codeRead = codeRead && !v.beside
		r.apply(v.role, v.word, false)
		r.codeRead = codeRead && (v.beside || r.codeRead)
	}
	r.list()
	r.positions()
	if entry := r.entry(); len(entry) > 0 && !slices.ContainsFunc(r.use.Nested, func(n Nested) bool { return n.Remote }) {
		r.code(Nested{Language: "argv", Words: entry, Remote: true})
	}
	if r.here != 0 {
		r.apply(r.here, r.dot(), false)
	}
	if r.flags&remove != 0 {
		r.removeFound()
	}
	if r.class > readOnly {
		r.touch(effect.WriteFile, r.store, false)
	}
	if r.flags&(dry|wet) == dry && r.use.Reason == "" {
		r.onlyRead()
	}
	if r.memory && !slices.ContainsFunc(r.use.Touches, func(t Touch) bool { return t.Kind == effect.WriteFile }) {
		r.use.Effects = slices.DeleteFunc(r.use.Effects, func(e effect.Kind) bool { return e == effect.Destroy })
	}
	if r.flags&recorded != 0 {
		r.use.Effects = slices.DeleteFunc(r.use.Effects, func(e effect.Kind) bool { return e == effect.ReadClipboard })
		r.use.Harms = slices.DeleteFunc(r.use.Harms, func(h effect.Harm) bool { return h == effect.Records })
	}
}

// onlyRead turns the effects of a program into those of its dry run: it reads the files that it would otherwise
// change or run.
func (r *reader) onlyRead() {
	for i, t := range r.use.Touches {
		if t.Kind != effect.ListDirectory {
			r.use.Touches[i].Kind = effect.ReadFile
		}
	}
	for _, n := range r.use.Nested {
		if n.Language == "file" {
			r.touch(effect.ReadFile, n.Words[0], false)
		}
	}
	r.use.Effects, r.use.Harms, r.use.Nested, r.use.Stdin, r.use.Loses = nil, nil, nil, Data, 0
	if r.use.Stdout == Secret {
		r.use.Stdout = Data
	}
	r.class = readOnly
}

// dot returns the working folder, with the span of the program's name.
func (r *reader) dot() Word { return Word{Text: ".", From: r.args[0].From} }

// positions applies to each operand the role of its position.
func (r *reader) positions() {
	s, n := r.shape, len(r.operands)
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
		if !r.isOpen() {
			r.doubt("too many operands: %s", r.args[r.operands[head]].Text)
		}
		s = &shape{head: s.head, rest: roleText, tail: s.tail}
	}
	if (s.rest == roleArgvRemote || s.rest == roleShellRemote) && middle <= 0 && head < 2 && n >= head && (r.use.Stdin == Data || r.use.Stdin == Upload) && !r.runs() {
		r.use.Stdin, r.use.Login = Code, true
	}
	entered := r.entered
	for k, i := range r.operands {
		role := s.rest
		switch {
		case k < head:
			role = s.head[k]
		case k >= n-tail:
			role = s.tail[len(s.tail)-(n-k)]
		}
		r.step(k)
		r.apply(role, r.args[i], true)
	}
	r.entered = entered
	if middle <= 0 && r.empty != 0 && !s.rest.takesAll() {
		r.apply(r.empty, r.dot(), true)
	}
}

// runs reports whether the arguments already hold a command or code for the other machine.
func (r *reader) runs() bool {
	return slices.ContainsFunc(r.use.Nested, func(n Nested) bool { return n.Remote || n.Language == "argv" })
}

// turn returns the role to which other options change a role.
func (r *reader) turn(role role) role {
	for k := r.turns - 1; k >= 0; k-- {
		if r.turned[k].from == role {
			return r.turned[k].to
		}
	}
	return role
}

// touch records an effect on w.
func (r *reader) touch(k effect.Kind, w Word, tree bool) {
	r.raiseClass(rankOf(k))
	if k == effect.Listen {
		// The effect has an operand, so the effect without one does not apply.
		r.use.Effects = slices.DeleteFunc(r.use.Effects, func(e effect.Kind) bool { return e == k })
	}
	if w.Text == "" && !w.Pattern {
		return
	}
	if r.use.Touches == nil {
		r.use.Touches = make([]Touch, 0, max(2, min(len(r.operands)+len(r.values), 64)))
	}
	switch k {
	case effect.HTTPRequest, effect.Connect, effect.Listen, effect.SendMessage, effect.SendData, effect.ChangeRemote:
	default:
		w = r.inEntered(w)
	}
	r.use.Touches = append(r.use.Touches, Touch{Kind: k, Word: w, Recursive: tree})
}

// send records that a file's content is sent to another machine.
func (r *reader) send(w Word, tree bool) {
	n := len(r.use.Touches)
	r.touch(effect.ReadFile, w, tree)
	if len(r.use.Touches) > n {
		r.use.Touches[n].Sent = true
	}
}

// keep records that copied files stay on this machine, because the destination is local.
func (r *reader) keep() {
	for _, i := range r.copies {
		r.use.Touches[i].Sent = false
	}
}

// code records nested code or a script.
//
//go:noinline
func (r *reader) code(n Nested) {
	if r.codeRead {
		r.use.Stdin, r.codeRead = Data, false
	}
	r.use.Nested = append(r.use.Nested, n)
}

// apply applies a role to a word. operand is false for values of options.
func (r *reader) apply(role role, w Word, operand bool) {
	role = r.turn(role)
	if operand && role == roleText && r.isOpen() {
		// It may be the value of an unlisted option.
		role = roleMaybeFile
	}
	if role == roleWord {
		r.unread(w, false)
		return
	}
	if role == roleNone || role == roleText || role == roleEntry || role == roleFolder || role == roleEnter || role == roleStep || role.takesAll() {
		return
	}
	if w.Text == "-" && role != roleChange {
		r.dash(role)
		return
	}
	tree := operand && r.flags&recursive != 0
	switch {
	case role >= roleScript:
		r.script(scriptLanguages[role-roleScript], w)
	case role >= roleShell:
		r.code(Nested{Language: languages[role-roleShell], Words: []Word{w}})
	case role >= roleURL:
		r.applyOther(role, w)
	default:
		r.applyPath(role, w, tree)
	}
}

// applyPath applies the roles of paths.
func (r *reader) applyPath(role role, w Word, tree bool) {
	switch role {
	case roleRead, roleArchive:
		r.touch(effect.ReadFile, w, tree)
	case roleReadTree:
		r.touch(effect.ReadFile, w, true)
	case roleSendFile:
		r.send(w, tree)
	case roleSendTree:
		r.send(w, true)
	case roleWrite:
		r.touch(effect.WriteFile, w, false)
	case roleOutput:
		if hasPrefix(w.Text, "|") {
			r.code(Nested{Language: "shell", Words: []Word{cut(w, 1)}})
		} else {
			r.touch(effect.WriteFile, w, false)
		}
	case roleWriteTree:
		r.touch(effect.WriteFile, w, true)
	case roleWriteTo:
		r.noteCopies(w, tree, false)
	case roleIntoDir:
		r.noteCopies(w, r.flags&recursive != 0, true)
	case roleEdit:
		r.noteEditedFile(w, tree)
	case roleCompress:
		r.compressed(w, tree)
	case roleBeside:
		r.touch(effect.ReadFile, w, tree)
		r.noteSuffixedFile(w)
	case roleFormat:
		r.touch(effect.WriteFile, w, false)
		if w.Pattern {
			r.effect(effect.Destroy)
			r.effect(effect.ChangeSystem)
		}
	case roleMend:
		r.mayWrite(w, false)
	case roleStore:
		if r.memory = w.Text == memoryStore && !w.Pattern; !r.memory {
			r.touch(effect.ReadFile, w, false)
			r.store = w
		}
	case roleEditTree:
		r.touch(effect.ReadFile, w, true)
		r.touch(effect.WriteFile, w, true)
	case roleBind:
		r.touch(effect.ReadFile, w, true)
		r.mayWrite(w, true)
	case roleDelete:
		r.touch(effect.DeleteFile, w, tree)
	case roleCleanTree:
		r.touch(effect.DeleteFile, w, true)
		r.use.Touches[len(r.use.Touches)-1].Checked = true
	case roleDeleteTree:
		r.touch(effect.DeleteFile, w, true)
	case roleRmdir:
		r.touch(effect.DeleteDirectory, w, false)
	case roleMove:
		r.touch(effect.MoveFile, w, true)
	case roleList:
		r.touch(effect.ListDirectory, w, tree)
	case roleListTree, roleStart:
		r.touch(effect.ListDirectory, w, true)
	case roleMkdir:
		r.touch(effect.CreateDirectory, w, false)
	case roleChmod:
		r.touch(effect.ChangePermissions, w, tree)
	case roleOver:
		r.touch(effect.ChangeSystem, w, false)
	}
}

// applyOther applies roles that are neither paths nor code.
func (r *reader) applyOther(role role, w Word) {
	switch role {
	case roleURL:
		r.url(w)
	case roleSource:
		r.touch(effect.ChangeRemote, w, false)
	case roleImageSource:
		r.images(w)
	case roleFetch:
		r.url(w)
		r.saved(w)
	case roleHost:
		r.host(w)
	case roleListen:
		r.touch(effect.Listen, w, false)
	case roleSend:
		r.touch(effect.SendMessage, w, false)
	case roleNamed:
		if i := strings.IndexByte(w.Text, '='); i >= 0 {
			r.touch(effect.ReadFile, cut(w, i+1), false)
		}
	case roleData, roleForm, roleMaybeFile, roleMaybePath:
		r.data(role, w)
	case roleWebItem:
		r.webItem(w)
	case roleSocket:
		r.socket(w)
	case roleRepo:
		r.repo(w)
	case rolePush:
		if w.Text != "." { // otherwise the configured remote
			r.repo(w)
		}
		r.touch(effect.SendData, w, false)
	case roleImage:
		r.touch(effect.SendData, w, false)
	case roleRemoteName:
		r.remote = w.Text
	case roleRemoteURL:
		r.repo(w)
		r.use.Remotes = append(r.use.Remotes, GitRemote{Name: r.remote, Address: w})
	case roleClone:
		r.repo(w)
		r.cloned(w)
	case roleRemoteSrc, roleRemoteDst:
		r.remotePath(w, role == roleRemoteDst)
	case roleMaybeURL:
		if scheme(w.Text) != "" {
			r.url(w)
		} else {
			r.touch(effect.ReadFile, w, false)
		}
	case rolePackage, roleNPMPackage, roleFromPackage, roleCreator, roleTemplate, roleModulePath, roleModuleProgram:
		r.packageWord(role, w)
	case roleObject, roleObjectDst:
		r.object(w, role == roleObjectDst)
	case roleVolume:
		r.volume(w)
	case roleMount:
		r.mount(w)
	case roleSSHOption:
		r.sshOption(w)
	case roleGitConfig, roleGitKey, roleGitValue:
		r.gitWord(role, w)
	case roleSed:
		r.sed(w)
	case roleSQL:
		r.sql(w)
	case roleTransfer:
		r.transfer(w)
	case roleEx:
		r.ex(w)
	case roleSetting:
		r.setting(w)
		r.runByVariable(w)
	default:
		r.applyEffect(role, w)
	}
}

// applyEffect applies roles of words that only show that an effect happens.
func (r *reader) applyEffect(role role, w Word) {
	switch role {
	case roleSuffix:
		r.noteBackupSuffix(w)
	case roleDate:
		if !hasPrefix(w.Text, "+") {
			r.effect(effect.ChangeSystem)
		}
	case roleSecret:
		if knowledge.SecretWord(w.Text) || w.Pattern {
			r.effect(effect.ReadSecret)
			r.use.Stdout = Secret
		}
	case roleSecretAll:
		r.effect(effect.ReadSecret)
		r.use.Stdout = Secret
	case roleChange:
		r.raiseClass(localWrite)
	case roleSystem:
		r.effect(effect.ChangeSystem)
	case roleRemote:
		r.effect(effect.ChangeRemote)
	case roleDestroy:
		r.effect(effect.Destroy)
	case roleCore:
		if strings.Trim(w.Text, "0123456789*") != "" {
			r.touch(effect.ReadFile, w, false)
			break
		}
		r.effect(effect.ReadClipboard)
		r.process(w)
	case roleProcess:
		r.process(w)
	case roleProcessName, roleProcessPattern, roleProcessLine, roleProcessExact, roleProcessGroup, roleProcessParent, roleProcessFile:
		r.effect(effect.StopProcess)
		r.use.Signals = append(r.use.Signals, Signal{ByName + SignalBy(role-roleProcessName), w})
	case rolePrivilege:
		r.effect(effect.ChangePrivilege)
	case roleKey, roleSetKey:
		r.use.Keys = append(r.use.Keys, Key{Word: w, Write: role == roleSetKey})
	case roleMaybeScript:
		if isStdin(w.Text) || strings.HasPrefix(w.Text, "/dev/fd/") { // a process substitution
			r.script("", w)
		} else if language := FileLanguage(w.Text); language != "" {
			r.code(Nested{Language: "file", Of: language, Words: []Word{w}})
		}
	case roleReject:
		r.doubt("operand %s cannot be judged", w.Text)
	default:
		r.applyInput(role, w)
	}
}

// effect records an effect without an operand, once.
func (r *reader) effect(k effect.Kind) {
	r.raiseClass(rankOf(k))
	for _, e := range r.use.Effects {
		if e == k {
			return
		}
	}
	r.use.Effects = append(r.use.Effects, k)
}

// entry returns the command that replaces a container's entry point; later words are its arguments.
func (r *reader) entry() (words []Word) {
	for _, v := range r.values {
		if v.role != roleEntry {
			continue
		}
		words = words[:0]
		if strings.ContainsAny(v.word.Text, "'\"\\;|&$`") { // compose splits it like a shell
			r.code(Nested{Language: "shell", Words: []Word{v.word}, Remote: true})
		}
		for part := range strings.FieldsSeq(v.word.Text) {
			w := v.word
			w.Text = part
			words = append(words, w)
		}
	}
	return words
}

// nest records the words of a nested command.
func (r *reader) nest(role role, words []Word) {
	switch role {
	case roleArgv, roleArgvSemi, roleArgvRemote, roleArgvStdin:
		if role == roleArgvRemote {
			words = append(r.entry(), words...)
		}
		for _, words := range r.placeholders(role, words) {
			r.code(Nested{Language: "argv", Words: words, Remote: role == roleArgvRemote, Stdin: role == roleArgvStdin})
		}
	case roleArgvScript:
		switch language := FileLanguage(words[0].Text); {
		case words[0].Text == "-", isStdin(words[0].Text):
			r.use.Stdin, r.codeRead = Code, false
		case language != "" && !words[0].Pattern:
			r.code(Nested{Language: "file", Of: language, Words: words})
		default:
			r.code(Nested{Language: "argv", Words: words})
		}
	case roleArgvListed:
		if words[0].Text == "-" || isStdin(words[0].Text) {
			r.use.Stdin, r.codeRead = Code, false
		} else if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.script("", words[0])
		} else if _, name := baseName(words[0].Text); !words[0].Pattern && lookup(name) != nil && !scriptNames[name] {
			r.code(Nested{Language: "argv", Words: words})
		} else if language := FileLanguage(words[0].Text); language != "" && !words[0].Pattern {
			r.code(Nested{Language: "file", Of: language, Words: words[:1]})
		} else if r.depth == 1 && r.level.language == "" {
			r.doubt("unknown subcommand %s", words[0].Text)
		}
	case roleArgvPackage:
		r.code(Nested{Language: "argv", Words: r.packageProgram(words)})
	case roleCmdWords:
		r.code(Nested{Language: "cmd", Words: words})
	case rolePowerShellWords:
		if words[0].Text == "-" || isStdin(words[0].Text) {
			r.use.Stdin, r.codeRead = Code, false
			break
		}
		if strings.HasPrefix(words[0].Text, "/dev/fd/") {
			r.script("powershell", words[0])
			break
		}
		r.code(Nested{Language: "powershell", Words: words})
	case roleShellWords, roleShellRemote:
		r.code(Nested{Language: "shell", Words: []Word{joined(words)}, Remote: role == roleShellRemote})
	case roleKeys:
		r.code(Nested{Language: "shell", Words: []Word{typed(words)}})
	case roleShellArgs:
		argv := []Word{{Text: "sh", From: words[0].From}}
		for _, v := range r.values {
			if v.role == roleShell {
				argv = append(argv, Word{Text: "-c", From: v.word.From}, v.word)
			}
		}
		r.code(Nested{Language: "argv", Words: append(argv, words...)})
	case roleModule:
		// The program py:NAME is the Python module of that name; other modules are commands of the same name (python -m
		// pytest).
		m := words[0]
		m.Text = "py:" + m.Text
		if find(programs[:], m.Text) == nil && find(programs[:], words[0].Text) != nil {
			m.Text = words[0].Text
		}
		argv := append([]Word{m}, words[1:]...)
		r.code(Nested{Language: "argv", Words: argv})
	default:
	}
}

// scriptNames are names of listed programs that package scripts also often have.
var scriptNames = map[string]bool{
	"format": true, "watch": true, "start": true, "clean": true, "deploy": true, "make": true, "sync": true, "time": true, "sort": true, "which": true, "node-gyp": true,
	"test": true, "compile": true, "docs": true, "release": true, "wait": true, "lint": true, "install": true, "clear": true, "reset": true, "move": true, "copy": true,
	"set": true, "tree": true, "help": true, "history": true, "print": true, "replace": true, "dir": true, "type": true, "more": true, "go": true, "screen": true,
}

// joined joins words with spaces to one word.
func joined(words []Word) Word {
	if len(words) == 1 {
		return words[0]
	}
	w := Word{From: words[0].From}
	w.From.End = words[len(words)-1].From.End
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

// typed returns the text that words and key names type into a shell; nothing is inserted between them.
func typed(words []Word) Word {
	w := joined(words)
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
		case namedKeys[key] || len(key) > 2 && key[1] == '-' && strings.ContainsAny(key[:1], "cms^"):
			b.WriteByte('\n') // the key ends a line or starts a new one
		default:
			b.WriteString(v.Text)
		}
	}
	w.Text = b.String()
	return w
}

// namedKeys are the names of keys that end, cancel or edit a line.
var namedKeys = map[string]bool{
	"enter": true, "kpenter": true, "escape": true, "bspace": true, "dc": true, "ic": true, "up": true, "down": true, "left": true, "right": true,
	"home": true, "end": true, "npage": true, "pagedown": true, "ppage": true, "pageup": true,
}
