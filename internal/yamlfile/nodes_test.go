package yamlfile

import (
	"errors"
	"strings"
	"testing"
)

// TestNodes holds what kind of node each value is, whether it counts as text,
// and that what does not is refused at its place.
func TestNodes(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct{ value, kind, text string }{
		{"abc", "text", "abc"},
		{`"1.0"`, "text", "1.0"},
		{"'on'", "text", "on"},
		{"|\n  a\n  b", "text", "a\nb\n"},
		{"7", "a number", ""},
		{"1.5", "a number", ""},
		{".inf", "a number", ""},
		{"true", "a boolean", ""},
		{"null", "nothing", ""},
		{"[a]", "a list", ""},
		{"{a: b}", "a mapping", ""},
	} {
		top, err := Parse([]byte("key: "+c.value+"\n"), "a file")
		if err != nil {
			t.Fatal(err)
		}
		fields, err := Fields(top, []string{"key"})
		if err != nil || len(fields) != 1 {
			t.Fatalf("%s: %d fields, %v", c.value, len(fields), err)
		}
		n := fields[0].Value
		if got := KindOf(n); got != c.kind {
			t.Errorf("%s is %s, want %s", c.value, got, c.kind)
		}
		text, err := Text(n)
		if text != c.text || (err == nil) != (c.text != "") {
			t.Errorf("%s as text: %q, %v", c.value, text, err)
		}
		var at *Error
		if err != nil && (!errors.As(err, &at) || at.Line != 1) {
			t.Errorf("%s: the error %v does not say where", c.value, err)
		}
		list, err := Elements(n)
		if (err == nil) != (c.kind == "a list") || len(list) > 1 {
			t.Errorf("%s as a list: %d entries, %v", c.value, len(list), err)
		}
		if _, err := Fields(n, nil); (err == nil) != (c.kind == "a mapping") {
			t.Errorf("%s as a mapping: %v", c.value, err)
		}
	}
}

// TestUnknownKeys holds that a key which is not known is refused with its line,
// and the others are there all the same.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	top, err := Parse([]byte("name: a\nrulee: b\n7: c\nrule: d\n"), "a file")
	if err != nil {
		t.Fatal(err)
	}
	fields, err := Fields(top, []string{"name", "rule"})
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 2 || errs[0].Line != 2 || errs[1].Line != 3 || !strings.Contains(errs[0].Msg, `"rule"`) {
		t.Errorf("errors %v", err)
	}
	if len(fields) != 2 || fields[0].Key != "name" || fields[1].Key != "rule" || fields[1].KeyPos.Line != 4 {
		t.Errorf("fields %+v", fields)
	}
}

// TestHostile holds that text which is no YAML, or is made to cost much, is an
// error of one line without characters that a terminal obeys.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"alias":           "a: &x [b]\nc: *x\n",
		"merged":          "a: &x {b: c}\nd: {<<: *x}\n",
		"twice":           "a: 1\na: 2\n",
		"open":            "a: [b\n",
		"no UTF-8":        "a: \xff\n",
		"escape":          "a: [\x1b[31m\n",
		"deep":            strings.Repeat("[", 9999),
		"deep mappings":   strings.Repeat("{a: ", 9999),
		"deep sequences":  strings.Repeat("- ", 9999) + "a",
		"two documents":   "a: b\n---\nc: d\n",
		"tag":             "a: !!binary aGk=\n",
		"indented by tab": "a:\n\tb: c\n",
	} {
		_, err := Parse([]byte(text), "a file")
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if msg := err.Error(); strings.ContainsAny(msg, "\n\x1b") || len(msg) > 400 {
			t.Errorf("%s: message %.500q", name, msg)
		}
	}
}

// TestErrorsAreBounded holds that a file of another kind is not told line by
// line, and that errors of one file are in its order.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	var errs Errors
	for i := range 2 * maxErrors {
		errs.Add(Pos{Line: 2*maxErrors - i}.Errorf("wrong"))
	}
	errs.Add(errors.New("one more"))
	if len(errs) != maxErrors {
		t.Errorf("%d errors", len(errs))
	}
	var all Errors
	all.Add(errs)
	all.Add(errs)
	if len(all) != maxErrors {
		t.Errorf("%d errors of two lists", len(all))
	}
	var sorted Errors
	if err := AnnotateErrorsWithFile("policy", "p.yaml", errs); !errors.As(err, &sorted) || sorted[0].Line > sorted[1].Line || sorted[0].FileName != "p.yaml" {
		t.Errorf("%v", err)
	}
	if len(sorted.Unwrap()) != maxErrors {
		t.Error("not every error is unwrapped")
	}
	var plain Errors
	plain.Add(errors.New("no place"))
	if err := plain.Err(); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("%v", err)
	}
}
