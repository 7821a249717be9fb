package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/internal/hostile"
	"github.com/shieldcli/shield/internal/ortlib"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A line is what these tests read of a verdict.
type line struct {
	ID, Decision, Error, Rule string
	Line                      int
	Confidence                float64
}

func lines(t testing.TB, out string) []line {
	t.Helper()
	var all []line
	for text := range strings.Lines(out) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("not a verdict: %q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

// judging are the commands that read records, and whether they read actions
// alone.
var judging = []struct {
	args        []string
	actionsOnly bool
}{
	{[]string{"policy"}, true},
	{[]string{"run"}, true},
	{[]string{"run", "--until", "classify", "--jobs", "3"}, true},
	{[]string{"classify"}, false},
}

// TestHostileRecordsAlone gives attacks, each alone, to one command each, so that each
// command gets up to four of every class: exactly one verdict, never ALLOW, never
// status 0. What is rare goes to all commands. pkg/action and pkg/verdict read all
// of them.
func TestHostileRecordsAlone(t *testing.T) {
	w := attackedWorld(t)
	records := hostile.GenerateAttackRecords(1)
	rare := map[string]bool{}
	for class, n := range classes(records) {
		rare[class] = n < len(judging)
	}
	seen := map[string]int{}
	for i, r := range records {
		seen[r.Class]++
		for n, c := range judging {
			if !rare[r.Class] && (seen[r.Class]%len(judging) != n || seen[r.Class] > 4*len(judging)) {
				continue
			}
			status, out, _ := run(t, w, string(r.Raw), c.args...)
			got := lines(t, out)
			if len(got) != 1 || got[0].Decision == "ALLOW" || status == statusAllow {
				t.Fatalf("%v, record %d (%s): status %d, verdicts %+v\n%.300q", c.args, i, r.Class, status, got, r.Raw)
			}
			want := r.WantVerdictError
			if c.actionsOnly {
				want = r.WantActionError
			}
			if want == verdict.ErrorCodeVerdictExpired {
				want = verdict.ErrorCodeConfigMismatch // it is sealed under another policy as well
			}
			if want != "" && got[0].Error != string(want) {
				t.Errorf("%v, record %d (%s): error %q, want %q\n%.300q", c.args, i, r.Class, got[0].Error, want, r.Raw)
			}
		}
	}
}

// attackedWorld returns a world whose seal key the attacker has.
func attackedWorld(t testing.TB) Environment {
	t.Helper()
	w := newWorld(t)
	dir := config.StateDir(w.Home, func(string) string { return "" })
	run(t, w, "", "policy") // makes a key of its own
	if err := os.WriteFile(filepath.Join(dir, verdict.KeyFile), hostile.TestSealKey[:], 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// classes returns how many records there are of each class.
func classes(records []hostile.AttackRecord) map[string]int {
	out := map[string]int{}
	for _, r := range records {
		out[r.Class]++
	}
	return out
}

// TestHostileStream gives each command eight attacks of every class, two if
// they are large, as one input: the actions between them are all still judged.
func TestHostileStream(t *testing.T) {
	w := newWorld(t)
	var records []hostile.AttackRecord
	seen := map[string]int{}
	for _, r := range hostile.GenerateAttackRecords(2) {
		if seen[r.Class]++; seen[r.Class] <= 8 && (len(r.Raw) < 1<<20 || seen[r.Class] <= 2) {
			records = append(records, r)
		}
	}
	in := string(hostile.JoinRecordsWithSeparatorActions(records))
	for _, c := range judging {
		status, out, _ := run(t, w, in, c.args...)
		got := lines(t, out)
		if len(got) != 2*len(records) || status != statusBlock {
			t.Errorf("%v: %d verdicts, status %d; want %d and %d", c.args, len(got), status, 2*len(records), statusBlock)
		}
		for i, l := range got {
			if l.Decision == "ALLOW" {
				t.Errorf("%v: verdict %d is %+v", c.args, i, l)
			}
			if i > 0 && l.Line < got[i-1].Line {
				t.Fatalf("%v: line %d after line %d", c.args, l.Line, got[i-1].Line)
			}
		}
	}
}

func TestVectors(t *testing.T) {
	w := newWorld(t)
	vectors, err := hostile.ReadVectors("../testdata/vectors")
	if err != nil || len(vectors) < 60 {
		t.Fatalf("%d vectors: %v", len(vectors), err)
	}
	for _, v := range vectors {
		for _, c := range judging {
			_, out, _ := run(t, w, string(v.Raw), c.args...)
			want := v.WantVerdictError
			if c.actionsOnly {
				want = v.WantActionError
			}
			got := lines(t, out)
			if len(got) != 1 || got[0].Decision != v.WantDecision || got[0].Error != string(want) {
				t.Errorf("%s, %v: %+v, want one %s with error %q: %s", v.Name, c.args, got, v.WantDecision, want, v.ExpectationReason)
			}
		}
	}
}

func FuzzOneRecordOneVerdict(f *testing.F) {
	for _, r := range hostile.GenerateAttackRecords(3)[:100] {
		if len(r.Raw) < 4096 {
			f.Add(r.Raw)
		}
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		status, out, _ := run(t, w, string(in), "policy", "--no-action")
		_, other, _ := run(t, w, string(in), "run", "--no-action")
		got := lines(t, out)
		if n := len(lines(t, other)); n != len(got) {
			t.Fatalf("policy wrote %d verdicts, run %d", len(got), n)
		}
		if len(got) == 0 && status != statusBlock {
			t.Errorf("no record, status %d", status)
		}
		if len(got) > strings.Count(string(in), "{")+strings.Count(string(in), "\n")+1 {
			t.Errorf("%d verdicts for %q", len(got), in)
		}
	})
}

// TestHostileModel puts texts before a model, through the whole command, that
// are made to cost much or to be read in part: one verdict each, and soon. What
// cannot be read to its end is not allowed.
func TestHostileModel(t *testing.T) {
	if !ortlib.Available() {
		t.Skip("this build carries no ONNX Runtime")
	}
	w := newWorld(t)
	w.Now = time.Now
	settings := w.Getenv
	w.Getenv = func(name string) string {
		if name == "XDG_CACHE_HOME" { // a process loads ONNX Runtime from one place
			return testCache()
		}
		return settings(name)
	}
	model, err := filepath.Abs("../pkg/classify/testdata/models/bert")
	if err != nil {
		t.Fatal(err)
	}
	const size = 60_000
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, c := range []struct {
		name, text string
		long       bool // no model reads it to its end
	}{
		{"a letter", "x", false},
		{"one letter", fill("x"), false},
		{"megabytes", strings.Repeat("x", 2<<20), true},
		{"words", fill("a b "), true},
		{"many windows", strings.Repeat("a b ", 200_000), true},
		{"punctuation", fill("-"), true},
		{"unknown words", fill(strings.Repeat("qzxj", 24) + " "), false},
		{"special tokens", fill("[SEP] [CLS] "), true},
		{"NUL", fill(`\u0000`), false},
		{"marks", "e" + fill("\u0301\u0323"), false},
		{"joined emoji", fill("👩\u200d"), true},
		{"astral", fill("\U0001d4b3"), false},
		{"tags", fill("\U000e0072"), false},
	} {
		for _, form := range []string{
			`{"type":"write_file","payload":{"path":"a.txt","content":"%s"}}`,
			`{"type":"execute_command","payload":{"command":"make %s"}}`,
			`{"type":"some_tool","payload":{"text":"%s"}}`,
		} {
			status, out, errs := run(t, w, strings.Replace(form, "%s", c.text, 1)+"\n", "run", "--until", "classify", "--no-action", "--model", model)
			got := lines(t, out)
			if len(got) != 1 || got[0].Error == "classifier" || got[0].Error == "panic" || c.long && got[0].Decision == "ALLOW" {
				t.Fatalf("%s: %.30s: status %d, verdicts %+v\n%.1000s\n%s", c.name, form, status, got, out, errs)
			}
		}
	}
}
