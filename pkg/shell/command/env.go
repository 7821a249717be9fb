package command

import "strings"

// Variable returns the command or code that programs run because an
// environment variable is set, such as PAGER, LD_PRELOAD or GIT_SSH_COMMAND.
// setting has the form NAME=VALUE.
func Variable(setting Word) (n Nested, ok bool) {
	i := strings.IndexByte(setting.Text, '=')
	if i <= 0 || i == len(setting.Text)-1 {
		return Nested{}, false
	}
	value := cut(setting, i+1)
	v := variable(setting.Text[:i])
	if v.language == "" || v.harmless != nil && !value.Pattern && v.harmless(value.Text) {
		return Nested{}, false
	}
	if v.prefix != "" {
		value.Text = strings.TrimLeft(value.Text, v.prefix)
	}
	return Nested{Language: v.language, Of: v.of, Words: []Word{value}}, true
}

// A running variable is one whose value programs run.
type running struct {
	language string            // of the value, as in [Nested]; "" if it is not run
	of       string            // of a file
	prefix   string            // characters before the command
	harmless func(string) bool // reports that a value runs nothing
}

func variable(name string) running {
	switch name {
	case "PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "AWS_PAGER", "BAT_PAGER", "GH_PAGER", "DELTA_PAGER", "PSQL_PAGER",
		"EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "SUDO_EDITOR", "SYSTEMD_EDITOR", "KUBE_EDITOR", "FCEDIT", "SVN_EDITOR", "HGEDITOR":
		return running{language: "shell", harmless: isPagerName}
	case "LESSOPEN", "LESSCLOSE":
		return running{language: "shell", prefix: "|-"}
	case "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS",
		"PROMPT_COMMAND", "BROWSER", "RSYNC_RSH", "CVS_RSH", "SVN_SSH", "KUBECTL_EXTERNAL_DIFF",
		"CARGO_BUILD_RUSTC_WRAPPER", "RUSTC_WRAPPER", "RUSTC", "RUSTC_WORKSPACE_WRAPPER", "FZF_DEFAULT_COMMAND":
		return running{language: "shell", harmless: func(s string) bool { return s == "true" || s == "echo" || s == "ssh" || s == "sccache" }}
	case "PS0", "PS1", "PS2", "PS4":
		return running{language: "shell", harmless: func(s string) bool { return !strings.Contains(s, "$(") && !strings.Contains(s, "`") }}
	case "TAR_OPTIONS", "MAKEFLAGS", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "XZ_OPT":
		return running{language: "code", harmless: func(s string) bool { return !strings.Contains(s, "=") && !strings.Contains(s, "/") }}
	case "NODE_OPTIONS":
		return running{language: "code", harmless: func(s string) bool {
			return !strings.Contains(s, "-r") && !strings.Contains(s, "--import") && !strings.Contains(s, "loader")
		}}
	case "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS":
		return running{language: "code", harmless: func(s string) bool { return !strings.Contains(s, "agent") && !strings.Contains(s, "OnError") }}
	case "PERL5OPT", "RUBYOPT":
		return running{language: "code", harmless: func(s string) bool { return strings.HasPrefix(s, "-w") || strings.HasPrefix(s, "-W") }}
	case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "OPENSSL_CONF", "GCONV_PATH", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR":
		return running{language: "file"}
	case "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM":
		return running{language: "file", harmless: func(s string) bool { return s == "/dev/null" }}
	case "GIT_CONFIG_PARAMETERS", "PERL5DB":
		return running{language: "code"}
	case "BASH_ENV", "ENV", "ZDOTDIR":
		return running{language: "file", of: "shell"}
	case "PYTHONSTARTUP":
		return running{language: "file", of: "python"}
	case "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "PYTHONPATH", "PYTHONHOME", "PERL5LIB", "PERLLIB", "RUBYLIB", "NODE_PATH", "CLASSPATH":
		return running{language: "file", harmless: isPrivatePath}
	}
	if hasPrefix(name, "GIT_CONFIG_VALUE_") {
		return running{language: "code"}
	}
	return running{}
}

func isPagerName(s string) bool { return isPager(Word{Text: s}) }

// isPrivatePath reports whether a search path names no folder that everybody
// may write to, which is where planted libraries lie.
func isPrivatePath(s string) bool {
	for _, shared := range [...]string{"/tmp", "/var/tmp", "/dev/shm", "/proc", "://"} {
		if strings.Contains(s, shared) {
			return false
		}
	}
	return true
}

// secretWords are parts of the names of variables that hold credentials.
var secretWords = [...]string{"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", "AUTH_KEY", "ENCRYPTION_KEY", "DATABASE_URL", "CONNECTION_STRING", "WEBHOOK"}

// SecretName reports whether an environment variable of that name is likely
// to hold a credential.
func SecretName(name string) bool {
	if len(name) > maxName {
		return true
	}
	name = strings.ToUpper(name)
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.HasSuffix(name, "_PAT") || strings.HasSuffix(name, "_PASS") || strings.HasSuffix(name, "_PWD") ||
		name == "PGPASS" || name == "MYSQL_PWD" || name == "PASS"
}
