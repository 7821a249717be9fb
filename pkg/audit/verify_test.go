package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// chained returns the lines of a log of n entries, and its head.
func chained(n int) ([]string, ChainHead) {
	var lines []string
	var head ChainHead
	for i := range n {
		e := entry(i + 1)
		var line []byte
		line, head = appendChained(nil, head, e.encodeRedacted(clock(), nil))
		lines = append(lines, string(line))
	}
	return lines, head
}

func TestVerify(t *testing.T) {
	edit := func(i int, old, repl string) func([]string) []string {
		return func(l []string) []string {
			l[i] = strings.Replace(l[i], old, repl, 1)
			return l
		}
	}
	line := func(seq int, prev string) string {
		return fmt.Sprintf(`{"seq":%d,"prev":"%s","time":"2026-01-02T03:04:05.678Z","kind":"verdict","decision":"ALLOW","tier":0,"confidence":1,"latency_us":0}`+"\n", seq, prev)
	}
	hash := func(s string) string { return hashLine([]byte(strings.TrimSuffix(s, "\n"))) }
	insert := func(i int, f func(l []string) string) func([]string) []string {
		return func(l []string) []string { return slices.Insert(l, i, f(l)) }
	}
	swap := func(i, j int) func([]string) []string {
		return func(l []string) []string { l[i], l[j] = l[j], l[i]; return l }
	}
	move := func(from, to int) func([]string) []string {
		return func(l []string) []string {
			x := l[from]
			return slices.Insert(slices.Delete(l, from, from+1), to, x)
		}
	}
	remove := func(i, j int) func([]string) []string {
		return func(l []string) []string { return slices.Delete(l, i, j) }
	}
	tests := []struct {
		name  string
		spoil func([]string) []string
		line  int
		how   string
	}{
		{"nothing", func(l []string) []string { return l }, 0, ""},
		{"first changed", edit(0, "echo", "ecHo"), 1, DamageKindChanged},
		{"middle changed", edit(4, "BLOCK", "ALLOW"), 5, DamageKindChanged},
		{"last but one changed", edit(8, "BLOCK", "ALLOW"), 9, DamageKindChanged},
		{"last changed", edit(9, "BLOCK", "ALLOW"), 10, DamageKindChanged},
		{"number changed", edit(4, `"seq":5`, `"seq":50`), 5, DamageKindChanged},
		{"number lowered", edit(4, `"seq":5`, `"seq":2`), 5, DamageKindChanged},
		{"first number changed", edit(0, `"seq":1`, `"seq":2`), 1, DamageKindChanged},
		{"hash changed", edit(4, `"prev":"`, `"prev":"0`), 5, DamageKindChanged},
		{"hash replaced", func(l []string) []string {
			l[4] = l[4][:20] + strings.Repeat("a", 40) + l[4][60:]
			return l
		}, 5, DamageKindChanged},
		{"no JSON", func(l []string) []string { l[4] = "oops\n"; return l }, 5, DamageKindChanged},
		{"emptied line", func(l []string) []string { l[4] = "\n"; return l }, 5, DamageKindChanged},
		{"space added", func(l []string) []string { l[4] = " " + l[4]; return l }, 5, DamageKindChanged},
		{"carriage return added", func(l []string) []string { l[4] = strings.TrimSuffix(l[4], "\n") + "\r\n"; return l }, 5, DamageKindChanged},
		{"key added twice", edit(4, `"tier":1`, `"tier":1,"tier":0`), 5, DamageKindChanged},
		{"two changed", func(l []string) []string { return edit(7, "echo", "x")(edit(3, "echo", "x")(l)) }, 4, DamageKindChanged},
		{"one removed", remove(4, 5), 5, DamageKindRemoved},
		{"three removed", remove(4, 7), 5, DamageKindRemoved},
		{"first removed", remove(0, 1), 1, DamageKindRemoved},
		{"first half removed", remove(0, 5), 1, DamageKindRemoved},
		{"last removed", remove(9, 10), 10, DamageKindCutOff},
		{"last half removed", remove(5, 10), 6, DamageKindCutOff},
		{"all removed", remove(0, 10), 1, DamageKindCutOff},
		{"forged inserted", insert(4, func(l []string) string { return line(5, hash(l[3])) }), 5, DamageKindInserted},
		{"forged inserted first", insert(0, func([]string) string { return line(1, genesisHash) }), 1, DamageKindInserted},
		{"noise inserted", insert(4, func([]string) string { return "{}\n" }), 5, DamageKindInserted},
		{"empty line inserted", insert(4, func([]string) string { return "\n" }), 5, DamageKindInserted},
		{"long line inserted", insert(4, func([]string) string { return strings.Repeat("x", 3*maxLineBytes) + "\n" }), 5, DamageKindInserted},
		{"copy inserted behind", insert(5, func(l []string) string { return l[4] }), 6, DamageKindInserted},
		{"old copy inserted", insert(7, func(l []string) string { return l[1] }), 8, DamageKindInserted},
		{"forged at the end", insert(10, func(l []string) string { return line(7, hash(l[3])) }), 11, DamageKindInserted},
		{"neighbours swapped", swap(4, 5), 5, DamageKindReordered},
		{"first swapped", swap(0, 1), 1, DamageKindReordered},
		{"far swapped", swap(2, 8), 3, DamageKindReordered},
		{"moved to the front", move(7, 2), 3, DamageKindReordered},
		{"later copy inserted", insert(2, func(l []string) string { return l[7] }), 3, DamageKindInserted},
		{"forged with a high number", insert(2, func(l []string) string { return line(77, hash(l[1])) }), 3, DamageKindInserted},
		{"moved to the end", move(2, 9), 3, DamageKindReordered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines, head := chained(10)
			spoiled := strings.Join(tt.spoil(lines), "")
			r, err := Verify(strings.NewReader(spoiled), &head)
			if err != nil {
				t.Fatal(err)
			}
			if tt.how == "" {
				if !r.OK() || r.Head != head || r.CompleteLineCount != 10 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.OK() || r.Damage.Line != tt.line || r.Damage.Kind != tt.how {
				t.Errorf("got %v, want line %d: %s", r.Damage, tt.line, tt.how)
			}
		})
	}
}

// A log that was put aside goes on in a new file; nothing else may begin in
// the middle.
func TestVerifyGoesOn(t *testing.T) {
	lines, head := chained(5)
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	aside := path + damagedSuffix + "now"
	e := Entry{Kind: EntryKindLogRecovery, Recovery: &LogRecovery{Reason: "cut", MovedLogPath: aside}}
	first, next := appendChained(nil, head, e.encodeRedacted(clock(), nil))
	two := entry(7)
	both, last := appendChained(first, next, two.encodeRedacted(clock(), nil))
	write(t, path, both)
	verified := func(kept *ChainHead, gaps map[uint64]string) VerificationReport {
		r, err := VerifyFile(path, kept, gaps)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	gaps := map[uint64]string{6: next.Hash}
	for _, kept := range []*ChainHead{nil, &next, &last} {
		if r := verified(kept, gaps); !r.OK() || r.FirstSeq != 6 || r.Head != last {
			t.Errorf("kept by the state, %v: %+v %v", kept, r, r.Damage)
		}
		if r := verified(kept, map[uint64]string{6: head.Hash}); r.OK() || r.Damage.Kind != DamageKindRemoved {
			t.Errorf("kept by nothing, %v: %+v %v", kept, r, r.Damage)
		}
	}
	if r := verified(&head, nil); !r.OK() {
		t.Errorf("a head before the gap: %+v %v", r, r.Damage)
	}
	write(t, aside, []byte(lines[2]+"damaged"))
	if r := verified(nil, nil); r.OK() {
		t.Errorf("by a file that goes on from elsewhere: %+v", r)
	}
	write(t, aside, []byte(lines[0]+"damaged"))
	if r := verified(nil, nil); !r.OK() {
		t.Errorf("by the file that was put aside: %+v %v", r, r.Damage)
	}
	if r, _ := Verify(strings.NewReader(lines[3]+lines[4]), nil); r.OK() {
		t.Errorf("%+v", r)
	}
	other := ChainHead{Seq: 5, Hash: strings.Repeat("ab", 32)}
	if r, _ := Verify(bytes.NewReader(both), &other); r.OK() {
		t.Errorf("goes on from another log: %+v", r)
	}
}

// A log may be longer than the head that is kept, and nothing kept means that
// only the chain is checked.
func TestVerifyOlderHead(t *testing.T) {
	lines, _ := chained(10)
	_, old := chained(6)
	all := strings.Join(lines, "")
	for _, kept := range []*ChainHead{nil, {}, &old} {
		if r, err := Verify(strings.NewReader(all), kept); err != nil || !r.OK() || r.Head.Seq != 10 {
			t.Errorf("%v: %+v, %v", kept, r, err)
		}
	}
	old.Hash = strings.Repeat("00", 32)
	if r, err := Verify(strings.NewReader(all), &old); err != nil || r.OK() || r.Damage.Line != 6 || r.Damage.Kind != DamageKindChanged {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := VerifyFile(filepath.Join(t.TempDir(), "none"), &old, nil); err != nil || r.OK() || r.Damage.Kind != DamageKindCutOff {
		t.Errorf("missing file: %+v, %v", r, err)
	}
	if _, err := VerifyFile(filepath.Join(t.TempDir(), "none"), nil, nil); err == nil {
		t.Error("a missing file verifies")
	}
}

// Every change of a byte, and every loss of lines, is found.
func TestVerifyFindsAll(t *testing.T) {
	lines, head := chained(6)
	all := []byte(strings.Join(lines, ""))
	for i := range all {
		b := bytes.Clone(all)
		b[i] ^= 1 << rand.IntN(7)
		if r, err := Verify(bytes.NewReader(b), &head); err != nil || r.OK() {
			t.Fatalf("byte %d: %+v, %v", i, r, err)
		}
		b = slices.Delete(bytes.Clone(all), i, i+1)
		if r, err := Verify(bytes.NewReader(b), &head); err != nil || r.OK() {
			t.Fatalf("byte %d removed: %+v, %v", i, r, err)
		}
		if r, err := Verify(bytes.NewReader(all[:i]), &head); err != nil || r.OK() {
			t.Fatalf("cut at %d: %+v, %v", i, r, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	lines, head := chained(4)
	f.Add([]byte(strings.Join(lines, "")))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Verify(bytes.NewReader(b), &head)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() && !bytes.HasPrefix(b, []byte(strings.Join(lines, ""))) {
			t.Errorf("%q passes: %+v", b, r)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	lines, head := chained(1000)
	all := []byte(strings.Join(lines, ""))
	b.SetBytes(int64(len(all)))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Verify(bytes.NewReader(all), &head); err != nil || !r.OK() {
			b.Fatal(r, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := CheckLogMatchesStoredHead(path, ChainHead{}); err != nil {
		t.Errorf("no log and none known of: %v", err)
	}
	if err := CheckLogMatchesStoredHead(path, ChainHead{1, "x"}); !errors.Is(err, ErrLogTruncated) {
		t.Errorf("no log although there was one: %v", err)
	}
	line, head := appendChained(nil, ChainHead{}, []byte(`"kind":"verdict"}`))
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		kept ChainHead
		want error
	}{
		{"nothing kept", ChainHead{}, nil},
		{"the last entry", head, nil},
		{"this entry was replaced: its hash is not the one in the state file", ChainHead{1, "x"}, ErrLogChanged},
		{"a later entry", ChainHead{2, "x"}, ErrLogTruncated},
	} {
		if err := CheckLogMatchesStoredHead(path, tt.kept); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	next, _ := appendChained(line, head, []byte(`"kind":"verdict"}`))
	for name, tt := range map[string]struct {
		log  []byte
		want error
	}{
		"an entry after the kept one":  {next, nil},
		"and the kept one was changed": {bytes.Replace(next, []byte("verdict"), []byte("allowed"), 1), ErrLogChanged},
	} {
		if err := os.WriteFile(path, tt.log, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckLogMatchesStoredHead(path, head); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if err := os.WriteFile(path, []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckLogMatchesStoredHead(path, head); !errors.Is(err, ErrLogChanged) {
		t.Errorf("junk: %v", err)
	}
}

// The recovery entry says where the log that was put aside began, and its hash: neither what lies
// before it nor itself can be removed or changed.
func TestVerifyPutAside(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil   func(t *testing.T, full []string, aside string)
		how     string
		missing int
	}{
		"nothing":               {func(*testing.T, []string, string) {}, "", 0},
		"all before removed":    {func(t *testing.T, full []string, _ string) { remove(t, full...) }, DamageKindRemoved, 0},
		"last before removed":   {func(t *testing.T, full []string, _ string) { remove(t, full[len(full)-1]) }, DamageKindRemoved, 0},
		"last before renamed":   {func(t *testing.T, full []string, _ string) { rename(t, full[len(full)-1]) }, DamageKindChanged, 0},
		"put aside and changed": {func(t *testing.T, _ []string, aside string) { write(t, aside, []byte("{}\n")) }, DamageKindChanged, 0},
		"put aside and removed": {func(t *testing.T, _ []string, aside string) { remove(t, aside) }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			path, heads := filled(t, 40)
			b := read(t, path)
			write(t, path, b[:len(b)-9])
			aside, err := Repair(t.Context(), path, Options{Clock: clock, HeadStore: heads, MaxFileBytes: small})
			if err != nil || aside == "" {
				t.Fatal(aside, err)
			}
			appendAll(t, openSmall(t, path, heads), 3)
			tt.spoil(t, full(t, path), aside)
			r := verifyGaps(t, path, &heads.ChainHead, heads.gaps)
			how := ""
			if r.Damage != nil {
				how = r.Damage.Kind
			}
			if how != tt.how || len(r.MissingFiles) != tt.missing {
				t.Errorf("%q, missing %q", how, r.MissingFiles)
			}
		})
	}
}

func remove(t *testing.T, files ...string) {
	t.Helper()
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

func rename(t *testing.T, file string) {
	t.Helper()
	if err := os.Rename(file, file[:len(file)-4]+"9999"); err != nil {
		t.Fatal(err)
	}
}
