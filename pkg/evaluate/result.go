package evaluate

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/verdict"
)

// resultExaminationPrompt holds the evaluator's instructions for examining a result. It is compiled in like
// [systemPrompt].
//
//go:embed result.txt
var resultExaminationPrompt string

// A result that does not fit into one question is read in overlapping parts, so that no sentence is cut. Each
// part is a separate evaluation.
const (
	maxResultParts         = 4
	resultPartOverlapBytes = 4 << 10 // bytes
)

// ExamineResultForInjection asks the model whether a tool's result contains instructions for the agent that will
// read it (prompt injection). actionType is the type of the action that returned it. ALLOW means that nothing
// was found, ESCALATE that there may be something, and BLOCK that there is; a BLOCK or ESCALATE with an error
// code and a degraded ALLOW are failures. Credentials are redacted before the result is sent.
func (e *Evaluator) ExamineResultForInjection(ctx context.Context, actionType string, result any) verdict.Verdict {
	v := e.examineResultParts(ctx, actionType, result)
	v.Tier, v.NextTier = 2, 0
	v.EvaluatorPromptHash = promptHash(resultExaminationPrompt)
	return v
}

func (e *Evaluator) examineResultParts(ctx context.Context, actionType string, result any) verdict.Verdict {
	if e.o.Provider == nil {
		v := e.verdictWithoutProvider()
		if v.Decision == verdict.Escalate { // no person is asked about results
			v = failureVerdict(v.ErrorCode, v.Reasoning)
		}
		return v
	}
	r := redactResult(result, e.o.Redactor)
	if e.o.FixedCanaryToken != "" && slices.ContainsFunc(r.textsAndMemberNames, func(text string) bool { return strings.Contains(text, e.o.FixedCanaryToken) }) {
		return finalBlock("canary", "the result contains the configured canary token; ask the user to change evaluator.canary_token")
	}
	parts := r.splitIntoOverlappingParts()
	if len(parts) == 0 {
		return failureVerdict("unexamined", fmt.Sprintf("the result is longer than the %d bytes that the evaluator reads; read it in parts", maxResultParts*MaxPayloadBytes))
	}
	asking, cancel := context.WithTimeout(ctx, e.o.EvaluationTimeout)
	defer cancel()
	v := verdict.Finding{RequiredAuthority: verdict.AuthorityNotNeeded, Confidence: 1}.Verdict(2)
	for i, part := range parts {
		x := &modelExchange{question: newResultPartQuestion(actionType, part, i, len(parts), e.o.Redactor)}
		one := e.examineResultPart(asking, ctx, x)
		if one.Decision != verdict.Allow || one.IsAllowedDespiteFailure {
			return one
		}
		if one.Confidence <= v.Confidence {
			v = one
		}
	}
	return escalateUnreliableAllowOfResult(v, append(r.textsAndMemberNames, actionType))
}

// examineResultPart returns the evaluator's verdict on one part of a tool result. requestCtx is the context of
// the request; its deadline is not later than that of callerCtx.
func (e *Evaluator) examineResultPart(requestCtx, callerCtx context.Context, x *modelExchange) verdict.Verdict {
	if err := e.askModelWithRetries(requestCtx, x); err != nil {
		return e.failureVerdictFor(callerCtx, err, x.canaries)
	}
	return e.verdictFromReply(x)
}

// escalateUnreliableAllowOfResult replaces an ALLOW by ESCALATE if the result addresses the evaluator, or if the model is not
// confident: a model that obeys the result would answer ALLOW too.
func escalateUnreliableAllowOfResult(v verdict.Verdict, resultTexts []string) verdict.Verdict {
	rule := findEvaluatorAddressingRule(resultTexts)
	switch {
	case rule != nil:
		return verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, Confidence: 0.85, Rule: rule.ID,
			Reasoning: fmt.Sprintf("prompt injection: the result contains text addressed to its reviewer (%s); tell the user", rule.Name)}.Verdict(2)
	case v.Confidence < 0.5:
		return verdict.Finding{RequiredAuthority: verdict.AuthorityPerson, Confidence: v.Confidence, Reasoning: "the evaluator is not sure that the result is safe, so ask the user: " + v.Reasoning}.Verdict(2)
	}
	return v
}

// newResultPartQuestion returns the question about part i of n of a quoted result.
func newResultPartQuestion(actionType string, part []byte, partIndex, partCount int, r *redact.Redactor) *modelQuestion {
	var b strings.Builder
	b.WriteString("Action type: " + quoteActionType(actionType, r) + "\n")
	if partCount > 1 {
		fmt.Fprintf(&b, "Result, part %d of %d, which overlap: ", partIndex+1, partCount)
	} else {
		b.WriteString("Result: ")
	}
	b.Write(part)
	b.WriteByte('\n')
	return &modelQuestion{system: resultExaminationPrompt, modelInstruction: "Examine what this tool has returned:", quotedActionOrResult: b.String()}
}

// A redactedToolResult is a result as it is sent to an evaluator: without credentials and without encoded images
// and sounds.
type redactedToolResult struct {
	textsAndMemberNames []string // all texts, including names of members
	promptJSON          []byte   // nil if the result is too large

	redactor                 *redact.Redactor
	remainingTextBudgetBytes int // bytes of text that may still be added
}

func redactResult(result any, r *redact.Redactor) redactedToolResult {
	s := redactedToolResult{redactor: r, remainingTextBudgetBytes: maxResultParts * (MaxPayloadBytes - resultPartOverlapBytes)}
	q := promptJSONWriter{maxBytes: s.remainingTextBudgetBytes}
	value := s.redactedValueCopy("", result, 0)
	q.appendValue(value, 0)
	if s.remainingTextBudgetBytes < 0 || q.overLimit() || bytes.Contains(q.buf, []byte(redact.UnexaminedPrefix)) {
		return redactedToolResult{}
	}
	eachText(value, func(text string) bool {
		s.textsAndMemberNames = append(s.textsAndMemberNames, text)
		return true
	})
	s.promptJSON = q.buf
	return s
}

// maxToolResultNesting is how deep a result may be nested.
const maxToolResultNesting = 128

// redactedValueCopy returns a copy of a result's value as it is sent to the evaluator. A member name such as
// password marks a text as a credential only if the text is a single word: a server must not hide
// instructions under such a name.
func (s *redactedToolResult) redactedValueCopy(memberName string, v any, depth int) any {
	if depth > maxToolResultNesting {
		s.remainingTextBudgetBytes = -1
	}
	if s.remainingTextBudgetBytes < 0 {
		return nil
	}
	switch v := v.(type) {
	case string:
		return s.redactText(memberName, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = s.redactedValueCopy(memberName, v[i], depth+1)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, k := range sorted.Keys(v) {
			shows := s.redactText("", k)
			if n := decodedMediaByteCount(k, v); n > 0 {
				object[shows] = fmt.Sprintf("[%d bytes of an image or audio file]", n)
			} else {
				object[shows] = s.redactedValueCopy(k, v[k], depth+1)
			}
		}
		if len(object) < len(v) { // several names became equal after redaction
			s.remainingTextBudgetBytes = -1
		}
		return object
	}
	return v
}

// redactText redacts a text in pieces that are small enough for the redactor.
func (s *redactedToolResult) redactText(name, text string) string {
	if s.remainingTextBudgetBytes -= len(text); s.remainingTextBudgetBytes < 0 {
		return ""
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if strings.ContainsAny(text, " \t\r\n") {
		name = ""
	}
	var b strings.Builder
	for len(text) > MaxPayloadBytes {
		piece := redact.TruncateBytes(text, MaxPayloadBytes)
		if line := strings.LastIndexByte(piece, '\n') + 1; line > 0 {
			piece = piece[:line]
		}
		b.WriteString(s.redactor.RedactNamedValue(name, piece))
		text = text[len(piece):]
	}
	b.WriteString(s.redactor.RedactNamedValue(name, text))
	return b.String()
}

// splitIntoOverlappingParts splits the quoted result into overlapping parts of at most [MaxPayloadBytes] bytes, one for each
// question to the model.
func (s redactedToolResult) splitIntoOverlappingParts() (out [][]byte) {
	rest := s.promptJSON
	for len(rest) > MaxPayloadBytes {
		end := MaxPayloadBytes
		for !utf8.RuneStart(rest[end]) {
			end--
		}
		next := end - resultPartOverlapBytes
		for !utf8.RuneStart(rest[next]) {
			next--
		}
		out, rest = append(out, rest[:end]), rest[next:]
	}
	if len(rest) > 0 {
		out = append(out, rest)
	}
	return out
}

// decodedMediaByteCount returns the number of bytes of an image, sound or video in a member of an object, in the
// formats of MCP and of model APIs; 0 for anything else.
func decodedMediaByteCount(memberName string, jsonObject map[string]any) int {
	text, isText := jsonObject[memberName].(string)
	if memberName != "data" && memberName != "blob" || !isText {
		return 0
	}
	for _, field := range [...]string{"mimeType", "media_type"} {
		kind, _ := jsonObject[field].(string)
		if strings.HasPrefix(kind, "image/") || strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/") {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return 0
			}
			return len(b)
		}
	}
	return 0
}
