package cmd

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/host"
)

// TestHookLineHasNoVariablesOfSettings holds that installed lines have nothing that a host
// replaces when it reads its settings: Gemini CLI and Qwen Code do that with variables of
// their environment, and with the text after :- where there is none.
func TestHookLineHasNoVariablesOfSettings(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`\$(?:\w+|\{\w+(?:\}|:))`)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	w := &Environment{Home: home, ShieldExecutablePath: program, Getenv: func(string) string { return "" }}
	for _, name := range host.Names() {
		h, err := host.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := hookCommandLines(t.Context(), w, h, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		permission, err := permissionHookCommandLine(t.Context(), w, h, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{lines.BeforeTool, lines.AfterTool, permission} {
			if found := variable.FindString(line); found != "" {
				t.Errorf("%s: %s in %s", name, found, line)
			}
		}
	}
}
