package shell

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

var update = flag.Bool("update", false, "rewrite the expected effects in testdata; read the diff")

// A tableCase is one command of testdata/*.txt: a line with the command, in
// which ␤ stands for a line end, and an indented line for each effect that it
// must have. It may have more.
type tableCase struct {
	file string
	line int
	text string
	want []string
}

func readCases(tb testing.TB) []tableCase {
	tb.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var cases []tableCase
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			switch {
			case line == "" || strings.HasPrefix(line, "# "):
			case line[0] == '\t':
				c := &cases[len(cases)-1]
				c.want = append(c.want, line[1:])
			default:
				cases = append(cases, tableCase{file: name, line: i + 1, text: strings.ReplaceAll(line, "␤", "\n")})
			}
		}
	}
	return cases
}

// describe writes an effect as the tables do.
func describe(e effect.Effect) string {
	var b strings.Builder
	b.WriteString(string(e.KindForPolicies()))
	for _, part := range [...]string{e.Path, e.URL, e.Host} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	if e.KindForPolicies() == effect.Execute {
		b.WriteString(" " + e.Program)
		for _, a := range e.Args {
			if a == "" || strings.ContainsAny(a, " \t\n\"") {
				a = fmt.Sprintf("%q", a)
			}
			b.WriteString(" " + a)
		}
	}
	if e.Recursive {
		b.WriteString(" (recursive)")
	}
	return b.String()
}

func TestTable(t *testing.T) {
	t.Parallel()
	cases := readCases(t)
	for _, c := range cases {
		got := map[string]bool{}
		var all []string
		r := Analyze(c.text, here())
		for _, e := range r.Effects {
			d := describe(e)
			got[d] = true
			all = append(all, d)
		}
		for _, w := range c.want {
			if !got[w] {
				t.Errorf("%s:%d: %q: no effect %q\ngot:\n\t%s", c.file, c.line, c.text, w, strings.Join(all, "\n\t"))
			}
		}
		if len(c.want) == 0 && !*update {
			t.Errorf("%s:%d: %q has no expectation", c.file, c.line, c.text)
		}
		checkSpans(t, c.text, r)
	}
	if len(cases) < 600 {
		t.Errorf("%d commands, want at least 600", len(cases))
	}
}

// attacks are the kinds of effects that a command of testdata/harmless.txt
// must not have.
var attacks = map[effect.Kind]bool{
	effect.RunDownload: true, effect.RunDecodedText: true, effect.RunCommandOutput: true, effect.SendSecret: true, effect.RemoteShell: true, effect.TamperWithShield: true,
	effect.DestroyData: true, effect.UnknownEffect: true, effect.ReadSecret: true, effect.Persist: true, effect.ReadClipboard: true, effect.StopProcess: true,
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range readCases(t) {
		if c.file != filepath.Join("testdata", "harmless.txt") {
			continue
		}
		n++
		for _, e := range Analyze(c.text, here()).Effects {
			if attacks[e.KindForPolicies()] {
				t.Errorf("%s:%d: %q: %s: %s", c.file, c.line, c.text, e.KindForPolicies(), e.Reason)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d harmless commands, want at least 200", n)
	}
}

// TestUpdate rewrites the tables with what commands have now.
func TestUpdate(t *testing.T) {
	if !*update {
		t.Skip("only with -update")
	}
	out := map[string]*strings.Builder{}
	for _, c := range readCases(t) {
		b := out[c.file]
		if b == nil {
			b = &strings.Builder{}
			out[c.file] = b
		}
		fmt.Fprintln(b, strings.ReplaceAll(c.text, "\n", "␤"))
		seen := map[string]bool{}
		for _, e := range Analyze(c.text, here()).Effects {
			if d := strings.ReplaceAll(describe(e), "\n", "␤"); !seen[d] {
				seen[d] = true
				fmt.Fprintln(b, "\t"+d)
			}
		}
	}
	for name, b := range out {
		if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAttacks checks that every command of testdata/attacks.txt shows
// something that no harmless command has: an effect of a dangerous kind, or
// one outside the workspace.
func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, c := range readCases(t) {
		if c.file != filepath.Join("testdata", "attacks.txt") {
			continue
		}
		shows := false
		var all []string
		for _, e := range Analyze(c.text, here()).Effects {
			all = append(all, describe(e))
			switch e.KindForPolicies() {
			case effect.Execute:
				unlisted := strings.HasSuffix(command.Interpret([]command.Word{{Text: e.Program}}).WhyNotUnderstood, "is not listed")
				shows = shows || e.Class == effect.UnknownClass && (unlisted || e.Program == "ls") || e.Program == "rm"
			case effect.DeleteFile, effect.ChangePermissions, effect.ChangeSystem, effect.ChangePrivilege:
				shows = true
			default:
				outside := e.Path != "" && !strings.HasPrefix(e.Path, "/home/me/app")
				secret := e.Path != "" && effect.IsSecretPath(e.Path, e.PathIsPattern)
				shows = shows || attacks[e.KindForPolicies()] || outside || secret
			}
		}
		if !shows {
			t.Errorf("%s:%d: %q shows nothing:\n\t%s", c.file, c.line, c.text, strings.Join(all, "\n\t"))
		}
	}
}
