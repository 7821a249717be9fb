//go:build unix

package hosts

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/evaluate/evaltest"
)

// A switched is how a host's hooks are switched off after they were installed.
type switched struct {
	file    string         // below the home folder
	members map[string]any // that are put into it, where it is JSON
	lines   string         // that are put at its end, where it is not
	env     []string
	args    []string
	unseen  bool // hook status cannot see it: it is an option of the host's command line
}

// apply switches the hooks off.
func (s switched) apply(r *run) {
	r.t.Helper()
	r.env, r.driver.args = append(r.env, s.env...), append(s.args, r.driver.args...)
	if s.file == "" {
		return
	}
	path := filepath.Join(r.home, s.file)
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	if s.members == nil {
		r.write(path, string(old)+s.lines)
		return
	}
	doc := map[string]any{}
	if len(old) > 0 {
		if err := json.Unmarshal(old, &doc); err != nil {
			r.t.Fatal(err)
		}
	}
	maps.Copy(doc, s.members)
	text, err := json.Marshal(doc)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(path, string(text))
}

// switchedOff looks at a host whose own switch takes its hooks away.
func switchedOff(t *testing.T, d driver, row map[string]string) {
	if d.off.file == "" && len(d.off.env)+len(d.off.args) == 0 {
		row["switched off"] = "not offered"
		return
	}
	c := call{"shell", "touch unwanted"}
	r := newRun(t, d, []call{c}, "20s")
	if out, err := r.command(time.Minute, r.shield, "hook", "status", d.name); err != nil && d.name != "codex" { // where no person has trusted the hook
		t.Errorf("status calls a hook not enforced that is: %s", out)
	}
	d.off.apply(r)
	out := r.start()
	said, err := r.command(time.Minute, r.shield, "hook", "status", d.name)
	switch ran := r.ran(c); {
	case !r.model.proposed:
		row["switched off"] = "NOT TRIED"
		t.Errorf("the model proposed nothing: %.800s", out)
	case !ran:
		row["switched off"] = "blocked all the same"
		t.Errorf("the switch does not switch the hook off: %.800s", out)
	case err != nil:
		row["switched off"] = "runs without shield, status says so"
	case d.off.unseen:
		row["switched off"] = "runs without shield, status cannot see it"
	default:
		row["switched off"] = "RUNS WITHOUT SHIELD, STATUS DOES NOT SAY SO"
		t.Errorf("status calls a hook enforced that is switched off: %s", said)
	}
}

// slow has Tier 2 answer late: within the time that the hook has, and never.
func slow(t *testing.T, d driver, row map[string]string) {
	const patience = 3 * time.Second
	late := func(b evaltest.Behaviour) evaltest.Behaviour {
		return func(w http.ResponseWriter, hr *http.Request, r evaltest.Request) {
			time.Sleep(patience)
			b(w, hr, r)
		}
	}
	for _, c := range []struct {
		name, timeout string
		answer        evaltest.Behaviour
		want          string
	}{
		{"late allow", "20s", late(evaltest.Verdict("ALLOW", "0.98")), "ran"},
		{"late deny", "20s", late(evaltest.Verdict("BLOCK", "0.97")), "blocked"},
		{"too late", "2s", evaltest.StallAfterText(""), "blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := evaltest.NewServer()
			t.Cleanup(server.Close)
			server.SetModelBehaviour("late", evaltest.BlockSuspicious)
			doubtful := call{"shell", "touch doubtful"}
			r := newRun(t, d, []call{doubtful}, c.timeout)
			r.configure("evaluator: {provider: custom, model: late, base_url: " + server.BaseURL() + ", timeout: 60s}\n")
			if out, err := r.command(time.Minute, r.shield, "evaluate", "--exam", "--jobs", "8"); err != nil {
				t.Fatal(err, out)
			}
			server.ClearRequests()
			server.SetModelBehaviour("late", c.answer)
			out := r.start()
			row[c.name] = "blocked"
			if r.ran(doubtful) {
				row[c.name] = "ran"
			}
			if len(server.Requests()) == 0 {
				row[c.name] = "NOT ASKED"
			}
			if row[c.name] != c.want {
				t.Errorf("%s, want %s: %.800s\n%s", row[c.name], c.want, out, r.model.told("shield"))
			}
		})
	}
}

// subAgent has the model start a sub-agent, which proposes a command that is
// allowed and one that is not.
func subAgent(t *testing.T, d driver, row map[string]string) {
	if d.agent == "" {
		why := cmp.Or(d.untried, "not offered")
		row["sub-agent allowed"], row["sub-agent denied"] = why, why
		return
	}
	good, bad := call{"shell", "touch wanted"}, call{"shell", "touch unwanted"}
	r := newRun(t, d, []call{{"agent", d.agent}, {"wait", ""}}, "20s")
	r.model.sub = []call{good, bad}
	out := r.start()
	row["sub-agent allowed"], row["sub-agent denied"] = "ran", "blocked, told why"
	if !r.ran(good) {
		row["sub-agent allowed"] = "DID NOT RUN"
		t.Errorf("a sub-agent's command did not run: %.800s\n%s", out, r.model.told("shield"))
	}
	switch {
	case r.ran(bad):
		row["sub-agent denied"] = "RAN"
		t.Errorf("a sub-agent's command ran: %.800s", out)
	case !r.model.saw(reason) && d.mute:
		row["sub-agent denied"] = "blocked, nobody is told why"
	case !r.model.saw(reason):
		row["sub-agent denied"] = "NOT ASKED"
		t.Errorf("the sub-agent was not told why: %.800s\n%s", out, r.model.told("shield"))
	}
}

// resumed has a session end, and go on with a command that is not allowed.
func resumed(t *testing.T, d driver, row map[string]string) {
	if d.resume == nil {
		row["resumed denied"] = cmp.Or(d.untried, "not offered")
		return
	}
	good, bad := call{"shell", "touch wanted"}, call{"shell", "touch unwanted"}
	r := newRun(t, d, []call{good}, "20s")
	first := r.start()
	if !r.ran(good) {
		t.Fatalf("the first command did not run: %.800s", first)
	}
	r.model.calls, r.model.bodies = []call{good, bad}, nil
	r.driver.args = nil
	for _, a := range d.resume {
		r.driver.args = append(r.driver.args, r.fill.Replace(a))
	}
	out := r.start()
	row["resumed denied"] = "blocked, told why"
	switch {
	case r.ran(bad):
		row["resumed denied"] = "RAN"
		t.Errorf("it ran: %.800s", out)
	case !r.model.saw(good.text):
		row["resumed denied"] = "NOT RESUMED"
		t.Errorf("the session does not go on: %.800s", out)
	case !r.model.saw(reason) && d.mute:
		row["resumed denied"] = "blocked, nobody is told why"
	case !r.model.saw(reason):
		row["resumed denied"] = "NOT ASKED"
		t.Errorf("nobody was told why: %.800s\n%s", out, r.model.told("shield"))
	}
}
