package cmd

import (
	"slices"
	"strings"
)

// dropped lists the variables that make a harmless command load or run
// something else. A name that ends in "*" stands for all that begin with it.
var dropped = []string{
	// The dynamic linker and the C library.
	"LD_*", "DYLD_*", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH",
	// Shells run these before the command.
	"BASH_ENV", "ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR", "IFS", "CDPATH", "GLOBIGNORE",
	// Programs that git, man, less and others start.
	"PAGER", "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "FCEDIT", "SUDO_EDITOR", "SUDO_ASKPASS", "SSH_ASKPASS", "BROWSER",
	"LESSOPEN", "LESSCLOSE", "LESSKEY*", "SVN_SSH", "SVN_EDITOR", "HGEDITOR", "CVS_RSH", "RSYNC_RSH", "TAR_OPTIONS", "TAPE", "MAKEFILES",
	"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND",
	"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG*", "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_TRACE*",
	// Language runtimes run code from these at start.
	"PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONHOME", "PERL5OPT", "PERL5DB", "RUBYOPT", "NODE_OPTIONS",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_INIT*", "PHPRC", "PHP_INI_SCAN_DIR",
	"RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "GOTOOLDIR",
}

// cleanEnv returns an environment without the dropped variables, except those
// that a person asked to keep.
func cleanEnv(env, keep []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return isDropped(name) && !slices.Contains(keep, name)
	})
}

func isDropped(name string) bool {
	return slices.ContainsFunc(dropped, func(d string) bool {
		if prefix, ok := strings.CutSuffix(d, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return name == d
	})
}

// variable returns the value of a variable in an environment; "" if it is not
// there.
func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
