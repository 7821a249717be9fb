//go:build unix

package soundness

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubs are the programs that scripts call. Each writes down its name, the
// number of its arguments and these, with a NUL behind each.
var stubs = [...]string{"a0", "a1", "a2"}

// helpers are the other programs that scripts may call: they read and print,
// or write into the folder that the script runs in.
var helpers = [...]string{"cat", "xargs", "find", "env", "tr", "cut", "head", "tail", "sort", "grep", "basename", "tee", "mkdir"}

// others are programs whose calls do not count, but that a script may turn out to run: what a
// script may call a word is a program where it is asked what scripts depend on.
var others = [...]string{"w1", "w2", "w3", "w4", "w9", "w1w1", "w1w2", "w2w1", "v1", "v2", "v3", "v4", "v5", "v6", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// A call is one run of a stub: its name and arguments.
type call []string

// A world is what a script finds around it.
type world struct {
	env   []string
	files map[string]string // with a slash at the end of the name of a folder
	input string
	fails bool // stubs write a line and fail
	reads bool // stubs read all their input
	whole bool // words are programs, too
}

// nothing is the world of which predictions are made, and the rest are worlds of which they
// cannot know.
var (
	nothing = world{}
	plain   = world{whole: true}
	another = world{
		whole: true,
		// What a script calls a word, arithmetic reads as the name of a variable.
		env:   []string{"x=a1 v1", "y=a2", "w1=4", "w2=5", "w3=6", "a0=7", "a1=8", "f=9"},
		files: map[string]string{"w.f": "a1 w v2\na2 v3\n", "w.d/": "", "w9": ""},
		input: "a1 v4\na2 v5\n",
	}
	failing = world{whole: true, fails: true}
	reading = world{whole: true, reads: true}
)

// A runner runs scripts, one at a time, in a folder that is empty before each.
type runner struct {
	argv []string // the shell, up to the script
	home string   // with bin, work and log in it
}

// newRunner returns a runner of a shell.
func newRunner(t *testing.T, argv []string) *runner {
	t.Helper()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	r := &runner{argv: append([]string{program}, argv[1:]...), home: t.TempDir()}
	bin, more := filepath.Join(r.home, "bin"), filepath.Join(r.home, "more")
	for _, dir := range [...]string{bin, more} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stub := "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" $# \"$@\" >>" + r.log() +
		"\n[ ! -e " + r.reads() + " ] || while read -r x; do :; done\n[ ! -e " + r.fails() + " ] || { echo a1 v6; exit 1; }\n"
	for i, name := range append(stubs[:], others[:]...) {
		dir := bin
		if i >= len(stubs) {
			dir = more
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"sh": program, argv[0]: program}
	for _, name := range helpers {
		if links[name], err = exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *runner) log() string   { return filepath.Join(r.home, "log") }
func (r *runner) fails() string { return filepath.Join(r.home, "fails") }
func (r *runner) reads() string { return filepath.Join(r.home, "reads") }
func (r *runner) work() string  { return filepath.Join(r.home, "work") }

// depends reports whether a script makes other calls in another world, or in another shell
// that has all that is in it: then it holds something that nobody can know who sees only the
// script.
func depends(t *testing.T, runners map[string]*runner, script *node) bool {
	t.Helper()
	order := func(a, b call) int { return slices.Compare(a, b) }
	var first []call
	ran := false
	for letter, r := range runners {
		if !script.has(letter) {
			continue
		}
		for _, around := range [...]world{plain, another, failing, reading} {
			calls := slices.SortedFunc(slices.Values(r.runIn(t, around, script.String())), order)
			if ran && !slices.EqualFunc(first, calls, slices.Equal[call]) {
				return true
			}
			first, ran = calls, true
		}
	}
	return false
}

// run runs a script and returns the calls that it made.
func (r *runner) run(t *testing.T, script string) []call {
	t.Helper()
	return r.runIn(t, nothing, script)
}

func (r *runner) runIn(t *testing.T, around world, script string) []call {
	t.Helper()
	path := filepath.Join(r.home, "bin")
	if around.whole {
		path += ":" + filepath.Join(r.home, "more")
	}
	for flag, on := range map[string]bool{r.fails(): around.fails, r.reads(): around.reads} {
		if !on {
			continue
		}
		if err := os.WriteFile(flag, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(flag)
	}
	for _, path := range [...]string{r.work(), r.log()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(r.work(), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range around.files {
		path := filepath.Join(r.work(), name)
		make := func() error { return os.WriteFile(path, []byte(text), 0o644) }
		if strings.HasSuffix(name, "/") {
			make = func() error { return os.Mkdir(path, 0o755) }
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	// Seconds of CPU, blocks of a file, kilobytes of stack.
	limited := append([]string{"-c", `ulimit -t 2; ulimit -f 64; ulimit -s 1024; exec "$0" "$@"`}, r.argv...)
	cmd := exec.CommandContext(ctx, "/bin/sh", append(limited, "-c", script)...)
	cmd.Dir = r.work()
	cmd.Env = []string{"PATH=" + path, "HOME=" + r.work(), "LC_ALL=C", "FUNCNEST=40"}
	cmd.Env = append(cmd.Env, around.env...)
	cmd.Stdin = strings.NewReader(around.input)
	// Wait returns when nobody holds the output any more: what the script left
	// in the background has made its calls then.
	cmd.Stdout = writer{io.Discard}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // its status does not matter
	data, err := os.ReadFile(r.log())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return parseLog(data)
}

// A writer hides what else its writer can do, so that exec makes a pipe.
type writer struct{ io.Writer }

// parseLog reads what the stubs wrote. A script that calls itself without end is stopped, and its
// last call may not be whole.
func parseLog(data []byte) []call {
	words := bytes.Split(data, []byte{0})
	words = words[:len(words)-1]
	var calls []call
	for len(words) >= 2 {
		n, err := strconv.Atoi(string(words[1]))
		if err != nil || n < 0 || len(words) < 2+n {
			break
		}
		c := call{string(words[0])}
		for _, w := range words[2 : 2+n] {
			c = append(c, string(w))
		}
		calls = append(calls, c)
		words = words[2+n:]
	}
	return calls
}
