package evaluate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// actionFacts are what shield knows about an action besides its payload. They precede the untrusted
// data, so they contain only fixed words, numbers and references: an action, a file name or a
// third-party policy must not be able to inject text there. The text of a reference such as "path
// 1" is quoted inside the data.
type actionFacts struct {
	lines      []string
	references numberedActionTexts
}

// Limits of the facts, which help in reading the payload and must not dominate the prompt.
const (
	maxPromptEffectLines    = 12
	maxReferencedTexts      = 16
	maxReferencedTextBytes  = 120 // bytes
	maxResolvedCommandBytes = 400 // bytes of a resolved command
)

// numberedActionTexts are texts of an action to which the facts for the model refer by kind and number,
// such as "path 1".
type numberedActionTexts struct {
	redactor *redact.Redactor
	list     []numberedActionText
}

type numberedActionText struct {
	referencedObjectKind string
	number               int
	text                 string
}

// addTextReturningReference returns a reference to a text, such as "path 1"; if there are too many, only the kind.
func (n *numberedActionTexts) addTextReturningReference(referencedObjectKind, text string, maxTextBytes int) string {
	number := 1
	for i := range n.list {
		switch o := &n.list[i]; {
		case o.referencedObjectKind != referencedObjectKind:
		case o.text == text:
			return fmt.Sprintf("%s %d", referencedObjectKind, o.number)
		default:
			number++
		}
	}
	if len(n.list) == maxReferencedTexts {
		return "another " + referencedObjectKind
	}
	n.list = append(n.list, numberedActionText{referencedObjectKind, number, shortenMiddle(text, maxTextBytes)})
	return fmt.Sprintf("%s %d", referencedObjectKind, number)
}

// shortenMiddle replaces the middle of a text by an ellipsis if the text has more than a maximum
// number of bytes (most).
func shortenMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := most/2, len(s)-most/2+3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}

// write appends each reference and its text to the prompt, as in "path 1 = TEXT", one per line.
func (n *numberedActionTexts) write(q *promptJSONWriter) {
	for _, o := range n.list {
		q.appendRaw(o.referencedObjectKind)
		if o.number > 0 {
			q.appendRaw(fmt.Sprintf(" %d", o.number))
		}
		q.appendRaw(" = ")
		q.appendString(o.text)
		q.appendRaw("\n")
	}
}

// newFacts returns the facts about an action. lowerTierAskReason returns, in fixed words, why a
// lower tier asks for confirmation; "" if the reason is unknown.
func newFacts(c *analysis.ActionCase, r *redact.Redactor, lowerTierAskReason func(*verdict.TierStep) string) *actionFacts {
	f := &actionFacts{references: numberedActionTexts{redactor: r}}
	f.addLowerTierAskReason(c, lowerTierAskReason)
	f.addEffects(c)
	f.addSessionLabels(c)
	f.addUserMentionedObjects(c)
	place := c.ExecutionContext()
	for _, known := range [...]struct{ kind, path string }{{"workspace", firstOrEmpty(place.WorkspaceRoots)}, {"home", place.Home}} {
		if known.path != "" {
			f.references.list = append(f.references.list, numberedActionText{referencedObjectKind: known.kind, text: shortenMiddle(r.RedactText(known.path), maxReferencedTextBytes)})
		}
	}
	return f
}

func firstOrEmpty(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (f *actionFacts) add(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

// addLowerTierAskReason adds the reason why the lower tiers did not decide.
func (f *actionFacts) addLowerTierAskReason(c *analysis.ActionCase, askReasonOfStep func(*verdict.TierStep) string) {
	var by *verdict.TierStep
	for i := range c.EarlierTierSteps {
		s := &c.EarlierTierSteps[i]
		if s.Decision == verdict.Escalate && s.Tier < 2 && !s.AllowedPendingHigherTier && (by == nil || s.Rule != "" || by.Rule == "") {
			by = s
		}
	}
	switch {
	case by == nil:
		return
	case askReasonOfStep != nil:
		if text := askReasonOfStep(by); text != "" {
			f.add("asked because: %s", text)
			return
		}
	}
	if by.Rule != "" {
		f.add("asked because of %s of the policy", f.references.addTextReturningReference("rule", f.references.redactor.RedactText(by.Rule), maxReferencedTextBytes))
	}
}

// addSessionLabels adds the labels of data that entered the session before.
func (f *actionFacts) addSessionLabels(c *analysis.ActionCase) {
	if c.SessionState == nil {
		return
	}
	var said []string
	for _, l := range c.SessionState.Labels() {
		if text := sessionFactTextByLabel[l]; text != "" {
			said = append(said, text)
		}
	}
	if len(said) > 0 {
		f.add("earlier in the session: %s", strings.Join(said, ", "))
	}
}

// addUserMentionedObjects adds the objects that the user has mentioned.
func (f *actionFacts) addUserMentionedObjects(c *analysis.ActionCase) {
	for _, s := range c.UserMentionedObjects {
		text := "%s was named by the user, with a verb of what is done to it"
		if s.IsForbiddenByUser {
			text = "%s was named by the user as what this is not to be done to"
		}
		f.add(text, f.references.addTextReturningReference("object", f.references.redactor.RedactText(s.MentionedObjectName), maxReferencedTextBytes))
	}
}

var sessionFactTextByLabel = map[effect.TaintLabel]string{
	effect.LabelFromCredentialLocation: "credentials were read",
	effect.LabelPersonalData:           "private data was read",
	effect.LabelUntrusted:              "text from outside was read",
}

// addEffects adds the effects of the action, grouped into one line per kind.
func (f *actionFacts) addEffects(c *analysis.ActionCase) {
	type line struct {
		what, more string
		refs       []string
	}
	var lines []line
	payload := payloadText(c)
	left := 0
	for i := range c.Effects {
		e := analysis.Redacted(c.Effects[i], f.references.redactor)
		what, kind, text := f.describeEffect(&e, payload)
		if what == "" {
			continue
		}
		more := f.parenthesizedEffectDetails(c, &e)
		at := slices.IndexFunc(lines, func(l line) bool { return l.what == what && l.more == more })
		if at < 0 {
			if len(lines) == maxPromptEffectLines {
				left++
				continue
			}
			at, lines = len(lines), append(lines, line{what: what, more: more})
		}
		if text == "" {
			continue
		}
		most := maxReferencedTextBytes
		if kind == "command" {
			most = maxResolvedCommandBytes
		}
		if ref := f.references.addTextReturningReference(kind, text, most); !slices.Contains(lines[at].refs, ref) {
			lines[at].refs = append(lines[at].refs, ref)
		}
	}
	for _, l := range lines {
		text := l.what
		if len(l.refs) > 0 {
			text += " " + strings.Join(l.refs, ", ")
		}
		f.lines = append(f.lines, text+l.more)
	}
	if left > 0 {
		f.add("and %d effects more", left)
	}
}

// describeEffect returns, in fixed words, what an effect does, and its object; "" for an effect that the
// payload shows as well.
func (f *actionFacts) describeEffect(e *effect.Effect, payload string) (verbPhrase, objectKind, objectText string) {
	switch e.KindForPolicies() {
	case effect.Execute:
		return describeProgram(e, payload)
	case effect.HTTPRequest:
		if e.RemoteOperationVerb == "change" {
			return "sends a request that may change something to", "host", e.Host
		}
		return "sends a request to", "host", e.Host
	case effect.SendMessage:
		return "sends a message to", "recipient", e.RemoteTargetName
	case effect.SendData, effect.SendSecret, effect.Connect:
		if e.Host == "" {
			return verbPhraseByEffectKind[e.KindForPolicies()], "place", e.RemoteTargetName
		}
		return verbPhraseByEffectKind[e.KindForPolicies()], "host", e.Host
	case effect.ChangeRemoteSystem:
		return verbPhraseByEffectKind[e.KindForPolicies()], "resource", strings.Join(strings.Fields(e.RemoteServiceName+" "+e.RemoteOperationVerb+" "+e.RemoteTargetName), " ")
	}
	verbPhrase = verbPhraseByEffectKind[e.KindForPolicies()]
	if verbPhrase == "" {
		verbPhrase = "does something else"
	}
	return verbPhrase, "path", e.Path
}

// describeProgram describes a program if it is unknown or dangerous; its words are added if the payload does
// not spell them out.
func describeProgram(e *effect.Effect, payload string) (verbPhrase, objectKind, objectText string) {
	words := strings.Join(append([]string{e.Program}, e.Args...), " ")
	spelled := !slices.ContainsFunc(append([]string{e.Program}, e.Args...), func(w string) bool { return !strings.Contains(payload, w) })
	switch {
	case len(e.Harms) > 0:
		verbPhrase = "runs a program that can do harm (" + string(e.Harms[0]) + "):"
	case e.Class == effect.UnknownClass:
		verbPhrase = "runs what the analysis does not know in full:"
	case e.Class == effect.Destructive, e.Class == effect.Privileged:
		verbPhrase = "runs a program that is " + string(e.Class) + ":"
	case spelled:
		return "", "", ""
	default:
		verbPhrase = "runs, once resolved:"
	}
	if spelled {
		return verbPhrase, "program", e.Program
	}
	return verbPhrase, "command", words
}

// verbPhraseByEffectKind name the kinds of effects.
var verbPhraseByEffectKind = map[effect.Kind]string{
	effect.ReadFile: "reads", effect.WriteFile: "writes", effect.DeleteFile: "deletes", effect.DeleteDirectory: "deletes the folder",
	effect.MoveFile: "moves away", effect.ListDirectory: "lists", effect.CreateDirectory: "creates the folder",
	effect.ChangePermissions: "changes the permissions of", effect.Connect: "connects to", effect.Listen: "accepts connections",
	effect.Persist: "installs code that runs later:", effect.ChangePrivilege: "takes more rights", effect.ChangeSystem: "changes the system",
	effect.ChangeRemoteSystem: "changes on another machine:", effect.TamperWithShield: "changes this guard", effect.StopProcess: "stops processes",
	effect.ReadSecret: "shows credentials or hands them on", effect.ReadClipboard: "reads clipboard, screen or memory of another process",
	effect.DestroyData: "destroys what cannot be restored", effect.RunDownload: "runs code from the network", effect.RunDecodedText: "runs decoded text",
	effect.RunCommandOutput: "runs text from another part of the command", effect.SendSecret: "sends a credential to", effect.SendData: "sends local data to",
	effect.RunCode: "runs the code in", effect.RemoteShell: "gives another machine a shell", effect.UnknownEffect: "does something that cannot be known before it runs",
}

// parenthesizedEffectDetails returns further details of an effect in fixed words, in parentheses.
func (f *actionFacts) parenthesizedEffectDetails(c *analysis.ActionCase, e *effect.Effect) string {
	var said []string
	add := func(is bool, text string) {
		if is {
			said = append(said, text)
		}
	}
	add(e.Certainty == effect.Possible, "may happen")
	add(e.Recursive, "with everything below")
	add(e.PathIsPattern, "a pattern")
	if e.Path != "" {
		add(true, describePathLocation(c.ExecutionContext(), e))
		add(effect.IsSecretPath(e.Path, e.PathIsPattern), "a place of credentials")
	}
	switch e.KindForPolicies() {
	case effect.DeleteFile, effect.DeleteDirectory, effect.WriteFile, effect.MoveFile:
		add(e.IsRestorableWithoutBackup, "restorable from the last commit")
		add(e.IsBackedUpByShield, "a copy is kept")
	case effect.SendData, effect.ChangeRemoteSystem, effect.HTTPRequest, effect.SendMessage:
		add(e.IsTargetTrusted, "a place that the user trusts")
		add(!e.IsTargetTrusted && e.Kind != effect.SendMessage, "a place that the user has not listed")
	}
	for _, l := range e.DataLabels {
		if slices.Contains(effect.Labels(), l) {
			said = append(said, string(l)+" data")
		}
	}
	if cause := e.CauseOrFirstHarm(); slices.Contains(effect.Causes(), effect.EffectCause(cause)) {
		said = append(said, cause)
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// describePathLocation returns the location of a path in fixed words.
func describePathLocation(p *effect.PathContext, e *effect.Effect) string {
	temporary, _ := effect.CutTemporaryFolder(e.Path + "/")
	switch {
	case len(p.WorkspaceRoots) == 0:
		return "the workspace is unknown"
	case p.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot):
		return "in the workspace"
	case temporary != "":
		return "a temporary file"
	case p.Home != "" && (e.Path == p.Home || strings.HasPrefix(e.Path, strings.TrimSuffix(p.Home, "/")+"/")):
		return "outside the workspace, in home"
	}
	return "outside workspace and home"
}
