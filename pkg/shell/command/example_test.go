package command_test

import (
	"fmt"

	"github.com/shieldcli/shield/pkg/shell/command"
)

func ExampleSubcommands() {
	fmt.Println(command.Subcommands("git", []string{"-C", "/srv", "remote", "add", "origin", "https://git.example.com/a"}))
	fmt.Println(command.Subcommands("kubectl", []string{"--context", "prod", "delete", "namespace", "shop"}))
	// Output:
	// [remote add]
	// [delete namespace]
}
