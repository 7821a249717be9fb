package main

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/shell/command"
)

// In forms, anyText marks any text, oneOf one required character.
const (
	anyText = "\x00"
	oneOf   = "\x01"
)

// maxForms is the maximum number of texts that forms returns for an expression.
const maxForms = 4096

// wordsOnly returns a program and arguments that a clause matches, if the clause only tests subcommands and
// options of programs with a table entry. Then the entry should have the harm, since it parses the arguments
// that an expression only guesses. It returns "" for other clauses.
func (c *clause) wordsOnly() (found string) {
	if len(c.Path)+len(c.NotPath)+len(c.Host)+len(c.Class)+len(c.Cause)+len(c.Harm) > 0 {
		return ""
	}
	for _, program := range c.Program {
		if _, listed := command.Names(program, ""); !listed {
			continue
		}
		says := func(form string) bool { return holdsValue(program, form) }
		if c.Not != "" && slices.ContainsFunc(forms(c.Not), says) || slices.ContainsFunc(forms(c.Args), says) {
			return ""
		}
		found = program + strings.NewReplacer(anyText, "", oneOf, "").Replace(forms(c.Args)[0])
	}
	return found
}

// holdsValue reports whether a form of arguments contains a word that is neither a subcommand nor an option of
// a program.
func holdsValue(program, form string) bool {
	for word := range strings.FieldsSeq(form) {
		text := strings.Trim(word, anyText+`'"`)
		switch bare := strings.Trim(text, "="+oneOf); {
		case text == "":
			continue
		case bare == "":
			return true
		case strings.ContainsAny(bare[:1], "-+") && !strings.ContainsAny(bare, "=.:$") && strings.Trim(bare, "-0123456789") != "":
			continue
		default:
			if is, _ := command.Names(program, bare); !is {
				return true
			}
		}
	}
	return false
}

// forms returns the texts that an expression matches.
func forms(expr string) []string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return []string{""} // check reports the error
	}
	return formsOf(re.Simplify())
}

func formsOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			text = strings.ToLower(text)
		}
		return []string{text}
	case syntax.OpCharClass:
		return classForms(re)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{anyText}
	case syntax.OpCapture, syntax.OpPlus:
		return formsOf(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		return append([]string{""}, formsOf(re.Sub[0])...)
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, formsOf(sub)...)
		}
		return out
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			var next []string
			for _, a := range out {
				for _, b := range formsOf(sub) {
					if next = append(next, a+b); len(next) == maxForms {
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

// classForms returns the characters of a class if there are few.
func classForms(re *syntax.Regexp) []string {
	var out []string
	for i := 0; i < len(re.Rune); i += 2 {
		if re.Rune[i+1]-re.Rune[i] > 3 || len(out) > 8 {
			return []string{oneOf}
		}
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			out = append(out, string(r))
		}
	}
	return out
}
