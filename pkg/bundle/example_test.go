package bundle_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/bundle"
)

// An organisation signs with its private key; machines have the public one.
func ExampleGenerateKey() {
	private, public, err := bundle.GenerateKey("")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := bundle.ParsePrivateKey(private, ""); err != nil {
		fmt.Println(err)
	}
	// Only the line of the public key that begins with RW goes into settings.
	if _, err := bundle.ParseKeys([]string{string(public)}); err != nil {
		fmt.Println(err)
	}
	if _, err := bundle.ParseKeys([]string{string(private)}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the value is a private key, which only the signer should have; use the public key: the line of NAME.pub that begins with RW
}
