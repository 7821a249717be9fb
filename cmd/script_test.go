package cmd

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/shieldcli/shield/internal/scripttest"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/host"
)

// TestMain makes this binary shield itself for what has to start it: the lines
// that hosts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"process": func() {
		dir, _ := os.Getwd()
		exe, _ := os.Executable()
		os.Exit(Run(context.Background(), os.Args[1:], Environment{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now,
			Home: os.Getenv("HOME"), WorkingDir: dir, ShieldExecutablePath: exe, User: "me", OS: runtime.GOOS,
		}))
	}})
}

// TestScripts runs the command line as a person would, one behaviour a script,
// but in this process:
//
//	[!] shield ARG...     runs shield, and demands status 0, or another
//	status N shield ARG... demands status N
//	input FILE            is what the next one reads
//	at TIME               is the time from then on, instead of the clock's
//	answers yes|no        is what the person at the terminal answers from then on
//	alone                 says that from then on no user attends the sessions of hosts
//	ref                   sets REF to the reference that the last output names
//
// What needs processes is a script of the main package.
func TestScripts(t *testing.T) {
	testscript.RunT(inTurn{t}, scripttest.Params(t, "..", map[string]scripttest.Command{
		"shield": func(ts *testscript.TestScript, negate bool, args []string) {
			if got := runScript(ts, args); (got == 0) == negate {
				ts.Fatalf("exit status %d", got)
			}
		},
		"status": func(ts *testscript.TestScript, _ bool, args []string) {
			if len(args) < 2 || args[1] != "shield" {
				ts.Fatalf("usage: status N shield ARG...")
			}
			if got := runScript(ts, args[2:]); strconv.Itoa(got) != args[0] {
				ts.Fatalf("exit status %d, want %s", got, args[0])
			}
		},
		"input": func(ts *testscript.TestScript, _ bool, args []string) {
			if len(args) != 1 {
				ts.Fatalf("usage: input FILE")
			}
			ts.Setenv(scriptInput, ts.ReadFile(args[0]))
		},
		"at": func(ts *testscript.TestScript, _ bool, args []string) {
			if len(args) != 1 {
				ts.Fatalf("usage: at TIME")
			}
			ts.Setenv(scriptTime, args[0])
		},
		"answers": func(ts *testscript.TestScript, _ bool, args []string) {
			if len(args) != 1 || args[0] != "yes" && args[0] != "no" {
				ts.Fatalf("usage: answers yes|no")
			}
			ts.Setenv(scriptAnswer, args[0])
		},
		"alone": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv(scriptAlone, "1") },
		"ref": func(ts *testscript.TestScript, _ bool, args []string) {
			m := regexp.MustCompile(`shield (?:allow|tools set) ([a-z0-9]{3,})\b`).FindStringSubmatch(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
			if m == nil || len(args) != 0 {
				ts.Fatalf("no reference was printed")
			}
			ts.Setenv("REF", m[1])
		},
	}))
}

// Variables of a script that hold what the next command reads, and the time.
const (
	scriptInput  = "SCRIPT_INPUT"
	scriptTime   = "SCRIPT_TIME"
	scriptAnswer = "SCRIPT_ANSWER"
	scriptAlone  = "SCRIPT_ALONE"
)

// runScript runs a command line in the world of a script, and returns its status.
func runScript(ts *testscript.TestScript, args []string) int {
	back, err := os.Getwd()
	ts.Check(err)
	dir := ts.MkAbs(".")
	ts.Check(os.Chdir(dir))
	defer func() { ts.Check(os.Chdir(back)) }()
	in := strings.NewReader(ts.Getenv(scriptInput))
	ts.Setenv(scriptInput, "")
	ts.Setenv("XDG_CACHE_HOME", testCache())
	ts.Setenv("GORACE", os.Getenv("GORACE")) // how processes that are tested for races end
	exe, err := exec.LookPath("process")     // see TestMain
	ts.Check(err)
	environ := func() (vars []string) {
		for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "GOCOVERDIR", "GORACE"} {
			vars = append(vars, name+"="+ts.Getenv(name))
		}
		return vars
	}
	now := time.Now
	if text := ts.Getenv(scriptTime); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		ts.Check(err)
		now = func() time.Time { return at }
	}
	return Run(context.Background(), args, inProcess(Environment{
		In: in, Out: ts.Stdout(), Err: ts.Stderr(), Getenv: ts.Getenv, Environ: environ, Now: now,
		Home: ts.Getenv("HOME"), WorkingDir: dir, ShieldExecutablePath: exe, User: "me", OS: runtime.GOOS,
		checkPersonStartedThisProcess: func(int) error { return nil },
		hostAttendedByUserCheck: func(*host.Host) error {
			if ts.Getenv(scriptAlone) != "" {
				return errHeadless
			}
			return nil
		},
		askToAllowRefusal: func(context.Context, approve.Options, *approve.Refusal) (approve.Answer, error) {
			return approve.Answer{Approve: ts.Getenv(scriptAnswer) == "yes", AnsweringPersonName: "ann"}, nil
		},
	}))
}

// inTurn runs the scripts one after the other, since the working folder is the
// process's, and [run] is not parallel either.
type inTurn struct{ *testing.T }

func (inTurn) Parallel() {}

func (inTurn) Verbose() bool { return testing.Verbose() }

func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}
