package effect

import "sync"

// Persists returns the class of files that run code later to which what an
// effect touches belongs, or may belong; "" if it is none. Writing such
// a file is a [Persist] effect with the class as its Reason.
//
// The classes up to and including agent_config are rarely written in everyday
// work. The last ones, build_script, ci and editor, are: their files hold
// project settings that people change daily and that also run commands.
func Persists(path string, pattern, recursive bool) string {
	g, err := persistGlobs()
	if err != nil {
		return "unknown"
	}
	i, ok := g.Touches(path, pattern, recursive)
	if !ok {
		return ""
	}
	for _, class := range persistClasses {
		if i < len(class.globs) {
			return class.name
		}
		i -= len(class.globs)
	}
	return ""
}

// Everyday reports whether a class of files that run code later is written in
// everyday work.
func Everyday(class string) bool {
	return class == "build_script" || class == "ci" || class == "editor"
}

var persistGlobs = sync.OnceValues(func() (*Globs, error) {
	var globs []string
	for _, class := range persistClasses {
		globs = append(globs, class.globs...)
	}
	return NewGlobs(globs, nil)
})

// persistClasses are the files that run code later, the most severe first.
var persistClasses = [...]struct {
	name  string
	globs []string
}{
	{"loader", []string{
		"/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d/**", "/etc/environment", "/etc/modules", "/etc/modules-load.d/**",
		"/etc/modprobe.d/**", "/lib/modules/**", "/etc/binfmt.d/**", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
		"/proc/sys/fs/binfmt_misc/**", "/boot/**", "/etc/initramfs-tools/**", "/etc/grub.d/**",
	}},
	{"privilege", []string{
		"/etc/sudoers", "/etc/sudoers.d/**", "/etc/doas.conf", "/etc/pam.d/**", "/etc/pam.conf", "/etc/polkit-1/**", "/usr/share/polkit-1/**", "/etc/security/**",
		"/etc/passwd", "/etc/shadow", "/etc/group",
	}},
	{"ssh", []string{
		"~/.ssh/authorized_keys*", "~/.ssh/rc", "~/.ssh/environment", "~/.ssh/config", "/etc/ssh/**", "?:/programdata/ssh/**",
	}},
	{"shell_startup", []string{
		"~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases", "~/.profile", "~/.kshrc", "~/.mkshrc",
		"~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.zlogin", "~/.zlogout", "~/.config/zsh/**", "~/.oh-my-zsh/**", "~/.config/fish/**", "~/.cshrc", "~/.tcshrc", "~/.login",
		"~/.inputrc", "~/.config/nushell/**", "~/.config/bash/**", "~/.pam_environment", "~/.xprofile", "~/.xinitrc", "~/.xsession*", "~/.Xclients",
		"/etc/profile", "/etc/profile.d/**", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh/**", "/etc/zshrc", "/etc/zshenv", "/etc/zprofile", "/etc/fish/**", "/etc/csh.*", "/etc/inputrc", "/etc/skel/**",
		"~/documents/powershell/**", "~/documents/windowspowershell/**", "~/.config/powershell/**", "?:/windows/system32/windowspowershell/**/profile.ps1", "**/*profile.ps1",
	}},
	{"schedule", []string{
		"/etc/crontab", "/etc/cron.*/**", "/etc/cron.allow", "/etc/anacrontab", "/var/spool/cron/**", "/var/cron/**", "/usr/lib/cron/**", "/var/at/**", "/var/spool/at/**",
		"/etc/periodic/**", "/etc/periodic.conf", "/etc/logrotate.d/**", "?:/windows/system32/tasks/**", "?:/windows/tasks/**",
	}},
	{"service", []string{
		"/etc/systemd/**", "/usr/lib/systemd/**", "/lib/systemd/**", "/usr/local/lib/systemd/**", "/run/systemd/**", "~/.config/systemd/**", "~/.local/share/systemd/**",
		"/etc/init.d/**", "/etc/init/**", "/etc/rc.local", "/etc/rc*.d/**", "/etc/inittab", "/etc/xinetd.d/**", "/etc/udev/**", "/usr/lib/udev/**", "/lib/udev/**",
		"/etc/dbus-1/**", "/usr/share/dbus-1/**", "~/.local/share/dbus-1/**", "/etc/NetworkManager/dispatcher.d/**", "/etc/network/if-*/**", "/etc/dhcp/**", "/etc/apt/apt.conf.d/**", "/etc/update-motd.d/**", "/etc/supervisor/**",
		"/Library/LaunchAgents/**", "/Library/LaunchDaemons/**", "/System/Library/LaunchAgents/**", "/System/Library/LaunchDaemons/**", "~/Library/LaunchAgents/**", "/Library/StartupItems/**", "~/Library/Application Support/com.apple.backgroundtaskmanagementagent/**",
		"/etc/emond.d/**", "/etc/launchd.conf",
	}},
	{"autostart", []string{
		"~/.config/autostart/**", "/etc/xdg/autostart/**", "~/.config/i3/**", "~/.config/sway/**", "~/.config/hypr/**", "~/.config/awesome/**", "~/.config/kitty/**", "~/.config/plasma-workspace/**",
		"~/.local/share/applications/**", "~/.config/mimeapps.list", "~/.local/share/nautilus/**",
		"~/appdata/roaming/microsoft/windows/start menu/**", "?:/programdata/microsoft/windows/start menu/**",
		"~/Library/Preferences/com.apple.loginitems.plist", "~/Library/Scripts/**", "~/Library/Services/**", "~/Library/QuickLook/**", "~/Library/Input Methods/**", "/Library/Security/SecurityAgentPlugins/**",
	}},
	{"path_program", []string{
		"/bin/**", "/sbin/**", "/usr/bin/**", "/usr/sbin/**", "/usr/local/bin/**", "/usr/local/sbin/**", "/opt/homebrew/bin/**", "/snap/bin/**",
		"~/bin/**", "~/.local/bin/**", "~/go/bin/**", "~/.cargo/bin/**", "~/.cargo/env", "~/.npm-global/bin/**", "~/.yarn/bin/**", "~/.deno/bin/**", "~/.bun/bin/**", "~/.rbenv/shims/**", "~/.pyenv/shims/**", "~/.asdf/shims/**", "~/.nvm/**",
		"?:/windows/system32/**", "?:/windows/syswow64/**", "?:/windows/*.exe", "~/appdata/local/microsoft/windowsapps/**", "?:/programdata/chocolatey/bin/**", "~/scoop/shims/**",
	}},
	{"git_hook", []string{
		"**/.git/hooks/**", "**/.git/config", "**/.git/config.worktree", "**/.git/info/attributes", "**/.git/modules/**", "**/.git/worktrees/**", "**/.git",
		"~/.gitconfig", "~/.config/git/**", "/etc/gitconfig", "**/.husky/**", "**/.githooks/**", "~/.git-templates/**", "**/.gitmodules",
		"~/.hgrc", "**/.hg/hgrc", "**/.jj/repo/config.toml",
	}},
	{"program_config", []string{
		"~/.vimrc", "~/.vim/**", "~/.config/nvim/**", "**/.vimrc", "**/.exrc", "**/.nvim.lua", "**/.nvimrc", "~/.emacs", "~/.emacs.d/**", "~/.config/emacs/**", "**/.dir-locals.el",
		"~/.tmux.conf", "~/.config/tmux/**", "~/.screenrc", "~/.config/alacritty/**", "~/.wezterm.lua", "~/.config/wezterm/**", "~/.gdbinit", "**/.gdbinit", "**/.lldbinit", "~/.lldbinit",
		"~/.npmrc", "~/.yarnrc*", "~/.config/pip/**", "~/.pip/**", "~/.pypirc", "~/.cargo/config*", "~/.config/go/env", "~/.m2/**", "~/.gradle/**", "~/.gemrc", "~/.irbrc", "~/.pryrc", "~/.psqlrc", "~/.sqliterc", "~/.mailcap", "~/.lesskey", "~/.lessfilter", "~/.wgetrc", "~/.curlrc", "~/.Rprofile", "~/.ipython/**", "~/.jupyter/**", "~/.pdbrc", "~/.config/direnv/**", "~/.docker/cli-plugins/**", "~/.kube/config", "~/.aws/config", "~/.gnupg/*.conf", "~/.terraformrc", "~/.forward", "~/.procmailrc",
		"**/sitecustomize.py", "**/usercustomize.py", "**/site-packages/*.pth", "**/dist-packages/*.pth",
	}},
	{"directory_env", []string{"**/.envrc", "**/.mise.toml", "**/mise.toml", "**/.rtx.toml", "**/.autoenv*", "**/.devcontainer/**", "**/.devcontainer.json"}},
	{"agent_config", []string{
		"**/CLAUDE.md", "**/CLAUDE.local.md", "**/AGENTS.md", "**/AGENT.md", "**/GEMINI.md", "**/.claude/**", "~/.claude.json", "**/.mcp.json", "**/mcp.json", "**/mcp_settings.json", "**/claude_desktop_config.json",
		"**/.cursor/**", "**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.codeium/**", "**/.clinerules*", "**/.roo/**", "**/.roorules*", "**/.continue/**", "**/.aider*", "**/.codex/**", "**/.gemini/**", "**/.goose/**", "**/.goosehints", "**/.opencode/**", "**/opencode.json", "**/.kiro/**", "**/.amazonq/**", "**/.augment/**", "**/.junie/**", "**/.openhands/**", "~/.config/opencode/**", "~/.config/goose/**", "~/.config/amp/**",
		"**/copilot-instructions.md", "**/.github/instructions/**", "**/.github/prompts/**", "**/.github/agents/**", "**/SOUL.md", "**/IDENTITY.md", "**/.openparallax/**",
	}},
	{"editor", []string{
		"**/.vscode/**", "**/.idea/**", "**/*.code-workspace", "**/.fleet/**", "**/.zed/**", "**/*.sublime-project", "**/.nova/**",
		"~/.config/code/user/**", "~/.config/vscodium/user/**", "~/appdata/roaming/code/user/**", "~/Library/Application Support/Code/User/**", "~/.config/zed/**", "~/.vscode/extensions/**",
	}},
	{"ci", []string{
		"**/.github/workflows/**", "**/.github/actions/**", "**/action.yml", "**/.gitlab-ci.yml", "**/.gitlab/**", "**/.circleci/**", "**/Jenkinsfile", "**/azure-pipelines*.yml", "**/.azure-pipelines/**", "**/bitbucket-pipelines.yml", "**/.travis.yml", "**/.drone.yml", "**/.woodpecker*", "**/.buildkite/**", "**/appveyor.yml", "**/cloudbuild.y*ml", "**/.pre-commit-config.yaml", "**/lefthook.y*ml", "**/renovate.json",
	}},
	{"build_script", []string{
		"**/package.json", "**/Makefile", "**/GNUmakefile", "**/*.mk", "**/CMakeLists.txt", "**/setup.py", "**/setup.cfg", "**/pyproject.toml", "**/conftest.py", "**/tox.ini", "**/noxfile.py", "**/build.rs", "**/.cargo/config*", "**/build.gradle*", "**/settings.gradle*", "**/pom.xml", "**/Rakefile", "**/Gemfile", "**/*.gemspec", "**/Justfile", "**/.justfile", "**/Taskfile.y*ml", "**/Dockerfile*", "**/docker-compose*.y*ml", "**/compose.y*ml", "**/Vagrantfile", "**/Procfile", "**/gulpfile.*", "**/Gruntfile.*", "**/webpack.config.*", "**/vite.config.*", "**/jest.config.*", "**/eslint.config.*", "**/.eslintrc*", "**/babel.config.*", "**/rollup.config.*", "**/next.config.*", "**/.npmrc", "**/.yarnrc*", "**/.pnpmfile.cjs", "**/composer.json", "**/mix.exs", "**/BUILD.bazel", "**/WORKSPACE", "**/.bazelrc", "**/flake.nix", "**/default.nix", "**/shell.nix", "**/configure.ac", "**/meson.build", "**/*.tf",
	}},
}
