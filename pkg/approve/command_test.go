//go:build unix

package approve

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script string
		want         verdict.Decision
		reason       string
	}{
		{"approve", `cat >/dev/null; echo '{"decision":"approve","by":"ann"}'`, verdict.Allow, "approved once by ann (command)"},
		{"deny", `echo '{"decision":"deny","reason":"no","by":"ann"}'`, verdict.Block, "denied by ann (command): no"},
		{"minutes", `echo '{"decision":"approve","minutes":5}'`, verdict.Allow, "approved for 5 minutes"},
		{"its input is the request", `grep -q '"type":"execute_command"' && echo '{"decision":"approve"}'`, verdict.Allow, ""},
		{"it may name the request", `read l; id=${l#*'"id":"'}; id=${id%%'"'*}; echo "{\"id\":\"$id\",\"decision\":\"approve\"}"`, verdict.Allow, ""},
		{"answer to another request", `echo '{"id":"00000000000000000000000000000000","decision":"approve"}'`, verdict.Block, "the answer has the ID of another question, so this one is denied; try again"},
		{"nothing", `true`, verdict.Block, "cannot be read"},
		{"not JSON", `echo approve`, verdict.Block, "cannot be read"},
		{"another word", `echo '{"decision":"APPROVE"}'`, verdict.Block, "must be approve or deny"},
		{"two objects", `echo '{"decision":"approve"}{"decision":"deny"}'`, verdict.Block, "cannot be read"},
		{"two decisions", `echo '{"decision":"deny","decision":"approve"}'`, verdict.Block, "cannot be read"},
		{"another case", `echo '{"Decision":"approve"}'`, verdict.Block, "cannot be read"},
		{"unknown key", `echo '{"decision":"approve","x":1}'`, verdict.Block, "cannot be read"},
		{"negative minutes", `echo '{"decision":"approve","minutes":-1}'`, verdict.Block, "0 or more"},
		{"failed after approving", `echo '{"decision":"approve"}'; exit 1`, verdict.Block, "the program of approval.command failed:"},
		{"too long", `echo '{"decision":"approve","reason":"'; head -c 100000 /dev/zero | tr '\0' a; echo '"}'`, verdict.Block, "longer than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := &Options{Approval: config.Approval{CommandChannelArgv: shell(tc.script)}, ApprovalProgramEnv: os.Environ()}
			v, err := newTest(t, &memory{}, newApprovalProgramChannel(o)).Judge(t.Context(), command1(t, push, "s"))
			if err != nil || v.Decision != tc.want || !strings.Contains(v.Reasoning, tc.reason) {
				t.Errorf("got %v %q, %v; want %v with %q", v.Decision, v.Reasoning, err, tc.want, tc.reason)
			}
		})
	}
}

// TestCommandIsKilled: when another channel has answered, the program ends, and
// all that it has started.
func TestCommandIsKilled(t *testing.T) {
	t.Parallel()
	alive := filepath.Join(t.TempDir(), "alive")
	o := &Options{Approval: config.Approval{CommandChannelArgv: shell(`(sleep 1; touch "` + alive + `") & echo started >"` + alive + `.on"; sleep 60`)}, ApprovalProgramEnv: os.Environ()}
	quick := &fake{name: "quick", say: func(ctx context.Context, r *Request) (Answer, error) {
		for {
			if _, err := os.Stat(alive + ".on"); err == nil {
				return Answer{RequestID: r.ID}, nil
			}
			time.Sleep(5 * time.Millisecond)
		}
	}}
	v, err := newTest(t, &memory{}, newApprovalProgramChannel(o), quick).Judge(t.Context(), command1(t, push, "s"))
	if err != nil || v.Decision != verdict.Block {
		t.Errorf("got %+v, %v", v, err)
	}
	time.Sleep(1300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("the program's child outlived the request")
	}
}

// What is wrong with an answer is said in terms of JSON, not of this program.
func TestCommandAnswerErrors(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"decision":1}`:                           `"decision" has a value of the wrong type`,
		`{"decision":"approve","minutes":"x"}`:     `"minutes" has a value of the wrong type`,
		`{"decision":"approve","minutes":1.5}`:     `"minutes" has a value of the wrong type`,
		`{"decision":"approve","minutes":1e99}`:    `"minutes" has a value of the wrong type`,
		`{"decision":"approve","id":[]}`:           `"id" has a value of the wrong type`,
		`[]`:                                       "not a JSON object",
		`"approve"`:                                "not a JSON object",
		`{"decision":"approve","x":1}`:             "it has a key that shield does not know",
		`{"decision":"approve","decision":"deny"}`: "it has the same key twice",
		``:        "not valid JSON at byte 1",
		`approve`: "not valid JSON at byte 1",
		`{"decision":"approve"}{"decision":"deny"}`:       "not valid JSON at byte 23",
		"{\"decision\":\"approve\",\"reason\":\"a\xff\"}": "not valid JSON at byte",
	} {
		_, err := parseApprovalProgramReply([]byte(answer), "id")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", answer, err, want)
			continue
		}
		for _, word := range []string{"Go ", "json:", "jsontext", "commandReply", "unmarshal"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v", answer, err)
			}
		}
	}
}

func TestCommandIsToldNoSecrets(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	o := &Options{
		Approval: config.Approval{CommandChannelArgv: shell(`cat >"` + out + `"; echo '{"decision":"deny"}'`)}, ApprovalProgramEnv: os.Environ(),
	}
	for _, record := range []string{
		`{"type":"execute_command","payload":{"command":"mysql -phunter2 -e 'drop table t'"}}`,
		`{"type":"login","payload":{"password":"hunter2","note":"log in with hunter2"}}`,
		`{"type":"login","payload":{"user":{"db":[{"api_key":"s3cret-Rohan"}]}}}`,
		`{"type":"start","payload":{"args":["--password","hunter2"]}}`,
	} {
		if _, err := newTest(t, &memory{}, newApprovalProgramChannel(o)).Judge(t.Context(), testCase(t, record)); err != nil {
			t.Fatal(err)
		}
		told, err := os.ReadFile(out)
		if err != nil || strings.Contains(string(told), "hunter2") || strings.Contains(string(told), "Rohan") || !strings.Contains(string(told), "[redacted ") {
			t.Errorf("told %s, %v", told, err)
		}
	}
}

// The program runs in the folder it is given, not in the one that the agent
// works in: what it loads by a relative path is its own.
func TestCommandRunsInItsFolder(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Approval: config.Approval{CommandChannelArgv: shell(`pwd >where; echo "$PWD" >>where; echo '{"decision":"deny"}'`)}, ApprovalProgramEnv: append(os.Environ(), "PWD=/elsewhere"), ApprovalProgramWorkingDir: dir}
	if _, err := newTest(t, &memory{}, newApprovalProgramChannel(o)).Judge(t.Context(), command1(t, "git push", "s")); err != nil {
		t.Fatal(err)
	}
	where, err := os.ReadFile(filepath.Join(dir, "where"))
	if err != nil || string(where) != dir+"\n"+dir+"\n" {
		t.Errorf("ran in %q, %v", where, err)
	}
}

func TestCommandUsable(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {"/nonexistent/program"}} {
		if err := newApprovalProgramChannel(&Options{Approval: config.Approval{CommandChannelArgv: argv}}).CheckUsable(); err == nil {
			t.Errorf("%q is usable", argv)
		}
	}
}

func FuzzParseReply(f *testing.F) {
	for _, s := range []string{`{"decision":"approve"}`, `{"decision":"deny","reason":"\u0000"}`, `{"decision":"approve","minutes":1e99}`, ``, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseApprovalProgramReply(data, "id")
		if err == nil && a.Approve && !strings.Contains(string(data), "approve") && !strings.Contains(string(data), `\u`) {
			t.Errorf("%q approves", data)
		}
		if err != nil && a.Approve || a.RememberFor < 0 || a.RememberFor > time.Hour {
			t.Errorf("%q: %+v, %v", data, a, err)
		}
	})
}

// TestCommandOfHook holds that a hook looks its program up in no PATH, which may be a
// project's.
func TestCommandOfHook(t *testing.T) {
	t.Parallel()
	o := Options{Approval: config.Approval{CommandChannelArgv: []string{"sh"}}}
	if err := newApprovalProgramChannel(&o).CheckUsable(); err != nil {
		t.Errorf("without a hook: %v", err)
	}
	o.SharesParentTerminal = true
	if err := newApprovalProgramChannel(&o).CheckUsable(); err == nil {
		t.Error("a hook would run a program that PATH names")
	}
	o.CommandChannelArgv = []string{"/bin/sh"}
	if err := newApprovalProgramChannel(&o).CheckUsable(); err != nil {
		t.Errorf("an absolute path: %v", err)
	}
}
