package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
)

// shellCompletionGenerators are the generators of completion scripts per shell, in the order of the help text.
var shellCompletionGenerators = []struct {
	shell, file string
	text        func([]shellCompletionCommand) string
}{
	{"bash", "shield.bash", bashCompletion},
	{"zsh", "_shield", zshCompletion},
	{"fish", "shield.fish", fishCompletion},
}

func completionCommand(w *Environment) *cli.Command {
	cmd := &cli.Command{
		Name:  "completion",
		Usage: "print the completion for a shell",
		Description: "For bash, put eval \"$(shield completion bash)\" into ~/.bashrc. " +
			"For zsh, write the text to a file _shield in a folder of $fpath. " +
			"For fish, write it to ~/.config/fish/completions/shield.fish.",
	}
	for _, shell := range shellCompletionGenerators {
		cmd.Subcommands = append(cmd.Subcommands, &cli.Command{
			Name: shell.shell, Usage: "print the completion for " + shell.shell,
			Action: func(c *cli.Context) error {
				if _, err := operands(c); err != nil {
					return err
				}
				_, err := io.WriteString(w.Out, shell.text(shellCompletionCommands(newApp(w))))
				return err
			},
		})
	}
	return cmd
}

// A shellCompletionCommand lists the words that can follow one command: subcommands and flags.
type shellCompletionCommand struct {
	commandPath string // the full command, such as "shield policy check"
	subcommands []*cli.Command
	flags       []shellCompletionFlag
}

// A shellCompletionFlag is a flag and the kinds of values it takes.
type shellCompletionFlag struct {
	name, usage            string
	takesValue             bool
	possibleValues         []string // words that can be the flag's value
	takesFile, takesFolder bool     // the flag's value is a file (takesFile) or a folder (takesFolder)
}

// shellCompletionCommands lists all commands except hidden ones, depth first.
func shellCompletionCommands(app *cli.App) []shellCompletionCommand {
	out := []shellCompletionCommand{{"shield", visibleCommands(app.Commands), shellCompletionFlags(app.Flags)}}
	var walk func(prefix string, cs []*cli.Command)
	walk = func(prefix string, cs []*cli.Command) {
		for _, c := range visibleCommands(cs) {
			path := prefix + " " + c.Name
			out = append(out, shellCompletionCommand{path, visibleCommands(c.Subcommands), shellCompletionFlags(c.Flags)})
			walk(path, c.Subcommands)
		}
	}
	walk("shield", app.Commands)
	return out
}

func visibleCommands(cs []*cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(cs), func(c *cli.Command) bool { return c.Hidden })
}

// shellCompletionFlags returns the long flags. The values of a flag are the lower-case words of its
// placeholder, as in `auto|always|FILE`.
func shellCompletionFlags(flags []cli.Flag) []shellCompletionFlag {
	var out []shellCompletionFlag
	for _, f := range visibleFlags(flags) {
		d := f.(cli.DocGenerationFlag)
		flag := shellCompletionFlag{usage: usageWithoutBackquotes(d.GetUsage()), takesValue: d.TakesValue()}
		if flag.takesValue {
			for _, word := range strings.Split(extractUsagePlaceholder(d.GetUsage()), "|") {
				switch {
				case word == "FILE":
					flag.takesFile = true
				case word == "DIR":
					flag.takesFolder = true
				case !strings.ContainsFunc(word, unicode.IsUpper) && word != "":
					flag.possibleValues = append(flag.possibleValues, word)
				}
			}
		}
		for _, n := range f.Names() {
			if flag.name = n; len(n) > 1 {
				out = append(out, flag)
			}
		}
	}
	return append(out, shellCompletionFlag{name: "help", usage: "show help"})
}

// extractUsagePlaceholder returns the part of a usage text in backquotes.
func extractUsagePlaceholder(usage string) string {
	_, rest, _ := strings.Cut(usage, "`")
	value, _, _ := strings.Cut(rest, "`")
	return value
}

// spaceSeparatedCommandsAndFlags returns the commands and flags that may follow a command, in order.
func (c *shellCompletionCommand) spaceSeparatedCommandsAndFlags() string {
	var out []string
	for _, s := range c.subcommands {
		out = append(out, s.Name)
	}
	for _, f := range c.flags {
		out = append(out, "--"+f.name)
	}
	return strings.Join(out, " ")
}

// commandAndFlagNames returns the names of commands and long flags, --help last.
func commandAndFlagNames(flags []cli.Flag, commands []*cli.Command) []string {
	var out []string
	for _, c := range visibleCommands(commands) {
		out = append(out, c.Name)
	}
	for _, f := range visibleFlags(flags) {
		for _, n := range f.Names() {
			if len(n) > 1 {
				out = append(out, "--"+n)
			}
		}
	}
	return append(out, "--help")
}

// joinValueTakingFlagNames returns the names of the flags that take a value.
// spaceSeparatedFlagNames are the flags that take a value in every command that has them.
// pipeSeparatedCommandFlags are the flags that take a value only in some commands, each after the
// path of such a command: "shield mcp --session".
func joinValueTakingFlagNames(commands []shellCompletionCommand) (spaceSeparatedFlagNames, pipeSeparatedCommandFlags string) {
	var out, in []string
	switches := map[string]bool{}
	for _, c := range commands {
		for _, f := range c.flags {
			switches[f.name] = switches[f.name] || !f.takesValue
		}
	}
	for _, c := range commands {
		for _, f := range c.flags {
			switch name := "--" + f.name; {
			case f.takesValue && switches[f.name]:
				in = append(in, c.commandPath+" "+name)
			case f.takesValue && !slices.Contains(out, name):
				out = append(out, name)
			}
		}
	}
	return strings.Join(out, " "), "|" + strings.Join(in, "|") + "|"
}

// completionCommandPathShellCode is the part of a completion script shared by bash and zsh: it finds the command path
// typed so far, without flags and their values.
const completionCommandPathShellCode = `	local typed=shield skip= word choices= action=
	for word in "${typed_words[@]}"; do
		if [[ -n $skip ]]; then
			skip=
		elif [[ " @VALUED@ " == *" $word "* || '@VALUEDIN@' == *"|$typed $word|"* ]]; then
			skip=$word
		elif [[ $word != -* ]]; then
			typed+=" $word"
		fi
	done
	case "$typed $skip" in
@CASES@	esac
`

// completionCaseBranchesShellCode returns the case branches for what can follow each command or flag.
func completionCaseBranchesShellCode(commands []shellCompletionCommand) string {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "\t%q) choices=%q ;;\n", c.commandPath+" ", c.spaceSeparatedCommandsAndFlags())
		for _, f := range c.flags {
			if !f.takesValue {
				continue
			}
			action := "none"
			switch {
			case f.takesFile:
				action = "file"
			case f.takesFolder:
				action = "directory"
			}
			fmt.Fprintf(&b, "\t%q) choices=%q action=%s ;;\n", c.commandPath+" --"+f.name, strings.Join(f.possibleValues, " "), action)
		}
	}
	return b.String()
}

func fillCompletionScript(template string, commands []shellCompletionCommand) string {
	text := strings.ReplaceAll(template, "@TYPED@", completionCommandPathShellCode)
	all, some := joinValueTakingFlagNames(commands)
	return strings.NewReplacer("@VALUED@", all, "@VALUEDIN@", some, "@CASES@", completionCaseBranchesShellCode(commands)).Replace(text)
}

func bashCompletion(commands []shellCompletionCommand) string {
	return fillCompletionScript(`# bash completion for shield; generated from the command tree
_shield() {
	local typed_words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
@TYPED@	local current=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=($(compgen -W "$choices" -- "$current"))
	compopt +o default
	case $action in
	file) COMPREPLY+=($(compgen -f -- "$current")); compopt -o filenames ;;
	directory) COMPREPLY+=($(compgen -d -- "$current")); compopt -o filenames ;;
	'') compopt -o default ;;
	esac
}
complete -o default -F _shield shield
`, commands)
}

func zshCompletion(commands []shellCompletionCommand) string {
	return fillCompletionScript(`#compdef shield
# zsh completion for shield; generated from the command tree
_shield() {
	local -a typed_words
	typed_words=("${(@)words[2,CURRENT-1]}")
@TYPED@	compadd -- ${=choices}
	case $action in
	file | '') _files ;;
	directory) _files -/ ;;
	esac
}
if [ "${funcstack[1]}" = _shield ]; then
	_shield "$@"
else
	compdef _shield shield
fi
`, commands)
}

func fishCompletion(commands []shellCompletionCommand) string {
	var b strings.Builder
	b.WriteString("# fish completion for shield; generated from the command tree\n")
	for _, c := range commands {
		condition := "__fish_use_subcommand"
		if _, path, nested := strings.Cut(c.commandPath, " "); nested {
			condition = "__fish_seen_subcommand_from " + strings.ReplaceAll(path, " ", "; and __fish_seen_subcommand_from ")
		}
		for _, s := range c.subcommands {
			fmt.Fprintf(&b, "complete -c shield -n '%s' -f -a %s -d %q\n", condition, s.Name, s.Usage)
		}
		for _, f := range c.flags {
			value := ""
			switch {
			case f.takesFile || f.takesFolder:
				value = " -r"
			case f.takesValue:
				value = " -x"
			}
			if len(f.possibleValues) > 0 {
				value += fmt.Sprintf(" -a '%s'", strings.Join(f.possibleValues, " "))
			}
			fmt.Fprintf(&b, "complete -c shield -n '%s' -l %s%s -d %q\n", condition, f.name, value, f.usage)
		}
	}
	return b.String()
}
