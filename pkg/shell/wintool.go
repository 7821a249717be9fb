package shell

import (
	"path"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/pwsh"
)

// windowsProgram reports whether a program exists on Windows only, so that
// its arguments are read as windowsTool does.
func windowsProgram(base string) bool {
	switch base {
	case "reg", "schtasks", "sc", "net1", "certutil", "bitsadmin", "mshta", "rundll32", "regsvr32", "wmic", "vssadmin", "wbadmin", "bcdedit",
		"wevtutil", "netsh", "icacls", "cacls", "takeown", "attrib", "cipher", "xcopy", "robocopy", "taskkill", "tasklist", "systeminfo",
		"ipconfig", "findstr", "setx", "cscript", "wscript", "msiexec", "installutil", "msbuild", "forfiles", "fsutil", "diskpart", "runas",
		"psexec", "psexec64", "ntdsutil", "esentutl", "procdump", "procdump64", "cmdkey", "vaultcmd", "auditpol", "fltmc", "sdelete", "regini", "regedit",
		"cmstp", "odbcconf", "pcalua", "hh", "ieexec", "regasm", "regsvcs", "makecab", "extrac32", "nltest", "dsquery", "csvde", "ldifde", "quser", "qwinsta",
		"mimikatz", "rubeus", "sharphound", "reagentc", "wusa", "dism", "gpupdate", "klist", "where.exe", "tskill", "diskshadow", "winrm", "winrs", "presentationhost", "control", "explorer", "msdt", "desktopimgdownldr", "mpcmdrun", "appcmd", "dnscmd", "syncappvpublishingserver", "replace", "print", "finger", "certreq", "xwizard", "infdefaultinstall", "msxsl", "forfiles.exe":
		return base != "print" && base != "replace" && base != "finger" && base != "control" && base != "explorer"
	}
	return false
}

// windowsTool runs a program of Windows.
func (s *state) windowsTool(base string, argv []abstract.Value, io abstract.Streams) abstract.Value {
	w := winTool{s: s, base: base, at: join(argv), args: argv[1:], io: io, class: effect.LocalWrite}
	mark := len(s.effects)
	out := w.run()
	rest := append([]effect.Effect(nil), s.effects[min(mark, len(s.effects)):]...)
	s.effects = s.effects[:min(mark, len(s.effects))]
	s.execute(argv, base, w.class)
	s.effects = append(s.effects, rest...)
	return out
}

// A winTool is one run of a program of Windows.
type winTool struct {
	s     *state
	base  string
	at    effect.Span
	args  []abstract.Value
	io    abstract.Streams
	class effect.Class
}

func (w *winTool) emit(kind effect.Kind, reason string) {
	w.s.once(effect.Effect{Kind: kind, Program: w.base, Reason: reason, From: w.at})
}

// operands returns the arguments that are no switches.
func (w *winTool) operands() []abstract.Value {
	var out []abstract.Value
	for _, a := range w.args {
		if a.Text != "" && (a.Text[0] == '/' && !strings.Contains(a.Text[1:], "/") || a.Text[0] == '-') {
			continue
		}
		out = append(out, a)
	}
	return out
}

// has reports whether a switch or word is given, without regard to case.
func (w *winTool) has(words ...string) bool {
	for _, a := range w.args {
		for _, word := range words {
			if strings.EqualFold(strings.TrimLeft(a.Text, "/-"), word) {
				return true
			}
		}
	}
	return false
}

func (w *winTool) first() string {
	if len(w.args) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimLeft(w.args[0].Text, "/-"))
}

// after returns the argument behind a switch.
func (w *winTool) after(name string) (abstract.Value, bool) {
	for i, a := range w.args {
		opt := strings.TrimLeft(a.Text, "/-")
		if strings.EqualFold(opt, name) && i+1 < len(w.args) {
			return w.args[i+1], true
		}
		if len(opt) > len(name) && opt[len(name)] == ':' && strings.EqualFold(opt[:len(name)], name) {
			a.Text = opt[len(name)+1:]
			return a, true
		}
	}
	return abstract.Value{}, false
}

func (w *winTool) paths(kind effect.Kind, recursive bool, operands []abstract.Value) {
	for _, o := range operands {
		if strings.ContainsAny(o.Text, "*?") && o.Known() {
			o.IsPattern, o.Show, o.Text = true, o.Text, strings.ReplaceAll(o.Text, `\`, "/")
		}
		w.s.path(kind, o, recursive)
	}
}

func (w *winTool) run() abstract.Value {
	ops := w.operands()
	switch w.base {
	case "type", "more", "findstr", "find", "sort", "fc", "comp":
		w.class = effect.ReadOnly
		if (w.base == "findstr" || w.base == "find") && len(ops) > 0 {
			ops = ops[1:]
		}
		out := w.io.In
		for _, o := range ops {
			out = w.s.readFile(effect.ReadFile, o)
		}
		return abstract.Output(w.base, out.Taint)
	case "dir", "tasklist", "systeminfo", "ipconfig", "where.exe", "quser", "qwinsta", "assoc", "ftype", "date", "time", "klist":
		w.class = effect.ReadOnly
		if w.base == "dir" {
			w.paths(effect.ListDirectory, w.has("s"), ops)
		}
	case "del", "erase", "rd", "rmdir", "sdelete":
		w.class = effect.Destructive
		w.paths(effect.DeleteFile, w.has("s", "r") || w.base == "rd" && w.has("s"), ops)
	case "copy", "xcopy", "robocopy", "move", "ren", "rename", "expand", "extrac32", "makecab", "esentutl":
		w.copy(ops)
	case "md", "mkdir":
		w.paths(effect.CreateDirectory, false, ops)
	case "attrib", "icacls", "cacls", "takeown":
		if f, ok := w.after("f"); ok && w.base == "takeown" {
			ops = []abstract.Value{f}
		}
		w.paths(effect.ChangePermissions, w.has("s", "t", "r"), ops[:min(1, len(ops))])
		if w.base == "attrib" && len(w.args) <= 1 {
			w.class = effect.ReadOnly
		}
	case "taskkill", "tskill":
		w.class = effect.Destructive
		w.emit(effect.StopProcess, "")
	case "procdump", "procdump64", "mimikatz", "rubeus", "vaultcmd", "cmdkey":
		if w.base != "cmdkey" || w.has("list") {
			w.emit(effect.ReadSecret, w.base+" reads credentials")
		}
	case "sharphound", "nltest", "dsquery", "csvde", "ldifde":
		w.class = effect.Network
	case "setx":
		w.emit(effect.ChangeSystem, "changes the environment of later programs")
	case "reg", "regedit", "regini":
		w.registry()
	case "schtasks", "at":
		w.schedule()
	case "sc", "net", "net1", "netsh", "bcdedit", "vssadmin", "wbadmin", "wevtutil", "fsutil", "diskpart", "diskshadow", "auditpol", "fltmc", "reagentc", "dism", "wusa", "cipher", "format", "ntdsutil", "mpcmdrun", "dnscmd", "appcmd", "winrm", "gpupdate":
		w.system()
	default:
		w.execution(ops)
	}
	return abstract.Output(w.base, 0)
}

func (w *winTool) copy(ops []abstract.Value) {
	if len(ops) == 0 {
		return
	}
	kind := effect.ReadFile
	if w.base == "move" || strings.HasPrefix(w.base, "ren") {
		kind = effect.MoveFile
	}
	recursive := w.has("s", "e", "mir")
	w.paths(kind, recursive, ops[:1])
	content := w.s.content(path.Clean(ops[0].Text), false, ops[0])
	if len(ops) > 1 {
		p, pattern := w.s.path(effect.WriteFile, ops[1], recursive)
		w.s.addFile(file{path: p, pattern: pattern, val: content})
	}
	if w.has("mir", "purge") {
		w.class = effect.Destructive
	}
	if w.base == "esentutl" || strings.Contains(strings.ToLower(ops[0].Text), "ntds.dit") {
		w.emit(effect.ReadSecret, "copies a locked database")
	}
}

// registry is reg and its kin.
func (w *winTool) registry() {
	verb := w.first()
	key := ""
	if len(w.args) > 1 {
		key = strings.ToLower(w.args[1].Text)
	}
	switch verb {
	case "query", "compare", "export":
		w.class = effect.ReadOnly
		if verb == "export" && len(w.args) > 2 {
			w.class = effect.LocalWrite
			w.s.path(effect.WriteFile, w.args[2], false)
		}
		if pwsh.SecretHive(key) {
			w.emit(effect.ReadSecret, "reads "+key)
		}
	case "save":
		if pwsh.SecretHive(key) {
			w.emit(effect.ReadSecret, "saves "+key)
		}
		if len(w.args) > 2 {
			p, pattern := w.s.path(effect.WriteFile, w.args[2], false)
			w.s.addFile(file{path: p, pattern: pattern, val: abstract.Unknown(key, abstract.Secret)})
		}
	default:
		w.class = effect.Privileged
		if verb == "delete" {
			w.class = effect.Destructive
		}
		w.s.registryWrite(w.base, w.args, w.at)
	}
}

// registryWrite records a change of the registry.
func (s *state) registryWrite(program string, words []abstract.Value, at effect.Span) {
	e := effect.Effect{Kind: effect.ChangeSystem, Program: program, Reason: "changes the registry", From: at}
	for _, v := range words {
		key := strings.ToLower(strings.ReplaceAll(v.Text, "/", `\`))
		if runsLater(key) {
			e.Kind, e.Path, e.Reason = effect.Persist, v.String(), "the registry key runs code later"
			break
		}
	}
	s.once(e)
}

// runsLater reports whether Windows runs what a registry key names.
func runsLater(key string) bool {
	for _, k := range [...]string{`\currentversion\run`, `\currentversion\policies\explorer\run`, `\winlogon`, `\image file execution options`, `\silentprocessexit`, `\currentversion\windows\load`, `appinit_dlls`,
		`\services\`, `\active setup\`, `\shell\open\command`, `\environment`, `\command processor`, `userinitmprlogonscript`, `\lsa\`, `\print\monitors`, `\netsh`, `\bootexecute`, `\inprocserver32`, `\appcertdlls`, `\explorer\shell folders`, `\explorer\user shell folders`, `\powershell\`, `scrnsave.exe`} {
		if strings.Contains(key, k) {
			return true
		}
	}
	return false
}

// schedule is schtasks and at.
func (w *winTool) schedule() {
	if w.base == "schtasks" && (w.has("query") || len(w.args) == 0) {
		w.class = effect.ReadOnly
		return
	}
	w.class = effect.Privileged
	w.emit(effect.Persist, "a scheduled task runs code later")
	if run, ok := w.after("tr"); ok {
		w.s.runText("cmd", run, w.base, w.at, nil)
	}
}

// system is the tools that change how the system runs.
func (w *winTool) system() {
	verb := w.first()
	w.class = effect.Privileged
	line := strings.ToLower(abstract.JoinValues(w.args).String())
	switch {
	case w.base == "sc" && (verb == "query" || verb == "qc" || verb == "queryex"), w.base == "netsh" && strings.Contains(line, "show") && !strings.Contains(line, "key=clear"),
		w.base == "wevtutil" && (verb == "qe" || verb == "el" || verb == "gl" || verb == "gli"), w.base == "vssadmin" && verb == "list", w.base == "fsutil" && strings.Contains(line, "query"),
		w.base == "bcdedit" && (verb == "" || verb == "enum"), strings.HasPrefix(w.base, "net") && (verb == "view" || verb == "statistics" || verb == "session") && w.base != "netsh",
		(w.base == "net" || w.base == "net1") && (verb == "user" || verb == "localgroup" || verb == "group" || verb == "accounts" || verb == "share" || verb == "start" || verb == "use") && (!strings.Contains(line, " /") || strings.Contains(line, "/domain")) && !strings.Contains(line, "/add") && !strings.Contains(line, "/del") && !strings.Contains(line, "/active") && len(w.operands()) < 2+int(truth(verb == "user" || verb == "localgroup" || verb == "group")) && !(verb == "start" && len(w.operands()) > 1),
		w.base == "auditpol" && verb == "get", w.base == "dism" && strings.Contains(line, "get-"):
		w.class = effect.ReadOnly
	case w.base == "netsh" && strings.Contains(line, "key=clear"):
		w.emit(effect.ReadSecret, "shows wireless keys")
	case w.base == "vssadmin" && (verb == "delete" || verb == "resize"), w.base == "wbadmin" && verb == "delete", w.base == "diskshadow", w.base == "bcdedit", w.base == "reagentc",
		w.base == "wevtutil" && (verb == "cl" || verb == "clear-log" || verb == "sl"), w.base == "format", w.base == "diskpart", w.base == "cipher" && strings.Contains(line, "/w"), w.base == "fsutil" && strings.Contains(line, "delete"), w.base == "fsutil" && strings.Contains(line, "setzerodata"):
		w.class = effect.Destructive
		w.emit(effect.Destroy, w.base+" destroys backups, logs, disks or the means to recover")
	case w.base == "ntdsutil":
		w.emit(effect.ReadSecret, "copies the domain's credentials")
	case w.base == "sc" && (verb == "create" || verb == "config" || strings.Contains(line, " create ")):
		w.emit(effect.Persist, "a service runs code later")
		if bin, ok := w.after("binpath="); ok {
			w.s.runText("cmd", bin, w.base, w.at, nil)
		}
	case w.base == "net" && verb == "use":
		w.class = effect.Network
	default:
		w.emit(effect.ChangeSystem, "changes users, services, the firewall or the protection of the system")
	}
}

// execution is the programs that run or fetch code.
func (w *winTool) execution(ops []abstract.Value) {
	w.class = effect.Unknown
	for _, a := range w.args {
		text := a.Text
		if i := strings.Index(strings.ToLower(text), "http"); i >= 0 && strings.Contains(text, "://") {
			u := a
			u.Text = strings.Trim(text[i:], `"'`)
			if end := strings.IndexAny(u.Text, `"')`); end > 0 {
				u.Text = u.Text[:end]
			}
			w.s.url(effect.HTTPRequest, u)
			if w.base != "certutil" && w.base != "bitsadmin" && w.base != "msdt" && w.base != "certreq" {
				w.emit(effect.RunDownload, w.base+" runs what the network sends")
			}
		}
	}
	line := abstract.JoinValues(w.args).String()
	lower := strings.ToLower(line)
	switch w.base {
	case "certutil":
		w.certutil(ops)
	case "bitsadmin":
		if len(ops) > 0 && strings.Contains(lower, "transfer") {
			p, pattern := w.s.path(effect.WriteFile, ops[len(ops)-1], false)
			w.s.addFile(file{path: p, pattern: pattern, val: abstract.Unknown("what bitsadmin downloads", abstract.Network)})
		}
		if strings.Contains(lower, "setnotifycmdline") {
			w.emit(effect.Persist, "a transfer job runs code later")
		}
	case "mshta":
		for _, scheme := range [...]string{"javascript:", "vbscript:"} {
			if _, code, ok := strings.Cut(lower, scheme); ok {
				w.s.code("code", code, w.at, nil)
				w.s.dynamic(effect.CauseCode, "mshta runs script text", w.at)
			}
		}
	case "rundll32":
		if strings.Contains(lower, "comsvcs") && (strings.Contains(lower, "minidump") || strings.Contains(lower, "#24")) {
			w.emit(effect.ReadSecret, "dumps the memory of a process")
		} else if strings.Contains(lower, "javascript:") || strings.Contains(lower, "url.dll") || strings.Contains(lower, `\\`) {
			w.s.dynamic(effect.CauseCode, "rundll32 runs code that is not known", w.at)
		}
	case "wmic":
		if _, rest, ok := strings.Cut(lower, "process call create"); ok {
			i := len(line) - len(rest)
			w.s.runText("cmd", abstract.Lit(strings.Trim(line[max(0, i):], ` "'`)), "wmic", w.at, nil)
		} else if strings.Contains(lower, "shadowcopy") && strings.Contains(lower, "delete") {
			w.emit(effect.Destroy, "deletes shadow copies")
		} else if strings.Contains(lower, "/format:") && strings.Contains(lower, "http") {
			w.emit(effect.RunDownload, "runs a style sheet from the network")
		} else if !strings.Contains(lower, " call ") && !strings.Contains(lower, "delete") && !strings.Contains(lower, "/node:") && !strings.Contains(lower, ".xsl") {
			w.class = effect.ReadOnly
		}
	case "forfiles", "runas", "psexec", "psexec64", "pcalua", "winrs":
		if base := w.base; base == "runas" || strings.HasPrefix(base, "psexec") {
			w.emit(effect.ChangePrivilege, "")
		}
		if code, ok := w.after("c"); ok {
			w.s.runText("cmd", code, w.base, w.at, nil)
		} else if n := len(ops); n > 0 {
			w.s.runText("cmd", abstract.JoinValues(ops[min(n-1, int(truth(strings.HasPrefix(ops[0].Text, `\\`)))):]), w.base, w.at, nil)
		}
	case "cscript", "wscript":
		if len(ops) > 0 {
			w.s.runFile(ops[0], "code", ops[1:], w.io, w.at)
		}
	case "msiexec", "regsvr32", "installutil", "msbuild", "cmstp", "odbcconf", "regasm", "regsvcs", "hh", "ieexec", "presentationhost", "msdt", "xwizard", "infdefaultinstall", "msxsl", "syncappvpublishingserver", "desktopimgdownldr", "certreq":
		for _, o := range ops {
			w.s.suspect(o)
		}
		if w.base != "msbuild" && w.base != "msiexec" {
			w.s.dynamic(effect.CauseCode, w.base+" runs code that is not known", w.at)
		} else if w.base == "msiexec" {
			w.emit(effect.ChangeSystem, "installs a package")
		}
	}
}

func (w *winTool) certutil(ops []abstract.Value) {
	switch {
	case w.has("urlcache", "verifyctl", "ping"):
		if n := len(ops); n > 1 {
			p, pattern := w.s.path(effect.WriteFile, ops[n-1], false)
			w.s.addFile(file{path: p, pattern: pattern, val: abstract.Unknown("what certutil downloads", abstract.Network)})
		}
		w.class = effect.Network
	case w.has("decode", "decodehex", "encode", "encodehex"):
		w.class = effect.LocalWrite
		if len(ops) > 1 {
			in := w.s.readFile(effect.ReadFile, ops[0])
			p, pattern := w.s.path(effect.WriteFile, ops[1], false)
			w.s.addFile(file{path: p, pattern: pattern, val: abstract.Unknown("what certutil decodes", in.Taint|abstract.Decoded)})
		}
	case w.has("hashfile"):
		w.class = effect.ReadOnly
		if len(ops) > 0 {
			w.s.path(effect.ReadFile, ops[0], false)
		}
	case w.has("addstore"):
		w.emit(effect.ChangeSystem, "changes the certificates that are trusted")
	}
}
