package classify

import (
	"maps"
	"strings"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	programs "github.com/shieldcli/shield/pkg/shell/command"
)

// Limits of the plain-text option values that [textWithoutProseOptionValues] removes from a command.
const (
	minProseBytes = 8  // minimum bytes of a text
	maxProseTexts = 16 // maximum number of option values that are removed from a command
)

// textWithoutProseOptionValues returns the text of an action for a model, without the option values that are text
// for people, such as the message of git commit. Words about an attack in such a value are no
// reason to suspect a command whose programs are all known. ok is false if the command has no such
// value, or if the arguments of a program are not understood.
func textWithoutProseOptionValues(c *analysis.ActionCase) (text string, ok bool) {
	if c.Action == nil {
		return "", false
	}
	line, _ := c.Action.Payload["command"].(string)
	shorter, left := line, 0
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind != effect.Execute || !mayContainProse(e.Args) {
			continue
		}
		words := make([]programs.Word, 1, len(e.Args)+1)
		words[0].Text = e.Program
		for _, arg := range e.Args {
			words = append(words, programs.Word{Text: arg})
		}
		use := programs.Interpret(words)
		if !use.Understood {
			return "", false
		}
		for _, w := range use.FreeTexts {
			if len(w.Text) >= minProseBytes && left < maxProseTexts {
				shorter = strings.Replace(shorter, w.Text, "", 1)
				left++
			}
		}
	}
	if shorter == line {
		return "", false
	}
	payload := maps.Clone(c.Action.Payload)
	payload["command"] = shorter
	text, err := ModelInputText(&action.Action{Type: c.Action.Type, Payload: payload})
	return text, err == nil
}

// mayContainProse reports whether an argument could be text for people, which is left out of the text for the
// model: the argument has at least minProseBytes bytes, and contains a space but does not begin with one.
func mayContainProse(args []string) bool {
	for _, arg := range args {
		if len(arg) >= minProseBytes && strings.IndexByte(arg, ' ') > 0 {
			return true
		}
	}
	return false
}
