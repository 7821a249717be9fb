package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/verdict"
)

// Kinds of entries.
const (
	EntryKindVerdict                 = "verdict"  // the default
	EntryKindHookTest                = "probe"    // the verdict on a test call of 'shield hook status', which no agent proposed
	EntryKindLogRecovery             = "recovery" // the log itself was repaired
	EntryKindEvaluationBudgetWarning = "budget"   // a sudden rise in evaluations
	EntryKindMCPServerFindings       = "server"   // a tool or message of an MCP server was withheld, or has findings
	EntryKindHostDidNotAsk           = "host"     // a host did not ask its user, although shield told it to
	EntryKindToolResultFindings      = "result"   // findings in the result of a tool
	EntryKindRefusalAllowed          = "allow"    // a person allowed a refused action once
	EntryKindEvaluatorModelTest      = "exam"     // the evaluator's model was examined, or its ALLOW no longer counts
	EntryKindProgramContainment      = "contain"  // an access that a contained program was refused, or why a program ran without containment
	EntryKindFilesRestored           = "undo"     // a person restored files that an action deleted or overwrote
)

// An Entry is one line of the log. Writing an entry sets Seq and PreviousLineHash, and also Time
// and Kind if they are zero. All strings in the entry are redacted and truncated (see
// [MaxEntryStringBytes]), except the hash and path by which a moved log is found in Recovery.
type Entry struct {
	Seq              uint64    `json:"seq"`  // counted from 1
	PreviousLineHash string    `json:"prev"` // SHA-256 of the line before, in hex
	Time             time.Time `json:"time"` // UTC
	Kind             string    `json:"kind"`

	ActionID                string             `json:"id,omitempty"` // ID of the action
	ActionInputLineNumber   int                `json:"line,omitempty"`
	Session                 string             `json:"session,omitempty"`
	ActionType              string             `json:"type,omitempty"`
	CWD                     string             `json:"cwd,omitempty"` // folder of the action, if it names one
	Decision                verdict.Decision   `json:"decision,omitempty"`
	Tier                    int                `json:"tier"`
	Confidence              float64            `json:"confidence"`
	Rule                    string             `json:"rule,omitempty"`
	Reasoning               string             `json:"reasoning,omitempty"`
	RefusalRef              string             `json:"ref,omitempty"` // reference of a refused action, for shield allow
	IsAllowedDespiteFailure bool               `json:"degraded,omitempty"`
	Error                   string             `json:"error,omitempty"`
	ActionHash              string             `json:"action_hash,omitempty"`
	Payload                 any                `json:"payload,omitempty"` // a decoded JSON value
	Trail                   []verdict.TierStep `json:"trail,omitempty"`   // tiers' results, without their fields Effects and Views
	AnswerChannel           string             `json:"channel,omitempty"` // the approval channel by which a person decided
	AnsweredBy              string             `json:"by,omitempty"`      // the person who decided

	Fingerprints               PolicyAndModelFingerprints `json:"fingerprints,omitzero"`
	VerdictLatencyMicroseconds int64                      `json:"latency_us"` // microseconds
	Caller                     Caller                     `json:"caller,omitzero"`
	Recovery                   *LogRecovery               `json:"recovery,omitempty"`

	HasRedactedPayloadAndReasonings bool `json:"-"` // Payload and reasonings are redacted already, and the payload's strings are truncated to MaxEntryStringBytes
}

// PolicyAndModelFingerprints identify the policy, rules, model and settings of a verdict.
type PolicyAndModelFingerprints struct {
	Policy string `json:"policy,omitempty"`
	Rules  string `json:"rules,omitempty"`
	Model  string `json:"model,omitempty"`
	Config string `json:"config,omitempty"`
	Prompt string `json:"prompt,omitempty"`
}

// A Caller is the program that asked for the verdict.
type Caller struct {
	ShieldSubcommand string `json:"command,omitempty"` // the command of shield: run, hook claude-code, …
	MCPServerName    string `json:"server,omitempty"`  // the MCP server that the action is for
	User             string `json:"user,omitempty"`
	PID              int    `json:"pid,omitempty"`
	ParentPID        int    `json:"parent,omitempty"`
}

// A LogRecovery describes a fault of the log and its repair.
type LogRecovery struct {
	Reason            string `json:"reason"`
	RemovedBytes      int64  `json:"bytes,omitempty"`  // length of the removed incomplete line
	DamagedDataSHA256 string `json:"sha256,omitempty"` // SHA-256, in hex, of the removed incomplete line or of the file that was moved aside
	MovedLogPath      string `json:"file,omitempty"`   // where the damaged log was moved

	// LastIntactSeq is the sequence number of the last entry before the damaged log file, or 0 if the damaged
	// file was the log's first file; nil if no file was moved aside, or if an earlier version of shield wrote
	// the recovery entry.
	LastIntactSeq *uint64 `json:"after,omitempty"`
}

// Limits of an entry, in bytes; MaxEntryStringBytes is for each string in it.
const (
	MaxEntryStringBytes = 4 << 10
	maxPayloadBytes     = 32 << 10
	maxVerdictSteps     = 16
	maxEntryBytes       = 60 << 10
	// maxLineBytes is the longest line of a log, with sequence number and hash.
	maxLineBytes = 64 << 10
)

// encodeRedacted returns the entry as JSON without its opening brace, Seq and Prev.
func (e *Entry) encodeRedacted(now time.Time, r *redact.Redactor) []byte {
	c := e.redactedCopy(now, r)
	b := c.encodeJSON()
	if len(b) > maxEntryBytes { // too long: drop payload and trail, and truncate the other texts
		c.Payload, c.Trail = nil, nil
		for _, s := range c.fieldsToRedactAndTruncate() {
			*s = redact.TruncateBytes(*s, 256)
		}
		b = c.encodeJSON()
	}
	return b
}

// redactedCopy returns a copy with secrets redacted and strings truncated.
func (e *Entry) redactedCopy(now time.Time, r *redact.Redactor) *Entry {
	c := *e
	if c.Time.IsZero() {
		c.Time = now
	}
	c.Time = c.Time.UTC().Truncate(time.Millisecond)
	if c.Kind == "" {
		c.Kind = EntryKindVerdict
	}
	if e.Recovery != nil {
		recovery := *e.Recovery
		c.Recovery = &recovery
	}
	for _, s := range c.fieldsToRedactAndTruncate() {
		if *s == "" || s == &c.ActionHash && isDigest(*s) || s == &c.Reasoning && c.HasRedactedPayloadAndReasonings && len(*s) <= MaxEntryStringBytes {
			continue
		}
		*s = r.RedactAndTruncate(*s, MaxEntryStringBytes)
	}
	c.Trail = nil
	for i, s := range e.Trail {
		if i == maxVerdictSteps {
			break
		}
		s.Rule, s.ErrorCode = r.RedactAndTruncate(s.Rule, 256), r.RedactAndTruncate(s.ErrorCode, 256)
		if !c.HasRedactedPayloadAndReasonings || len(s.Reasoning) > 1024 {
			s.Reasoning = r.RedactAndTruncate(s.Reasoning, 1024)
		}
		s.Effects, s.JudgedActionTextVariants = nil, nil
		if s.Decision == verdict.NoDecision {
			s.Decision = verdict.Block // an unknown decision counts as Block, and readers accept only known ones
		}
		c.Trail = append(c.Trail, s)
	}
	if c.Payload != nil {
		if !c.HasRedactedPayloadAndReasonings {
			c.Payload = r.RedactJSONValue(c.Payload, MaxEntryStringBytes)
		}
		c.Payload = limitPayloadSize(c.Payload, r)
	}
	return &c
}

// isDigest reports whether a text is a SHA-256 hash in shield's notation, which contains no secret.
func isDigest(s string) bool {
	hash, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// fieldsToRedactAndTruncate returns the fields that can contain untrusted text.
func (e *Entry) fieldsToRedactAndTruncate() []*string {
	fields := []*string{
		&e.Kind, &e.ActionID, &e.Session, &e.ActionType, &e.CWD, &e.Rule, &e.Reasoning, &e.RefusalRef, &e.Error, &e.ActionHash, &e.AnswerChannel, &e.AnsweredBy,
		&e.Caller.ShieldSubcommand, &e.Caller.MCPServerName, &e.Caller.User, &e.Fingerprints.Policy, &e.Fingerprints.Rules, &e.Fingerprints.Model,
		&e.Fingerprints.Config, &e.Fingerprints.Prompt,
	}
	if e.Recovery != nil {
		fields = append(fields, &e.Recovery.Reason)
	}
	return fields
}

// limitPayloadSize returns a decoded JSON value if it is small enough, otherwise the beginning of its text.
func limitPayloadSize(v any, r *redact.Redactor) any {
	b, err := appendValue(nil, v)
	if err != nil {
		return map[string]any{"unwritable": r.RedactAndTruncate(err.Error(), MaxEntryStringBytes)}
	}
	if len(b) > maxPayloadBytes {
		return map[string]any{"truncated": redact.TruncateBytes(string(b), MaxEntryStringBytes), "bytes": len(b)}
	}
	return json.RawMessage(b)
}

// escapeNonprinting escapes nonprinting characters in a line of JSON or text.
func escapeNonprinting(line []byte) []byte {
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if isNonprinting(r, n) {
			out := append(make([]byte, 0, len(line)+64), line[:i]...)
			return appendEscapedNonprinting(out, line[i:])
		}
		i += n
	}
	return line
}

// isNonprinting reports whether a character must not be printed; encodedLen is its length in UTF-8
// bytes.
func isNonprinting(r rune, encodedLen int) bool {
	return r < ' ' || r >= 0x7f && !unicode.IsPrint(r) || r == utf8.RuneError && encodedLen == 1
}

func appendEscapedNonprinting(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case !isNonprinting(r, n):
			dst = append(dst, text[i:i+n]...)
		case r > 0xffff:
			r -= 0x10000
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		i += n
	}
	return dst
}
