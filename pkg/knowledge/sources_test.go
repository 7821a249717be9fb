package knowledge

import (
	"slices"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/prefilter"
)

// Every match of a setting that names addresses has "://" in it, so that a text without
// it is not searched.
func TestSourceSettings(t *testing.T) {
	t.Parallel()
	for _, f := range SourceForms {
		if !strings.Contains(f.AddressSettingPattern, "://") {
			continue
		}
		sets, err := prefilter.AdditionalRequiredLiteralSets(f.AddressSettingPattern)
		first, err1 := prefilter.RequiredLiteralAlternatives(f.AddressSettingPattern)
		if err != nil || err1 != nil {
			t.Fatal(err, err1)
		}
		if !slices.ContainsFunc(append(sets, first), func(set []string) bool {
			return len(set) > 0 && !slices.ContainsFunc(set, func(lit string) bool { return !strings.Contains(lit, "://") })
		}) {
			t.Errorf("%s may match without an address", f.AddressSettingPattern)
		}
	}
}
