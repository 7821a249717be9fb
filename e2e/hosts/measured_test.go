//go:build unix

package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// timer is in the place of shield. It notes how long the installed line takes, which
// the shell that the host has started was given: with shield, and with a program that does
// nothing. The line is kept for questions when the host is gone.
const timer = `in=$(mktemp DIR/questions/XXXXXX)
cat >"$in"
mapfile -d "" words <"/proc/${@: -1}/cmdline"
line=${words[-1]}
if [ -f "$line" ]; then line=$(sed 1,2d "$line"); fi
printf "%s\n" "$line" >DIR/line
line=${line//"DIR/shield"/"DIR/shield.real"}
line=${line//"PROGRAMS"/"PROGRAMS.real"}
TIMEFORMAT=%R
{ time answer=$(/bin/sh -c "$line" <"$in" 2>&3); } 3>&2 2>"$in.shield"
s=$?
{ time /bin/sh -c "${line//"DIR/shield.real hook"//bin/true hook}" <"$in" >/dev/null 2>&1; } 2>"$in.nothing"
[ -n "$answer" ] || answer={}
printf "%s%s\n" "$s" "$answer"
`

// A timed is how long what was started for questions took, in milliseconds.
type timed struct{ shield, nothing []int }

// measured has the model propose an everyday command, and notes how long the host waits
// for shield: inside the host, there with a service that runs, and when the host is gone.
func measured(t *testing.T, d driver, row map[string]string) {
	const runs, alone = 3, 20
	var inside timed
	var after []int
	for range runs {
		r := newTimed(t, d)
		took, question := r.timed(func() string { return r.start() })
		inside.shield, inside.nothing = append(inside.shield, took.shield...), append(inside.nothing, took.nothing...)
		took, _ = r.timed(func() string {
			for range alone / runs {
				if out, err := r.command(time.Minute, "/bin/sh", "-c", `exec /bin/sh -c "$(cat "$0")" <"$1"`, filepath.Join(filepath.Dir(r.shield), "line"), question); err != nil {
					t.Fatal(err, out)
				}
			}
			return ""
		})
		after = append(after, took.shield...)
	}
	r := newTimed(t, d)
	r.serve()
	served, _ := r.timed(func() string { return r.start() })
	if out, err := r.command(time.Minute, r.real(), "service", "status"); err != nil || !regexp.MustCompile(`: [1-9][0-9]* of `).MatchString(out) {
		t.Errorf("the service did not answer: %v, %s", err, out)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	row["npm test"], row["npm test served"], row["nothing"], row["npm test alone"] = spread(inside.shield), spread(served.shield), spread(inside.nothing), spread(after)
	row["load"] = strings.Fields(string(load))[0]
	t.Logf("shield %v ms, with its service %v, nothing %v, alone %v", inside.shield, served.shield, inside.nothing, after)
}

// spread is the least and the median of times.
func spread(took []int) string {
	slices.Sort(took)
	return fmt.Sprintf("%d, %d ms", took[0], took[len(took)/2])
}

// newTimed returns a run in which each question is timed. Gemini CLI takes a call that is
// repeated more often for a loop.
func newTimed(t *testing.T, d driver) *run {
	t.Helper()
	r := newRun(t, d, slices.Repeat([]call{{"shell", "npm test"}}, 3), "20s")
	r.write(filepath.Join(r.work, "package.json"), `{"name": "x", "version": "1.0.0", "scripts": {"test": "true"}}`)
	kept := filepath.Join(r.home, programs)
	if out, err := r.command(time.Minute, "cp", "-al", kept, kept+".real"); err != nil {
		t.Fatal(err, out)
	}
	if err := os.Rename(r.shield, r.real()); err != nil {
		t.Fatal(err)
	}
	r.script(`exec /bin/bash -c '` + strings.NewReplacer("DIR", filepath.Dir(r.shield), "PROGRAMS", programs, "'", `'\''`).Replace(timer) + `' timer "$@"`)
	return r
}

// real is shield itself, where another program is in its place.
func (r *run) real() string { return r.shield + ".real" }

// timed runs what asks questions, and returns how long they took, and one of them.
// Questions of what a tool returned do not count.
func (r *run) timed(ask func() string) (took timed, question string) {
	r.t.Helper()
	h, err := host.Named(r.driver.name)
	if err != nil {
		r.t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(r.shield), "questions")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		r.t.Fatal(err)
	}
	out := ask()
	names, err := filepath.Glob(filepath.Join(dir, "??????"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		in, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		if event, err := h.Event(r.t.Context(), in); err != nil || event.ToolResult != nil {
			continue
		}
		took.shield, took.nothing = append(took.shield, milliseconds(r.t, name+".shield")), append(took.nothing, milliseconds(r.t, name+".nothing"))
		question = filepath.Join(r.work, "question.json")
		r.write(question, string(in))
	}
	if len(took.shield) < 3 {
		r.t.Fatalf("the hook was asked %d times: %.800s\n%s", len(took.shield), out, r.model.told("shield"))
	}
	return took, question
}

// milliseconds reads a time that bash has measured, in seconds.
func milliseconds(t *testing.T, name string) int {
	t.Helper()
	said, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	took, err := time.ParseDuration(strings.TrimSpace(string(said)) + "s")
	if err != nil {
		t.Fatal(err)
	}
	return int(took.Milliseconds())
}

// serve starts shield's service for the home folder of a run.
func (r *run) serve() {
	r.t.Helper()
	cmd := exec.Command(r.real(), "serve")
	cmd.Dir, cmd.Env = r.work, r.env
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	for range 200 {
		if _, err := r.command(time.Minute, r.real(), "service", "status"); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatal("the service does not answer")
}
