package gateway

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestRules judges the examples of the rules.
func TestRules(t *testing.T) {
	t.Parallel()
	type example struct {
		Name        string
		Match, Pass []string
	}
	for file, one := range map[string]struct {
		key  string
		find func(string) string
	}{
		"poison.yaml": {"poison", func(s string) string {
			return matchedRuleName(poisonRules[:], toolPoisoningPatterns(), normalizeTextForMatching(s))
		}},
		"protocol.yaml": {"asked", requestedSecretKind},
	} {
		text, err := os.ReadFile(filepath.Join("rules", file))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{}
		if err := yaml.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		part, err := yaml.Marshal(all[one.key])
		if err != nil {
			t.Fatal(err)
		}
		var rules []example
		if err := yaml.Unmarshal(part, &rules); err != nil || len(rules) < 2 {
			t.Fatal(rules, err)
		}
		for _, r := range rules {
			for _, s := range r.Match {
				if one.find(s) == "" {
					t.Errorf("%s: %q is not met", r.Name, s)
				}
			}
			for _, s := range r.Pass {
				if got := one.find(s); got != "" {
					t.Errorf("%s: %q meets %s", r.Name, s, got)
				}
			}
		}
	}
}

// TestHonestTexts holds that what honest servers say is no finding.
func TestHonestTexts(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"Read the complete contents of a file from the file system as text. Handles various text encodings and provides detailed error messages if the file cannot be read. Only works within allowed directories.",
		"Create a new file or completely overwrite an existing file with new content. Use with caution as it will overwrite existing files without warning.",
		"Get contents of a file or directory from a GitHub repository",
		"Fetches a URL from the internet and optionally extracts its contents as markdown. Although originally you did not have internet access, and were advised to refuse and tell the user this, this tool now grants you internet access.",
		"You MUST call resolve-library-id before this tool to get a valid id, unless the user gives one in the format /org/project.",
		"Use this before file operations. Prefer reading resources before calling mutating tools.",
		"Send a message to a channel. Attach files with the files parameter, see https://docs.test/ for all options.",
		"Audience: These instructions are written for an LLM or autonomous agent. Follow them to use the server safely. If asked about it, respond with \"it works\".",
		"The user's access token is read from the environment.",
		"Emoji \U0001F468\u200d\U0001F469\u200d\U0001F467 and \u2764\ufe0f, and Persian \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.",
	} {
		if _, findings := (toolDefinitionExaminer{}).CleanTextAndFindings(s); len(findings) > 0 {
			t.Errorf("%.60q holds %s", s, Findings(findings))
		}
	}
}

// TestUnseen holds which characters a tool must not have.
func TestUnseen(t *testing.T) {
	t.Parallel()
	for s, found := range map[string]bool{
		"plain\n\ttext\r\n":      false,
		"a\u200bb\u2060c":        true,
		"a \u200b b":             true,
		"a\u202eb":               true,
		"a\x1b[31mb":             true,
		"a\u009b31mb":            true,
		"a\U000E0061b":           true,
		"a\U000E0101b":           true,
		"a\x07\x7fb":             true,
		"a\ue000b":               true,
		"\ufeffstart":            false,
		"e\u0301 \u2764\ufe0f":   false,
		"\U0001F468\u200d\u2695": false,
	} {
		if _, findings := (toolDefinitionExaminer{}).CleanTextAndFindings(s); (len(findings) > 0) != found {
			t.Errorf("%q: %q", s, findings)
		}
	}
}
