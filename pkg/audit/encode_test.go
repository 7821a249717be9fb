package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/pkg/verdict"
)

// texts are strings that JSON or a terminal treats as something else.
var texts = []string{
	"", "a", `"quoted" \back\ / <b>&amp;`, "\b\f\n\r\t\x00\x1b\x7f", "é€😀 \u00a0\u00ad\u200b\u2028\u2029\u202e\ufeff\ufffd\U000e0041",
	"\xff\xc3(\xe2\x82", strings.Repeat("x", 300) + "\x00" + strings.Repeat("y", 300),
}

// want is the line that encoding/json makes of an entry, with what does not print
// escaped.
func want(t *testing.T, e Entry) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	e.Seq, e.PreviousLineHash = 0, ""
	if err := enc.Encode(e); err != nil {
		t.Fatal(err)
	}
	return string(escapeNonprinting(bytes.TrimPrefix(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte(`{"seq":0,"prev":"",`))))
}

// An entry is written as its struct says, field by field and byte by byte.
func TestEncodeFollowsTheStruct(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 20, 44, 1, 120e6, time.UTC)
	entries := []Entry{
		{Time: at}, {Time: at.Truncate(time.Second), Kind: EntryKindVerdict},
		{Time: at, Recovery: &LogRecovery{Reason: "r"}}, {Time: at, Recovery: &LogRecovery{Reason: "r", RemovedBytes: 1, DamagedDataSHA256: "s", MovedLogPath: "f"}},
		{Time: at, Fingerprints: PolicyAndModelFingerprints{Prompt: "p"}}, {Time: at, Caller: Caller{ParentPID: 1}},
		{Time: at, Trail: []verdict.TierStep{{}, {Decision: verdict.Block, AllowedPendingHigherTier: true}}},
	}
	for _, c := range []float64{0, math.Copysign(0, -1), 1, 0.7, 0.30000000000000004, 1e-6, 1e-7, 1e20, 1e21, 123456789, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		entries = append(entries, Entry{Time: at, Confidence: c})
	}
	for _, v := range []any{
		true, false, "x", []any{}, map[string]any{}, []any{nil, "a", jsontext.Value("1.50"), jsontext.Value("-1e400")},
		map[string]any{"b": 1, "a": []any{map[string]any{"é": nil}}, "<": "&", "B": 1.5}, 12, json.Number("3"),
	} {
		entries = append(entries, Entry{Time: at, Payload: v})
	}
	for _, s := range texts {
		entries = append(entries, Entry{
			Time: at, Kind: s, ActionID: s, ActionInputLineNumber: 7, Session: s, ActionType: s, Decision: verdict.Escalate, Tier: 2, Confidence: 0.5, Rule: s, Reasoning: s, IsAllowedDespiteFailure: true,
			Error: s, ActionHash: s, Payload: map[string]any{s: s, "list": []any{s, s}},
			Trail:         []verdict.TierStep{{Tier: 1, JudgeName: s, Decision: verdict.Allow, Confidence: 0.25, Rule: s, AllowedPendingHigherTier: true, Reasoning: s, ErrorCode: s, LatencyMicroseconds: 3}},
			AnswerChannel: s, AnsweredBy: s, Fingerprints: PolicyAndModelFingerprints{s, s, s, s, s}, VerdictLatencyMicroseconds: 9, Caller: Caller{s, s, s, 4, 5},
		})
	}
	fields := reflect.TypeFor[Entry]()
	for i := range fields.NumField() { // one that is new is seen here
		e := Entry{Time: at}
		switch v := reflect.ValueOf(&e).Elem().Field(i); {
		case !fields.Field(i).IsExported() || fields.Field(i).Tag.Get("json") == "-":
			continue
		case v.Kind() == reflect.String:
			v.SetString("s")
		case v.CanInt():
			v.SetInt(1)
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if got, want := string(e.encodeJSON()), want(t, e); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

// A confidence that is no number costs nothing else of an entry.
func TestEncodeWithoutNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		e := Entry{Confidence: c, Reasoning: "r"}
		got := string(e.encodeJSON())
		if e.Confidence = 0; got != want(t, e) {
			t.Errorf("%v: %s", c, got)
		}
	}
}
