package cmd

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
	"mvdan.cc/sh/v3/syntax"
)

// snippets are named for their shells.
//
//go:embed snippets
var snippets embed.FS

func initCommand(w *World) *cli.Command {
	cmd := &cli.Command{
		Name:  "init",
		Usage: "print a snippet that judges each interactive command",
		Description: "The snippet asks shield exec --check before the shell runs a command line, and runs nothing that is not allowed, nor anything while shield gives no verdict. " +
			"A line of zsh or fish that is not understood is left to a higher tier. " +
			"It guards a terminal that an agent types into; whoever controls the shell can turn it off.",
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name:  shell,
			Usage: "print the snippet for " + shell,
			Action: func(c *cli.Context) error {
				if _, err := operands(c); err != nil {
					return err
				}
				if w.Executable == "" {
					return errors.New("init: the path of shield itself is unknown")
				}
				text, err := snippets.ReadFile("snippets/" + shell)
				if err != nil {
					return fmt.Errorf("init: %w", err)
				}
				path, err := syntax.Quote(w.Executable, syntax.LangPOSIX)
				if err != nil {
					return fmt.Errorf("init: the path of shield itself: %w", err)
				}
				_, err = io.WriteString(w.Out, strings.ReplaceAll(string(text), "@SHIELD@", path))
				return err
			},
		})
	}
	return cmd
}
