package effect_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/effect"
)

func ExamplePathContext_CanonicalPath() {
	at := &effect.PathContext{CWD: "/home/me/app", Home: "/home/me"}
	for _, word := range []string{"../.ssh/id_rsa", "/proc/self/root/etc/shadow", `C:\Users\Me\NTUSER.DAT::$DATA`} {
		path, _ := at.CanonicalPath(word, false)
		fmt.Println(path)
	}
	// Output:
	// /home/me/.ssh/id_rsa
	// /etc/shadow
	// c:/users/me/ntuser.dat
}

func ExampleGlobs() {
	secrets, err := effect.NewGlobs([]string{"~/.ssh/**", "**/.env"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(secrets.FirstPossibleMatch("/home/me", false, true))          // tar c ~
	fmt.Println(secrets.FirstPossibleMatch("/srv/app/.e*", true, false))      // cat .e*
	fmt.Println(secrets.FirstPossibleMatch("/home/me/app/src", false, true))  // grep -r
	fmt.Println(secrets.FirstPossibleMatch("/home/me/.SSH/id", false, false)) // on a file system that ignores case
	// Output:
	// 0 true
	// 1 true
	// -1 false
	// 0 true
}

func ExampleCanonicalHost() {
	fmt.Println(effect.CanonicalHost("0xA9.0376.43518"))
	fmt.Println(effect.CanonicalHost("[::ffff:a9fe:a9fe]:80"))
	// Output:
	// 169.254.169.254
	// 169.254.169.254
}
