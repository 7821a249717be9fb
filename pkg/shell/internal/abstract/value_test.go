package abstract

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/effect"
)

// TestConcat holds what is known of a word that is joined from parts.
func TestConcat(t *testing.T) {
	t.Parallel()
	star := Value{Text: "*", Display: "*", IsGlobPattern: true}
	for _, c := range [...]struct {
		parts       []Value
		text, shown string
		known, bare bool
	}{
		{nil, "", "", true, false},
		{[]Value{Lit("a"), Lit("*b")}, "a*b", "a*b", true, false},
		{[]Value{Lit("a*"), star}, `a\**`, "a**", false, false},
		{[]Value{UnsetVariableValue("X", 0)}, "**", "$X", false, true},
		{[]Value{UnsetVariableValue("X", 0), UnsetVariableValue("Y", 0)}, "**", "$X$Y", false, true},
		{[]Value{UnsetVariableValue("X", 0), Lit("")}, "**", "$X", false, true},
		{[]Value{UnsetVariableValue("X", 0), Lit("/[a]")}, `**/\[a]`, "$X/[a]", false, false},
		{[]Value{Lit("/"), UnsetVariableValue("X", 0)}, "/**", "/$X", false, false},
		{[]Value{Lit(strings.Repeat("x", MaxValueBytes)), Lit("y")}, "**", "…", false, true},
	} {
		v := Concat(c.parts...)
		if v.Text != c.text || v.String() != c.shown || v.IsLiteral() != c.known || v.FullyUnknown != c.bare {
			t.Errorf("%.40v: %q, shown %q, known %t, bare %t", c.parts, v.Text, v.String(), v.IsLiteral(), v.FullyUnknown)
		}
	}
}

// TestText holds what a value says about itself: as people read it, as a pattern, and
// which secret it holds.
func TestText(t *testing.T) {
	t.Parallel()
	env, key := Unknown("env", TaintEnvironmentDump), Lit("k")
	key.SecretDescription = "~/.ssh/id_rsa"
	for _, c := range [...]struct {
		v                      Value
		shown, pattern, secret string
		plain                  bool
	}{
		{Lit("a*[b"), "a*[b", `a\*\[b`, "credentials", true},
		{UnsetVariableValue("X", 0), "$X", "**", "credentials", true},
		{env, "env", "**", "the environment", false},
		{key, "k", "k", "~/.ssh/id_rsa", true},
		{UnknownOutput("cat", TaintLocalMachineData|TaintUnprintedKeyStoreCredential), "what cat writes", "**", "credentials", true},
		{UnknownOutput("cat", TaintLocalMachineData|TaintClipboardOrScreen), "what cat writes", "**", "credentials", false},
		{UnknownTextWithoutSlash("$$", OriginUnsetVariable), "$$", "*", "credentials", true},
	} {
		if c.v.String() != c.shown || c.v.AsPattern() != c.pattern || c.v.SecretName() != c.secret || c.v.HasOnlyTaintsHarmlessToRun() != c.plain {
			t.Errorf("%+v: %q, %q, %q, plain %t", c.v, c.v.String(), c.v.AsPattern(), c.v.SecretName(), c.v.HasOnlyTaintsHarmlessToRun())
		}
	}
}

// TestJoinValues holds that words which are joined have a blank between them, and
// that one which is not known makes the text a pattern.
func TestJoinValues(t *testing.T) {
	t.Parallel()
	if v := JoinWithSpaces([]Value{Lit("rm"), Lit("*"), UnsetVariableValue("X", TaintNetwork)}); v.Text != `rm \* **` || v.IsLiteral() || v.Taint != TaintNetwork {
		t.Errorf("%+v", v)
	}
	if v := JoinWithSpaces(nil); v.Text != "" || !v.IsLiteral() {
		t.Errorf("no words: %+v", v)
	}
	long := make([]Value, 3)
	for i := range long {
		long[i] = Lit(strings.Repeat("x", MaxValueBytes/2))
	}
	if v := JoinWithSpaces(long); v.IsLiteral() || v.Taint != TaintUnknownText || len(v.Text) > MaxValueBytes || !strings.HasPrefix(v.Text, "**") {
		t.Errorf("a text over the bound: %.40q, known %t, taint %b", v.Text, v.IsLiteral(), v.Taint)
	}
	if got := ClipForMessage(strings.Repeat("ü", 81)); got != strings.Repeat("ü", 79)+"…" {
		t.Errorf("clipped to %s", got)
	}
}

// TestTaintsStay holds that a word has the taints and the secret of all its
// parts, and the origin of what it starts with only if that is unknown.
func TestTaintsStay(t *testing.T) {
	t.Parallel()
	secret := Lit("k")
	secret.Taint, secret.SecretDescription = TaintReadCredentials, "~/.ssh/id_rsa"
	v := Concat(secret, UnknownOutput("curl", TaintNetwork), UnsetVariableValue("X", TaintCredentialVariable))
	if v.Taint != TaintReadCredentials|TaintNetwork|TaintCredentialVariable || v.SecretDescription != "~/.ssh/id_rsa" {
		t.Errorf("taint %b, secret %q", v.Taint, v.SecretDescription)
	}
	if v.Origin != OriginCommandOutput|OriginUnsetVariable || v.FirstPartOrigin != 0 {
		t.Errorf("origin %b, lead %b", v.Origin, v.FirstPartOrigin)
	}
	if v := Concat(UnknownOutput("x", 0), Lit("y")); v.FirstPartOrigin != OriginCommandOutput {
		t.Errorf("lead %b of what starts with output", v.FirstPartOrigin)
	}
	if v := Concat(Lit(strings.Repeat("x", MaxValueBytes)), secret); v.Taint&(TaintReadCredentials|TaintUnknownText) != TaintReadCredentials|TaintUnknownText {
		t.Errorf("a value that became too long has taint %b", v.Taint)
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		v    Value
		want effect.EffectCause
	}{
		{UnsetVariableValue("X", 0), effect.CauseVariableNotSetByCommand},
		{UnknownOutput("x", 0), effect.CauseCommandOutput},
		{UnknownOutput("x", TaintNetwork), effect.CauseDownload},
		{UnsetVariableValue("X", TaintSocket), effect.CauseDownload},
		{UnknownTextWithoutSlash("$(date)", OriginFileContent), effect.CauseFileContents},
		{Unknown("x", 0).WithOrigin(OriginStdin | OriginUnsetVariable), effect.CauseStandardInput},
		{Unknown("x", 0), effect.CauseOtherUnresolvedCommandText},
	} {
		if got := c.v.CauseOfUnknownParts(); got != c.want {
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
		if v.IsGlobPattern {
			got = "pattern " + v.Text
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestWindowsGlob(t *testing.T) {
	t.Parallel()
	if v := PatternFromWindowsGlob(Lit(`c:\a\*.txt`)); !v.IsGlobPattern || v.Text != "c:/a/*.txt" || v.String() != `c:\a\*.txt` {
		t.Errorf("%+v", v)
	}
	if v := PatternFromWindowsGlob(Lit(`c:\a\b.txt`)); v.IsGlobPattern || v.Text != `c:\a\b.txt` {
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
		if got := ClipForMessage(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
