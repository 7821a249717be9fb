//go:build unix

package soundness

import (
	"os"
	"strings"
	"testing"
)

// TestForms demands of each script of testdata/forms.txt, which makes calls in ways that
// no generated script does, what TestSound demands of those.
func TestForms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs")
	}
	data, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range shells {
		t.Run(sh.argv[0], func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, sh.argv)
			missing := map[string]int{}
			for line := range strings.Lines(string(data)) {
				letters, script, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				letters, needs, more := strings.Cut(letters, "/")
				if !ok || strings.HasPrefix(line, "#") || !strings.Contains(letters, sh.letter) {
					continue
				}
				if _, err := os.Stat("/usr/bin/" + needs); more && err != nil {
					missing[needs]++
					continue
				}
				script = strings.ReplaceAll(script, "␤", "\n")
				calls := r.run(t, script)
				if len(calls) == 0 {
					t.Errorf("%s makes no call", script)
				}
				if _, missed := compare(r.work(), script, calls); missed != nil {
					t.Error(explain(r.work(), script, calls))
				}
			}
			for program, forms := range missing {
				t.Run(program, func(t *testing.T) { t.Skipf("%s is not installed, which %d scripts need", program, forms) })
			}
		})
	}
}
