package cmd

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// words returns the commands and flags that may follow a command, in order.
func words(flags []cli.Flag, commands []*cli.Command) []string {
	var out []string
	for _, c := range commands {
		if !c.Hidden {
			out = append(out, c.Name)
		}
	}
	for _, f := range visible(flags) {
		for _, n := range f.Names() {
			if len(n) > 1 {
				out = append(out, "--"+n)
			}
		}
	}
	return append(out, "--help")
}

// completionTable returns one line for each command: its words, and what may
// follow them.
func completionTable(app *cli.App, line func(path, words string)) {
	line("shield", strings.Join(words(app.Flags, app.Commands), " "))
	var walk func(prefix string, cs []*cli.Command)
	walk = func(prefix string, cs []*cli.Command) {
		for _, c := range cs {
			if !c.Hidden {
				line(prefix+" "+c.Name, strings.Join(words(c.Flags, c.Subcommands), " "))
				walk(prefix+" "+c.Name, c.Subcommands)
			}
		}
	}
	walk("shield", app.Commands)
}

func bashCompletion(app *cli.App) string {
	var b strings.Builder
	b.WriteString(`# bash completion for shield; generated from the command tree
_shield() {
	local typed=shield i word
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == -* ]] || typed+=" $word"
	done
	local words
	case $typed in
`)
	completionTable(app, func(path, words string) { fmt.Fprintf(&b, "\t%q) words=%q ;;\n", path, words) })
	b.WriteString(`	*) words= ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _shield shield
`)
	return b.String()
}

func zshCompletion(app *cli.App) string {
	var b strings.Builder
	b.WriteString(`#compdef shield
# zsh completion for shield; generated from the command tree
_shield() {
	local typed=shield word
	for word in ${words[2,CURRENT-1]}; do
		[[ $word == -* ]] || typed+=" $word"
	done
	local -a choices
	case $typed in
`)
	completionTable(app, func(path, words string) { fmt.Fprintf(&b, "\t(%q) choices=(%s) ;;\n", path, words) })
	b.WriteString(`	esac
	compadd -a choices
	_files
}
_shield "$@"
`)
	return b.String()
}

func fishCompletion(app *cli.App) string {
	var b strings.Builder
	b.WriteString("# fish completion for shield; generated from the command tree\n")
	var walk func(seen string, flags []cli.Flag, cs []*cli.Command)
	walk = func(seen string, flags []cli.Flag, cs []*cli.Command) {
		condition := "__fish_use_subcommand"
		if seen != "" {
			condition = "__fish_seen_subcommand_from " + seen
		}
		for _, f := range visible(flags) {
			d := f.(cli.DocGenerationFlag)
			for _, n := range f.Names() {
				if len(n) > 1 {
					fmt.Fprintf(&b, "complete -c shield -n '%s' -l %s -d %q\n", condition, n, plainUsage(d.GetUsage()))
				}
			}
		}
		for _, c := range cs {
			if !c.Hidden {
				fmt.Fprintf(&b, "complete -c shield -n '%s' -f -a %s -d %q\n", condition, c.Name, c.Usage)
			}
		}
		for _, c := range cs {
			if !c.Hidden {
				walk(c.Name, c.Flags, c.Subcommands)
			}
		}
	}
	walk("", app.Flags, app.Commands)
	return b.String()
}
