// Gen writes the table of rules that rules.yaml describes, so that a program
// that redacts nothing parses nothing.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"

	"github.com/goccy/go-yaml"
)

// A rule is one entry of rules.yaml.
type rule struct {
	ID       string   `yaml:"id"`
	Keywords []string `yaml:"keywords"`
	Pattern  string   `yaml:"pattern"`
	Entropy  float64  `yaml:"entropy"`
	Match    []string `yaml:"match"`
	Pass     []string `yaml:"pass"`
}

func main() {
	if err := run("rules.yaml", "rules_gen.go"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var rules []rule
	if err := yaml.UnmarshalWithOptions(data, &rules, yaml.Strict()); err != nil {
		return err
	}
	src, err := table(rules)
	if err != nil {
		return err
	}
	return os.WriteFile(out, src, 0o644)
}

func table(rules []rule) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated from rules.yaml by gen; DO NOT EDIT.\n\npackage redact\n\nvar rules = [...]rule{\n")
	seen := map[string]bool{}
	for _, r := range rules {
		if r.ID == "" || seen[r.ID] {
			return nil, fmt.Errorf("rule %q: missing or duplicate id", r.ID)
		}
		seen[r.ID] = true
		if _, err := regexp.Compile(r.Pattern); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.ID, err)
		}
		if len(r.Keywords) == 0 || len(r.Match) == 0 || len(r.Pass) == 0 {
			return nil, fmt.Errorf("rule %q: needs keywords, match and pass", r.ID)
		}
		fmt.Fprintf(&b, "{id: %q, keywords: %#v, pattern: %q, entropy: %v},\n", r.ID, r.Keywords, r.Pattern, r.Entropy)
	}
	b.WriteString("}\n")
	return format.Source(b.Bytes())
}
