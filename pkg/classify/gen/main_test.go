package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
)

// TestFresh checks that go generate would change nothing.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, main, []string{"rules"}, []string{"rules_gen.go"})
}

// small is a rule that breaks nothing.
const small = `- id: XP-900
  name: frob_wipe
  category: destruction
  severity: high
  outcome: block
  platform: any
  description: Wipes frobs.
  advice: none
  effects: [{program: frob, args: ' wipe'}]
  match: [frob wipe, sudo frob wipe, {type: http_request, payload: {url: x}}]
  pass: [frob list, frob, echo]
`

func generated(t *testing.T, rules ...string) (string, error) {
	t.Helper()
	files := map[string]string{}
	for i, text := range rules {
		files[string(rune('a'+i))+".yaml"] = text
	}
	dir := gentest.WriteFolder(t, files)
	out := filepath.Join(dir, "out.go")
	if err := generateRulesFile(dir, out); err != nil {
		return "", err
	}
	src, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(src), nil
}

// TestRefuses holds that a rule which breaks the schema is refused, and what is
// named in the error.
func TestRefuses(t *testing.T) {
	t.Parallel()
	if src, err := generated(t, small); err != nil || !strings.Contains(src, `"frob"`) || !strings.Contains(src, `{\"type\":\"http_request\"`) {
		t.Fatalf("%v\n%s", err, src)
	}
	for _, c := range [...]struct{ old, changed, names string }{
		{"XP-900", "XX-900", "id"},
		{"frob_wipe", "Frob Wipe", "name"},
		{"category: destruction", "category: ''", "category"},
		{"severity: high", "severity: huge", "huge"},
		{"outcome: block", "outcome: allow", "allow"},
		{"platform: any", "platform: beos", "beos"},
		{"advice: none", "advice: none\n  needs: luck", "luck"},
		{"advice: none", "advice: none\n  colour: red", "colour"},
		{"advice: none", "advice: none\n  fields: [url]", "types"},
		{"advice: none", "advice: none\n  except: '('", "missing"},
		{"advice: none", "advice: none\n  patterns: ['(']", "pattern"},
		{"advice: none", "advice: none\n  patterns: ['a.b']", "three bytes"},
		{"[frob wipe, sudo", "[sudo", "three match"},
		{"[frob list, frob, echo]", "[frob list]", "three match or pass"},
		{"[frob list, frob, echo]", "[frob list, frob, 7]", "7"},
		{"payload: {url: x}", "payload: {url: x}, id: a", "payload only"},
		{"effects: [{program: frob, args: ' wipe'}]", "types: [x]", "neither"},
		{"program: frob", "program: Frob", "lower case"},
		{"program: frob", "program: frob.exe", ".exe"},
		{"program: frob, args: ' wipe'", "args: ' w'", "neither a program"},
		{"args: ' wipe'", "args: '['", "missing"},
		{"program: frob, args: ' wipe'", "kind: write_file, program: frob", "kind execute"},
		{"program: frob, args: ' wipe'", "kind: write_file, harm: wipes", "kind execute"},
		{"program: frob, args: ' wipe'", "harm: tickles", "tickles"},
		{"program: frob, args: ' wipe'", "program: git, args: ' reset (?:.* )?--hard'", "only words and options"},
		{"program: frob, args: ' wipe'", "program: [frob, git], args: ' (?:clean|stash) (?:.* )?-(?:f|-force)(?: |$)'", "only words and options"},
		{"program: frob, args: ' wipe'", "program: git", "only words and options"},
		{"args: ' wipe'", "cause: weather", "weather"},
		{"program: frob, args: ' wipe'", "kind: write_file, path: '@frobs'", "@frobs"},
		{"program: frob, args: ' wipe'", "kind: write_file, not_path: '@frobs'", "@frobs"},
		{"program: frob, args: ' wipe'", "kind: http_request, host: '@wallets'", "@wallets"},
	} {
		if !strings.Contains(small, c.old) {
			t.Fatalf("%q is not in the rule", c.old)
		}
		_, err := generated(t, strings.Replace(small, c.old, c.changed, 1))
		gentest.CheckErrorMentions(t, c.changed, err, c.names, "a.yaml")
	}
	_, err := generated(t, small, small)
	gentest.CheckErrorMentions(t, "two rules with one id and name", err, "XP-900", "frob_wipe")
}

// TestFingerprint holds that a rule which names a list has another fingerprint
// than one that names another: remembered verdicts hang on it.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	line := func(path string) string {
		src, err := generated(t, strings.Replace(small, "program: frob, args: ' wipe'", "kind: read_file, path: "+path, 1))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(src, "rulesFingerprint = ")
		sum, _, _ := strings.Cut(rest, "\n")
		return sum
	}
	if a, b := line("'@wallets'"), line("'@browser_data'"); a == b || !strings.HasPrefix(a, `"sha256:`) {
		t.Errorf("%s and %s", a, b)
	}
	r := []rule{{TriggerClauses: []clause{{Path: yamlStringList{"/x", "@wallets"}, Host: yamlStringList{"@tunnels"}}}}}
	if held := string(referencedKnowledgeGlobsAndHosts(r)); !strings.Contains(held, "wallet.dat") || !strings.Contains(held, "ngrok.io") || strings.Contains(held, "/x") {
		t.Errorf("lists: %s", held)
	}
}

// What is nothing but alternatives is divided into them, if each has a literal, and
// they match what it matches.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]int{
		`abc`:                  1,
		`abc|xyz.*`:            2,
		`\babc|\bxyz|\bs\.txt`: 3,
		`abc|x`:                1, // x alone would be tried on every text
		`(?:abc|xyz)\d`:        1,
		`(?i)abc|xyz`:          2,
		`(?m)^abc$|^xyz$`:      2,
	} {
		got := splitRegexpAlternatives(expr)
		if len(got) != want {
			t.Errorf("%s: %q, want %d", expr, got, want)
		}
		for _, text := range []string{"abc", "ABC", "xyz", "s.txt", "s-txt", "-xyz1", "aabc", "1\nxyz\n2", "x", "ab"} {
			one := slices.ContainsFunc(got, func(part string) bool { return regexp.MustCompile(part).MatchString(text) })
			if whole := regexp.MustCompile(expr).MatchString(text); one != whole {
				t.Errorf("%s on %q: %t, in parts %q %t", expr, text, whole, got, one)
			}
		}
	}
}

// TestWordsOnly holds what a clause may say about a program with an entry: values,
// and how many words there are.
func TestWordsOnly(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"": true, " push (?:.* )?(?:-f|--force)(?: |$)": true, " -[a-z]*f": true, "(?i) RESET .*--HARD": true, "^$": true, " stash (?:drop|clear)": true,
		" push .* main$": false, " gc --prune=now": false, " checkout \\.$": false, " (?:stash drop|branch -D main)": false, " -n ?\\d": false, " push \\S+ \\S": false,
		" frobnicate": false, " [$]x": false,
	} {
		c := clause{Program: yamlStringList{"git"}, Args: args}
		if got := c.exampleReplaceableByCommandTable(); (got != "") != want {
			t.Errorf("%s: %q, want %t", args, got, want)
		}
	}
	for _, c := range []clause{
		{Program: yamlStringList{"frob"}},
		{Program: yamlStringList{"git"}, Args: " push -f", ExcludedArgsPattern: " feature/"},
		{Program: yamlStringList{"git"}, Args: " push -f", Path: yamlStringList{"/x"}},
		{Program: yamlStringList{"git"}, Harm: yamlStringList{"discards"}},
	} {
		if got := c.exampleReplaceableByCommandTable(); got != "" {
			t.Errorf("%v: %q", c, got)
		}
	}
}
