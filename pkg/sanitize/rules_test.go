package sanitize

import (
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// A styleRule is one of rules/hidden.yaml.
type styleRule struct {
	Name, Pattern, Unless string
	Match, Pass           []string
}

func stylesOf(tb testing.TB) []styleRule {
	tb.Helper()
	text, err := os.ReadFile("rules/hidden.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var f struct {
		Styles     []styleRule
		Attributes []string
	}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		tb.Fatal(err)
	}
	if len(f.Styles) != len(styles) || len(f.Attributes) != len(attributes) {
		tb.Fatal("hidden_gen.go is old; run go generate")
	}
	return f.Styles
}
