package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shellcommand "github.com/shieldcli/shield/pkg/shell/command"
)

func TestVariablesThatRunSomethingAreDropped(t *testing.T) {
	t.Parallel()
	list := droppedNames()
	for name := range strings.FieldsSeq(`LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES GCONV_PATH LOCPATH OPENSSL_CONF
		MAKEFLAGS GNUMAKEFLAGS GOFLAGS GOENV PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5LIB PERL5OPT RUBYLIB RUBYOPT NODE_PATH NODE_OPTIONS CLASSPATH
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS DOTNET_STARTUP_HOOKS PAGER GH_PAGER AWS_PAGER MANPAGER SYSTEMD_PAGER KUBE_EDITOR VISUAL EDITOR BROWSER LESSOPEN LESS
		SUDO_ASKPASS SSH_ASKPASS GIT_ASKPASS PS1 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS BASH_FUNC_ls%% BASH_FUNC_/bin/ls%% ZDOTDIR IFS CDPATH GLOBIGNORE SHELL CC
		RUSTC_WRAPPER CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER NPM_CONFIG_SCRIPT_SHELL npm_config_node_options CGO_LDFLAGS_ALLOW CGO_CFLAGS
		Comspec GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_SSH_COMMAND GIT_TRACE2_EVENT RSYNC_RSH CMAKE_CXX_COMPILER_LAUNCHER DBUS_SESSION_BUS_ADDRESS`) {
		if !list.has(name) {
			t.Errorf("%s is kept", name)
		}
	}
	for name := range strings.FieldsSeq(`PATH HOME USER LOGNAME LANG LC_ALL TERM TERMINFO TZ TMPDIR PWD SSH_AUTH_SOCK GIT_AUTHOR_NAME GIT_COMMITTER_DATE
		HTTP_PROXY NO_PROXY JAVA_HOME GOROOT GOPATH GOPROXY GOOS CGO_ENABLED CARGO_HOME CARGO_TARGET_DIR VIRTUAL_ENV PYTHONUNBUFFERED PYTHONUTF8 NODE_ENV
		XDG_CONFIG_HOME AWS_PROFILE AWS_REGION CI GITHUB_TOKEN SHIELD_CONFIG NO_COLOR COLUMNS LS_COLORS DISPLAY CCACHE_DIR ACC XLD_PRELOAD`) {
		if list.has(name) {
			t.Errorf("%s is dropped", name)
		}
	}
}

// TestJudgedVariablesAreDropped holds that what makes a command with a setting
// in front of it stricter does not come in by the environment instead.
func TestJudgedVariablesAreDropped(t *testing.T) {
	t.Parallel()
	list := droppedNames()
	for name := range strings.FieldsSeq(`PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER GH_PAGER DELTA_PAGER PSQL_PAGER EDITOR VISUAL GIT_EDITOR
		GIT_SEQUENCE_EDITOR SUDO_EDITOR SYSTEMD_EDITOR KUBE_EDITOR FCEDIT SVN_EDITOR HGEDITOR LESSOPEN LESSCLOSE GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND
		GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS PROMPT_COMMAND BROWSER RSYNC_RSH CVS_RSH SVN_SSH KUBECTL_EXTERNAL_DIFF CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER RUSTC
		RUSTC_WORKSPACE_WRAPPER FZF_DEFAULT_COMMAND TAR_OPTIONS MAKEFLAGS RIPGREP_CONFIG_PATH GREP_OPTIONS NODE_OPTIONS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS
		PERL5OPT RUBYOPT LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES OPENSSL_CONF GCONV_PATH GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
		GIT_CONFIG_PARAMETERS PERL5DB BASH_ENV ENV ZDOTDIR PYTHONSTARTUP LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH PYTHONPATH PYTHONHOME PERL5LIB PERLLIB RUBYLIB
		NODE_PATH CLASSPATH GIT_CONFIG_VALUE_0`) {
		if _, runs := shellcommand.Variable(shellcommand.Word{Text: name + "=/tmp/evil -r agent=x $(evil)"}); !runs {
			t.Errorf("%s is not judged; take it off this list", name)
		}
		if !list.has(name) {
			t.Errorf("%s is judged in front of a command, and kept in the environment", name)
		}
	}
}

// TestDroppedNames holds what the search relies on.
func TestDroppedNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range dropped {
		if d.why == "" || d.names == "" {
			t.Errorf("%+v: a reason and names are expected", d)
		}
		for name := range strings.FieldsSeq(d.names) {
			if name != strings.ToUpper(name) || seen[name] || strings.Trim(name, "*") == "" {
				t.Errorf("%s: twice, not in capitals, or everything", name)
			}
			seen[name] = true
		}
	}
}

func TestCleanEnv(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=.:/usr/bin::bin:/bin:", "HOME=/home/me", "LD_PRELOAD=evil.so", "Editor=vi", "PAGER=less=more", "empty="}
	for _, c := range []struct{ keep, want, gone []string }{
		{nil, []string{"PATH=/usr/bin:/bin", "HOME=/home/me", "empty="}, []string{"Editor", "LD_PRELOAD", "PAGER"}},
		{[]string{"PAGER", "editor", "NOTHING"}, []string{"PATH=/usr/bin:/bin", "HOME=/home/me", "Editor=vi", "PAGER=less=more", "empty="}, []string{"LD_PRELOAD"}},
		{[]string{"PATH"}, []string{"PATH=.:/usr/bin::bin:/bin:", "HOME=/home/me", "empty="}, []string{"Editor", "LD_PRELOAD", "PAGER"}},
		{[]string{"*", "LD_*", ""}, []string{"PATH=/usr/bin:/bin", "HOME=/home/me", "empty="}, []string{"Editor", "LD_PRELOAD", "PAGER"}},
		{[]string{"PAGER", "Editor", "LD_PRELOAD"}, []string{"PATH=/usr/bin:/bin", "HOME=/home/me", "LD_PRELOAD=evil.so", "Editor=vi", "PAGER=less=more", "empty="}, nil},
	} {
		out, gone := CleanEnv(env, c.keep)
		if diff := cmp.Diff(c.want, out); diff != "" {
			t.Errorf("keep %q (-want +got):\n%s", c.keep, diff)
		}
		if diff := cmp.Diff(c.gone, gone); diff != "" {
			t.Errorf("keep %q, dropped (-want +got):\n%s", c.keep, diff)
		}
	}
	if got, _ := CleanEnv([]string{"PATH=.:bin"}, nil); !slices.Equal(got, []string{"PATH=/usr/bin:/bin"}) {
		t.Errorf("a PATH of relative folders became %q", got)
	}
}

func FuzzMatchName(f *testing.F) {
	f.Add("A*B*C", "AxByC")
	f.Add("*_X", "_X")
	f.Add("CGO_*FLAGS*", "CGO_FLAGS")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		matched := matchName(pattern, name)
		if !strings.Contains(pattern, "*") && matched != (pattern == name) {
			t.Errorf("%q matches %q: %t", pattern, name, matched)
		}
		if matched && len(name) < len(strings.ReplaceAll(pattern, "*", "")) {
			t.Errorf("%q matches the shorter %q", pattern, name)
		}
		if filled := strings.ReplaceAll(pattern, "*", name); !matchName(pattern, filled) {
			t.Errorf("%q does not match %q", pattern, filled)
		}
	})
}

func BenchmarkCleanEnv(b *testing.B) {
	env := make([]string, 60)
	for i := range env {
		env[i] = "SOME_ORDINARY_NAME=value"
	}
	b.ReportAllocs()
	for b.Loop() {
		CleanEnv(env, nil)
	}
}
