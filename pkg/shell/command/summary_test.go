package command

import (
	"fmt"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// split cuts an example into words. Single and double quotes group; a word
// that starts with two percent signs stands for one that is not fully known.
func split(command string) []Word {
	var words []Word
	for at := 0; at < len(command); {
		if command[at] == ' ' {
			at++
			continue
		}
		start := at
		var b strings.Builder
		for quote := byte(0); at < len(command) && (quote != 0 || command[at] != ' '); at++ {
			switch c := command[at]; {
			case quote != 0 && c == quote:
				quote = 0
			case quote == 0 && (c == '\'' || c == '"'):
				quote = c
			default:
				b.WriteByte(c)
			}
		}
		text, pattern := strings.CutPrefix(b.String(), "%%")
		words = append(words, Word{Text: text, IsGlobPattern: pattern, Span: effect.CommandTextSpan{Start: start, End: at}})
	}
	return words
}

// summary puts a Use into one line: class, effects, operands, nested commands,
// streams.
func summary(u Interpretation) string {
	class := string(u.Class)
	switch {
	case class == "" && u.IsWindowsProgram:
		class = "unknown"
	case class == "":
		class = "unlisted"
	}
	items := []string{class}
	if !u.Understood {
		items = append(items, "not understood")
	}
	for _, k := range u.Effects {
		s := string(k)
		if k == effect.ChangeRemoteSystem && u.RemoteServiceChange.Verb != "change" {
			s += " " + u.RemoteServiceChange.Verb
		}
		if k == effect.ChangeRemoteSystem && u.RemoteServiceChange.IsTestTarget {
			s += " trial"
		}
		items = append(items, s)
	}
	for _, h := range u.Harms {
		items = append(items, "harm "+string(h))
	}
	for _, t := range u.OperandEffects {
		s := string(t.Kind) + " " + t.Word.Text
		if t.Recursive {
			s += " +below"
		}
		if t.IsFileContentSent {
			s += " sent"
		}
		items = append(items, s)
	}
	for _, n := range u.NestedCommandsAndCode {
		var texts []string
		for _, w := range n.Words {
			texts = append(texts, w.Text)
		}
		s := fmt.Sprintf("%s[%s]", n.Language, strings.Join(texts, "|"))
		if n.ScriptFileLanguage != "" {
			s = n.ScriptFileLanguage + " " + s
		}
		if n.Remote {
			s = "remote " + s
		}
		if n.ArgsFromStdin {
			s = "piped " + s
		}
		items = append(items, s)
	}
	for _, k := range u.RegistryKeys {
		s := "key " + k.Word.Text
		if k.Write {
			s = "set " + s
		}
		items = append(items, s)
	}
	for _, w := range u.NestedCommandEnvAssignments {
		items = append(items, "env "+w.Text)
	}
	if u.Stdin != StreamPlainData {
		items = append(items, "in "+string(u.Stdin))
	}
	if u.Stdout != StreamPlainData {
		items = append(items, "out "+string(u.Stdout))
	}
	return strings.Join(items, ", ")
}
