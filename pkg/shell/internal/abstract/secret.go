package abstract

import (
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
)

// SecretVariable reports whether a variable's name says that it holds a credential.
func SecretVariable(name string) bool {
	n := strings.ToUpper(name)
	for _, public := range [...]string{"SSH_AUTH_SOCK", "PUBLIC", "KEYBOARD", "TOKENIZER", "TOKENS", "PASSWD_FILE", "KEYWORD"} {
		if strings.Contains(n, public) {
			return false
		}
	}
	return command.SecretName(n)
}
