//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// askingWorld returns a world in which a program stands for the person: it
// approves what does not hold "denyme".
func askingWorld(t testing.TB) (w Environment, flags []string) {
	t.Helper()
	w = newWorld(t)
	w.Environ = os.Environ
	file := filepath.Join(w.Home, "shield.yaml")
	config := `classifier: {model: none}
approval:
  channels: [command]
  command:
    - /bin/sh
    - -c
    - |
      read -r request
      case $request in
      *denyme*) echo '{"decision":"deny","reason":"not this one","by":"ann"}' ;;
      *) echo '{"decision":"approve","by":"ann"}' ;;
      esac
`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, []string{"--config", file}
}

const escalations = `{"id":"a","type":"execute_command","payload":{"command":"git push --force origin one"},"session":"s1"}
{"id":"b","type":"execute_command","payload":{"command":"git push --force origin denyme"},"session":"s2"}
{"id":"c","type":"execute_command","payload":{"command":"echo harmless"}}
{"id":"d","type":"execute_command","payload":{"command":"rm -rf /"}}
broken
{"id":"e","type":"execute_command","payload":{"command":"git push --force origin two"},"session":"s1"}
`

// TestAskerOfRemote holds that a person sees which client of another machine asks.
func TestAskerOfRemote(t *testing.T) {
	w := servedWorld(t)
	asked := filepath.Join(w.Home, "asked")
	set := &config.LoadedSettings{Settings: config.Default()}
	set.Classifier.ModelNameOrDir, set.StateDir = "none", filepath.Join(w.Home, "state")
	set.Approval.Channels, set.Approval.CommandChannelArgv = []string{"command"}, []string{"/bin/sh", "-c", `cat >"$0"; echo '{"decision":"deny","by":"ann"}'`, asked}
	s := newServer(t, w)
	s.settings.Store(set)
	in := strings.NewReader(`{"type":"execute_command","payload":{"command":"git push --force origin one"}}`)
	var got *verdict.Verdict
	if err := s.judgeRemoteClientActions(t.Context(), "build-7", in, func(v *verdict.Verdict, _ bool) error { got = v; return nil }); err != nil || got == nil || got.Decision != verdict.Block {
		t.Fatalf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(asked)
	if err != nil || !strings.Contains(string(text), `"asker":"build-7, a client on another machine, through shield serve`) {
		t.Errorf("the person is told %s, %v", text, err)
	}
}

// TestApprovePipeEqualsRun queues several escalations: the four stages in a
// pipe give what run gives, and both ask the person.
func TestApprovePipeEqualsRun(t *testing.T) {
	for _, jobs := range []string{"1", "4"} {
		w, flags := askingWorld(t)
		status, whole, errs := run(t, w, escalations, append([]string{"run", "--jobs", jobs}, flags...)...)
		if status != statusBlock {
			t.Errorf("status %d, want %d; stderr %s", status, statusBlock, errs)
		}
		for _, want := range []string{
			`"id":"a","line":1,"decision":"ALLOW","tier":3,"confidence":1,"reasoning":"approved once by ann (command)"`,
			`"id":"b","line":2,"decision":"BLOCK","tier":3,"confidence":1,"reasoning":"denied by ann (command): not this one"`,
			`"id":"e","line":6,"decision":"ALLOW","tier":3`,
		} {
			if !strings.Contains(whole, want) {
				t.Errorf("run lacks %s:\n%s", want, whole)
			}
		}
		piped := escalations
		for _, stage := range []string{"policy", "classify", "evaluate", "approve"} {
			args := append([]string{stage}, flags...)
			status, piped, _ = run(t, w, piped, append(args, "--jobs", jobs)...)
		}
		if diff := cmp.Diff(whole, piped); diff != "" || status != statusBlock {
			t.Errorf("status %d; run (-) and pipe (+) differ:\n%s", status, diff)
		}
	}
}

// TestApproveAsksAboutActions: alone, the stage puts every action to the
// person.
func TestApproveAsksAboutActions(t *testing.T) {
	w, flags := askingWorld(t)
	in := `{"type":"read_file","payload":{"path":"/etc/hosts"}}` + "\n"
	if status, out, errs := run(t, w, in, append([]string{"approve"}, flags...)...); status != statusAllow || !strings.Contains(out, `"decision":"ALLOW","tier":3`) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, out, errs := run(t, w, strings.ReplaceAll(in, "hosts", "denyme"), append([]string{"approve"}, flags...)...); status != statusBlock {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// TestApproveLimit: a refusal names the setting and when the next is free.
func TestApproveLimit(t *testing.T) {
	w, flags := askingWorld(t)
	text, err := os.ReadFile(flags[1])
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "approval:\n", "approval:\n  max_per_hour: 5\n", 1))
	if err := os.WriteFile(flags[1], text, 0o600); err != nil {
		t.Fatal(err)
	}
	in := strings.Repeat(strings.SplitAfter(escalations, "\n")[0], 7)
	_, out, _ := run(t, w, in, append([]string{"run"}, flags...)...)
	if n := strings.Count(out, `"decision":"ALLOW"`); n != 5 {
		t.Errorf("%d of 7 were put to the person, want 5:\n%s", n, out)
	}
	next := w.Now().Add(time.Hour + time.Second).UTC().Truncate(time.Second).Format(time.RFC3339) // rounded up
	if n := strings.Count(out, "approval.max_per_hour is 5; the next question is possible at "+next); n != 2 {
		t.Errorf("%d refusals name the setting and %s, want 2:\n%s", n, next, out)
	}
}
