//go:build amd64 || arm64

package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// everyday are commands of ordinary work, each in a workspace of its own: a repository with a
// commit, a Makefile, a package of npm and of Python. They have to work contained.
const everyday = `
git status
git add b.txt && git commit -qm b
git diff && git log --oneline && git show HEAD && git blame a.txt
git checkout -qb topic && git branch -v && git checkout -q -
git stash -u && git stash pop
git tag v1 && git describe --tags
git checkout -qb other && echo x >> a.txt && git commit -qam x && git checkout -q main && git merge -q other
git checkout -qb base && echo x >> a.txt && git commit -qam x && git rebase -q main
git clone -q . clone && ls clone/a.txt
git init -q --bare remote.git && git remote add up remote.git && git push -q -u up main && git fetch -q up && git pull -q
git worktree add -q tree && git worktree list
git config user.name x && git config --get user.name
git gc -q && git fsck
git archive HEAD | tar t
git reset -q --hard && git clean -fdq
git rm -q a.txt && git mv package.json p.json && git restore --staged . && git restore .
ls -la && cat a.txt b.txt
cp a.txt c.txt && mv c.txt d.txt && rm d.txt
mkdir -p x/y && touch x/y/z && find . -name z && rm -r x
sed -i s/one/two/ a.txt && grep two a.txt
sort a.txt | uniq -c | head -3 | tee s.txt
awk '{print $1}' a.txt && cut -c1-2 a.txt && wc -l a.txt
tar czf a.tgz a.txt && tar xzf a.tgz && rm a.tgz
gzip -k a.txt && gunzip -f a.txt.gz
diff a.txt b.txt > p.diff || true
printf -- '--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n' | patch -p0 a.txt
ln -s a.txt l && readlink l && chmod 600 a.txt && stat a.txt
du -sh . && df . && date && env | sort > e.txt
mktemp && cat /etc/hostname /proc/self/status /proc/cpuinfo > i.txt
ps ax > ps.txt && id && uname -a
xargs -n1 echo < a.txt
sh run.sh && bash -c 'echo ${BASH_VERSION}'
make && make clean
gcc -o hello hello.c && ./hello
cmake --version
python3 -c 'import json, ssl, sqlite3, ctypes; print(1)'
python3 -m json.tool package.json
python3 -m venv --without-pip env && env/bin/python -c 'print(1)'
python3 -m unittest test_a.py
python3 pool.py
python3 serve.py
python3 -m compileall -q . && python3 -m zipfile -c z.zip a.txt
python3 -m pytest -q test_a.py
pip --version && pip list > l.txt
pip install --no-index --no-build-isolation --no-deps --target t ./nothing || true
node -e 'console.log(os.tmpdir())'
node serve.js
npm init -y > /dev/null && npm run hello
npm test
npm pack --dry-run > /dev/null && npm ls
npm install --offline --ignore-scripts --no-audit ./dep
npx --offline --yes --package ./dep dep
go version && go env GOOS && gofmt -l main.go
go mod init example.com/x && go list -m
cargo --version
perl -e 'print "x\n"' && perl -pi -e s/one/two/ a.txt
sqlite3 a.db 'create table t (x); insert into t values (1); select * from t'
jq .name package.json
curl -sS file://$PWD/a.txt
wget --version > /dev/null
ssh -V && ssh-keygen -q -t ed25519 -N '' -f key
openssl rand -hex 4 && sha256sum a.txt
strace -o trace -f ls && test -s trace
script -qc 'echo in a terminal' /dev/null
`

var workspace = map[string]string{
	"a.txt": "one\n", "Makefile": "all: hello.txt\nhello.txt:\n\techo hello > hello.txt\nclean:\n\trm -f hello.txt\n", "run.sh": "trap 'echo end' EXIT; (sleep 0 & wait); echo $(pwd)\n",
	"hello.c":          "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n",
	"main.go":          "package main\n\nfunc main() {}\n",
	"package.json":     `{"name":"x","version":"1.0.0","scripts":{"hello":"echo hello","test":"node -e 'process.exit(0)'"}}`,
	"dep/package.json": `{"name":"dep","version":"1.0.0","bin":"cli.js"}`, "dep/cli.js": "#!/usr/bin/env node\nconsole.log('dep')\n",
	"test_a.py": "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n\n\nif __name__ == '__main__':\n    unittest.main()\n",
	"pool.py":   "import multiprocessing, tempfile\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as p:\n        print(p.map(abs, [-1, -2]))\n    tempfile.NamedTemporaryFile().write(b'x')\n",
	"serve.py":  "import http.server, threading, urllib.request\ns = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\nprint(urllib.request.urlopen('http://127.0.0.1:%d/a.txt' % s.server_port).read())\n",
	"serve.js":  "const http = require('http'); const s = http.createServer((q, r) => r.end('x')).listen(0, '127.0.0.1', () => http.get({port: s.address().port, host: '127.0.0.1'}, r => { console.log(r.statusCode); s.close(); process.exit(0) }))\n",
}

// loopback are what needs it, which Landlock alone does not leave.
var loopback = []string{"python3 serve.py", "node serve.js"}

// TestEveryday: commands of ordinary work do the same contained.
func TestEveryday(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]contain.Mechanism{"Landlock": contain.Landlock, "namespaces": contain.Landlock | contain.Namespaces} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, m := range contain.ProbeKernelFeatures() {
				if !m.Works && (m.Name != "namespaces" || with&contain.Namespaces != 0) {
					t.Skipf("the kernel cannot contain by %s: %s", m.Name, m.ProbeDetail)
				}
			}
			for line := range strings.SplitSeq(strings.TrimSpace(everyday), "\n") {
				t.Run(line, func(t *testing.T) {
					t.Parallel()
					if with&contain.Namespaces == 0 {
						for _, l := range loopback {
							if l == line {
								t.Skipf("Landlock alone leaves no loopback")
							}
						}
					}
					everydayCommand(t, line, line, with, nil)
				})
			}
		})
	}
}

// traced is a system call of strace -y that did not fail: its name, its arguments, and the file that it has opened.
var traced = regexp.MustCompile(`(?m)^\d+ +(\w+)\((.*)\) = \d+(?:<(/[^>]*)>)?$`)

// argument is a path among the arguments, with the folder that it begins in.
var argument = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"`)

// A touch is a file that a system call has read or changed.
type touch struct{ call, path, does string }

// touches returns what a trace shows.
func touches(trace string) (out []touch) {
	for _, m := range traced.FindAllStringSubmatch(trace, -1) {
		call, rest, led := m[1], m[2], m[3]
		var paths []string
		for _, a := range argument.FindAllStringSubmatch(rest, -1) {
			path := a[2]
			if !filepath.IsAbs(path) {
				if path = filepath.Join(a[1], path); a[1] == "" {
					continue // older calls do not show the folder
				}
			}
			if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
				path = filepath.Join(real, filepath.Base(path))
			}
			paths = append(paths, filepath.Clean(path))
		}
		if len(paths) == 0 {
			continue
		}
		switch {
		case call == "creat" || strings.HasPrefix(call, "open"):
			does := "reads"
			switch {
			case strings.Contains(rest, "O_DIRECTORY") || strings.Contains(rest, "O_PATH"):
				continue
			case strings.Contains(rest, "O_RDWR"):
				does = "reads and changes"
			case call == "creat" || strings.Contains(rest, "O_WRONLY") || strings.Contains(rest, "O_CREAT"):
				does = "changes"
			}
			out = append(out, touch{call, led, does}) // where it led, which links may no longer say
		case strings.HasPrefix(call, "rename"):
			for _, path := range paths {
				out = append(out, touch{call, path, "changes"})
			}
		case strings.HasPrefix(call, "mkdir") || strings.HasPrefix(call, "unlink") || strings.HasPrefix(call, "rmdir") || strings.HasPrefix(call, "symlink") || strings.HasPrefix(call, "link"):
			out = append(out, touch{call, paths[len(paths)-1], "changes"})
		}
	}
	return out
}

// operands are what random commands work on, in the workspace and outside it.
var operands = strings.Fields("a.txt b.txt new dep/cli.js link link/credentials . ../out.txt ../kept.txt ~/.aws/credentials ~/docs/a.txt ~/docs/new /tmp/shield-none/x .git/hooks/post-commit")

// verbs are programs of random commands, with their operands as #.
var verbs = strings.Split("cat #|cat # #|cp # #|cp -r # #|mv # #|rm -f #|rm -r #|ln -f # #|ln -sf # #|touch #|mkdir -p #|rmdir #|tee #|truncate -s0 #|sed -i s/o/0/ #|head -c9 #|dd if=# of=# status=none|echo x > #|echo x >> #|cat < # > #|chmod 700 #|git add #|git rm -qf #|install # #|tar cf # #|find # -newer #|python3 -c 'open(\"a.txt\").read()'", "|")

// randomCommand returns a command of one or two verbs.
func randomCommand(random *rand.Rand) string {
	var parts []string
	for range 1 + random.IntN(2) {
		verb := verbs[random.IntN(len(verbs))]
		for strings.Contains(verb, "#") {
			verb = strings.Replace(verb, "#", operands[random.IntN(len(operands))], 1)
		}
		parts = append(parts, verb)
	}
	return strings.Join(parts, " ; ")
}

// TestTraceWithinProfile: what random commands really do is in their profile, also what was not
// judged.
func TestTraceWithinProfile(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: an everyday command needs it")
	}
	for _, m := range contain.ProbeKernelFeatures() {
		if !m.Works && m.Name != "namespaces" {
			t.Skipf("the kernel cannot contain by %s: %s", m.Name, m.ProbeDetail)
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	checked, bounded := atomic.Int64{}, atomic.Int64{}
	const commands = 40
	t.Cleanup(func() {
		if n := checked.Load(); n < 50*commands && !t.Skipped() {
			t.Errorf("seed %d: only %d system calls were looked at", seed, n)
		}
		if n := bounded.Load(); n < commands/4 && !t.Skipped() {
			t.Errorf("seed %d: only %d commands could be contained", seed, n)
		}
	})
	for i := range commands {
		judged, beside := randomCommand(random), randomCommand(random)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			everydayCommand(t, judged, judged+" ; "+beside+" ; cat ~/.aws/credentials; echo x > ../last.txt", contain.Landlock, func(p *contain.Profile, home, trace string) {
				bounded.Add(1)
				for _, at := range touches(trace) {
					checked.Add(1)
					if strings.HasSuffix(at.does, "changes") && !contain.Within(at.path, p.WritablePaths) && !strings.HasPrefix(at.path, "/dev/") && !strings.HasPrefix(at.path, "/tmp/shield-") ||
						strings.HasPrefix(at.does, "reads") && contain.Within(at.path, p.HiddenPaths) {
						t.Errorf("seed %d: judged %q, run with %q: %s %s %s", seed, judged, beside, at.call, at.does, at.path)
					}
				}
				if !strings.Contains(trace, ".aws/credentials") || !strings.Contains(trace, "last.txt") {
					t.Errorf("the trace is not whole: %d bytes", len(trace))
				}
			})
		})
	}
}

// repository is a workspace with a commit, made once; nothing if git is not installed.
var repository = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(scratch, "repository")
	if err != nil {
		return "", err
	}
	for name, text := range workspace {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return "", err
		}
	}
	made := exec.Command("sh", "-c", "git init -q --template= -b main && mkdir .git/hooks .git/info && git add . && git commit -qm a && echo two > b.txt")
	made.Dir, made.Env = dir, append(os.Environ(), gitSettings...)
	if out, err := made.CombinedOutput(); err != nil {
		return "", fmt.Errorf("git is not installed: an everyday command needs it: %w: %s", err, out)
	}
	return dir, nil
})

var gitSettings = []string{"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com", "GIT_CONFIG_NOSYSTEM=1"}

// scratch is a folder of all tests.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bounds")
	if err != nil {
		panic(err)
	}
	scratch = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// everydayCommand runs a line contained as what was judged, in a workspace of its own, and looks at a trace of
// it if check is not nil.
func everydayCommand(t *testing.T, judged, line string, with contain.Mechanism, check func(p *contain.Profile, home, trace string)) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, root := base+"/home", base+"/home/work"
	made, err := repository()
	if err != nil {
		t.Skip(err)
	}
	if err := os.CopyFS(root, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), append(gitSettings, "HOME="+home, "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "PAGER=cat")...)
	if real, err := os.UserHomeDir(); err == nil {
		env = append(env, "RUSTUP_HOME="+filepath.Join(real, ".rustup"))
	}
	command := func(text string, out *bytes.Buffer) *exec.Cmd {
		return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", text}, Dir: root, Env: env, Stdout: out, Stderr: out}
	}
	program, _, _ := strings.Cut(line, " ")
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: an everyday command needs it", program)
	}
	for name, text := range map[string]string{".aws/credentials": "key", "docs/a.txt": "one", "kept.txt": "two"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := ContainedProgramContext{Home: home, WorkspaceRoots: []string{root}}
	p, err := OfCommand(shell.Analyze(judged, &effect.PathContext{CWD: root, Home: home, WorkspaceRoots: at.WorkspaceRoots}).Effects, at)
	if unbounded := (*UncontainableCommandError)(nil); check != nil && errors.As(err, &unbounded) {
		return // it is not contained
	}
	if err != nil {
		t.Fatal(err)
	}
	p.VisibleInTmp = append(p.VisibleInTmp, home)
	if check != nil {
		if err := os.Symlink("../.aws", root+"/link"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(home+"/trace", 0o755); err != nil {
			t.Fatal(err)
		}
		p.WritablePaths = append(p.WritablePaths, home+"/trace")
	}
	run := line
	if check != nil {
		run = "exec strace -f -y -s 4096 -e trace=%file,%network -o ../trace/out sh -c '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	}
	var out bytes.Buffer
	var mu sync.Mutex
	var refused []string
	started, err := contain.Start(func() *exec.Cmd { return command(run, &out) }, p, with, func(r contain.Refusal) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, r.String())
	})
	if err != nil {
		t.Fatal(err)
	}
	err = started.Wait()
	started.WaitForReportsAndCleanUp()
	if check != nil {
		trace, err := os.ReadFile(home + "/trace/out")
		if err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		check(p, home, string(trace))
		return
	}
	if err == nil {
		return
	}
	var free bytes.Buffer // in the same folder, which the first attempt may have changed
	if command(line, &free).Run() != nil && strings.Contains(free.String(), "No module named") {
		t.Skipf("a module is not installed: an everyday command needs it: %s", free.String())
	}
	t.Errorf("%v\n%s\nrefused: %s", err, out.String(), strings.Join(refused, ", "))
}
