package knowledge

import (
	"strings"
	"testing"
)

// TestRunningVariablesAreDropped holds that what makes a command with a setting
// in front of it stricter does not come in by the environment instead, in any
// case of its letters; where packages come from stays as the user set it.
func TestRunningVariablesAreDropped(t *testing.T) {
	t.Parallel()
	for _, g := range RunningGroups {
		for _, pattern := range g.Names {
			name := strings.ReplaceAll(pattern, "*", "X")
			if g.NonCodeValueMeaning != "source" && g.NonCodeValueMeaning != "server" && g.NonCodeValueMeaning != "check" && g.NonCodeValueMeaning != "build" && g.NonCodeValueMeaning != "tools" && g.NonCodeValueMeaning != "home" && (!VariableLoadsCode(name) || !VariableLoadsCode(strings.ToLower(name))) {
				t.Errorf("%s stays in the environment", name)
			}
			if judged := len(CodeLoadingGroupsOfVariable(name)) > 0; g.CodeLanguage != "" && !judged {
				t.Errorf("%s is not judged", name)
			}
		}
	}
	if VariableLoadsCode("PIP_INDEX_URL") || VariableLoadsCode("SSL_CERT_FILE") {
		t.Error("the user's own source of packages or certificates is taken away")
	}
	if long := "BASH_FUNC_" + strings.Repeat("x", 1<<16); !VariableLoadsCode(long) {
		t.Error("a long name stays in the environment")
	}
}

func TestSecretVariable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"AWS_SECRET_ACCESS_KEY": true, "github_token": true, "DB_PASSWORD": true, "MYSQL_PWD": true, "HF_TOKEN": true, strings.Repeat("x", 1<<11): true,
		"HOME": false, "PATH": false, "TERM": false, "MAX_TOKENS": false, "SSH_AUTH_SOCK": false,
	} {
		if got := IsSecretVariableName(name); got != want {
			t.Errorf("%.40s: %t", name, got)
		}
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
