package approve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/internal/term"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A Request is a question to a person: one action, its effects, and the answers of the tiers. Control
// characters in its text are escaped, see [term.EscapeControlAndInvisible].
type Request struct {
	ID                       string         `json:"id"`      // 128 random bits in hex; an answer must carry it
	Summary                  string         `json:"summary"` // one sentence: what would happen, and why shield asks
	ActionType               string         `json:"type"`
	Payload                  []PayloadField `json:"payload"`       // fields without secrets, in full unless IsPayloadTruncated; deciding fields first, long ones last
	IsPayloadTruncated       bool           `json:"cut,omitempty"` // the action is too large for Payload: it can only be denied
	CWD                      string         `json:"cwd,omitempty"`
	Session                  string         `json:"session,omitempty"`
	AskingProgramDescription string         `json:"asker,omitempty"` // the asking program, and the program that started it
	Effects                  []string       `json:"effects"`
	TierResultTexts          []string       `json:"tiers"`          // what each tier said so far, with its confidence
	OffersTimedApproval      bool           `json:"remember"`       // can be approved for some minutes
	AdvanceApprovalScope     string         `json:"kind,omitempty"` // the actions of this kind that an advance approval for this session would cover; "" if none is offered
	UnknownToolDescription   string         `json:"tool,omitempty"` // description of an unknown tool, which the answer can classify; "" if there is none
	SecondsToAnswer          int            `json:"seconds"`        // seconds to answer, from when the request is shown

	// PageAddressAndCode is the address and code of the approval page, where the request can be answered too; "" if
	// that channel is not used. Anyone who has the code can answer, so it must not be logged.
	PageAddressAndCode string `json:"-"`

	actionText           string // the action on one line
	storeAdvanceApproval func(ctx context.Context, by string) error
	storeToolClass       func(ctx context.Context, class analysis.ToolClass, by string) error
	rememberedAnswerKey  string // [Options.RememberedAnswerKey] of the action; "" if it has none
	timeToAnswer         time.Duration
	clock                func() time.Time
	startTimerOnce       sync.Once
	timerStarted         chan struct{}
	mu                   sync.Mutex
	deadline             time.Time
}

// A PayloadField is one value of an action's payload.
type PayloadField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Limits of the displayed text; a cut is marked.
const (
	maxFieldBytes          = 64 << 10 // bytes of one field on a terminal
	maxPayloadBytes        = 4 << 20  // bytes of all fields
	maxPayloadFields       = 1000
	maxEffects             = 100
	maxTierResultLines     = 16
	maxTierResultLineChars = 2000 // bytes
)

func (a *Approver) newRequest(ctx context.Context, c *analysis.ActionCase, offersTimedApproval bool, answerTimeout time.Duration) (*Request, error) {
	id, err := randomHex(16)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok { // the host does not wait longer
		answerTimeout = max(min(answerTimeout, time.Until(end)), 0)
	}
	payload, known := a.options.Redactor.RedactAndCollectSecrets(c.Action.Payload, redact.MaxScannedTextBytes)
	r := &Request{
		ID: id, ActionType: escapedSingleLineText(c.Action.Type, 200), Summary: questionSummary(c, known.RedactText), actionText: actionOneLineText(c, known.RedactText),
		CWD: known.RedactText(escapedSingleLineText(c.ExecutionContext().CWD, 4096)), Session: known.RedactText(escapedSingleLineText(c.Action.Session, 200)), AskingProgramDescription: known.RedactText(escapedSingleLineText(a.options.AskingProgramDescription, 300)),
		Effects: effectTexts(c.Effects, known.RedactText), TierResultTexts: tierResultTexts(c.EarlierTierSteps, known.RedactText), OffersTimedApproval: offersTimedApproval,
		timeToAnswer: answerTimeout, SecondsToAnswer: int(answerTimeout.Seconds()), clock: a.options.Clock, timerStarted: make(chan struct{}),
	}
	if a.options.RememberedAnswerKey != nil {
		r.rememberedAnswerKey = a.options.RememberedAnswerKey(c)
	}
	r.Payload, r.IsPayloadTruncated = payloadFields(c.Action.Payload, payload, known.RedactText)
	if e, ok := c.FindAgentInstructionsEdit(); ok && len(r.Payload) > 0 {
		r.Payload = slices.Insert(r.Payload, 1, PayloadField{"difference", known.RedactText(truncateMultilineText(e.Difference(), maxFieldBytes))})
	}
	if c.UnexaminedReason != "" {
		r.Effects = append(r.Effects, escapedSingleLineText("shield could not examine all of this action: "+c.UnexaminedReason, maxTierResultLineChars))
	}
	return r, nil
}

// tierResultTexts returns what the steps of a trail said, without repetitions of another step or of the
// summary.
func tierResultTexts(trail []verdict.TierStep, clean func(string) string) (out []string) {
	said := map[string]bool{}
	if s := mostInformativeStep(trail); s != nil {
		said[reasoningWithoutTierPrefix(s)] = true
	}
	for i := max(len(trail)-maxTierResultLines, 0); i < len(trail); i++ {
		s := &trail[i]
		line := fmt.Sprintf("%d %s: %s, confidence %.2f", s.Tier, s.JudgeName, s.Decision, s.Confidence)
		if text := reasoningWithoutTierPrefix(s); text != "" && !said[text] {
			said[text] = true
			line += ": " + clean(text)
		}
		out = append(out, escapedSingleLineText(line, maxTierResultLineChars))
	}
	return out
}

// StartTimer starts the time to answer, on the first call.
func (r *Request) StartTimer() {
	r.startTimerOnce.Do(func() {
		r.mu.Lock()
		r.deadline = r.clock().Add(r.timeToAnswer)
		r.mu.Unlock()
		close(r.timerStarted)
	})
}

// TimeLeft returns how long the person still has to answer.
func (r *Request) TimeLeft() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadline.IsZero() {
		return r.timeToAnswer
	}
	return max(r.deadline.Sub(r.clock()), 0)
}

// fieldsShownFirst are the names of the fields that a person reads first, in order; lengthyPayloadFieldNames are
// those that may be long and come last.
var (
	fieldsShownFirst = []string{
		"command", "path", "source", "destination", "url", "host", "method",
		"to", "recipient", "recipients", "channel", "cc", "bcc", "subject",
	}
	lengthyPayloadFieldNames = []string{
		"content", "contents", "new_content", "body", "text", "message", "html", "data", "diff", "patch", "old_string", "new_string", "edits",
	}
)

// fieldDisplayPosition returns the position of a field by its name.
func fieldDisplayPosition(name string) int {
	if i := slices.Index(fieldsShownFirst, name); i >= 0 {
		return i
	}
	if slices.Contains(lengthyPayloadFieldNames, name) {
		return len(fieldsShownFirst) + 1
	}
	return len(fieldsShownFirst)
}

// isBulky reports whether a field is so long that it would push the deciding ones off the screen.
func (f *PayloadField) isBulky() bool {
	return slices.Contains(lengthyPayloadFieldNames, f.Name) || len(f.Value) > 1000 || strings.Count(f.Value, "\n") >= 10
}

// payloadFields returns the fields of a payload, deciding ones first, without secrets. redacted is the
// payload after redaction, and clean redacts a text. cut means that something is missing.
func payloadFields(payload map[string]any, redacted any, clean func(string) string) (out []PayloadField, cut bool) {
	known, ok := redacted.(map[string]any)
	if !ok { // a note replaces what could not be examined
		return []PayloadField{{"payload", payloadValueText(redacted)}}, true
	}
	names := make([]string, 0, len(payload))
	for name := range payload {
		names = append(names, name)
	}
	sorted.SortStableBy(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(fieldDisplayPosition(a), fieldDisplayPosition(b)), strings.Compare(a, b))
	})
	room := maxPayloadBytes
	for i, name := range names {
		if i == maxPayloadFields {
			return append(out, PayloadField{"…", fmt.Sprintf("%d more fields are not shown here", len(names)-i)}), true
		}
		v := known[name]
		switch text := payload[name].(type) {
		case string:
			if len(text) > redact.MaxScannedTextBytes {
				v = redactLineByLine(text, clean)
			}
		default:
			cut = cut || hasLongText(text)
		}
		f := PayloadField{escapedSingleLineText(clean(name), 80), payloadValueText(v)}
		if room -= len(f.Value); room < 0 {
			f.Value, cut = truncateMultilineText(f.Value, maxFieldBytes), true
		}
		out = append(out, f)
	}
	return out, cut
}

// truncatePayloadFields returns a copy of a request in which each payload field is cut to
// maxBytesPerField.
func (r *Request) truncatePayloadFields(maxBytesPerField int) *Request {
	short := &Request{
		ID: r.ID, Summary: r.Summary, ActionType: r.ActionType, IsPayloadTruncated: r.IsPayloadTruncated, CWD: r.CWD, Session: r.Session, AskingProgramDescription: r.AskingProgramDescription,
		Effects: r.Effects, TierResultTexts: r.TierResultTexts, OffersTimedApproval: r.OffersTimedApproval, AdvanceApprovalScope: r.AdvanceApprovalScope, UnknownToolDescription: r.UnknownToolDescription, SecondsToAnswer: r.SecondsToAnswer,
	}
	for _, f := range r.Payload {
		short.Payload = append(short.Payload, PayloadField{f.Name, truncateMultilineText(f.Value, maxBytesPerField)})
	}
	return short
}

// redactLineByLine redacts, line by line, a text that is too long to be examined at once.
func redactLineByLine(text string, redactText func(string) string) string {
	var out strings.Builder
	for len(text) > 0 {
		n := min(len(text), redact.MaxScannedTextBytes/2)
		if n < len(text) {
			if end := strings.LastIndexByte(text[:n], '\n') + 1; end > 0 {
				n = end
			}
		}
		out.WriteString(redactText(text[:n]))
		text = text[n:]
	}
	return out.String()
}

// hasLongText reports whether a value contains a text that redaction would cut.
func hasLongText(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > redact.MaxScannedTextBytes
	case []any:
		return slices.ContainsFunc(v, hasLongText)
	case map[string]any:
		for _, e := range v {
			if hasLongText(e) {
				return true
			}
		}
	}
	return false
}

// truncateMultilineText cuts a multi-line text, and marks the cut.
func truncateMultilineText(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return redact.TruncateBytes(text, maxBytes) + fmt.Sprintf("\n… %d more bytes are not shown", len(text)-maxBytes)
}

// payloadValueText returns a value of a payload as text, possibly of several lines.
func payloadValueText(v any) string {
	text, ok := v.(string)
	if !ok {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return "the value of this field cannot be shown: " + term.EscapeControlAndInvisible(err.Error())
		}
		text = string(b)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = term.EscapeControlAndInvisible(line)
	}
	return strings.Join(lines, "\n")
}

// effectTexts describes effects, without repetitions.
func effectTexts(list []effect.Effect, clean func(string) string) []string {
	var out []string
	for i := range list {
		e := &list[i]
		line := escapedSingleLineText(clean(describeEffect(e)), 500)
		if slices.Contains(out, line) {
			continue
		}
		if len(out) == maxEffects {
			return append(out, fmt.Sprintf("… and %d more", len(list)-i))
		}
		out = append(out, line)
	}
	return out
}

// escapedMultilineText returns multi-line text with control characters escaped, in at most maxChars
// characters.
func escapedMultilineText(s string, maxChars int) string {
	lines := strings.Split(brief.TruncateWithEllipsis(s, maxChars), "\n")
	for i := range lines {
		lines[i] = term.EscapeControlAndInvisible(lines[i])
	}
	return strings.Join(lines, "\n")
}

// escapedSingleLineText returns text on one line with control characters escaped, in at most
// maxChars characters.
func escapedSingleLineText(s string, maxChars int) string {
	return term.EscapeControlAndInvisible(brief.TruncateWithEllipsis(s, maxChars))
}
