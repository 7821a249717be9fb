package command

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command/internal/grammar"
)

var update = flag.Bool("update", false, "write what examples without an expectation do into programs/*.yaml")

func load(t testing.TB) []grammar.Program {
	t.Helper()
	programs, err := grammar.LoadPrograms(os.DirFS("programs"))
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// TestExamples judges the examples that are beside the programs.
func TestExamples(t *testing.T) {
	fill, entries := map[string]map[string]string{}, map[string]string{}
	for _, p := range load(t) {
		entries[p.Name] = p.YAMLEntryName
	}
	for _, p := range load(t) {
		for _, e := range p.Examples {
			u := Interpret(split(e.Command))
			got := summary(u)
			if e.WantedEffects == "" && *update {
				if fill[p.YAMLFileName] == nil {
					fill[p.YAMLFileName] = map[string]string{}
				}
				fill[p.YAMLFileName][e.Command] = got
				continue
			}
			if got != e.WantedEffects {
				t.Errorf("%s: %s\n got %s (%s)\nwant %s", p.YAMLFileName, e.Command, got, u.WhyNotUnderstood, e.WantedEffects)
			}
			if _, name := splitProgramPath(split(e.Command)[0].Text); entries[name] != p.YAMLEntryName && lookupProgram(name) != lookupProgram(p.Name) {
				t.Errorf("%s: the example %q is not about %s", p.YAMLFileName, e.Command, p.Name)
			}
		}
	}
	for file, wants := range fill {
		fillExamples(t, filepath.Join("programs", file), wants)
	}
}

// fillExamples puts expectations behind example commands that have none.
func fillExamples(t *testing.T, path string, wants map[string]string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		key, ok := strings.CutSuffix(strings.TrimSpace(line), ":")
		if !ok || !strings.HasPrefix(line, "    ") {
			continue
		}
		if unquoted, err := strconv.Unquote(key); err == nil {
			key = unquoted
		}
		if want, ok := wants[key]; ok {
			lines[i] = line + " " + strconv.Quote(want)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDynamicSaysWhy wants words for people wherever an entry says that no one
// can tell what runs.
func TestDynamicSaysWhy(t *testing.T) {
	for _, p := range load(t) {
		silent(t, p.YAMLFileName+": "+p.Name, p.Grammar, "")
	}
}

// silent finds what is dynamic in a grammar that no level of it explains.
func silent(t *testing.T, name string, g *grammar.Grammar, why string) {
	if g.EffectsDescription != "" {
		why = g.EffectsDescription
	}
	actions := []grammar.OptionOrCommandAction{}
	if g.UnconditionalAction != nil {
		actions = append(actions, *g.UnconditionalAction)
	}
	for _, o := range slices.Concat(g.Options, g.OptionPrefixes, g.KeyValueOperands, g.ArgTextPatterns) {
		actions = append(actions, o.Action)
	}
	for _, a := range actions {
		if slices.Contains(a.Effects, "UnknownEffect") && why == "" {
			t.Errorf("%s: it is dynamic, and no key why says what that means", name)
		}
	}
	for _, s := range g.Subcommands {
		silent(t, name+" "+s.Name, s.Grammar, why)
	}
}

// TestCoverage counts programs, and those of which some operand has an effect.
func TestCoverage(t *testing.T) {
	programs, effective := map[string]bool{}, map[string]bool{}
	for _, p := range load(t) {
		if strings.HasPrefix(p.Name, "py:") {
			continue
		}
		programs[p.Name] = true
		for _, e := range p.Examples {
			u := Interpret(split(e.Command))
			if len(u.OperandEffects) > 0 || len(u.NestedCommandsAndCode) > 0 || changes(u) {
				effective[p.Name] = true
			}
		}
		if hasEffect(p.Grammar) {
			effective[p.Name] = true
		}
	}
	t.Logf("%d programs, %d of them with an effect of some operand", len(programs), len(effective))
	if len(programs) < 400 || len(effective) < 250 {
		t.Errorf("%d programs, %d with an effect of some operand; want 400 and 250", len(programs), len(effective))
	}
}

func changes(u Interpretation) bool {
	for _, k := range u.Effects {
		if k != effect.ReadSecret {
			return true
		}
	}
	return false
}

// hasEffect reports whether some operand of a grammar, or of a subcommand, has
// a role of note.
func hasEffect(g *grammar.Grammar) bool {
	for _, roles := range [][]string{g.Operands.First, g.Operands.Last, {g.Operands.Middle}} {
		for _, r := range roles {
			if r != "" && r != "argRoleInertText" && r != "argRoleInertRemainingArgs" {
				return true
			}
		}
	}
	for _, s := range g.Subcommands {
		if hasEffect(s.Grammar) {
			return true
		}
	}
	return false
}
