package cmd

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/config"
)

// shellInitSnippets are named for their shells.
//
//go:embed snippets
var shellInitSnippets embed.FS

func initCommand(w *Environment) *cli.Command {
	cmd := &cli.Command{
		Name:  "init",
		Usage: "print a snippet that judges each interactive command",
		Description: "The snippet asks shield exec --check before the shell runs a command line. A line that is not allowed, or that gets no verdict, does not run. " +
			"The settings are fixed when the snippet is made: changing SHIELD_CONFIG, HOME or the XDG variables later in the session has no effect. " +
			"A line of zsh or fish that shield cannot read is left to a higher tier. " +
			"shield's own commands that answer, allow or change something do not run there: type them in a terminal without the snippet. The snippet is " +
			"for terminals that an agent types into; a program that controls the shell can turn it off.",
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name:  shell,
			Usage: "print the snippet for " + shell,
			Action: func(c *cli.Context) error {
				if _, err := operands(c); err != nil {
					return err
				}
				if w.ShieldExecutablePath == "" {
					return errors.New("init: shield cannot find its own program file; start it by its full path")
				}
				text, err := shellInitSnippets.ReadFile("snippets/" + shell)
				if err != nil {
					return fmt.Errorf("init: %w", err)
				}
				judge, err := shieldCommandLinePrefix(w, false)
				if err != nil {
					return fmt.Errorf("init: %w", err)
				}
				_, err = io.WriteString(w.Out, strings.ReplaceAll(string(text), "@SHIELD@", judge))
				return err
			},
		})
	}
	return cmd
}

// shieldCommandLinePrefix returns the start of a shell command line that runs shield with its current settings
// and state folder. If setsHomeVariable is true, the command line also sets HOME. It fails if a path cannot be
// quoted for a shell.
func shieldCommandLinePrefix(w *Environment, setsHomeVariable bool) (string, error) {
	file := w.Getenv("SHIELD_CONFIG")
	if file != "" {
		file = absolutePaths([]string{file}, w.WorkingDir)[0]
	}
	var b strings.Builder
	for _, variable := range []struct{ name, value string }{
		{"SHIELD_CONFIG", file},
		{"HOME", w.Home},
		{"XDG_CONFIG_HOME", parentFolder(config.UserConfigPath(w.Home, w.Getenv), 2)},
		{"XDG_STATE_HOME", parentFolder(config.StateDir(w.Home, w.Getenv), 1)},
		{"XDG_DATA_HOME", parentFolder(config.DataDir(w.Home, w.Getenv), 1)},
		{"XDG_CACHE_HOME", parentFolder(config.CacheDir(w.Home, w.Getenv), 1)},
		{"", w.ShieldExecutablePath},
	} {
		folder := variable.name == "HOME" || strings.HasPrefix(variable.name, "XDG_")
		if folder && !filepath.IsAbs(variable.value) || variable.name == "HOME" && !setsHomeVariable {
			continue
		}
		word, err := syntax.Quote(variable.value, syntax.LangPOSIX)
		if err != nil {
			return "", fmt.Errorf("%q: %w", shortenTo80Characters(variable.value), err)
		}
		if variable.value == "" {
			word = ""
		}
		if variable.name != "" {
			word = variable.name + "=" + word + " "
		}
		b.WriteString(word)
	}
	return b.String(), nil
}

// parentFolder returns the ancestor folder of a path, levels folders up; "" if the path is "".
func parentFolder(path string, levels int) string {
	for ; levels > 0 && path != ""; levels-- {
		path = filepath.Dir(path)
	}
	return path
}
