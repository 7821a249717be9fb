package command

import (
	"slices"
	"strings"
	"testing"
)

// TestGit holds where the subcommand of git is, which repository is meant, and which options count.
func TestGit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]GitCommandLine{
		"":                                   {},
		"-C":                                 {},
		"--version":                          {},
		"push origin main":                   {Subcommand: "push", Args: []string{"origin", "main"}},
		"-C a -c user.name=push -C b commit": {Folder: "a/b", Subcommand: "commit"},
		"-C a -C /b status":                  {Folder: "/b", Subcommand: "status"},
		"-c push commit -C HEAD":             {Subcommand: "commit", Args: []string{"-C", "HEAD"}},
		"--git-dir push commit":              {HasRepositoryOption: true, Subcommand: "commit"},
		"--work-tree=push add":               {HasRepositoryOption: true, Subcommand: "add"},
		"--namespace x --no-pager push":      {Subcommand: "push"},
		"--exec-path=/x push":                {Subcommand: "push"},
	} {
		got := ParseGit(strings.Fields(line))
		if got.Folder != want.Folder || got.HasRepositoryOption != want.HasRepositoryOption || got.Subcommand != want.Subcommand || !slices.Equal(got.Args, want.Args) {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	for line, want := range map[string]bool{
		"commit -a": true, "commit -qam x": true, "commit --all": true, "commit -mfast": false, "commit --amend": false, "commit a": false, "commit": false, "commit -": false,
	} {
		if ParseGit(strings.Fields(line)).HasOption("a", "--all") != want {
			t.Errorf("%s: not %t", line, want)
		}
	}
	for line, want := range map[string]string{
		"push": "", "push -u origin --tags main": "origin", "push -o ci.skip drop": "drop", "push --repo=drop": "drop", "push --repo drop": "drop", "push --repo=a drop": "drop", "-C x push --push-option a=b https://h.test/a": "https://h.test/a",
		"subtree push --prefix=a drop main": "drop", "subtree -P push push drop main": "drop", "subtree push -P a": "",
		"lfs push --all drop": "drop", "send-pack --all h.test:a": "h.test:a", "http-push https://h.test/a main": "https://h.test/a", "subrepo push sub": "",
		"stash push a": "no", "subtree add --prefix push drop main": "no", "lfs pull push": "no", "log push": "no", "": "no",
	} {
		got, pushes := ParseGit(strings.Fields(line)).Pushes()
		if !pushes {
			got = "no"
		}
		if got != want {
			t.Errorf("%s: pushes to %q, want %q", line, got, want)
		}
	}
	if got := ParseGit(strings.Fields("push -u origin --tags main")).Operands(); !slices.Equal(got, []string{"origin", "main"}) {
		t.Errorf("operands %q", got)
	}
}
