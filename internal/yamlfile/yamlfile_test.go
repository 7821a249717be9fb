package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"

	"github.com/shieldcli/shield/internal/suggest"
)

// A tab in the indentation is named as such, wherever the parser gives up or
// finds an empty file, and is left alone where it is text.
func TestTabs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a:\n\tb: c\n":             "f:2:1: the line is indented by a tab; use spaces",
		"a:\n\t- b\n":              "f:2:1: the line is indented by a tab",
		"\ta: b\n":                 "f:1:1: the line is indented by a tab",
		"a:\n  b: c\n  \td: e\n":   "f:3:3: the line is indented by a tab",
		"a:\n\t\n":                 "",
		"a:\n\t# remark\n  b: c\n": "",
		"a: |\n  b\n  \tc\n":       "",
		"a:\tb\n":                  "",
	} {
		_, err := Parse([]byte(text), "a file")
		if err = AnnotateErrorsWithFile("k", "f", err); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOneDocument(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "---\n": true, "---\na: b\n": true, "# only\n---\na: b\n": true,
		"a: b\n---\n": true, "a: b\n---\nc: d\n": false, "a: b\n---\n- c\n": false, "a: b\n...\nc: d\n": false, "---\na\n---\nb\n": false,
	} {
		if _, err := Parse([]byte(text), "a file"); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "a file must be one document") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "60": 60, "-1": -1} {
		if n, err := WholeNumber[int](value(t, text)); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"1.9", "1.0", "1e3", "010", "0x10", "0o7", "0b1", "1_000", "+1", ".inf", ".nan", "'1'", "~", "true", "[1]", "99999999999999999999"} {
		if n, err := WholeNumber[int](value(t, text)); err == nil {
			t.Errorf("%s is taken for %d", text, n)
		}
	}
}

func value(t *testing.T, text string) ast.Node {
	t.Helper()
	top, err := Parse([]byte("a: "+text+"\n"), "a file")
	if err != nil {
		t.Fatal(err)
	}
	fs, err := Fields(top, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fs[0].Value
}

// All that is wrong is told in the order of the file, but not without end.
func TestErrors(t *testing.T) {
	t.Parallel()
	var errs Errors
	errs.Add(nil)
	if errs.Err() != nil {
		t.Error("nothing is an error")
	}
	errs.Add(Pos{3, 1}.Errorf("c"))
	errs.Add(fmt.Errorf("wrapped: %w", Errors{Pos{2, 5}.Errorf("b"), Pos{2, 1}.Errorf("a")}))
	err := AnnotateErrorsWithFile("policy", "f", errs.Err())
	if got := err.Error(); got != "policy f:2:1: a (and 2 more)" {
		t.Error(got)
	}
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 || all[2].Error() != "policy f:3:1: c" || len(all.Unwrap()) != 3 {
		t.Errorf("%v", all)
	}
	for range 2 * maxErrors {
		errs.Add(Pos{9, 9}.Errorf("more"))
		errs.Add(all)
	}
	if len(errs) != maxErrors {
		t.Errorf("%d errors", len(errs))
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"deny", "verify", "allow"}
	for word, want := range map[string]string{
		"denny": `; did you mean "deny"?`, "Allow": `; did you mean "allow"?`, "xyz": "", "": "", strings.Repeat("a", 1<<16): "",
	} {
		if got := suggest.DidYouMeanSuffix(word, known); got != want {
			t.Errorf("%.20s: %q, want %q", word, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	if got := QuoteForMessage("a\x1b\u202e" + strings.Repeat("b", 200)); len(got) > 110 || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
}
