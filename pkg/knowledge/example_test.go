package knowledge_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/knowledge"
)

func ExampleIsSecretVariableName() {
	for _, name := range []string{"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PATH"} {
		fmt.Println(name, knowledge.IsSecretVariableName(name))
	}
	// Output:
	// GITHUB_TOKEN true
	// AWS_SECRET_ACCESS_KEY true
	// PATH false
}

func ExampleWidelyUsed() {
	for _, name := range []string{"requests", "requestss"} {
		used, ok := knowledge.WidelyUsed("pypi", name)
		fmt.Println(name, used, ok)
	}
	// Output:
	// requests true true
	// requestss false true
}
