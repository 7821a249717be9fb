package command

import "strings"

// Subcommands returns the arguments that are subcommands of a program, or words that may precede a subcommand,
// according to the program's entry in programs/*.yaml; nil if there are none.
func Subcommands(name string, args []string) (words []string) {
	level := lookupProgram(name)
	for _, w := range args {
		if level == nil || len(level.subcommands) == 0 {
			break
		}
		if strings.HasPrefix(w, "-") {
			continue
		}
		next := findEntry(level.subcommands, w)
		if next == nil {
			next = findLongestPrefix(level.subcommands, w, 0)
		}
		switch {
		case next != nil:
			words, level = append(words, w), next
		case level.isSkippableCommandGroup(w):
			words = append(words, w)
		}
	}
	return words
}
