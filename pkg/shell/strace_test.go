package shell

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A touch is one thing that strace saw a program do.
type touch struct {
	kind string // read, write, delete, mode, run, connect
	path string // absolute; the address of connect
	by   string // run: names of the programs that led to it, the first one first
	line string // of strace
}

// calls are the system calls that a trace holds, with what follows their
// arguments. A question mark lets strace skip what this machine lacks.
const calls = "open,openat,creat,truncate,unlink,unlinkat,rmdir,rename,renameat,renameat2,mkdir,mkdirat,mknod,mknodat," +
	"link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,?fchmodat2,chown,lchown,fchown,fchownat," +
	"execve,connect,chdir,fchdir,clone,?clone3,fork,vfork"

var (
	call      = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?(?: (E[A-Z]+) .*)?$`)
	argument  = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>(?:, |$))?(?:"((?:[^"\\]|\\.)*)")?`)
	peer      = regexp.MustCompile(`sin_addr=inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"`)
	ownFolder = regexp.MustCompile(`^/(proc|dev|sys)(/|$)`)
)

// traced reads what "strace -ff -y -o prefix" wrote: a file for each process.
// dir is the folder that the first one starts in.
func traced(t *testing.T, prefix, dir string) []touch {
	t.Helper()
	files, err := filepath.Glob(prefix + ".*")
	if err != nil {
		t.Fatal(err)
	}
	r := reader{logs: map[string][]string{}}
	first := ""
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		pid := f[len(prefix)+1:]
		r.logs[pid] = strings.Split(string(data), "\n")
		if n, _ := strconv.Atoi(pid); first == "" || n < mustInt(first) {
			first = pid
		}
	}
	r.process(first, dir, "")
	return r.seen
}

func mustInt(s string) int { n, _ := strconv.Atoi(s); return n }

type reader struct {
	logs map[string][]string
	seen []touch
}

// process follows one process and those that it starts, so that relative paths
// are known to start from the right folder.
func (r *reader) process(pid, cwd, name string) {
	lines := r.logs[pid]
	delete(r.logs, pid)
	for _, line := range lines {
		m := call.FindStringSubmatch(line)
		if m == nil || m[5] != "" && m[5] != "EROFS" && m[1] != "connect" {
			continue
		}
		switch m[1] {
		case "fork", "vfork", "clone", "clone3":
			r.process(m[3], cwd, name)
		case "chdir", "fchdir":
			cwd = paths(m[2], cwd)[0]
		case "execve":
			p := paths(m[2], cwd)[0]
			r.add(touch{"run", p, name, line})
			name += " " + filepath.Base(p)
		case "connect":
			if a := peer.FindStringSubmatch(line); a != nil {
				r.add(touch{"connect", a[1] + a[2], name, line})
			}
		default:
			r.file(m[1], m[2], m[4], cwd, line)
		}
	}
}

func (r *reader) add(x touch) { r.seen = append(r.seen, x) }

// file adds what a call that names files does to them.
func (r *reader) file(name, args, opened, cwd, line string) {
	at := paths(args, cwd)
	if opened != "" {
		at = []string{strings.TrimSuffix(opened, "(deleted)")}
	}
	kind := "write"
	switch {
	case strings.HasPrefix(name, "open") && !strings.Contains(args, "O_WRONLY") && !strings.Contains(args, "O_RDWR") && !strings.Contains(args, "O_CREAT"):
		kind = "read"
	case name == "unlink" || name == "unlinkat" || name == "rmdir":
		kind = "delete"
	case strings.HasPrefix(name, "rename"):
		r.add(touch{"delete", at[0], "", line})
		at = at[1:]
	case strings.HasPrefix(name, "link") || strings.HasPrefix(name, "symlink"):
		at = at[len(at)-1:]
	case strings.Contains(name, "chmod") || strings.Contains(name, "chown"):
		kind = "mode"
	}
	for _, p := range at[:min(1, len(at))] {
		r.add(touch{kind, p, "", line})
	}
}

// paths returns the paths among the arguments of a call, made absolute.
func paths(args, cwd string) []string {
	var out []string
	for _, a := range argument.FindAllStringSubmatch(args, -1) {
		base, p := a[1], a[2]
		if base == "" && p == "" {
			continue
		}
		if base == "" {
			base = cwd
		}
		if s, err := strconv.Unquote(`"` + p + `"`); err == nil {
			p = s
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(base, p)
		}
		out = append(out, filepath.Clean(p))
	}
	if len(out) == 0 {
		return []string{cwd}
	}
	return out
}
