package policy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shieldcli/shield/pkg/policy/internal/rulefile"
)

// Every key is on the page for authors, in an example; a test of the program checks these.
func TestDocumentedKeys(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, block := range regexp.MustCompile("(?s)```yaml policy\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all += block[1]
	}
	for _, key := range rulefile.PolicyYAMLKeys() {
		if !strings.Contains(all, key+":") {
			t.Errorf("no example has the key %s", key)
		}
	}
}
