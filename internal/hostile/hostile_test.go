package hostile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shieldcli/shield/pkg/action"
)

func TestRecords(t *testing.T) {
	records := GenerateAttackRecords(1)
	if len(records) != AttackRecordCount {
		t.Errorf("%d records, want %d", len(records), AttackRecordCount)
	}
	classes := map[string]int{}
	distinct := map[string]bool{}
	for _, r := range records {
		classes[r.Class]++
		distinct[string(r.Raw)] = true
	}
	if len(classes) < 50 {
		t.Errorf("%d classes", len(classes))
	}
	for name, n := range classes {
		if n > AttackRecordCount/20 {
			t.Errorf("%s: %d records are more than 5 %%", name, n)
		}
	}
	if len(distinct) < AttackRecordCount/2 {
		t.Errorf("only %d different records", len(distinct))
	}
	for i, again := range GenerateAttackRecords(1) {
		if !bytes.Equal(again.Raw, records[i].Raw) {
			t.Fatalf("record %d differs for the same seed", i)
		}
	}
}

// TestStream holds that each attack has a line of its own, and a separator that is
// good and comes whole whatever is before it.
func TestStream(t *testing.T) {
	t.Parallel()
	records := []AttackRecord{{Raw: []byte(`{"a`)}, {Raw: []byte("x\ny")}, {Raw: nil}}
	want := "{\"a\n" + ActionBetweenAttacks + "\nx\ny\n" + ActionBetweenAttacks + "\n\n" + ActionBetweenAttacks + "\n"
	if got := string(JoinRecordsWithSeparatorActions(records)); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if a, err := action.Parse([]byte(ActionBetweenAttacks)); err != nil || a.Type != "delete_file" {
		t.Errorf("the separator is %v, %v", a, err)
	}
}

// TestTyping holds that typing is the same for a seed, ends nothing by itself, is
// never slow, and has in some hundred seeds every kind of thing that people type.
func TestTyping(t *testing.T) {
	t.Parallel()
	all := ""
	for seed := range uint64(300) {
		strokes := RandomTyping(seed)
		if !slices.Equal(strokes, RandomTyping(seed)) {
			t.Fatalf("seed %d types two things", seed)
		}
		if len(strokes) == 0 || len(strokes) > 5000 {
			t.Errorf("seed %d types %d times", seed, len(strokes))
		}
		for _, s := range strokes {
			if s.PauseBefore < 0 || s.PauseBefore > 3*time.Second {
				t.Errorf("seed %d pauses %v", seed, s.PauseBefore)
			}
			if strings.ContainsAny(s.Bytes, "\x03\x1c") {
				t.Errorf("seed %d types %q, which ends what it meets", seed, s.Bytes)
			}
			all += s.Bytes
		}
	}
	for _, want := range []string{"\r", "yes", "approve", "git status", "\x1b[A", ":wq\r", "\x1b[200~", "\x1b[201~", "\t", "\x7f", "\x00", "\xff", "漢"} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody types %q", want)
		}
	}
}

// TestVectors holds how a vector is read, and that one which lacks something or says
// something unknown is refused by its name.
func TestVectors(t *testing.T) {
	t.Parallel()
	read := func(files map[string]string) ([]ActionRecordTestVector, error) {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return ReadVectors(dir)
	}
	const head = "expect: BLOCK\nerror: invalid_json\nwhy: because: it is\n"
	got, err := read(map[string]string{
		"b.vec": head + "\n{\r\n\n\xff", "a.vec": head + "pipe: is_verdict\n\n", "c.txt": "no vector",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []ActionRecordTestVector{
		{Name: "a", WantDecision: "BLOCK", WantActionError: action.InvalidJSON, WantVerdictError: "is_verdict", ExpectationReason: "because: it is", Raw: []byte{}},
		{Name: "b", WantDecision: "BLOCK", WantActionError: action.InvalidJSON, WantVerdictError: action.InvalidJSON, ExpectationReason: "because: it is", Raw: []byte("{\r\n\n\xff")},
	}
	if !slices.EqualFunc(got, want, func(a, b ActionRecordTestVector) bool {
		return a.Name == b.Name && a.WantDecision == b.WantDecision && a.WantActionError == b.WantActionError && a.WantVerdictError == b.WantVerdictError && a.ExpectationReason == b.ExpectationReason && bytes.Equal(a.Raw, b.Raw)
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for text, says := range map[string]string{
		head + "{}":                       "blank line",
		"":                                "blank line",
		head + "colour: red\n\n{}":        `unknown header "colour: red`,
		"expect: BLOCK\nwhy: x\n\n{}":     "needed",
		"error: x\nwhy: x\n\n{}":          "needed",
		"expect: BLOCK\nerror: x\n\nwhy:": "needed",
	} {
		if _, err := read(map[string]string{"x.vec": text}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "x.vec") {
			t.Errorf("%q: error %v, want %s", text, err, says)
		}
	}
}
