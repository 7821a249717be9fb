package shell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// A role is what a call in code does.
type role uint8

const (
	runsShell  role = iota + 1 // its first argument is shell text
	runsArgv                   // its arguments are a command
	runsEither                 // a list is a command, a string shell text
	opens                      // a path and a mode
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
	requests // HTTP
	posts    // HTTP with a body
	connects
	listens
	evaluates // its first argument is code of the same language
	duplicates
	changesUser
	receives
	readsEnvironment
	loadsFile // its first argument is a file of code
	kills
)

// roleOf returns what a call does, by its dotted name.
func roleOf(name, language string) role {
	last := name[strings.LastIndexByte(name, '.')+1:]
	owner := strings.TrimSuffix(strings.TrimSuffix(name, last), ".")
	switch last {
	case "system", "popen", "popen2", "popen3", "popen4", "getoutput", "getstatusoutput", "execSync", "shell_exec", "passthru", "proc_open", "pcntl_exec", "create_subprocess_shell", "capture2", "capture2e", "capture3", "readpipe", "execute":
		if last == "execute" && !strings.HasSuffix(owner, "os") {
			return 0
		}
		return runsShell
	case "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "spawnl", "spawnlp", "spawnv", "spawnvp", "posix_spawn", "execFile", "execFileSync", "spawn", "spawnSync", "fork_exec", "create_subprocess_exec", "startfile":
		return runsArgv
	case "check_output", "check_call", "Popen":
		return runsEither
	case "run", "call":
		if strings.HasSuffix(owner, "subprocess") || owner == "sp" {
			return runsEither
		}
	case "exec":
		switch {
		case language == "python" && owner == "":
			return evaluates
		case language == "node" && (owner == "" || strings.Contains(owner, "child_process") || owner == "cp" || strings.HasSuffix(owner, "Bun")), language != "python" && language != "node":
			return runsShell
		}
	case "eval", "instance_eval", "class_eval", "module_eval", "Function", "runInThisContext", "runInNewContext", "runInContext", "create_function", "loadstring", "compileFunction", "literal_eval_unsafe":
		return evaluates
	case "compile":
		if owner == "" && language == "python" {
			return evaluates
		}
	case "loads", "load", "assert":
		if strings.Contains(owner, "pickle") || strings.Contains(owner, "marshal") || language == "php" && last == "assert" || language == "lua" && last == "load" {
			return evaluates
		}
	case "open", "fopen", "File.open", "openSync", "createWriteStream", "sysopen":
		if last == "createWriteStream" {
			return writesFile
		}
		return opens
	case "read_text", "read_bytes", "readFileSync", "readFile", "createReadStream", "file_get_contents", "readfile", "readlines", "slurp", "fileinput", "highlight_file", "show_source", "lines", "loadtxt", "read_csv", "binread", "foreach":
		return readsFile
	case "write_text", "write_bytes", "writeFileSync", "writeFile", "appendFile", "appendFileSync", "file_put_contents", "binwrite", "touch", "truncate":
		return writesFile
	case "read", "write":
		if owner == "File" || owner == "IO" || strings.HasSuffix(owner, "Deno") {
			if last == "read" {
				return readsFile
			}
			return writesFile
		}
	case "remove", "unlink", "unlinkSync", "removeSync":
		if last != "remove" || strings.HasSuffix(owner, "os") || strings.HasSuffix(owner, "fs") || language == "lua" {
			return deletes
		}
	case "delete":
		if owner == "File" {
			return deletes
		}
	case "rmtree", "rmSync", "rmdirSync", "rm_rf", "rm_r", "remove_entry_secure", "remove_tree", "rimraf", "removedirs", "rmdir":
		return deletesTree
	case "rm":
		if strings.Contains(owner, "fs") || owner == "FileUtils" {
			return deletesTree
		}
	case "listdir", "scandir", "walk", "readdirSync", "readdir", "glob", "opendir", "rglob", "iterdir":
		return lists
	case "rename", "renameSync", "move", "replace_file", "mv":
		if owner != "" || language == "perl" || language == "php" {
			return moves
		}
	case "copy", "copyfile", "copy2", "copytree", "copyFileSync", "cpSync", "cp_r", "cp":
		return copies
	case "symlink", "symlinkSync", "symlink_to", "link", "linkSync", "hardlink_to":
		return links
	case "chmod", "chown", "chmodSync", "lchown":
		return setsMode
	case "mkdir", "makedirs", "mkdirSync":
		return makesFolder
	case "urlopen", "urlretrieve", "fetch", "get_response", "getstore", "curl_init", "file_get", "get_print", "getprint", "open_uri", "wget":
		return requests
	case "get", "head", "request":
		if httpOwner(owner) {
			return requests
		}
	case "post", "put", "patch", "post_form", "sendmail", "send_message", "sendBeacon":
		if httpOwner(owner) || last != "post" && last != "put" && last != "patch" {
			return posts
		}
	case "connect", "create_connection", "createConnection", "fsockopen", "pfsockopen", "stream_socket_client", "open_connection", "socket_connect", "TCPSocket", "TCPSocket.new", "connect_ex":
		if !strings.Contains(strings.ToLower(owner), "sql") && !strings.Contains(owner, "db") && owner != "psycopg2" {
			return connects
		}
	case "new", "Socket":
		if strings.HasPrefix(owner, "TCPSocket") || strings.HasPrefix(owner, "IO.Socket") || owner == "net" || owner == "UDPSocket" {
			return connects
		}
	case "INET", "INET6":
		return connects
	case "bind", "listen", "createServer", "serve_forever", "create_server":
		return listens
	case "dup2", "reopen", "fdopen":
		return duplicates
	case "setuid", "setgid", "setreuid", "setresuid", "seteuid":
		return changesUser
	case "recv", "recvfrom", "gets_socket", "sock_recv", "fgets", "socket_read":
		return receives
	case "getenv":
		return readsEnvironment
	case "execfile", "run_path", "require_relative", "dofile", "include", "require_once", "include_once":
		return loadsFile
	case "kill", "killpg":
		return kills
	}
	return 0
}

func httpOwner(owner string) bool {
	owner = strings.ToLower(owner)
	for _, o := range [...]string{"requests", "http", "https", "httpx", "axios", "urllib", "got", "session", "aiohttp", "lwp", "ua", "client", "net", "faraday", "needle", "superagent"} {
		if owner == o || strings.HasSuffix(owner, "."+o) || strings.HasPrefix(owner, o+".") || strings.HasPrefix(owner, "net.http") {
			return true
		}
	}
	return false
}

// call does what a call in code does and returns its value.
func (p *script) call(f operand, args []operand) operand {
	for i := range args {
		args[i].from = p.at
	}
	if f.name == "" {
		return operand{value: unknown("…()", f.taint|anyTaint(args)), used: true}
	}
	full := f.name
	if full[0] == '.' { // a method of a value
		if v, ok := p.method(full[1:], f, args); ok {
			return v
		}
	}
	if v, ok := p.function(full, args); ok {
		return v
	}
	first := operand{}
	if len(args) > 0 {
		first = args[0]
		if first.name != "" {
			first.value = unknown(first.name, first.taint)
		}
	}
	recv := f
	recv.name = ""
	r := roleOf(strings.TrimPrefix(full, "."), p.language)
	if r == 0 {
		for _, a := range args {
			p.loose(a)
		}
		t := f.taint | anyTaint(args)
		name := full
		if full[0] == '.' {
			name = ""
		}
		return operand{name: name, value: unknown(clip(full)+"()", t), used: true}
	}
	// Path("x").read_text(): the receiver is the path.
	if full[0] == '.' && len(recv.text) > 0 && (r == readsFile || r == writesFile || r == deletes || r == lists || r == deletesTree || r == opens || r == setsMode || r == makesFolder) && !recv.bare {
		args = append([]operand{recv}, args...)
		if r == writesFile && len(args) > 1 {
			first = args[1]
		}
		first = recv
	}
	out := p.act(r, full, first, args)
	out.taint |= f.taint
	out.used = true
	return out
}

// act does what a role says.
func (p *script) act(r role, full string, first operand, args []operand) operand {
	result := operand{value: unknown(clip(full)+"()", 0)}
	if len(args) == 0 {
		if r == receives {
			p.receives = true
			result.taint |= socket
		}
		return result
	}
	path := first.value
	path.from = p.at
	switch r {
	case runsShell:
		if len(args) > 1 && (p.language == "perl" || p.language == "ruby") && args[1].known() && args[1].name == "" && !args[1].isList {
			p.argv(args)
		} else if first.isList {
			p.argv(args[:1])
		} else {
			p.run(path)
		}
		result.taint |= foreign
	case runsArgv:
		p.argv(commandOf(full, args))
	case runsEither:
		if first.isList {
			p.argv(args[:1])
		} else {
			p.run(path)
		}
	case opens:
		if full == "sysopen" && p.language == "perl" && len(args) > 1 {
			return p.sysopen(args)
		}
		return p.open(args, path)
	case readsFile:
		if path.known() && isURL(path.text) {
			p.s.url(effect.HTTPRequest, path)
			result.taint |= network
			return result
		}
		return operand{value: p.read(path)}
	case writesFile:
		content := value{}
		if len(args) > 1 {
			content = args[1].value
		}
		p.write(path, content)
	case deletes:
		for _, a := range args {
			if a.name == "" {
				a.from = p.at
				p.s.path(effect.DeleteFile, a.value, false)
			}
		}
	case deletesTree:
		p.s.path(effect.DeleteFile, path, !strings.HasSuffix(full, "rmdir"))
	case lists:
		p.s.path(effect.ListDirectory, path, strings.HasSuffix(full, "walk") || strings.HasSuffix(full, "rglob"))
	case moves:
		p.s.path(effect.MoveFile, path, true)
		p.transfer(args, value{}, false)
	case copies:
		p.transfer(args, p.read(path), slices.Contains(treeCopies[:], full[strings.LastIndexByte(full, '.')+1:]))
	case links:
		p.s.path(effect.ReadFile, path, true)
		p.transfer(args, value{}, false)
		if len(args) > 1 {
			at, _ := p.s.place().Path(args[1].text, args[1].pattern)
			p.s.link(at, path)
		}
	case setsMode:
		p.s.path(effect.ChangePermissions, path, false)
	case makesFolder:
		p.s.path(effect.CreateDirectory, path, false)
	case requests, posts:
		p.request(r, path, args)
		result.taint |= network
	case connects:
		p.connects, p.posts = true, true
		p.connect(args)
		result.taint |= socket
	case listens:
		p.listens = true
		p.s.once(effect.Effect{Kind: effect.Listen, From: p.at})
	case evaluates:
		p.evaluate(full, path)
	case duplicates:
		p.dups = true
	case changesUser:
		p.s.once(effect.Effect{Kind: effect.ChangePrivilege, Program: p.language, From: p.at})
	case receives:
		p.receives = true
		result.taint |= socket
	case readsEnvironment:
		return operand{value: p.s.environment(path.text)[0]}
	case loadsFile:
		p.s.runFile(path, p.language, nil, streams{}, p.at)
	case kills:
		p.s.once(effect.Effect{Kind: effect.StopProcess, Program: p.language, From: p.at})
	}
	return result
}

// commandOf drops the arguments of exec and spawn that are no words: the mode
// of os.spawnl, and the program's name given twice.
func commandOf(full string, args []operand) []operand {
	last := full[strings.LastIndexByte(full, '.')+1:]
	if strings.HasPrefix(last, "spawnl") || strings.HasPrefix(last, "spawnv") {
		args = args[min(1, len(args)):]
	}
	if strings.HasPrefix(last, "exec") && last != "execFile" && last != "execFileSync" || strings.HasPrefix(last, "spawnl") || strings.HasPrefix(last, "spawnv") || last == "posix_spawn" {
		if len(args) > 1 {
			rest := args[1:]
			if rest[0].isList && len(rest[0].list) > 0 {
				rest = append([]operand{{list: rest[0].list[1:], isList: true}}, rest[min(1, len(rest)):min(1, len(rest))]...)
			} else {
				rest = rest[1:]
			}
			args = append([]operand{args[0]}, rest...)
		}
	}
	if len(args) > 2 && args[1].isList {
		args = args[:2] // the options of node's spawn
	}
	kept := args[:0:0]
	for _, a := range args {
		if !(a.isList && len(kept) > 0 && len(a.list) > 0 && a.list[0].name != "") {
			kept = append(kept, a)
		}
	}
	return kept
}

// open is open(path, mode).
func (p *script) open(args []operand, path value) operand {
	mode := ""
	if len(args) > 1 {
		mode = args[1].text
	}
	if p.language == "perl" {
		// open(F, "<", "x"), open(F, "> x"), open(F, "cmd |")
		rest := args
		if len(rest) > 1 {
			rest = rest[1:]
		}
		mode, path = perlMode(rest[0].text), rest[len(rest)-1].value
		path.from = p.at
		text := strings.TrimSpace(rest[0].text)
		if strings.HasPrefix(text, "|") || strings.HasSuffix(text, "|") || strings.Contains(text, "-|") {
			path.text = strings.Trim(path.text, "|- ")
			p.run(path)
			return operand{value: unknown("open()", foreign), used: true}
		}
		if strings.Contains(text, "&") { // open(STDIN, ">&C") joins two handles
			p.dups = true
			return operand{used: true}
		}
		path.text = strings.TrimLeft(path.text, "<>+ ")
	}
	if path.known() && isURL(path.text) {
		p.s.url(effect.HTTPRequest, path)
		return operand{value: unknown("open()", network), used: true}
	}
	if path.known() && strings.HasPrefix(path.text, "|") && p.language == "ruby" {
		path.text = path.text[1:]
		p.run(path)
		return operand{value: unknown("open()", foreign), used: true}
	}
	if strings.ContainsAny(mode, "wax+>") {
		p.write(path, value{})
		return operand{value: unknown("open()", 0), used: true}
	}
	return operand{value: p.read(path), used: true}
}

// sysopen is perl's sysopen(HANDLE, path, flags).
func (p *script) sysopen(args []operand) operand {
	path := args[1].value
	path.from = p.at
	if flags := args[min(2, len(args)-1)]; flags.text == "0" || flags.name == "O_RDONLY" {
		return operand{value: p.read(path), used: true}
	}
	p.write(path, value{})
	return operand{value: unknown("open()", 0), used: true}
}

// perlMode returns the mode of perl's open, which may stand before the path.
func perlMode(text string) string {
	text = strings.TrimLeft(text, " \t\n")
	return text[:len(text)-len(strings.TrimLeft(text, "<>+"))]
}

func (p *script) request(r role, path value, args []operand) {
	for _, a := range args {
		if a.known() && strings.Contains(a.text, "://") {
			path = a.value
			break
		}
	}
	path.from = p.at
	if r == posts || anyTaint(args[1:])&(secret|dump|credential) != 0 || len(args) > 1 && !args[1].known() {
		p.posts = true
	}
	p.held |= anyTaint(args) & (secret | dump)
	if path.known() && path.text != "" || path.pattern {
		p.s.url(effect.HTTPRequest, path)
	}
	if path.taint&(secret|dump|credential) != 0 {
		p.s.upload(path, p.language, p.at)
	}
}

func (p *script) connect(args []operand) {
	var flat []operand
	for _, a := range args {
		flat = append(flat, a)
		flat = append(flat, a.list...)
	}
	e := effect.Effect{Kind: effect.Connect, From: p.at, Pattern: true}
	for _, a := range flat {
		if _, err := strconv.Atoi(a.text); a.known() && a.name == "" && a.text != "" && err != nil && !a.isList && strings.ContainsAny(a.text, ".:") || a.text == "localhost" {
			e.Host, e.Pattern = effect.Host(a.text), false
			break
		}
	}
	p.s.once(e)
}

func (p *script) evaluate(full string, code value) {
	code.from = p.at
	if strings.Contains(full, "pickle") || strings.Contains(full, "marshal") {
		if code.taint&network == 0 && code.taint&decoded == 0 {
			return
		}
	}
	if !code.known() && code.taint == 0 && code.bare {
		p.s.dynamic(p.language+" code evaluates text that is not known", p.at)
		return
	}
	if p.receives && !code.known() {
		code.taint |= socket
	}
	p.s.runText(p.language, code, p.language+" code", p.at, nil)
}
