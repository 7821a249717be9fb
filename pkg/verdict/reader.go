package verdict

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/pkg/action"
)

// The error codes of records that look like verdicts and cannot be trusted.
const (
	ErrorCodeUnsealed       action.ErrorCode = "unsealed" // not sealed by this installation, or changed after sealing
	ErrorCodeConfigMismatch action.ErrorCode = "mismatch" // sealed under another policy, rule set, model or configuration
	ErrorCodeVerdictExpired action.ErrorCode = "expired"  // an ALLOW that has expired
)

// ReaderOptions are the settings of a [Reader]. Sealer and Now are required.
type ReaderOptions struct {
	InputName      string // name of the input, for messages
	MaxActionBytes int    // maximum length of an action in bytes; 0 means [action.MaxBytes]
	Sealer         *Sealer
	Now            func() time.Time
}

// An ActionOrVerdictRecord is an action, a sealed verdict, or an error.
type ActionOrVerdictRecord struct {
	Line int    // line of the input at which the record starts, counted from 1
	Raw  []byte // bytes of the record; owned by the caller, and shared by the fields below

	Action      *action.Action // the action, or the action of an ESCALATE verdict
	Verdict     *Verdict       // nil for an action; with Err, an authentic verdict that has expired
	JudgedTiers TierSet        // tiers that have judged Verdict

	Err error // a [*action.LineError] that wraps an [*action.Error]
}

// A Reader reads actions and sealed verdicts, as the later stages of a pipe do. A record with a
// top-level key "decision" or "seal", in upper or lower case, is a verdict or an error, never an
// action. Only one goroutine at a time can use a Reader.
type Reader struct {
	r    *action.Reader
	opts ReaderOptions
}

// NewReader returns a reader of the actions and sealed verdicts in r; opts verifies the seals and the expiry of
// verdicts.
func NewReader(r io.Reader, opts ReaderOptions) *Reader {
	if opts.MaxActionBytes <= 0 {
		opts.MaxActionBytes = action.DefaultMaxRecordBytes
	}
	// A verdict has reasons and traces in addition to its action, which escapes can make three times as long.
	limit := 3*opts.MaxActionBytes + 1<<20
	return &Reader{r: action.NewReader(r, action.ReaderOptions{InputName: opts.InputName, MaxRecordBytes: limit}), opts: opts}
}

// Next returns the next record, as [action.Reader.Next] does.
func (r *Reader) Next() (ActionOrVerdictRecord, error) {
	in, err := r.r.Next()
	if err != nil {
		return ActionOrVerdictRecord{}, err
	}
	rec := ActionOrVerdictRecord{Line: in.StartLine, Raw: in.Raw, Err: in.Err}
	if rec.Err != nil {
		return rec, nil
	}
	if err := r.parseRecord(&rec); err != nil {
		rec.Err = &action.LineError{InputName: r.opts.InputName, Line: rec.Line, Err: err}
	}
	return rec, nil
}

// parseRecord determines whether a record is an action or a verdict, and parses it.
func (r *Reader) parseRecord(rec *ActionOrVerdictRecord) error {
	var few [20]canonjson.Member
	members, err := canonjson.ParseObjectMembers(few[:0], rec.Raw, action.MaxJSONNestingDepth)
	var e *canonjson.Error
	if errors.As(err, &e) && e.Kind == canonjson.ErrorKindTooDeep {
		// Only a verdict, which contains an action, may be nested deeper than an action.
		members, err = canonjson.ParseObjectMembers(few[:0], rec.Raw, maxVerdictNestingDepth)
		if err == nil && !isVerdict(members) {
			err = e
		}
	}
	if err != nil {
		_, err = action.Parse(rec.Raw) // Parse returns the right error
		return err
	}
	if !isVerdict(members) {
		if len(rec.Raw) > r.opts.MaxActionBytes {
			return &action.Error{Code: action.TooLarge, Err: errors.New("the input line is longer than " + strconv.Itoa(r.opts.MaxActionBytes) + " bytes; split it, or raise --max-bytes")}
		}
		rec.Action, err = action.FromMembers(rec.Raw, members)
		return err
	}
	v, stages, err := r.opts.Sealer.verify(members)
	if err != nil {
		return err
	}
	if v.Decision == Escalate {
		if len(v.Action) == 0 {
			return &action.Error{Code: action.MissingField, Field: "action", Err: errors.New("the verdict contains no action; use --no-action only in the last stage of a pipe")}
		}
		rec.Action, err = action.Parse(v.Action)
		if err == nil && rec.Action.TypeAndPayloadHash != v.ActionHash {
			err = newUnsealedVerdictError("action_hash", "of another action")
		}
		if err != nil {
			return err
		}
	}
	rec.Verdict, rec.JudgedTiers = v, stages
	if v.Decision == Allow && !r.opts.Now().Before(v.Expires) {
		return &action.Error{Code: ErrorCodeVerdictExpired, Field: "expires_at", Err: errors.New("the verdict is too old; judge the action again")}
	}
	return nil
}

func isVerdict(members []canonjson.Member) bool {
	for _, m := range members {
		if strings.EqualFold(m.Name, "decision") || strings.EqualFold(m.Name, "seal") {
			return true
		}
	}
	return false
}

// verify returns the verdict with the given members if its seal is authentic.
func (s *Sealer) verify(members []canonjson.Member) (*Verdict, TierSet, error) {
	var seal string
	for _, m := range members {
		if m.Name == "seal" {
			seal, _ = m.Value.(string)
		}
	}
	stages, err := s.verifySeal(members, seal)
	switch {
	case errors.Is(err, errSealFingerprintMismatch):
		return nil, 0, &action.Error{Code: ErrorCodeConfigMismatch, Field: "seal", Err: err}
	case err != nil:
		return nil, 0, &action.Error{Code: ErrorCodeUnsealed, Field: "seal", Err: err}
	}
	v := new(Verdict)
	if err := v.setFields(members); err != nil {
		return nil, 0, err
	}
	return v, stages, nil
}

// setFields sets the fields of a verdict. The input was written by shield, so unknown fields and values are
// errors.
func (v *Verdict) setFields(members []canonjson.Member) error {
	for _, m := range members {
		ok := true
		switch m.Name {
		case "id":
			v.ActionID, ok = m.Value.(string)
		case "line":
			v.Line, ok = parseInteger(m.Value)
		case "decision":
			v.Decision, ok = parseDecision(m.Value)
		case "tier":
			v.Tier, ok = parseInteger(m.Value)
		case "confidence":
			v.Confidence, ok = parseNumber(m.Value)
		case "reasoning":
			v.Reasoning, ok = m.Value.(string)
		case "rule":
			v.Rule, ok = m.Value.(string)
		case "ref":
			v.RefusalRef, ok = m.Value.(string)
		case "next_tier":
			v.NextTier, ok = parseInteger(m.Value)
		case "degraded":
			v.IsAllowedDespiteFailure, ok = m.Value.(bool)
		case "error":
			v.ErrorCode, ok = m.Value.(string)
		case "conditions":
			v.AllowConditions, ok = parseStrings(m.Value)
		case "undo":
			v.BackupSetID, ok = m.Value.(string)
		case "prompt_hash":
			v.EvaluatorPromptHash, ok = m.Value.(string)
		case "action_hash":
			v.ActionHash, ok = m.Value.(string)
		case "evaluated_at":
			v.JudgedAt, ok = parseTime(m.Value)
		case "expires_at":
			v.Expires, ok = parseTime(m.Value)
		case "trail":
			v.Trail, ok = parseTrail(m.Raw)
		case "action":
			v.Action = m.Raw
		case "seal":
			v.Seal, ok = m.Value.(string)
		default:
			ok = false
		}
		if !ok {
			return newUnsealedVerdictError(canonjson.Quote(m.Name), "this version of shield cannot read this field of the verdict; judge the action again with 'shield run'")
		}
	}
	if v.Decision == NoDecision {
		return newUnsealedVerdictError("decision", "missing")
	}
	return nil
}

func parseStrings(value any) (out []string, ok bool) {
	list, ok := value.([]any)
	for _, one := range list {
		s, isText := one.(string)
		out, ok = append(out, s), ok && isText
	}
	return out, ok
}

// parseTrail parses the trail of a verdict, which is what each tier said. The JSON of "effects" and "views"
// (text variants of the action) stays byte for byte, so that several shield processes in a pipe print the same
// as a single process.
func parseTrail(raw []byte) ([]TierStep, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if open, err := dec.ReadToken(); err != nil || open.Kind() != '[' {
		return nil, false
	}
	var steps []TierStep
	for dec.PeekKind() == '{' {
		text, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		var few [10]canonjson.Member
		members, err := canonjson.ParseObjectMembers(few[:0], bytes.Clone(text), maxVerdictNestingDepth)
		if err != nil {
			return nil, false
		}
		var s TierStep
		if !s.setFields(members) {
			return nil, false
		}
		steps = append(steps, s)
	}
	end, err := dec.ReadToken()
	return steps, err == nil && end.Kind() == ']'
}

func (s *TierStep) setFields(members []canonjson.Member) bool {
	for _, m := range members {
		ok := true
		switch m.Name {
		case "tier":
			s.Tier, ok = parseInteger(m.Value)
		case "source":
			s.JudgeName, ok = m.Value.(string)
		case "decision":
			s.Decision, ok = parseDecision(m.Value)
		case "confidence":
			s.Confidence, ok = parseNumber(m.Value)
		case "rule":
			s.Rule, ok = m.Value.(string)
		case "allows":
			s.AllowedPendingHigherTier, ok = m.Value.(bool)
		case "reasoning":
			s.Reasoning, ok = m.Value.(string)
		case "error":
			s.ErrorCode, ok = m.Value.(string)
		case "latency_us":
			var n int
			n, ok = parseInteger(m.Value)
			s.LatencyMicroseconds = int64(n)
		case "effects":
			s.Effects = m.Raw
		case "views":
			s.JudgedActionTextVariants = m.Raw
		case "session":
			s.SessionDataForNextProcess = m.Raw
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

func parseDecision(v any) (d Decision, ok bool) {
	s, ok := v.(string)
	return d, ok && d.UnmarshalText([]byte(s)) == nil
}

func parseInteger(v any) (int, bool) {
	f, ok := parseNumber(v)
	n := int(f)
	return n, ok && float64(n) == f
}

func parseNumber(v any) (float64, bool) {
	lit, ok := v.(jsontext.Value)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(lit), 64)
	return f, err == nil
}

func parseTime(v any) (time.Time, bool) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(timeFormat, s)
	return t, err == nil
}

func newUnsealedVerdictError(fieldName, why string) error {
	return &action.Error{Code: ErrorCodeUnsealed, Field: fieldName, Err: errors.New(why)}
}
