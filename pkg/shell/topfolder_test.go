package shell

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestTopFolder holds that the top of a working tree is known where nothing can make it another.
func TestTopFolder(t *testing.T) {
	t.Parallel()
	lies := map[string]string{"/work/app/.git/config": "[core]\n\tbare = false\n", "/work/odd/.git/config": "[core]\n\tworktree = /\n", "/work/linked/.git": "gitdir: /work/app/.git/worktrees/linked\n"}
	folders := map[string]bool{"/work/app": true, "/work/app/src": true, "/work/app/.git": true, "/work/odd": true, "/work/odd/.git": true, "/work/linked": true, "/work/linked/src": true, "/": true, "/work": true}
	place := func(cwd string) *effect.PathContext {
		return &effect.PathContext{CWD: cwd, Home: "/home/me", WorkspaceRoots: []string{"/work/app"}, ReadScript: func(p string) ([]byte, error) {
			if text, ok := lies[p]; ok {
				return []byte(text), nil
			}
			if folders[p] {
				return nil, errors.New("a folder")
			}
			return nil, fs.ErrNotExist
		}}
	}
	for command, want := range map[string]string{
		`cat "$(git rev-parse --show-toplevel)/a"`:                                               "/work/app/a",
		`cd ../src; cat "$(git rev-parse --show-toplevel)/a"`:                                    "/work/app/a",
		`cd /work/linked/src; cat "$(git rev-parse --show-toplevel)/a"`:                          "/work/linked/a",
		`R=$(git rev-parse --show-toplevel); cat $R/a`:                                           "/work/app/a",
		`GIT_WORK_TREE=/ cat "$(GIT_WORK_TREE=/ git rev-parse --show-toplevel)/a"`:               "?",
		`export GIT_WORK_TREE=/; cat "$(git rev-parse --show-toplevel)/a"`:                       "?",
		`git config core.worktree /; cat "$(git rev-parse --show-toplevel)/a"`:                   "?",
		`git init; cat "$(git rev-parse --show-toplevel)/a"`:                                     "?",
		`echo "[core] worktree = /" >> ../.git/config; cat "$(git rev-parse --show-toplevel)/a"`: "?",
		`mkdir x && cd x && git init && cat "$(git rev-parse --show-toplevel)/a"`:                "?",
		`cd /work/odd; cat "$(git rev-parse --show-toplevel)/a"`:                                 "?",
		`cd /nowhere; cat "$(git rev-parse --show-toplevel)/a"`:                                  "?",
		`cat "$(git -C / rev-parse --show-toplevel)/a"`:                                          "?",
		`cat "$(git rev-parse --show-toplevel HEAD)/a"`:                                          "?",
		`git() { echo /; }; cat "$(git rev-parse --show-toplevel)/a"`:                            "//a",
	} {
		got := ""
		for _, e := range Analyze(command, place("/work/app/src")).Effects {
			if e.KindForPolicies() != effect.ReadFile {
				continue
			}
			if got = e.Path; e.PathIsPattern {
				got = "?"
			}
		}
		if want == "//a" {
			want = "/a"
		}
		if got != want {
			t.Errorf("%s: reads %q, want %q", command, got, want)
		}
	}
}

// TestPackageFolder holds that the folder of installed packages is known where npm is sure to find it.
func TestPackageFolder(t *testing.T) {
	t.Parallel()
	lies := map[string]string{"/work/app/package.json": "{}", "/work/mono/package.json": `{"workspaces": ["a"]}`, "/work/mono/a/package.json": "{}"}
	folders := map[string]bool{"/work/app": true, "/work/app/src": true, "/work/mono": true, "/work/mono/a": true, "/": true, "/work": true, "/work/bare": true}
	place := &effect.PathContext{CWD: "/work/app/src", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}, ReadScript: func(p string) ([]byte, error) {
		if text, ok := lies[p]; ok {
			return []byte(text), nil
		}
		if folders[p] {
			return nil, errors.New("a folder")
		}
		return nil, fs.ErrNotExist
	}}
	for command, want := range map[string]string{
		`cat "$(npm root)/a"`:                                   "/work/app/node_modules/a",
		`cd ..; cat $(npm root)/a`:                              "/work/app/node_modules/a",
		`R=$(npm root); cat $R/a`:                               "/work/app/node_modules/a",
		`cat "$(npm root -g)/a"`:                                "?",
		`cat "$(npm root --prefix /)/a"`:                        "?",
		`cd /work/mono/a; cat "$(npm root)/a"`:                  "?",
		`cd /work/bare; cat "$(npm root)/a"`:                    "?",
		`cd /nowhere; cat "$(npm root)/a"`:                      "?",
		`echo {} >package.json; cat "$(npm root)/a"`:            "?",
		`mkdir x && cd x && npm init -y && cat "$(npm root)/a"`: "?",
		`npm() { echo /; }; cat "$(npm root)/a"`:                "/a",
	} {
		got := ""
		for _, e := range Analyze(command, place).Effects {
			if e.KindForPolicies() != effect.ReadFile {
				continue
			}
			if got = e.Path; e.PathIsPattern {
				got = "?"
			}
		}
		if got != want && !(want == "/a" && got == "//a") {
			t.Errorf("%s: reads %q, want %q", command, got, want)
		}
	}
}
