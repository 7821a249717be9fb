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
	"github.com/shieldcli/shield/pkg/kind/facts"
	"github.com/shieldcli/shield/pkg/verdict"
)

// maxQuotedActionBytes is how many characters of an action the summary quotes: enough to recognise it, and few
// enough that people read on to the reason.
const maxQuotedActionBytes = 160

// questionSummary says in one sentence what would happen and why shield asks. Secrets are redacted before the
// text is cut, since part of a secret would not be recognised.
func questionSummary(c *analysis.ActionCase, clean func(string) string) string {
	verb, object := actionVerb(c)
	if part, commands := gravestCommand(c); part != "" {
		return fmt.Sprintf("shield asks whether to run %d commands, the most severe is %s: %s", commands, quoteInCurlyQuotes(clean(part)), reasonToAskUser(c.EarlierTierSteps, clean))
	}
	return fmt.Sprintf("shield asks whether to %s: %s", strings.TrimSpace(verb+" "+quoteInCurlyQuotes(clean(object))), reasonToAskUser(c.EarlierTierSteps, clean))
}

// kindsByGravity orders effects by how much harm they can do, the worst first.
var kindsByGravity = []effect.Kind{
	effect.TamperWithShield, effect.RemoteShell, effect.SendSecret, effect.RunDownload, effect.RunDecodedText, effect.DestroyData, effect.ReadSecret,
	effect.ChangeRemoteSystem, effect.SendData, effect.RunCommandOutput, effect.RunCode, effect.UnknownEffect, effect.DeleteDirectory, effect.Persist, effect.SendMessage,
	effect.ChangePrivilege, effect.ChangeSystem, effect.StopProcess, effect.DeleteFile, effect.ChangePermissions, effect.HTTPRequest, effect.Connect,
}

// gravestCommand returns the most harmful command of a chain, and the number of commands; "" if the
// action is a single one.
func gravestCommand(c *analysis.ActionCase) (commandText string, commandCount int) {
	text := c.Action.Text("command")
	if c.Action.Type != "execute_command" || text == "" {
		return "", 0
	}
	worst, at := len(kindsByGravity), -1
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Kind == effect.Execute && e.Span.End > e.Span.Start {
			commandCount++
		}
		rank := slices.Index(kindsByGravity, e.KindForPolicies())
		if e.DestroysRemoteResource() {
			rank = slices.Index(kindsByGravity, effect.DestroyData)
		}
		if rank >= 0 && rank < worst && e.Span.End > e.Span.Start {
			worst, at = rank, i
		}
	}
	if commandCount < 2 || at < 0 {
		return "", commandCount
	}
	// Widen the span to the outermost command that contains the effect.
	from := c.Effects[at].Span
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Execute && e.Span.Start <= from.Start && from.End <= e.Span.End {
			from = e.Span
		}
	}
	if from.Start < 0 || from.End > len(text) {
		return "", commandCount
	}
	return strings.Join(strings.Fields(text[from.Start:from.End]), " "), commandCount
}

// actionOneLineText describes an action on one line, without secrets.
func actionOneLineText(c *analysis.ActionCase, clean func(string) string) string {
	verb, object := actionVerb(c)
	if verb == "run" && c.Action.Text("command") != "" {
		verb = "" // a command needs no verb
	}
	return strings.TrimSpace(verb + " " + escapedSingleLineText(clean(object), maxQuotedActionBytes))
}

// quoteInCurlyQuotes puts an agent's text in quotation marks.
func quoteInCurlyQuotes(s string) string {
	if s == "" {
		return ""
	}
	return "“" + strings.NewReplacer("“", `"`, "”", `"`).Replace(escapedSingleLineText(s, maxQuotedActionBytes)) + "”"
}

// effectVerbs are the verbs for kinds of effects.
var effectVerbs = map[effect.Kind]string{
	effect.ReadFile:           "read",
	effect.WriteFile:          "write",
	effect.DeleteFile:         "delete",
	effect.DeleteDirectory:    "delete the folder",
	effect.MoveFile:           "move",
	effect.ListDirectory:      "list",
	effect.CreateDirectory:    "create the folder",
	effect.ChangePermissions:  "change the permissions of",
	effect.Execute:            "run",
	effect.HTTPRequest:        "send a request to",
	effect.Connect:            "connect to",
	effect.Listen:             "accept connections from other machines",
	effect.SendMessage:        "send a message to",
	effect.Persist:            "set up code to run later from",
	effect.ChangePrivilege:    "run with other privileges",
	effect.ChangeSystem:       "change the system with",
	effect.ChangeRemoteSystem: "change what is stored at",
	effect.StopProcess:        "stop a process",
	effect.ReadSecret:         "read credentials",
	effect.ReadClipboard:      "read the clipboard, the screen or the keyboard",
	effect.DestroyData:        "destroy data that cannot be restored",
	effect.RunDownload:        "run code directly from the network",
	effect.RunDecodedText:     "run encoded code",
	effect.RunCommandOutput:   "run the output of another command",
	effect.SendSecret:         "send secrets to",
	effect.SendData:           "send local data to",
	effect.RunCode:            "run the code in",
	effect.TamperWithShield:   "change shield or the agent's security settings",
	effect.RemoteShell:        "give another machine a shell",
}

// describeEffect describes an effect, its object and its program for a person.
func describeEffect(e *effect.Effect) string {
	verb, known := effectVerbs[e.KindForPolicies()]
	if !known {
		verb = cmp.Or(objectlessVerbByEffectKind[e.KindForPolicies()], string(e.KindForPolicies()))
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
		verb = cmp.Or(objectlessVerbByEffectKind[e.KindForPolicies()], verb)
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

// objectlessVerbByEffectKind are the verbs of effects whose object is unknown.
var objectlessVerbByEffectKind = map[effect.Kind]string{
	effect.HTTPRequest:        "send a request",
	effect.SendMessage:        "send a message",
	effect.Connect:            "connect to a host",
	effect.Persist:            "set up code to run later",
	effect.ChangeSystem:       "change the system",
	effect.ChangeRemoteSystem: "change a remote resource",
	effect.SendSecret:         "send secrets",
	effect.SendData:           "send local data",
	effect.RunCode:            "run code",
	effect.UnknownEffect:      "run something that is unknown beforehand",
}

// actionVerb returns the verb and the object of an action, for a sentence about it. For a shell
// command they are "run" and the command; for other actions they come from the first effect that
// has a verb.
func actionVerb(c *analysis.ActionCase) (verb, object string) {
	if text := c.Action.Text("command"); text != "" && c.Action.Type == "execute_command" {
		return "run", strings.Join(strings.Fields(text), " ")
	}
	for i := range c.Effects {
		if verb, object, known := effectVerb(c, &c.Effects[i]); known {
			return verb, object
		}
	}
	return "use the tool", c.Action.Type
}

// effectVerb returns the verb and object of one effect of an action.
func effectVerb(c *analysis.ActionCase, e *effect.Effect) (verb, object string, known bool) {
	if verb, known = effectVerbs[e.KindForPolicies()]; !known {
		return "", "", false
	}
	object = effectTarget(c, e)
	switch {
	case object == "" && e.Kind == effect.ChangeRemoteSystem:
		return "use the tool", c.Action.Type, true
	case object == "":
		verb = strings.TrimSuffix(verb, " to")
	}
	return verb, object, true
}

// effectTarget returns the object of an effect.
func effectTarget(c *analysis.ActionCase, e *effect.Effect) string {
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

// reasonToAskUser returns why a person is asked: the text of the rule or model that asked, without its
// advice to the agent.
func reasonToAskUser(earlierSteps []verdict.TierStep, redactText func(string) string) string {
	said := mostInformativeStep(earlierSteps)
	if said == nil {
		return "no earlier tier judged it"
	}
	text, _, _ := strings.Cut(redactText(reasoningWithoutTierPrefix(said)), "; ")
	text = LowerFirst(escapedSingleLineText(text, 300))
	if said.Rule != "" {
		text += " [" + escapedSingleLineText(said.Rule, 80) + "]"
	}
	return text
}

// mostInformativeStep returns the step whose reason tells a person most about the question; nil for none.
func mostInformativeStep(trail []verdict.TierStep) (said *verdict.TierStep) {
	for i := range trail {
		s := &trail[i]
		if s.Decision != verdict.Escalate || s.ErrorCode != "" || s.Reasoning == "" {
			continue
		}
		if said == nil || stepReasonUsefulness(s) >= stepReasonUsefulness(said) {
			said = s
		}
	}
	return said
}

// stepReasonUsefulness ranks steps by how useful their reasons are to a person.
func stepReasonUsefulness(s *verdict.TierStep) int {
	switch {
	case s.JudgeName == "evaluator":
		return 2
	case s.Rule != "":
		return 1
	default:
		return 0
	}
}

// reasoningWithoutTierPrefix removes the source at the beginning of a reasoning, such as "heuristic
// [git_force_push, high]: ".
func reasoningWithoutTierPrefix(s *verdict.TierStep) string {
	if strings.HasPrefix(s.Reasoning, s.JudgeName) {
		if _, text, ok := strings.Cut(s.Reasoning, ": "); ok {
			return text
		}
	}
	return s.Reasoning
}

// LowerFirst lower-cases the first letter of a sentence, so that it can follow a colon.
func LowerFirst(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	if unicode.IsUpper(second) {
		return s // an abbreviation
	}
	return string(unicode.ToLower(first)) + s[n:]
}

// ActionPartCausingEffect returns the part of an action that an effect comes from, on one line and
// not escaped: a part of its command, or the verb and object of its tool. If e is nil, it returns
// the whole action.
func ActionPartCausingEffect(c *analysis.ActionCase, e *effect.Effect) string {
	command := c.Action.Text("command")
	if c.Action.Type != "execute_command" || command == "" {
		verb, object := actionVerb(c)
		if e != nil {
			if v, o, known := effectVerb(c, e); known {
				verb, object = v, o
			}
		}
		return strings.TrimSpace(verb + " " + object)
	}
	if e == nil {
		return strings.Join(strings.Fields(command), " ")
	}
	// The program that has the effect: its span contains the effect's.
	for i := range c.Effects {
		run := &c.Effects[i]
		if run.Kind != effect.Execute || run.Span.Start > e.Span.Start || run.Span.End < e.Span.End || run.Span.End == 0 {
			continue
		}
		if text := textInSpan(command, run.Span); run.Program != "" && strings.Contains(text, run.Program) {
			return strings.Join(strings.Fields(text), " ")
		}
		return strings.Join(append([]string{run.Program}, run.Args...), " ")
	}
	return strings.Join(strings.Fields(command), " ")
}

// textInSpan returns a part of a text, "" if the span is outside the text.
func textInSpan(text string, at effect.CommandTextSpan) string {
	if at.Start < 0 || at.End > len(text) || at.Start > at.End {
		return ""
	}
	return text[at.Start:at.End]
}

// DescribeActionKind says what actions of a kind do, for a person: their programs first.
func DescribeActionKind(k *facts.ActionKind) string {
	var programs, effects []string
	for _, f := range k.ActionFactTexts {
		name, rest, _ := strings.Cut(f, " ")
		switch name {
		case "run":
			programs = append(programs, f)
		case "tool":
			programs = append(programs, "use the tool "+rest)
		default:
			effects = append(effects, describeEffectFact(effect.Kind(name), strings.Fields(rest)))
		}
	}
	return strings.Join(append(programs, effects...), "; ")
}

// describeEffectFact describes an effect that actions of a kind have. The words are its object, such as a folder
// or a host, and after it words of effectFactPhrases.
func describeEffectFact(of effect.Kind, words []string) string {
	var phrases []string
	for len(words) > 0 && effectFactPhrases[words[len(words)-1]] != "" {
		phrases = append(phrases, effectFactPhrases[words[len(words)-1]])
		words = words[:len(words)-1]
	}
	verb, known := effectVerbs[of]
	switch of {
	case effect.ReadFile, effect.WriteFile, effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile, effect.CreateDirectory, effect.ChangePermissions:
		verb = folderVerbs[of]
	case effect.ChangeRemoteSystem:
		verb = objectlessVerbByEffectKind[of] + ":"
		words = slices.DeleteFunc(words, func(w string) bool { return w == "change" })
	}
	if !known {
		verb = cmp.Or(objectlessVerbByEffectKind[of], string(of))
	}
	object := strings.Join(words, " ")
	switch {
	case object == "":
		verb = cmp.Or(objectlessVerbByEffectKind[of], strings.TrimSuffix(verb, " in"))
	case object == "workspace":
		verb += " the workspace"
	default:
		verb += " " + object
	}
	if slices.Reverse(phrases); len(phrases) > 0 {
		verb += " (" + strings.Join(phrases, ", ") + ")"
	}
	return verb
}

// folderVerbs are the verbs of effects on files, of which a kind of action has only the folder.
var folderVerbs = map[effect.Kind]string{
	effect.ReadFile:          "read files in",
	effect.WriteFile:         "write files in",
	effect.DeleteFile:        "delete files in",
	effect.DeleteDirectory:   "delete folders in",
	effect.MoveFile:          "move files in",
	effect.CreateDirectory:   "create folders in",
	effect.ChangePermissions: "change permissions in",
}

// effectFactPhrases has a phrase for each word that package kind writes after the object in the fact about an
// effect, such as trusted.
var effectFactPhrases = map[string]string{
	"destroys":  "destroys the resource",
	"recursive": "with everything below",
	"pattern":   "all that match a pattern",
	"lost":      "cannot be restored",
	"trusted":   "trusted",

	string(effect.LabelPersonalData):    "personal data",
	string(effect.LabelFromNetwork):     "data from the network",
	string(effect.LabelDecoderOutput):   "decoded data",
	string(effect.LabelCommandOutput):   "output of another command",
	string(effect.LabelUntrusted):       "untrusted data",
	string(effect.LabelDatabaseRows):    "rows of a database",
	string(effect.LabelPublishableData): "public data",
}
