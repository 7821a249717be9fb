// Gen writes the tables of the command package from its YAML files. It is
// run by go generate, in the folder of that package.
package main

import (
	"fmt"
	"os"

	"github.com/shieldcli/shield/pkg/shell/command/internal/grammar"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	programs, err := grammar.Load(os.DirFS("programs"))
	if err != nil {
		return err
	}
	source, err := grammar.WriteGo(programs)
	if err != nil {
		return err
	}
	return os.WriteFile("programs_gen.go", source, 0o644)
}
