package redact_test

import (
	"fmt"

	"github.com/shieldcli/shield/internal/redact"
)

func Example() {
	r := redact.New("the-canary-of-this-request")
	fmt.Println(r.RedactText("curl -H 'Authorization: Bearer 9a8b7c6d5e4f3a2b1c0d9e8f' https://x.test"))
	fmt.Println(r.RedactText("the model said the-canary-of-this-request"))
	fmt.Println(r.RedactText("git show 9fceb02d0ae598e95dc970b74767f19372d61af8"))
	// Output:
	// curl -H 'Authorization: Bearer [redacted authorization-header]' https://x.test
	// the model said [redacted secret]
	// git show 9fceb02d0ae598e95dc970b74767f19372d61af8
}
