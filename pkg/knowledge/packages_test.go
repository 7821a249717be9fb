package knowledge

import "testing"

func TestWidelyUsed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		registry, name string
		used, ok       bool
	}{
		{"npm", "lodash", true, true}, {"npm", "lodahs", false, true}, {"npm", "expresss", false, true}, {"npm", "@types/node", true, true}, {"npm", "@types/neww", true, true},
		{"npm", "@evil-scope/a", false, true}, {"npm", "", false, true}, {"npm", "lodash\nx", false, true},
		{"pypi", "requests", true, true}, {"pypi", "pandsa", false, true}, {"cargo", "serde", false, false},
	} {
		if used, ok := WidelyUsed(tt.registry, tt.name); used != tt.used || ok != tt.ok {
			t.Errorf("%s %q: %t, %t", tt.registry, tt.name, used, ok)
		}
	}
}
