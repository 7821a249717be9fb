//go:build linux

package hosts

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostsContext has a user type at a terminal what is to be deleted: that is not asked about,
// and everything else is. What the model is told in a run without a user names nothing.
func TestHostsContext(t *testing.T) {
	for name, mode := range map[string]string{"claude-code": "bypassPermissions", "qwen-code": "yolo"} {
		t.Run(name, func(t *testing.T) {
			d := driverOf(name)
			installed(t, d)
			r := newRun(t, d, []call{{"shell", "git push origin --delete feature-x"}, {"shell", "git push origin --delete feature-y"}}, "60s")
			branches := r.remote("main", "feature-x", "feature-y")
			d.dialog.args = slices.DeleteFunc(slices.Clone(d.dialog.args), func(a string) bool { return a == "run it" || a == "-i" })
			r.driver.dialog.args = d.dialog.args
			s := r.terminal(mode)
			if !s.until(func(text string) bool {
				return strings.Contains(text, "❯") || strings.Contains(text, "Type your message")
			}) {
				t.Fatalf("the host takes no message:\n%s", s.tmux("capture-pane", "-p"))
			}
			time.Sleep(2 * time.Second)
			s.say("Delete the branch feature-x on origin.")
			if !s.until(func(string) bool { return strings.Count(r.log(), `"kind":"verdict"`) == 2 }) {
				t.Fatalf("the agent does not go on:\n%s", s.tmux("capture-pane", "-p"))
			}
			if got := branches(); got != "feature-y main" {
				t.Errorf("the remote has %s\n%s", got, s.tmux("capture-pane", "-p"))
			}
			if log := r.log(); !strings.Contains(log, "the user named feature-x") || strings.Contains(log, "the user named feature-y") {
				t.Errorf("the log is %s", log)
			}
			s.tmux("kill-server")

			alone := newRun(t, driverOf(name), []call{{"shell", "git push origin --delete feature-x"}}, "60s")
			branches = alone.remote("main", "feature-x")
			for i, a := range alone.driver.args {
				alone.driver.args[i] = strings.ReplaceAll(a, "run it", "Delete the branch feature-x on origin.")
			}
			out := alone.start()
			if got := branches(); got != "feature-x main" || !alone.model.proposed || strings.Contains(alone.log(), "the user named") {
				t.Errorf("without a user the remote has %s\n%.2000s\n%s", got, out, alone.log())
			}
		})
	}
}

// say types a message.
func (s *screen) say(text string) {
	s.r.t.Helper()
	s.tmux("send-keys", "-l", text)
	time.Sleep(time.Second)
	s.tmux("send-keys", "Enter")
}

// remote gives the work folder a remote with branches, and settings that ask the host's person
// under the preset offline. It returns what lists the branches.
func (r *run) remote(names ...string) func() string {
	r.t.Helper()
	remote := filepath.Join(filepath.Dir(r.home), "app.git")
	sh := func(script string) string {
		r.t.Helper()
		out, err := r.command(time.Minute, "sh", append([]string{"-ec", script, "sh", remote}, names...)...)
		if err != nil {
			r.t.Fatal(err, out)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	sh(`git init -q --bare "$1"; git config user.name Me; git config user.email me@example.com; git add .; git commit -qm one
git remote add origin "$1"; shift; for b in "$@"; do git push -q origin HEAD:refs/heads/$b; done`)
	r.write(filepath.Join(r.home, ".config/shield/shield.yaml"), "policy: offline\napproval: {channels: [host]}\n")
	return func() string {
		return sh(`git --git-dir "$1" for-each-ref --format='%(refname:short)' refs/heads | sort`)
	}
}
