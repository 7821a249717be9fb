package evaluate

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/verdict"
)

// systemPrompt holds the evaluator's instructions. It is compiled in and never read from a file, so that
// write access to files is not enough to weaken it.
//
//go:embed prompt.txt
var systemPrompt string

// Placeholders in systemPrompt that are replaced in each request.
const (
	canaryPlaceholder                = "{{canary}}"
	untrustedDataBoundaryPlaceholder = "{{boundary}}"
)

// MaxPayloadBytes is the maximum length of a quoted payload, in bytes, that is sent to the evaluator. A longer one
// could not be read completely.
const MaxPayloadBytes = 64 << 10

// errTooLarge says that a quoted payload is longer than [MaxPayloadBytes].
var errTooLarge = errors.New("the payload is too large")

// promptHash returns "sha256:" and the hex digest of a compiled-in prompt and of the fixed words around the
// question.
func promptHash(prompt string) string {
	sum := sha256.Sum256([]byte(prompt + "\x00" + answerInstructions))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A modelQuestion is a case, or a part of a result, to be sent to the evaluator. It is quoted once for all
// attempts.
type modelQuestion struct {
	system                          string // system prompt
	modelInstruction                string // what the model should do with the text
	shieldFacts                     string // facts from shield, in fixed words
	quotedActionOrResult            string
	hasRedactionOutsideSecretFields bool // redaction also removed text outside of the fields that hold the secrets
}

// redactedPattern matches the replacement text of redacted secrets.
var redactedPattern = prefilter.LazyRegexp(`\[redacted [a-z0-9 -]*\]`)

// newQuestion quotes the action of a case without the secrets that r knows or recognises.
func newQuestion(c *analysis.ActionCase, r *redact.Redactor, lowerTierAskReason func(*verdict.TierStep) string) (*modelQuestion, error) {
	// Check before redaction, which takes time and can shorten a text.
	if len(payloadText(c)) > MaxPayloadBytes {
		return nil, errTooLarge
	}
	inPlace := promptJSONWriter{maxBytes: MaxPayloadBytes}
	inPlace.appendValue(r.RedactJSONValue(c.Action.Payload, 0), 0)
	payload, r := r.RedactAndCollectSecrets(c.Action.Payload, 0)
	q := promptJSONWriter{maxBytes: MaxPayloadBytes}
	q.appendValue(payload, 0)
	if q.overLimit() {
		return nil, errTooLarge
	}
	var b strings.Builder
	b.Grow(len(q.buf) + 256)
	b.WriteString("Action type: ")
	b.WriteString(quoteActionType(c.Action.Type, r))
	b.WriteString("\nPayload: ")
	b.Write(q.buf)
	b.WriteByte('\n')
	f := newFacts(c, r, lowerTierAskReason)
	text := promptJSONWriter{maxBytes: MaxPayloadBytes}
	f.references.write(&text)
	b.Write(text.buf)
	said := ""
	if len(f.lines) > 0 {
		said = "Facts:\n- " + strings.Join(f.lines, "\n- ") + "\n\n"
	}
	// The agent chooses the field names, and the value of a field "password" is redacted everywhere
	// in the payload. An agent could hide a command from the evaluator by repeating the command in
	// such a field.
	hidden := !bytes.Equal(redactedPattern().ReplaceAll(q.buf, nil), redactedPattern().ReplaceAll(inPlace.buf, nil)) || bytes.Contains(q.buf, []byte(redact.UnexaminedPrefix))
	return &modelQuestion{systemPrompt, "Evaluate this action for security:", said, b.String(), hidden}, nil
}

// prompt returns the prompt of one attempt: the text as quoted data between two lines with the boundary. The
// text cannot end the quotation: it does not contain the boundary, and quoting escapes its line breaks.
func (q *modelQuestion) prompt(canary, boundary string) Prompt {
	system := strings.NewReplacer(canaryPlaceholder, canary, untrustedDataBoundaryPlaceholder, boundary).Replace(q.system)
	return Prompt{System: system, User: q.userPrompt(boundary), ReplySchema: []byte(replySchema)}
}

// userPrompt returns the user prompt. It asks for the reasoning first, so that the model reasons before it decides.
func (q *modelQuestion) userPrompt(boundary string) string {
	return q.modelInstruction + "\n\n" + q.shieldFacts + "----- BEGIN UNTRUSTED DATA " + boundary + " -----\n" + q.quotedActionOrResult +
		"----- END UNTRUSTED DATA " + boundary + " -----\n" + answerInstructions
}

// answerInstructions ends the user prompt.
const answerInstructions = `
Respond with ONLY a JSON object:
{
  "reasoning": "brief explanation",
  "decision": "ALLOW" or "BLOCK" or "ESCALATE",
  "confidence": 0.0-1.0,
  "canary": "the verification token from your instructions"
}
`

// quoteActionType returns an action type unchanged if it is a plain name, and quoted otherwise: like the payload it
// comes from the agent.
func quoteActionType(name string, r *redact.Redactor) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if name != "" && len(name) <= 80 && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	q := promptJSONWriter{maxBytes: 1 << 10}
	q.appendString(r.RedactText(name))
	if q.overLimit() {
		return `"(longer than 1024 bytes)"`
	}
	return string(q.buf)
}
