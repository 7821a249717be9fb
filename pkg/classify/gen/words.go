package main

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
)

// Placeholders in the results of [enumerateRegexpMatches]: anyTextPlaceholder stands for any text, oneCharacterPlaceholder for one
// required character.
const (
	anyTextPlaceholder      = "\x00"
	oneCharacterPlaceholder = "\x01"
)

// maxEnumeratedMatches is the maximum number of texts that [enumerateRegexpMatches] returns for an expression.
const maxEnumeratedMatches = 4096

// exampleReplaceableByCommandTable returns a program and arguments that a clause matches, if the clause tests only
// subcommands and options of programs that the command table describes; otherwise "". Such a clause
// should be a harm in the program's table entry: the table parses the arguments, while the clause's
// regular expression only guesses them.
func (c *clause) exampleReplaceableByCommandTable() (matchedCommand string) {
	if len(c.Path)+len(c.NotPath)+len(c.Host)+len(c.ProgramClasses)+len(c.EffectCauses)+len(c.Harm) > 0 {
		return ""
	}
	for _, program := range c.Program {
		if _, listed := command.IsSubcommandOrOption(program, ""); !listed {
			continue
		}
		says := func(form string) bool { return containsNonOptionWord(program, form) }
		if c.ExcludedArgsPattern != "" && slices.ContainsFunc(enumerateRegexpMatches(c.ExcludedArgsPattern), says) || slices.ContainsFunc(enumerateRegexpMatches(c.Args), says) {
			return ""
		}
		matchedCommand = program + strings.NewReplacer(anyTextPlaceholder, "", oneCharacterPlaceholder, "").Replace(enumerateRegexpMatches(c.Args)[0])
	}
	return matchedCommand
}

// containsNonOptionWord reports whether argumentsText, a text from [enumerateRegexpMatches], contains a word
// that is neither a subcommand nor an option of a program.
func containsNonOptionWord(program, argumentsText string) bool {
	for word := range strings.FieldsSeq(argumentsText) {
		text := strings.Trim(word, anyTextPlaceholder+`'"`)
		switch bare := strings.Trim(text, "="+oneCharacterPlaceholder); {
		case text == "":
			continue
		case bare == "":
			return true
		case strings.ContainsAny(bare[:1], "-+") && !strings.ContainsAny(bare, "=.:$") && strings.Trim(bare, "-0123456789") != "":
			continue
		default:
			if is, _ := command.IsSubcommandOrOption(program, bare); !is {
				return true
			}
		}
	}
	return false
}

// enumerateRegexpMatches returns the texts that an expression matches.
func enumerateRegexpMatches(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return []string{""} // the generator reports the invalid expression elsewhere
	}
	return enumerateSyntaxTreeMatches(re.Simplify())
}

func enumerateSyntaxTreeMatches(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			text = strings.ToLower(text)
		}
		return []string{text}
	case syntax.OpCharClass:
		return classCharacters(re)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{anyTextPlaceholder}
	case syntax.OpCapture, syntax.OpPlus:
		return enumerateSyntaxTreeMatches(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		return append([]string{""}, enumerateSyntaxTreeMatches(re.Sub[0])...)
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, enumerateSyntaxTreeMatches(sub)...)
		}
		return out
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			var next []string
			for _, a := range out {
				for _, b := range enumerateSyntaxTreeMatches(sub) {
					if next = append(next, a+b); len(next) == maxEnumeratedMatches {
						return next
					}
				}
			}
			out = next
		}
		return out
	}
	return []string{""}
}

// classCharacters returns the characters of a class if there are few.
func classCharacters(re *syntax.Regexp) []string {
	var out []string
	for i := 0; i < len(re.Rune); i += 2 {
		if re.Rune[i+1]-re.Rune[i] > 3 || len(out) > 8 {
			return []string{oneCharacterPlaceholder}
		}
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			out = append(out, string(r))
		}
	}
	return out
}
