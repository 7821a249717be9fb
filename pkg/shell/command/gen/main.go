// Command gen writes the tables of the command package from its YAML files. It is
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
	programs, err := grammar.LoadPrograms(os.DirFS("programs"))
	if err != nil {
		return err
	}
	source, err := grammar.CommandTablesGoSource(programs)
	if err != nil {
		return err
	}
	if err := os.WriteFile("programs_gen.go", source, 0o644); err != nil {
		return err
	}
	words, err := os.ReadFile("words.yaml")
	if err != nil {
		return err
	}
	if source, err = grammar.GenerateWordListSource(words); err != nil {
		return fmt.Errorf("words.yaml: %w", err)
	}
	if err := os.WriteFile("words_gen.go", source, 0o644); err != nil {
		return err
	}
	installers, err := os.ReadFile("installers.yaml")
	if err != nil {
		return err
	}
	if source, err = grammar.InstallersGoSource(installers); err != nil {
		return fmt.Errorf("installers.yaml: %w", err)
	}
	if err := os.WriteFile("installers_gen.go", source, 0o644); err != nil {
		return err
	}
	loads, err := os.ReadFile("loads.yaml")
	if err != nil {
		return err
	}
	recipes, err := os.ReadFile("recipes.yaml")
	if err != nil {
		return err
	}
	if source, err = grammar.CodeFileLoadersGoSource(loads, recipes); err != nil {
		return fmt.Errorf("loads.yaml, recipes.yaml: %w", err)
	}
	return os.WriteFile("loads_gen.go", source, 0o644)
}
