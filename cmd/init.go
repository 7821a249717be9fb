package cmd

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/config"
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
			"Which settings judge is fixed when the snippet is made: what the session does to SHIELD_CONFIG, HOME or the XDG variables later changes nothing. " +
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
				judge := strings.Join(append(fixedSettings(w), shellWord(w.Executable)), " ")
				_, err = io.WriteString(w.Out, strings.ReplaceAll(string(text), "@SHIELD@", judge))
				return err
			},
		})
	}
	return cmd
}

// fixedSettings returns the assignments, as words of a shell, under which
// shield finds the settings and the state that it would find now.
func fixedSettings(w *World) []string {
	file := w.Getenv("SHIELD_CONFIG")
	if file != "" {
		file = absolute([]string{file}, w.Dir)[0]
	}
	words := []string{"SHIELD_CONFIG=" + shellWord(file)}
	for _, folder := range []struct{ name, path string }{
		{"XDG_CONFIG_HOME", filepath.Dir(config.UserFile(w.Home, w.Getenv))},
		{"XDG_STATE_HOME", config.StateDir(w.Home, w.Getenv)},
		{"XDG_DATA_HOME", config.DataDir(w.Home, w.Getenv)},
		{"XDG_CACHE_HOME", config.CacheDir(w.Home, w.Getenv)},
	} {
		if filepath.IsAbs(folder.path) {
			words = append(words, folder.name+"="+shellWord(filepath.Dir(folder.path)))
		}
	}
	return words
}
