package effect

import (
	"testing"

	"github.com/shieldcli/shield/pkg/knowledge"
)

func TestPersists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path    string
		pattern bool
		want    string
	}{
		{"/home/me/app/.git/hooks/pre-commit", false, "git_hook"},
		{"/home/me/app/.git/config", false, "git_hook"},
		{"/home/me/app/.git/HEAD", false, ""},
		{"/home/me/app/.git/index", false, ""},
		{"/home/me/app/.git/hook?/pre-commit", true, "git_hook"},
		{"/home/me/.bashrc", false, "shell_startup"},
		{"/Users/me/.zshrc", false, "shell_startup"},
		{"/Users/me/.ZSHRC", false, "shell_startup"},
		{"**/.bashrc", true, "shell_startup"},
		{"c:/users/me/documents/powershell/microsoft.powershell_profile.ps1", false, "shell_startup"},
		{"/etc/cron.d/x", false, "schedule"},
		{"/var/spool/cron/crontabs/me", false, "schedule"},
		{"/etc/systemd/system/x.service", false, "service"},
		{"/home/me/.config/systemd/user/x.service", false, "service"},
		{"/Users/me/Library/LaunchAgents/x.plist", false, "service"},
		{"/Library/LaunchDaemons/x.plist", false, "service"},
		{"/root/.ssh/authorized_keys", false, "ssh"},
		{"/etc/sudoers.d/x", false, "privilege"},
		{"/etc/ld.so.preload", false, "loader"},
		{"/usr/local/bin/git", false, "path_program"},
		{"/home/me/.local/bin/git", false, "path_program"},
		{"/home/me/app/bin/tool", false, ""},
		{"/home/me/app/.envrc", false, "directory_env"},
		{"/home/me/app/CLAUDE.md", false, "agent_config"},
		{"/home/me/app/.claude/settings.json", false, "agent_config"},
		{"/home/me/app/.cursor/mcp.json", false, "agent_config"},
		{"/home/me/app/.vscode/tasks.json", false, "editor"},
		{"/home/me/app/.github/workflows/ci.yml", false, "ci"},
		{"/home/me/app/package.json", false, "build_script"},
		{"/home/me/app/Makefile", false, "build_script"},
		{"/home/me/app/src/main.go", false, ""},
		{"/home/me/app/src/*.go", true, ""},
		{"/home/me/app/README.md", false, ""},
		{"c:/users/me/appdata/roaming/microsoft/windows/start menu/programs/startup/x.lnk", false, "autostart"},
		{"c:/windows/system32/tasks/x", false, "schedule"},
	} {
		if got := PersistenceClassName(tt.path, tt.pattern, false); got != tt.want {
			t.Errorf("Persists(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
	if _, err := persistGlobs(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryday(t *testing.T) {
	t.Parallel()
	for _, class := range knowledge.LaterClasses {
		want := class.ClassName == "editor" || class.ClassName == "ci" || class.ClassName == "build_script"
		if IsOftenWrittenPersistenceClass(class.ClassName) != want {
			t.Errorf("Everyday(%q) = %t", class.ClassName, !want)
		}
	}
}

func TestPersistsInHome(t *testing.T) {
	t.Parallel()
	pl := &PathContext{Home: "/data/users/me"}
	for path, want := range map[string]string{"/data/users/me/.bashrc": "shell_startup", "/data/users/you/.bashrc": "", "/data/users/me/app/x": "", "/etc/ld.so.preload": "loader"} {
		if got := pl.PersistenceClassName(path, false, false); got != want {
			t.Errorf("Persists(%q) = %q, want %q", path, got, want)
		}
	}
}
