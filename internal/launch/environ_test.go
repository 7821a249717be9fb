package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/pkg/knowledge"
)

func TestVariablesThatRunSomethingAreDropped(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq(`LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES GCONV_PATH LOCPATH OPENSSL_CONF
		MAKEFLAGS GNUMAKEFLAGS GOFLAGS GOENV PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5LIB PERL5OPT RUBYLIB RUBYOPT NODE_PATH NODE_OPTIONS CLASSPATH
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS DOTNET_STARTUP_HOOKS PAGER GH_PAGER AWS_PAGER MANPAGER SYSTEMD_PAGER KUBE_EDITOR VISUAL EDITOR BROWSER LESSOPEN LESS
		SUDO_ASKPASS SSH_ASKPASS GIT_ASKPASS PS1 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS BASH_FUNC_ls%% BASH_FUNC_/bin/ls%% ZDOTDIR IFS CDPATH GLOBIGNORE SHELL CC
		RUSTC_WRAPPER CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER NPM_CONFIG_SCRIPT_SHELL npm_config_node_options CGO_LDFLAGS_ALLOW CGO_CFLAGS
		Comspec GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_SSH_COMMAND GIT_TRACE2_EVENT RSYNC_RSH CMAKE_CXX_COMPILER_LAUNCHER DBUS_SESSION_BUS_ADDRESS`) {
		if !knowledge.VariableLoadsCode(name) {
			t.Errorf("%s is kept", name)
		}
	}
	for name := range strings.FieldsSeq(`PATH HOME USER LOGNAME LANG LC_ALL TERM TERMINFO TZ TMPDIR PWD SSH_AUTH_SOCK GIT_AUTHOR_NAME GIT_COMMITTER_DATE
		HTTP_PROXY NO_PROXY JAVA_HOME GOROOT GOPATH GOPROXY GOOS CGO_ENABLED CARGO_HOME CARGO_TARGET_DIR VIRTUAL_ENV PYTHONUNBUFFERED PYTHONUTF8 NODE_ENV
		XDG_CONFIG_HOME AWS_PROFILE AWS_REGION CI GITHUB_TOKEN SHIELD_CONFIG NO_COLOR COLUMNS LS_COLORS DISPLAY CCACHE_DIR ACC XLD_PRELOAD`) {
		if knowledge.VariableLoadsCode(name) {
			t.Errorf("%s is dropped", name)
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
		out, gone := DropCodeLoadingVariables(env, c.keep)
		if diff := cmp.Diff(c.want, out); diff != "" {
			t.Errorf("keep %q (-want +got):\n%s", c.keep, diff)
		}
		if diff := cmp.Diff(c.gone, gone); diff != "" {
			t.Errorf("keep %q, dropped (-want +got):\n%s", c.keep, diff)
		}
	}
	if got, _ := DropCodeLoadingVariables([]string{"PATH=.:bin"}, nil); !slices.Equal(got, []string{"PATH=/usr/bin:/bin"}) {
		t.Errorf("a PATH of relative folders became %q", got)
	}
}

func BenchmarkCleanEnv(b *testing.B) {
	env := make([]string, 60)
	for i := range env {
		env[i] = "SOME_ORDINARY_NAME=value"
	}
	b.ReportAllocs()
	for b.Loop() {
		DropCodeLoadingVariables(env, nil)
	}
}
