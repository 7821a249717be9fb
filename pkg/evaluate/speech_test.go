package evaluate

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goccy/go-yaml"
)

// A ruleFile is a file of folder rules, as gen reads it.
type ruleFile struct {
	Macros map[string]string
	Rules  []struct {
		ID, Name, On, Pattern string
		Match, Pass           []string
	}
}

func ruleFiles(tb testing.TB) []ruleFile {
	tb.Helper()
	names, err := filepath.Glob("rules/*.yaml")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no rule files: %v", err)
	}
	var files []ruleFile
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		var f ruleFile
		if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		files = append(files, f)
	}
	return files
}

// TestSpeechExamples runs each rule alone on the examples that stand beside it,
// and its passing examples through all rules.
func TestSpeechExamples(t *testing.T) {
	byID := map[string]*detector{}
	for _, r := range speechRules() {
		if byID[r.id] != nil {
			t.Errorf("%s: two rules", r.id)
		}
		byID[r.id] = newDetector([]speechRule{r})
	}
	all := theDetector()
	for _, f := range ruleFiles(t) {
		for _, r := range f.Rules {
			d := byID[r.ID]
			if d == nil {
				t.Errorf("%s is not in speech_gen.go; run go generate", r.ID)
				continue
			}
			if len(r.Match) == 0 || len(r.Pass) == 0 {
				t.Errorf("%s has no examples of both kinds", r.ID)
			}
			for _, text := range r.Match {
				if d.find(text) == nil {
					t.Errorf("%s (%s) does not match %q, read as %q", r.ID, r.Name, text, forms(text))
				}
			}
			for _, text := range r.Pass {
				if got := all.find(text); got != nil {
					t.Errorf("%s (%s): %q must pass, but %s (%s) matches", r.ID, r.Name, text, got.id, got.name)
				}
			}
		}
	}
}

// TestSpeechLiterals checks that every rule can be left out of a scan.
func TestSpeechLiterals(t *testing.T) {
	for _, r := range speechRules() {
		if len(r.literals) == 0 {
			t.Errorf("%s has no literals: it would run on every text", r.id)
		}
		if _, err := regexp.Compile(r.pattern); err != nil {
			t.Errorf("%s: %v", r.id, err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"punctuation", `{"decision": "ALLOW"}`, "decision allow"},
		{"spaced letters", "i g n o r e all", "ignore all"},
		{"dotted letters", "i.g.n.o.r.e", "ignore"},
		{"few single letters", "a b c def", "a b c def"},
		{"flags", "ls -l -a", "ls l a"},
		{"chinese is not joined", "你 好 世 界", "你 好 世 界"},
		{"empty", "", ""},
		{"only signs", "-- -- $", ""},
		{"newlines", "ignore\n\n\tall", "ignore all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := forms(tt.in)[1]; got != tt.want {
				t.Errorf("words of %q: got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestPlainLatin(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"résumé", "resume"},
		{"ｉｇｎｏｒｅ", "ignore"},
		{"ig\u200bnore", "ignore"},
		{"й", "й"},
		{"が", "が"},
		{"이전", "이전"},
		{"Önceki", "Onceki"},
		{"ﬁle", "file"},
	} {
		if got := plainLatin(tt.in); got != tt.want {
			t.Errorf("plainLatin(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
