package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// addHarm records the harm of an action.
func (r *argParser) addHarm(h effect.Harm) {
	if h != "" && !slices.Contains(r.result.Harms, h) {
		r.result.Harms = append(r.result.Harms, h)
	}
}

// addHarmsOfListedArgs records the harms of all subcommands and options in arguments that were not understood: a word after an
// unknown option may be its value or not.
func (r *argParser) addHarmsOfListedArgs() {
	r.enteredSyntaxCount, r.innermostSyntax = 1, r.syntaxBySubcommandDepth[0]
	for _, w := range r.args[1:] {
		if w.IsGlobPattern || w.Text == "" {
			continue
		}
		name := w.Text
		if r.innermostSyntax.argStyle&argStyleWindowsSlashOptions != 0 {
			name = strings.ToLower(name)
		}
		g := findEntry(r.innermostSyntax.subcommands, name)
		if g == nil {
			g = findLongestPrefix(r.innermostSyntax.subcommands, name, 2)
		}
		if g != nil && r.enteredSyntaxCount < maxSubcommandDepth {
			r.syntaxBySubcommandDepth[r.enteredSyntaxCount], r.innermostSyntax = g, g
			r.enteredSyntaxCount++
			if g.unconditionalAction != nil {
				r.addHarm(g.unconditionalAction.harm)
			}
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		if a := r.lookupOption(name); a != nil {
			r.addHarm(a.harm)
			continue
		}
		if hasPrefix(name, "--") {
			if a := r.lookupOptionByAbbreviation(name); a != nil {
				r.addHarm(a.harm)
			}
			continue
		}
		r.addHarmsOfBundledOptions(name)
	}
}

// addHarmsOfBundledOptions records the harm of bundled option letters, one of which is unknown.
func (r *argParser) addHarmsOfBundledOptions(optionWord string) {
	if len(optionWord) < 3 || optionWord[0] != '-' || optionWord[1] == '-' {
		return
	}
	for k := 1; k < len(optionWord); k++ {
		if a := r.lookupOption("-" + optionWord[k:k+1]); a != nil {
			r.addHarm(a.harm)
		}
	}
}

// IsSubcommandOrOption reports whether a word is a subcommand or option of a program, at any depth;
// isProgramListed is false for programs without an entry.
func IsSubcommandOrOption(program, word string) (isWordListed, isProgramListed bool) {
	g := lookupProgram(program)
	return g != nil && g.hasWord(word, maxSubcommandDepth), g != nil
}

func (g *syntax) hasWord(word string, depth int) bool {
	if depth == 0 {
		return false
	}
	if findEntry(g.subcommands, word) != nil || findEntry(g.options, word) != nil || g.isSkippableCommandGroup(word) {
		return true
	}
	return slices.ContainsFunc(g.subcommands, func(s program) bool { return s.value.hasWord(word, depth-1) })
}
