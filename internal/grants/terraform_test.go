package grants

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// terraformFields returns the fields of all objects, as PATH KEY=TEXT.
func terraformFields(text string) (out []string, err error) {
	b := &objectBuilder{}
	err = b.addTerraform(text)
	for _, o := range b.objects {
		for key, values := range o.fields {
			for _, v := range values {
				out = append(out, fmt.Sprintf("%s %s=%s", o.keyPath, key, v))
			}
		}
	}
	slices.Sort(out)
	return out, err
}

// The values of an attribute "a" are those that github.com/hashicorp/hcl/v2 2.25.0 gives without variables:
// the text if the value is a text, else the source text.
func TestTerraformValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value string
		want  []string
	}{
		{`"x"`, []string{"x"}},
		{`""`, []string{""}},
		{`"\n\r\t\"\\\u00e9\U0001F600"`, []string{"\n\r\t\"\\é😀"}},
		{`"0.0.0.0\u002f0"`, []string{"0.0.0.0/0"}},
		{`"$${x} %%{y} $ % $$ %% $$${z} $"`, []string{"${x} %{y} $ % $$ %% $${z} $"}},
		{"\"e\u0301 e\\u0301\"", []string{"é é"}},
		{"\"${\"e\"}\u0301x\"", []string{"éx"}},
		{`"${"0.0.0.0/0"}"`, []string{"0.0.0.0/0"}},
		{`"${("0.0.0.0/0")}"`, []string{"0.0.0.0/0"}},
		{`"0.0.0.0${"/"}${0}"`, []string{"0.0.0.0/0"}},
		{`"a  ${~ true ~}  b"`, []string{"atrueb"}},
		{`"${var.x}"`, []string{"${var.x}"}},
		{`"a${var.x}b" // c`, []string{"a${var.x}b"}},
		{`"a${var.x == "b" && !var.y ? 1 : f(2)}"`, []string{`a${var.x == "b" && !var.y ? 1 : f(2)}`}},
		{`"a${null}"`, []string{"a${null}"}},
		{`"a${[1]}"`, []string{"a${[1]}"}},
		{`"${true}"`, []string{"${true}"}},
		{`12.50e3`, []string{"12.50e3"}},
		{`-1 + 2 * /* x */ 3 # y`, []string{"-1 + 2 * /* x */ 3"}},
		{`true`, []string{"true"}},
		{`null`, []string{"null"}},
		{`!(var.x[0].y["z"].0.*.w > 1)`, []string{`!(var.x[0].y["z"].0.*.w > 1)`}},
		{`var.x[*].y[count.index]`, []string{"var.x[*].y[count.index]"}},
		{`{a = "b"}[var.x]`, []string{`{a = "b"}[var.x]`}},
		{`[for k, v in var.x : "${k}" if v]`, []string{`[for k, v in var.x : "${k}" if v]`}},
		{`{for k in ["a"] : k => k...}`, []string{`{for k in ["a"] : k => k...}`}},
		{"[\n  \"x\", # y\n  z.w\n  , 1,\n]", []string{"1", "x", "z.w"}},
		{`[]`, nil},
		{"(x\n  + 1)", []string{"x\n  + 1"}},
		{`var.x ? "y" : ("z")`, []string{"y", "z"}},
		{`true ? "y" : "z"`, []string{"y", "z"}},
		{`provider::f("x", [y]...)`, []string{"x", "y"}},
		{"<<E\n  x ${var.y}\n E", []string{"<<E\n  x ${var.y}\n E"}},
		{"<<E\n  x\\n $E\n\"y\" $${z}\n  E", []string{"  x\\n $E\n\"y\" ${z}\n"}},
		{"<<-E\n    x\n\n  y\n\t\tz\n  E", []string{"  x\n\ny\nz\n"}},
		{"<<-E\n  x\n  ${\"y\"} ~\n  E", []string{"x\ny ~\n"}},
		{"<<E\r\nx\r\nE\r", []string{"x\r\n"}},
		{"<<E\nE", []string{""}},
		{"<<A\n${<<B\nx\nB\n}y\nA", []string{"x\ny\n"}},
		{"<<E\n%{ if var.x ~}\n 1\n%{ else }2%{ endif }%{ for a in var.b }${a}%{ endfor }\nE", []string{"<<E\n%{ if var.x ~}\n 1\n%{ else }2%{ endif }%{ for a in var.b }${a}%{ endfor }\nE"}},
	} {
		got, err := terraformFields("a = " + c.value + "\n")
		for i := range c.want {
			c.want[i] = " a=" + c.want[i]
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q %v, want %q", c.value, got, err, c.want)
		}
	}
}

func TestTerraformBlocks(t *testing.T) {
	t.Parallel()
	got, err := terraformFields("\ufeffa \"b\" c \"d\\u00e9$${x}\" { # x\n  e = {\n    f = 1, \"g\" : \"h\"\n    (var.i) = [{ j = \"k\" }]\n    l.m = 2 // y\n  }\n  n { o = \"p\" }\n  n {}\n}\n/* z */ q = \"{\\\"Statement\\\": {\\\"r\\\": \\\"s\\\"}}\"\r\n")
	want := []string{
		" a/b/c/dé${x}/e/f=1", " a/b/c/dé${x}/e/g=h", " a/b/c/dé${x}/e/l.m=2", " a/b/c/dé${x}/e/var.i/j=k", " a/b/c/dé${x}/n/o=p", " q/Statement/r=s", " q={\"Statement\": {\"r\": \"s\"}}",
		"a/b/c/dé${x} e/f=1", "a/b/c/dé${x} e/g=h", "a/b/c/dé${x} e/l.m=2", "a/b/c/dé${x} e/var.i/j=k", "a/b/c/dé${x} n/o=p",
		"a/b/c/dé${x}/e f=1", "a/b/c/dé${x}/e g=h", "a/b/c/dé${x}/e l.m=2", "a/b/c/dé${x}/e var.i/j=k", "a/b/c/dé${x}/e/var.i j=k", "a/b/c/dé${x}/n o=p", "q Statement/r=s", "q/Statement r=s",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
}

// Values that are constant, but not evaluated, are never taken for their source text.
func TestTerraformUnread(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`"${true ? "0.0.0.0/0" : ""}"`, `["0.0.0.0/0"][0]`, `{a = "0.0.0.0/0"}.a`, `{a = "0.0.0.0/0"}["a"]`, `"${["0.0.0.0/0"][0]}"`,
		`"0.0.0.${1 - 1}/0"`, `"0.0.0.0/${-0}"`, `"%{if true}0.0.0.0/0%{endif}"`, `"%{for x in ["0.0.0.0"]}${x}%{endfor}/0"`, `[for x in ["0.0.0.0/0"] : x][0]`,
		`"0.0.0.0/0${false && var.x ? "a" : ""}"`, `"0.0.0.0/0${true ? "" : var.x}"`, `"0.0.0.0/${00}"`, `"0.0.0.0/${0.0}"`, `["0.0.0.0/0"].*[0]`,
		"<<-E\n \u0301x\n E", "<<E\nx\n\rE\nE", "<<E\n$\r\r\nE", "\"$\n\"", `"${` + strings.Repeat("!", 1000) + `true}"`, strings.Repeat("var.x ? 1 : ", 1000) + "2", "é", "1 # \xff",
	} {
		if got, err := terraformFields("a = " + value + "\n"); !errors.Is(err, ErrUnread) {
			t.Errorf("%.80q: %q %v", value, got, err)
		}
	}
	const text = "resource \"aws_security_group\" \"a\" {\n  ingress {\n    cidr_blocks = [\"${true ? \"0.0.0.0\\u002f0\" : \"\"}\"]\n  }\n}\n"
	if _, err := FindWeakenings("/p/a.tf", "", text, false, formsOf("/p/a.tf")); !errors.Is(err, ErrUnread) {
		t.Errorf("error %v", err)
	}
	if _, err := FindWeakenings("/p/a.tf", text, "", true, formsOf("/p/a.tf")); !errors.Is(err, ErrUnread) {
		t.Errorf("the old text: error %v", err)
	}
}

func TestTerraformInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a = 1\na = 2\n", "a {\n  b = 1\n  b = 1\n}\n", "a = 1 b = 2\n", "a = 1, b = 2\n", "a = 'x'\n", "a = `x`\n", "a = 1;\n", "a\n", "a =\n1\n", "a = \"x\ny\"\n", "\"a\" = 1\n",
		"a = \"\\x\"\n", "a = \"\\u00e\"\n", "a = \"\\ud800\"\n", "a = \"\\U00110000\"\n", "a = \"x", "a = \"${x\"\n", "a = \"%{if x}\"\n", "a = \"%{endif}\"\n", "a = \"%{if x}%{endfor}\"\n", "a = \"%{x}\"\n",
		"a = <<E\nx\nE", "a = <<E\nx\n", "a = << E\nx\nE\n", "a = [1 2]\n", "a = [1,,2]\n", "a = {b = 1 c = 2}\n", "a = {b}\n", "a = {for = 1}\n", "a = f(1\n", "a = f(x... ,)\n", "a = x.\n", "a = x.0.1\n", "a = x[*.y\n",
		"a = 1 ? 2\n", "a = 1 = 2\n", "a = x ** y\n", "a = x & y\n", "a = [for x : y]\n", "a = {for x in y : z}\n", "a {\n", "a { b = 1\n}\n", "a { b {} }\n", "a \"${x}\" {}\n", "a \"b\"\n{}\n", "a { b = 1 } c = 2\n", "}\n", "a = 1 }\n", "/* a = 1\n", "a = \x00\n", "a = 1\rb = 2\n",
	} {
		if got, err := terraformFields(text); err == nil || errors.Is(err, ErrUnread) {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}

// The time for a file of the greatest size is bounded.
func TestTerraformTime(t *testing.T) {
	for _, text := range []string{
		"a = " + strings.Repeat("x ? 1 : ", 200) + "2" + strings.Repeat(" ", MaxBytes-2000) + "\n",
		"a = " + strings.Repeat("-", 200) + "2" + strings.Repeat("\t", MaxBytes-2000) + "\n",
		"a = \"" + strings.Repeat("$", MaxBytes-100) + "\"\n",
		"a = <<-E\n" + strings.Repeat(" \n", MaxBytes/2-100) + "E\n",
		"a = <<E\n" + strings.Repeat("${x}", MaxBytes/4-100) + "\nE\n",
		"a = " + strings.Repeat("(", 60) + "1" + strings.Repeat(strings.Repeat(" ", 2000)+")", 60) + "\n",
		strings.Repeat("a {}\n", MaxBytes/5), strings.Repeat("/**/", MaxBytes/4), "a = " + strings.Repeat("1+", MaxBytes/2-100) + "1\n", "a = x" + strings.Repeat("[0]", MaxBytes/3-100) + "\n",
		strings.Repeat("/* }}}}}}}}}}}}}}}} */ a {\n", 4000), "a = " + strings.Repeat("[ /* ]]]] */", 8000) + "\n",
	} {
		start := time.Now()
		_, _ = terraformFields(text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%.40q took %v", text, d)
		}
	}
}

func FuzzTerraform(f *testing.F) {
	for _, text := range []string{"a \"b\" {\n  c = [\"${d}\", 1, {e = f(g)}]\n}\n", "a = <<-E\n  x${~ y ~}\n  E\n", "a = \"%{if x}$${y}%{endif}\\u00e9\"\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if body, err := parseTerraform(text); err == nil {
			for _, a := range body.attributes {
				if e := a.value; e.start < 0 || e.end > len(text) || e.start >= e.end {
					t.Errorf("%q: range %d to %d", text, e.start, e.end)
				}
			}
		}
	})
}
