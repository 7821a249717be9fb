package command

import (
	"os"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// lines returns the lines of a file in testdata that are no comments.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// harmless is what a caller treats as "only reads".
func harmless(u Interpretation) bool {
	if !u.Understood || u.Class != effect.ReadOnly || len(u.NestedCommandsAndCode) > 0 || len(u.Effects) > 0 || u.Stdin != StreamPlainData {
		return false
	}
	for _, touch := range u.OperandEffects {
		if touch.Kind != effect.ReadFile && touch.Kind != effect.ListDirectory {
			return false
		}
	}
	return true
}

func TestTraps(t *testing.T) {
	traps := lines(t, "traps.txt")
	if len(traps) < 120 {
		t.Errorf("%d traps, want 120", len(traps))
	}
	for _, line := range traps {
		command, want, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatalf("no arrow in %q", line)
		}
		u := Interpret(split(command))
		if got := summary(u); !strings.Contains(got, want) {
			t.Errorf("%s\n got %s (%s)\nwant %s", command, got, u.WhyNotUnderstood, want)
		}
		if harmless(u) && !strings.HasPrefix(want, "read_file") {
			t.Errorf("%s: taken for harmless", command)
		}
	}
}

func TestReads(t *testing.T) {
	for _, command := range lines(t, "reads.txt") {
		if u := Interpret(split(command)); !harmless(u) {
			t.Errorf("%s\n got %s (%s)", command, summary(u), u.WhyNotUnderstood)
		}
	}
}

// TestUnknownOptions gives every program an option that it does not have.
func TestUnknownOptions(t *testing.T) {
	openPrograms := 0
	for i := range programs {
		p := &programs[i]
		u := Interpret(split(p.name + " --unheard-of-option"))
		switch {
		case p.value.argStyle&(argStyleAllowsUnlistedOptions|argStyleUnlistedDashIsOperand) != 0:
			openPrograms++
		case p.value.operandRoles.middleRole.coversRemainingArgs() && p.value.argStyle&argStyleOptionsEndAtOperand == 0:
		case u.Understood && u.Class == effect.ReadOnly && len(u.NestedCommandsAndCode) == 0:
			t.Errorf("%s takes an option that is not listed for harmless", p.name)
		}
	}
	t.Logf("%d of %d programs have options that are not listed one by one", openPrograms, len(programs))
}
