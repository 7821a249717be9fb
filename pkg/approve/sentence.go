package approve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxWhat is how much of an action the sentence quotes, in bytes: enough to
// recognise it, and short enough that people read on to the reason.
const maxWhat = 160

// summary says in one sentence what would happen and why it is asked. Secrets
// are removed before it is cut: the rest of a cut secret would not be recognised.
func summary(c *analysis.Case, clean func(string) string) string {
	verb, object := deed(c)
	if part, commands := gravest(c); part != "" {
		return fmt.Sprintf("shield asks whether to run %d commands, the most severe is %s: %s", commands, quoted(clean(part)), reason(c.Trail, clean))
	}
	return fmt.Sprintf("shield asks whether to %s: %s", strings.TrimSpace(verb+" "+quoted(clean(object))), reason(c.Trail, clean))
}

// gravity orders effects by how much harm they can do, the worst first.
var gravity = []effect.Kind{
	effect.ChangeGuard, effect.RemoteShell, effect.SendSecret, effect.RunDownload, effect.RunDecoded, effect.Destroy, effect.ReadSecret,
	effect.ChangeRemote, effect.SendData, effect.RunInput, effect.RunCode, effect.Dynamic, effect.DeleteDirectory, effect.Persist, effect.SendMessage,
	effect.ChangePrivilege, effect.ChangeSystem, effect.StopProcess, effect.DeleteFile, effect.ChangePermissions, effect.HTTPRequest, effect.Connect,
}

// gravest returns the command of a chain that can do the most harm, and how many commands
// there are; "" if the action is a single one.
func gravest(c *analysis.Case) (part string, commands int) {
	text := c.Action.Text("command")
	if c.Action.Type != "execute_command" || text == "" {
		return "", 0
	}
	worst, at := len(gravity), -1
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind == effect.Execute && e.From.End > e.From.Start {
			commands++
		}
		rank := slices.Index(gravity, e.Word())
		if e.Destroys() {
			rank = slices.Index(gravity, effect.Destroy)
		}
		if rank >= 0 && rank < worst && e.From.End > e.From.Start {
			worst, at = rank, i
		}
	}
	if commands < 2 || at < 0 {
		return "", commands
	}
	// The command that the effect is a part of: the widest that begins no later.
	from := c.Effects[at].From
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Execute && e.From.Start <= from.Start && from.End <= e.From.End {
			from = e.From
		}
	}
	if from.Start < 0 || from.End > len(text) {
		return "", commands
	}
	return strings.Join(strings.Fields(text[from.Start:from.End]), " "), commands
}

// subject names an action on one line, without secrets.
func subject(c *analysis.Case, clean func(string) string) string {
	verb, object := deed(c)
	if verb == "run" && c.Action.Text("command") != "" {
		verb = "" // a command needs no verb
	}
	return strings.TrimSpace(verb + " " + brief(clean(object), maxWhat))
}

// quoted puts an agent's text in quotation marks.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "“" + strings.NewReplacer("“", `"`, "”", `"`).Replace(brief(s, maxWhat)) + "”"
}

// verbs say what effects do.
var verbs = map[effect.Kind]string{
	effect.ReadFile:          "read",
	effect.WriteFile:         "write",
	effect.DeleteFile:        "delete",
	effect.DeleteDirectory:   "delete the folder",
	effect.MoveFile:          "move",
	effect.ListDirectory:     "list",
	effect.CreateDirectory:   "create the folder",
	effect.ChangePermissions: "change the permissions of",
	effect.Execute:           "run",
	effect.HTTPRequest:       "send a request to",
	effect.Connect:           "connect to",
	effect.Listen:            "accept connections from other machines",
	effect.SendMessage:       "send a message to",
	effect.Persist:           "set up code to run later from",
	effect.ChangePrivilege:   "run with other privileges",
	effect.ChangeSystem:      "change the system with",
	effect.ChangeRemote:      "change what is stored at",
	effect.StopProcess:       "stop a process",
	effect.ReadSecret:        "read credentials",
	effect.ReadClipboard:     "read the clipboard, the screen or the keyboard",
	effect.Destroy:           "destroy data that cannot be restored",
	effect.RunDownload:       "run code directly from the network",
	effect.RunDecoded:        "run encoded code",
	effect.RunInput:          "run the output of another command",
	effect.SendSecret:        "send secrets to",
	effect.SendData:          "send local data to",
	effect.RunCode:           "run the code in",
	effect.ChangeGuard:       "change shield or the agent's security settings",
	effect.RemoteShell:       "give another machine a shell",
}

// described returns what an effect does, to what, and by which program, as a person reads it.
func described(e *effect.Effect) string {
	verb, known := verbs[e.Word()]
	if !known {
		verb = cmp.Or(alone[e.Word()], string(e.Word()))
	}
	var places []string
	for _, place := range []string{e.Path, cmp.Or(e.URL, e.Host)} {
		if place != "" {
			places = append(places, place)
		}
	}
	program := strings.TrimSpace(e.Program + " " + strings.Join(e.Args, " "))
	switch {
	case len(places) == 0 && e.Kind == effect.Execute:
		verb, program = verb+" "+program, ""
	case len(places) == 0:
		verb = cmp.Or(alone[e.Word()], verb)
	default:
		verb += " " + strings.Join(places, ", ")
	}
	if e.Recursive {
		verb += " and everything below"
	}
	if program != "" {
		verb += " (" + program + ")"
	}
	if e.Reason != "" {
		verb += ": " + e.Reason
	}
	return verb
}

// alone are the verbs of effects whose object is not known.
var alone = map[effect.Kind]string{
	effect.HTTPRequest:  "send a request",
	effect.SendMessage:  "send a message",
	effect.Connect:      "connect to a host",
	effect.Persist:      "set up code to run later",
	effect.ChangeSystem: "change the system",
	effect.ChangeRemote: "change a remote resource",
	effect.SendSecret:   "send secrets",
	effect.SendData:     "send local data",
	effect.RunCode:      "run code",
	effect.Dynamic:      "run something that is unknown beforehand",
}

// deed returns what an action would do, and to what: a command is run, another
// action does what its first effect says.
func deed(c *analysis.Case) (verb, object string) {
	if text := c.Action.Text("command"); text != "" && c.Action.Type == "execute_command" {
		return "run", strings.Join(strings.Fields(text), " ")
	}
	for i := range c.Effects {
		if verb, object, known := does(c, &c.Effects[i]); known {
			return verb, object
		}
	}
	return "use the tool", c.Action.Type
}

// does returns what one effect of an action does, and to what.
func does(c *analysis.Case, e *effect.Effect) (verb, object string, known bool) {
	if verb, known = verbs[e.Word()]; !known {
		return "", "", false
	}
	object = target(c, e)
	switch {
	case object == "" && e.Kind == effect.ChangeRemote:
		return "use the tool", c.Action.Type, true
	case object == "":
		verb = strings.TrimSuffix(verb, " to")
	}
	return verb, object, true
}

// target returns what an effect is done to.
func target(c *analysis.Case, e *effect.Effect) string {
	words := append([]string{e.Program}, e.Args...)
	texts := []string{e.Path, e.URL, e.Host, strings.TrimSpace(strings.Join(words, " "))}
	if e.Kind == effect.SendMessage {
		texts = []string{c.Action.Text("to"), c.Action.Text("recipient"), c.Action.Text("channel"), e.Host}
	}
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// reason returns why a person is asked: what the rule or model said that did
// not let the action pass, without its advice to the agent.
func reason(trail []verdict.Step, clean func(string) string) string {
	said := asking(trail)
	if said == nil {
		return "no earlier tier judged it"
	}
	text, _, _ := strings.Cut(clean(withoutSource(said)), "; ")
	text = Lowered(brief(text, 300))
	if said.Rule != "" {
		text += " [" + brief(said.Rule, 80) + "]"
	}
	return text
}

// asking returns the step that tells a person most of why the action is asked about; nil
// for none.
func asking(trail []verdict.Step) (said *verdict.Step) {
	for i := range trail {
		s := &trail[i]
		if s.Decision != verdict.Escalate || s.Error != "" || s.Reasoning == "" {
			continue
		}
		if said == nil || weight(s) >= weight(said) {
			said = s
		}
	}
	return said
}

// weight orders steps by how much their reasons tell a person.
func weight(s *verdict.Step) int {
	switch {
	case s.Source == "evaluator":
		return 2
	case s.Rule != "":
		return 1
	default:
		return 0
	}
}

// withoutSource drops the prefix of a reasoning that names its source, as in
// "heuristic [git_force_push, high]: ".
func withoutSource(s *verdict.Step) string {
	if strings.HasPrefix(s.Reasoning, s.Source) {
		if _, text, ok := strings.Cut(s.Reasoning, ": "); ok {
			return text
		}
	}
	return s.Reasoning
}

// Lowered starts a sentence in lower case, so that it can follow a colon.
func Lowered(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	if unicode.IsUpper(second) {
		return s // an abbreviation
	}
	return string(unicode.ToLower(first)) + s[n:]
}

// Judged returns the words of an action that an effect comes from, on one line and not made
// visible: a part of its command, or what its tool does to what. nil stands for the whole
// action.
func Judged(c *analysis.Case, e *effect.Effect) string {
	command := c.Action.Text("command")
	if c.Action.Type != "execute_command" || command == "" {
		verb, object := deed(c)
		if e != nil {
			if v, o, known := does(c, e); known {
				verb, object = v, o
			}
		}
		return strings.TrimSpace(verb + " " + object)
	}
	if e == nil {
		return strings.Join(strings.Fields(command), " ")
	}
	// The program that does it: its span holds that of the effect.
	for i := range c.Effects {
		run := &c.Effects[i]
		if run.Kind != effect.Execute || run.From.Start > e.From.Start || run.From.End < e.From.End || run.From.End == 0 {
			continue
		}
		if text := within(command, run.From); run.Program != "" && strings.Contains(text, run.Program) {
			return strings.Join(strings.Fields(text), " ")
		}
		return strings.Join(append([]string{run.Program}, run.Args...), " ")
	}
	return strings.Join(strings.Fields(command), " ")
}

// within returns a part of a text, "" if it does not have that part.
func within(text string, at effect.Span) string {
	if at.Start < 0 || at.End > len(text) || at.Start > at.End {
		return ""
	}
	return text[at.Start:at.End]
}
