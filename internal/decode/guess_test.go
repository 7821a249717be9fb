package decode

import (
	"encoding/base64"
	"strings"
	"testing"
)

// decodedBytes returns how many texts and bytes Guess visits, and whether it
// looked into all of them.
func decodedBytes(texts ...string) (count, size int, whole bool) {
	whole = VisitPossibleDecodings(texts, func(l DecodedLayer) bool {
		count++
		size += len(l.Text)
		return true
	})
	return count, size, whole
}

func TestDecoded(t *testing.T) {
	t.Parallel()
	for _, tt := range layerTests {
		if tt.layer == "" {
			continue
		}
		found := false
		VisitPossibleDecodings([]string{tt.in}, func(l DecodedLayer) bool {
			found = found || strings.Contains(l.Text, tt.want)
			return !found
		})
		if !found && len(tt.want) >= minDecodedBytes {
			t.Errorf("%s: %q does not decode to %q", tt.name, tt.in, tt.want)
		}
	}
}

// TestDecodedIsBounded gives texts that decode to many others. What is visited
// stays within the bounds, and where they were met that is said.
func TestDecodedIsBounded(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	deep := "some words in a text"
	for range 12 {
		deep = base64.StdEncoding.EncodeToString([]byte(deep))
	}
	many := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, tt := range map[string]struct {
		text  string
		whole bool
	}{
		"deep":           {deep, false},
		"bomb":           {zipped(strings.Repeat("a b ", 1<<20)), false},
		"percent":        {many("%25"), true},
		"percent, deep":  {"%" + many("25"), false},
		"nothing":        {many("The quick brown fox jumps over the lazy dog. "), true},
		"code":           {many("if err != nil {\n\treturn fmt.Errorf(\"read %s: %w\", name, err)\n}\n"), true},
		"escapes":        {many(`\x41`), true},
		"hex":            {many("72 "), true},
		"equals":         {many("="), true},
		"literals":       {many(`"a" "b", 'c'+"d" `), true},
		"printf":         {many("printf '%s%s' a b; "), true},
		"endless printf": {many("printf a b c "), true},
		"one run":        {many("QUFB"), true},
		"numbers":        {many("105, 103 "), true},
		"noise":          {many("x=~!@#$%^&*()_+{}|:<>?"), true},
		"words":          {many("abcdefghijklmnopqrstuvwxyz0123456789 "), true},
	} {
		count, visited, whole := decodedBytes(tt.text)
		if count > maxDecodedTexts || visited > maxDecodedBytes || whole != tt.whole {
			t.Errorf("%s: %d texts of %d bytes, whole %t", name, count, visited, whole)
		}
	}
}

// TestDecodedStops ends with the first text that is enough.
func TestDecodedStops(t *testing.T) {
	t.Parallel()
	n := 0
	if whole := VisitPossibleDecodings([]string{b64(b64("some words in a text"))}, func(DecodedLayer) bool { n++; return false }); n != 1 || !whole {
		t.Errorf("visited %d texts, whole %t", n, whole)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("nothing of this changes;\n", 100)
	from := far + `x = "ig" + "nore";` + "\n" + far
	got := changedPartsWithContext(from, joinStringLiterals(from))
	if !strings.Contains(got, `x = "ignore";`) || len(got) > 4*contextBytesAroundDecodedPart || len(got) < contextBytesAroundDecodedPart {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if all := changedPartsWithContext("", far); all != far {
		t.Errorf("of nothing, %d bytes of %d", len(all), len(far))
	}
	if none := changedPartsWithContext(far, far); none != "" {
		t.Errorf("of the same text: %q", none)
	}
}

func FuzzDecoded(f *testing.F) {
	for _, tt := range layerTests {
		f.Add(tt.in)
	}
	f.Add("printf '%s%s' a b | sh")
	f.Add("M86%B8P``\n")
	f.Fuzz(func(t *testing.T, s string) {
		if count, size, _ := decodedBytes(s); count > maxDecodedTexts || size > maxDecodedBytes {
			t.Errorf("%d texts of %d bytes", count, size)
		}
	})
}
