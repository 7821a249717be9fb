package audit

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func segmentKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// segmentOf returns the lines of a segment of n entries from entry from on.
func segmentOf(t *testing.T, n int, from uint64) []string {
	t.Helper()
	lines, head := chained(n)
	var out bytes.Buffer
	if err := WriteSegment(&out, strings.NewReader(strings.Join(lines, "")), from, Sign(segmentKey(1), head, clock())); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(out.String()))
}

func TestSegment(t *testing.T) {
	public := segmentKey(1).Public().(ed25519.PublicKey)
	other, otherHead := chained(3)
	later, _ := chained(7)
	edit := func(i int, old, repl string) func(l []string) []string {
		return func(l []string) []string {
			if !strings.Contains(l[i], old) {
				t.Fatalf("%q is not in %s", old, l[i])
			}
			l[i] = strings.Replace(l[i], old, repl, 1)
			return l
		}
	}
	for name, tt := range map[string]struct {
		change func(l []string) []string // line 0 has the checkpoint, line 1 entry 3, line 4 entry 6
		line   int                       // of the break; 0 for none
		how    string
		err    error
	}{
		"as exported":              {func(l []string) []string { return l }, 0, "", nil},
		"entries before, left out": {func(l []string) []string { return slices.Delete(l, 1, 2) }, 0, "", nil},
		"first entry changed":      {edit(1, `"kind":"verdict"`, `"kind":"verdicT"`), 2, DamageKindChanged, nil},
		"first entry's link":       {edit(1, `"prev":"`, `"prev":"0`), 2, DamageKindChanged, nil},
		"middle entry changed":     {edit(2, `"kind":"verdict"`, `"kind":"verdicT"`), 3, DamageKindChanged, nil},
		"last entry changed":       {edit(4, `"kind":"verdict"`, `"kind":"verdicT"`), 5, DamageKindChanged, nil},
		"entry removed":            {func(l []string) []string { return slices.Delete(l, 2, 3) }, 3, DamageKindRemoved, nil},
		"entries swapped":          {func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }, 3, DamageKindReordered, nil},
		"entry repeated":           {func(l []string) []string { return slices.Insert(l, 2, l[1]) }, 3, DamageKindInserted, nil},
		"cut off":                  {func(l []string) []string { return l[:4] }, 5, DamageKindCutOff, nil},
		"cut in the last line":     {edit(4, "\n", ""), 5, DamageKindCutOff, nil},
		"no entries":               {func(l []string) []string { return l[:1] }, 2, DamageKindCutOff, nil},
		"true entry after it":      {func(l []string) []string { return append(l, later[6]) }, 6, DamageKindInserted, nil},
		"text after it":            {func(l []string) []string { return append(l, "{}\n") }, 6, DamageKindChanged, nil},
		"unended text after it":    {func(l []string) []string { return append(l, "{") }, 6, DamageKindInserted, nil},
		"endless line after it":    {func(l []string) []string { return append(l, strings.Repeat("x", 3*maxLineBytes)) }, 6, DamageKindChanged, nil},
		"entries of another log":   {func(l []string) []string { return append(l[:1], other...) }, 5, DamageKindCutOff, nil},
		"checkpoint's number":      {edit(0, `"seq":6`, `"seq":5`), 0, "", ErrBadSignature},
		"checkpoint's time":        {edit(0, `"time":"2`, `"time":"3`), 0, "", ErrBadSignature},
		"key twice":                {edit(0, `"seq":6`, `"seq":5,"seq":6`), 0, "", ErrNoSegment},
		"key in another case":      {edit(0, `"seq":6`, `"Seq":5,"seq":6`), 0, "", ErrNoSegment},
		"another form":             {edit(0, segmentFormat, "x"), 0, "", ErrNoSegment},
		"no checkpoint":            {func(l []string) []string { return l[1:] }, 0, "", ErrNoSegment},
		"nothing":                  {func([]string) []string { return nil }, 0, "", ErrNoSegment},
		"no line":                  {func([]string) []string { return []string{strings.Repeat("{", 9*maxLineBytes)} }, 0, "", ErrNoSegment},
		"checkpoint of no entry": {func(l []string) []string {
			var out bytes.Buffer
			if err := WriteSegment(&out, strings.NewReader(strings.Join(other, "")), 1, Sign(segmentKey(1), otherHead, clock())); err != nil {
				t.Fatal(err)
			}
			empty := Sign(segmentKey(1), ChainHead{}, clock())
			signed := Sign(segmentKey(1), otherHead, clock())
			head, rest, _ := strings.Cut(out.String(), "\n")
			head = strings.NewReplacer(`"seq":3`, `"seq":0`, otherHead.Hash, "", signed.Signature, empty.Signature).Replace(head)
			return []string{head + "\n", rest}
		}, 0, "", ErrNoSegment},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(tt.change(segmentOf(t, 6, 3)), "")
			r, err := VerifySegment(strings.NewReader(text), public)
			if !errors.Is(err, tt.err) || err == nil && tt.err != nil {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			var line int
			var how string
			if r.Damage != nil {
				line, how = r.Damage.Line, r.Damage.Kind
			}
			if line != tt.line || how != tt.how {
				t.Errorf("%+v, want line %d: %s", r.Damage, tt.line, tt.how)
			}
			if tt.err == nil && tt.line == 0 && (r.Head.Seq != 6 || r.FirstSeq < 3 || r.Checkpoint.Time != clock().UTC().Truncate(time.Millisecond)) {
				t.Errorf("%+v", r)
			}
		})
	}
	if _, err := VerifySegment(strings.NewReader(strings.Join(segmentOf(t, 6, 1), "")), segmentKey(2).Public().(ed25519.PublicKey)); !errors.Is(err, ErrBadSignature) {
		t.Errorf("another key: %v", err)
	}
}

func TestWriteSegmentRefuses(t *testing.T) {
	lines, head := chained(6)
	point := Sign(segmentKey(1), head, clock())
	for name, tt := range map[string]struct {
		log   []string
		from  uint64
		point Checkpoint
	}{
		"after the checkpoint": {lines, 7, point},
		"entry 0":              {lines, 0, point},
		"log that ends before": {lines[:5], 2, point},
		"log with a gap":       {slices.Concat(lines[:2], lines[4:]), 2, point},
		"start that is gone":   {lines[3:], 2, point},
		"another log":          {lines, 2, Sign(segmentKey(1), ChainHead{6, strings.Repeat("0", 64)}, clock())},
		"no entry":             {slices.Concat(lines[:2], []string{"{}\n"}, lines[2:]), 2, point},
	} {
		if err := WriteSegment(&bytes.Buffer{}, strings.NewReader(strings.Join(tt.log, "")), tt.from, tt.point); err == nil {
			t.Errorf("%s: exported", name)
		}
	}
}
