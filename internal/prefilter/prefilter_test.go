package prefilter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRequired(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr string
		want []string
	}{
		{`abc`, []string{"abc"}},
		{`(?i)ABC`, []string{"abc"}},
		{`ab`, nil},
		{`a+b*c?`, nil},
		{`.*`, nil},
		{`foo.*barbaz`, []string{"barbaz"}},
		{`foo|barbaz`, []string{"foo", "barbaz"}},
		{`foo|b`, nil},
		{`x(?:foo|bar)y`, []string{"xfooy", "xbary"}},
		{`foobar|foo`, []string{"foo"}},
		{`(?:foo)?bar`, []string{"bar"}},
		{`(?:foo)*bar`, []string{"bar"}},
		{`(?:foo)+`, []string{"foo"}},
		{`ba[rz]`, []string{"bar", "baz"}},
		{`\bfoo\s+bar\b`, []string{"foo"}},
		{`[a-z]+`, nil},
		{`\x{200B}|\x{2060}`, []string{"\u200b", "\u2060"}},
		{`(?:foo){2,}`, []string{"foo"}},
		{`(?i)caf\x{e9}s`, nil},
		{`(?:)`, nil},
		{`x?[\x{E0020}-\x{E007E}]`, []string{"\xf3\xa0\x80", "\xf3\xa0\x81"}},
		{`[^\x00-\x{10FFFF}]`, nil},
	}
	for _, tt := range tests {
		got, err := RequiredLiteralAlternatives(tt.expr)
		if err != nil {
			t.Errorf("Required(%q): %v", tt.expr, err)
			continue
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Required(%q) (-want +got):\n%s", tt.expr, diff)
		}
	}
	if _, err := RequiredLiteralAlternatives(`(`); err == nil {
		t.Error("Required of a broken expression gave no error")
	}
}

func TestRequiredToo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expr string
		want [][]string
	}{
		{`abc`, nil},
		{`foo.*barbaz`, [][]string{{"foo"}}},
		{`foo.*barbaz|barbaz.*foo`, nil},
		{`(?:foo|fob).*barbaz.+qux`, [][]string{{"qux"}, {"fob", "foo"}}},
		{`(?:foo.*)+barbaz`, [][]string{{"foo"}}},
		{`(?:foo.*)?barbaz`, nil},
		{`(?:foo.*)*barbaz`, nil},
		{`(?:foo.*){2}barbaz`, [][]string{{"foo"}}},
		{`(?:foo|f).*barbaz`, nil},
		{`one.*two2.*three3`, [][]string{{"two2"}, {"one"}}},
		{`a{20}.*foo`, [][]string{{"foo"}}},
		{`foo.*foo`, nil},
		{`.*`, nil},
	} {
		got, err := AdditionalRequiredLiteralSets(tt.expr)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("RequiredToo(%q), %v (-want +got):\n%s", tt.expr, err, diff)
		}
	}
	if _, err := AdditionalRequiredLiteralSets(`(`); err == nil {
		t.Error("RequiredToo of a broken expression gave no error")
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	set, ok := TryNewLiteralSet([][]string{{"abc"}, {"bcd", "xyz"}, nil, {"curl -"}, {"\u200b"}})
	if !ok {
		t.Fatal("New dropped literals")
	}
	tests := []struct {
		text string
		want []int
	}{
		{"", nil},
		{"ab", nil},
		{"abc", []int{0}},
		{"ABC", []int{0}},
		{"abcd", []int{0, 1}},
		{"..XYZ", []int{1}},
		{"CURL -s", []int{3}},
		{"curl", nil},
		{"a\u200bb", []int{4}},
		{"xy", nil},
	}
	for _, tt := range tests {
		for name, got := range map[string][]int{"string": found(set, tt.text), "bytes": found(set, []byte(tt.text))} {
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Scan(%s %q) (-want +got):\n%s", name, tt.text, diff)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, ok := TryNewLiteralSet([][]string{{"ab"}}); ok {
		t.Error("New took a literal that is too short to be found")
	}
	many := make([]string, 1<<16)
	for i := range many {
		many[i] = fmt.Sprintf("lit%06d", i)
	}
	if _, ok := TryNewLiteralSet([][]string{many}); ok {
		t.Error("New took more literals than it can number")
	}
}

func found[T string | []byte](s *LiteralSet, text T) []int {
	bits := make([]uint64, s.ExpressionBitsetWords())
	ScanForLiterals(s, text, bits)
	var ids []int
	for i := range 64 * len(bits) {
		if bits[i/64]&(1<<(i%64)) != 0 {
			ids = append(ids, i)
		}
	}
	return ids
}

// FuzzRequired: what an expression matches, the sets never miss.
func FuzzRequired(f *testing.F) {
	for _, seed := range [][2]string{
		{`(?i)foo|ba[rz]+`, "a FOO"}, {`(?:ab|cd){2}e?f`, "abcdf"}, {`x(?:yz|yy)*w..`, "xyzw12"},
		{`(a|b|cde)fgh`, "afgh"}, {`(?s).{3}abc`, "123abc"}, {`\bfoo\b`, "a foo b"},
		{`(?:foo|ba[rz]).*(?:qux.?)+tail1`, "bazar QUX,tail1"}, {`(?i)(?:ab|cd){2}.(?:one|two|)three`, "ABCD three"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 60 || strings.ContainsFunc(text, func(r rune) bool { return r == 'ſ' || r == '\u212a' }) {
			t.Skip()
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Skip()
		}
		lits, err := RequiredLiteralAlternatives(expr)
		if err != nil {
			t.Skip()
		}
		if lits == nil || !re.MatchString(text) {
			return
		}
		also, err := AdditionalRequiredLiteralSets(expr)
		if err != nil {
			t.Fatal(err)
		}
		all := append([][]string{lits}, also...)
		set, ok := TryNewLiteralSet(all)
		if !ok {
			t.Fatalf("%q needs %q, which New refuses", expr, all)
		}
		if len(found(set, text)) != len(all) {
			t.Fatalf("%q matches %q, but of one of %q none stands in it", expr, text, all)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	var lits [][]string
	for i := range 500 {
		lits = append(lits, []string{fmt.Sprintf("lit%dx", i*7919), fmt.Sprintf("%dword", i*104729)})
	}
	set, _ := TryNewLiteralSet(lits)
	text := "find . -name '*.go' -newer go.sum | xargs grep -n 'func main'"
	bits := make([]uint64, set.ExpressionBitsetWords())
	b.ReportAllocs()
	for b.Loop() {
		clear(bits)
		ScanForLiterals(set, text, bits)
	}
}

func BenchmarkNew(b *testing.B) {
	var lits [][]string
	for i := range 700 {
		lits = append(lits, []string{fmt.Sprintf("lit%dx", i*7919), fmt.Sprintf("%dword", i*104729)})
	}
	b.ReportAllocs()
	for b.Loop() {
		TryNewLiteralSet(lits)
	}
}
