package shell

import (
	"slices"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// A program in a folder that a variable names is that program at a place that is
// not known; a program without a name is not known at all.
func TestProgramInUnknownFolder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text    string
		program string // "" if it is not known which program runs
	}{
		{"$JAVA_HOME/bin/java -jar x.jar --port 1", "java"},
		{`"$VENV/bin/python" -m pytest`, "python"},
		{"${CARGO_HOME}/bin/cargo build", "cargo"},
		{`su app -c "$APP_HOME/bin/app -f"`, "app"},
		{"$ANDROID_HOME/platform-tools/adb devices", "adb"},
		{"$CMD --now", ""},
		{`eval "$X"`, ""},
		{"$X/$Y --a", ""},
		{"$X/build --all", ""},
		{"$X/bin/$Y", ""},
		{`bash -c "$X $Y/bin/java"`, ""},
		{"$(find . -name bin)/bin/java -version", ""},
		{"read d; $d/bin/java -version", ""},
		{"curl -o /tmp/bin/tool https://x.test/tool; $TMPDIR/bin/tool", ""},
		{"TMPDIR=/opt $TMPDIR/bin/tool", "tool"},
	}
	for _, tt := range tests {
		res := Analyze(tt.text, &effect.PathContext{CWD: "/work/app", Home: "/home/me", WorkspaceRoots: []string{"/work/app"}})
		at := slices.IndexFunc(res.Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.Execute && e.Program == tt.program })
		unknown := slices.ContainsFunc(res.Effects, func(e effect.Effect) bool {
			return e.Certainty == effect.Unknown && e.Cause != effect.CauseUnreadScript
		})
		if tt.program == "" {
			if !unknown {
				t.Errorf("%s: nothing is unknown: %+v", tt.text, res.Effects)
			}
			continue
		}
		if at < 0 || unknown || res.Effects[at].Class != effect.UnknownClass {
			t.Errorf("%s: want a program %s of unknown class: %+v", tt.text, tt.program, res.Effects)
		}
	}
	res := Analyze("$X/bin/rm -rf /etc", &effect.PathContext{CWD: "/work/app"})
	if !slices.ContainsFunc(res.Effects, func(e effect.Effect) bool { return e.KindForPolicies() == effect.DeleteFile && e.Path == "/etc" }) {
		t.Errorf("what rm deletes is not seen: %+v", res.Effects)
	}
}
