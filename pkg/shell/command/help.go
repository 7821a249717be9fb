package command

// onlyPrintsHelp reports whether a command only prints help: a program, its subcommands, and --help
// or --version at the end. After any other word, --help may belong to a nested command: "docker run
// web --help". After a subcommand it does not count either if the program can pass it on, to a
// server or to a project file that it runs: "yarn test --help".
func onlyPrintsHelp(g *syntax, args []Word) bool {
	last := len(args) - 1
	word := last > 0 && g.argStyle&argStyleTrailingHelpWord != 0 && args[last].Text == "help"
	if last < 1 || args[last].IsGlobPattern || !word && args[last].Text != "--help" && args[last].Text != "--version" {
		return false
	}
	if last > 1 && g.stdinRole != argRoleNone {
		return false
	}
	words := make([]string, 0, last)
	for _, w := range args[1:last] {
		words = append(words, w.Text)
		sub := findEntry(g.subcommands, w.Text)
		if sub == nil && word {
			sub = findLongestPrefix(g.subcommands, w.Text, 0)
		}
		if w.IsGlobPattern || w.Text == "" || w.Text[0] == '-' || sub == nil && !g.isSkippableCommandGroup(w.Text) {
			return false
		}
		if sub != nil {
			g = sub
		}
	}
	_, name := splitProgramPath(args[0].Text)
	return last == 1 || len(CodeFileLoaders(name, words)) == 0
}
