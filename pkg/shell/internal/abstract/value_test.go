package abstract

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestConcat holds what is known of a word that is joined from parts.
func TestConcat(t *testing.T) {
	t.Parallel()
	star := Value{Text: "*", Display: "*", IsPattern: true}
	for _, c := range [...]struct {
		parts       []Value
		text, shown string
		known, bare bool
	}{
		{nil, "", "", true, false},
		{[]Value{Lit("a"), Lit("*b")}, "a*b", "a*b", true, false},
		{[]Value{Lit("a*"), star}, `a\**`, "a**", false, false},
		{[]Value{Variable("X", 0)}, "**", "$X", false, true},
		{[]Value{Variable("X", 0), Variable("Y", 0)}, "**", "$X$Y", false, true},
		{[]Value{Variable("X", 0), Lit("")}, "**", "$X", false, true},
		{[]Value{Variable("X", 0), Lit("/[a]")}, `**/\[a]`, "$X/[a]", false, false},
		{[]Value{Lit("/"), Variable("X", 0)}, "/**", "/$X", false, false},
		{[]Value{Lit(strings.Repeat("x", MaxValue)), Lit("y")}, "**", "…", false, true},
	} {
		v := Concat(c.parts...)
		if v.Text != c.text || v.String() != c.shown || v.Known() != c.known || v.FullyUnknown != c.bare {
			t.Errorf("%.40v: %q, shown %q, known %t, bare %t", c.parts, v.Text, v.String(), v.Known(), v.FullyUnknown)
		}
	}
}

// TestText holds what a value says about itself: as people read it, as a pattern, and
// which secret it holds.
func TestText(t *testing.T) {
	t.Parallel()
	env, key := Unknown("env", EnvironmentDump), Lit("k")
	key.SecretDescription = "~/.ssh/id_rsa"
	for _, c := range [...]struct {
		v                      Value
		shown, pattern, secret string
		plain                  bool
	}{
		{Lit("a*[b"), "a*[b", `a\*\[b`, "credentials", true},
		{Variable("X", 0), "$X", "**", "credentials", true},
		{env, "env", "**", "the environment", false},
		{key, "k", "k", "~/.ssh/id_rsa", true},
		{UnknownOutput("cat", Local|StoredCredential), "what cat writes", "**", "credentials", true},
		{UnknownOutput("cat", Local|Private), "what cat writes", "**", "credentials", false},
		{UnknownWithoutSlash("$$", FromVariable), "$$", "*", "credentials", true},
	} {
		if c.v.String() != c.shown || c.v.AsPattern() != c.pattern || c.v.SecretName() != c.secret || c.v.HasHarmlessTaint() != c.plain {
			t.Errorf("%+v: %q, %q, %q, plain %t", c.v, c.v.String(), c.v.AsPattern(), c.v.SecretName(), c.v.HasHarmlessTaint())
		}
	}
}

// TestJoinValues holds that words which are joined have a blank between them, and
// that one which is not known makes the text a pattern.
func TestJoinValues(t *testing.T) {
	t.Parallel()
	if v := JoinValues([]Value{Lit("rm"), Lit("*"), Variable("X", Network)}); v.Text != `rm \* **` || v.Known() || v.Taint != Network {
		t.Errorf("%+v", v)
	}
	if v := JoinValues(nil); v.Text != "" || !v.Known() {
		t.Errorf("no words: %+v", v)
	}
	long := make([]Value, 3)
	for i := range long {
		long[i] = Lit(strings.Repeat("x", MaxValue/2))
	}
	if v := JoinValues(long); v.Known() || v.Taint != UnknownText || len(v.Text) > MaxValue || !strings.HasPrefix(v.Text, "**") {
		t.Errorf("a text over the bound: %.40q, known %t, taint %b", v.Text, v.Known(), v.Taint)
	}
	if got := Clip(strings.Repeat("ü", 81)); got != strings.Repeat("ü", 79)+"…" {
		t.Errorf("clipped to %s", got)
	}
}

// TestTaintsStay holds that a word has the taints and the secret of all its
// parts, and the origin of what it starts with only if that is unknown.
func TestTaintsStay(t *testing.T) {
	t.Parallel()
	secret := Lit("k")
	secret.Taint, secret.SecretDescription = Secret, "~/.ssh/id_rsa"
	v := Concat(secret, UnknownOutput("curl", Network), Variable("X", Credential))
	if v.Taint != Secret|Network|Credential || v.SecretDescription != "~/.ssh/id_rsa" {
		t.Errorf("taint %b, secret %q", v.Taint, v.SecretDescription)
	}
	if v.Origin != FromCommand|FromVariable || v.FirstOrigin != 0 {
		t.Errorf("origin %b, lead %b", v.Origin, v.FirstOrigin)
	}
	if v := Concat(UnknownOutput("x", 0), Lit("y")); v.FirstOrigin != FromCommand {
		t.Errorf("lead %b of what starts with output", v.FirstOrigin)
	}
	if v := Concat(Lit(strings.Repeat("x", MaxValue)), secret); v.Taint&(Secret|UnknownText) != Secret|UnknownText {
		t.Errorf("a value that became too long has taint %b", v.Taint)
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		v    Value
		want effect.Cause
	}{
		{Variable("X", 0), effect.CauseVariable},
		{UnknownOutput("x", 0), effect.CauseOutput},
		{UnknownOutput("x", Network), effect.CauseDownload},
		{Variable("X", Socket), effect.CauseDownload},
		{UnknownWithoutSlash("$(date)", FromFile), effect.CauseFile},
		{Unknown("x", 0).WithOrigin(FromInput | FromVariable), effect.CauseInput},
		{Unknown("x", 0), effect.CauseUnresolved},
	} {
		if got := c.v.Cause(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.v, got, c.want)
		}
	}
}

// TestUnescaped holds how unquoted text of a command becomes a literal or a
// pattern.
func TestUnescaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a":           "literal a",
		`a\ b`:        "literal a b",
		`\*`:          "literal *",
		"a\\\nb":      "literal ab",
		`end\`:        "literal end",
		"[":           "literal [",
		"[]":          "literal []",
		"*.go":        "pattern *.go",
		"a***b":       "pattern a**b",
		"a?":          "pattern a?",
		"[!a]b":       "pattern [^a]b",
		`\**`:         `pattern \**`,
		"a[b-c]*\\?d": `pattern a[b-c]*\?d`,
	} {
		var b Builder
		b.AddUnquotedText(text)
		v := b.Value()
		got := "literal " + v.Text
		if v.IsPattern {
			got = "pattern " + v.Text
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestWindowsGlob(t *testing.T) {
	t.Parallel()
	if v := WindowsGlob(Lit(`c:\a\*.txt`)); !v.IsPattern || v.Text != "c:/a/*.txt" || v.String() != `c:\a\*.txt` {
		t.Errorf("%+v", v)
	}
	if v := WindowsGlob(Lit(`c:\a\b.txt`)); v.IsPattern || v.Text != `c:\a\b.txt` {
		t.Errorf("%+v", v)
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short":                  "short",
		strings.Repeat("é", 80):  strings.Repeat("é", 80),
		strings.Repeat("é", 81):  strings.Repeat("é", 79) + "…",
		strings.Repeat("ab", 99): strings.Repeat("ab", 39) + "a…",
	} {
		if got := Clip(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
