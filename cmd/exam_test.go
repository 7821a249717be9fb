package cmd

import (
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/shield"
)

// TestExamCost holds that the report of an exam says what it cost, or why that is unknown.
func TestExamCost(t *testing.T) {
	t.Parallel()
	counted := shield.ModelExamResult{TotalTokens: 190_000, TotalOutputTokens: 20_000}
	for name, c := range map[string]struct {
		result shield.ModelExamResult
		price  config.Price
		want   string
	}{
		"price":     {counted, config.Price{InputPerMillionTokens: 0.15, OutputPerMillionTokens: 0.6}, "cost            at most 0.0375, by evaluator.price\n"},
		"no price":  {counted, config.Price{}, "cost            unknown; set evaluator.price to see it\n"},
		"uncounted": {shield.ModelExamResult{}, config.Price{InputPerMillionTokens: 0.15, OutputPerMillionTokens: 0.6}, "tokens          not reported by the service\n"},
	} {
		out := modelExamReportText(&c.result, c.price)
		if !strings.Contains(out, c.want) || strings.Contains(out, "cost ") != (c.result.TotalTokens > 0) {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}
