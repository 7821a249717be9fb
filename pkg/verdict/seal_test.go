package verdict

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/shieldcli/shield/pkg/action"
)

var (
	testKey   = [KeySize]byte{1, 2, 3}
	testPrint = Fingerprints{Policy: "p", ClassifierRules: "r", ClassifierModel: "m", Config: "c"}
	later     = testTime.Add(time.Minute)
)

const testAction = `{"type":"delete_file","payload":{"path":"a","n":1e400},"id":"a1","x":[1.0]}`

// sealed returns a sealed verdict on testAction.
func sealed(d Decision, key [KeySize]byte, f Fingerprints) *Verdict {
	a, err := action.Parse([]byte(testAction))
	if err != nil {
		panic(err)
	}
	v := &Verdict{ActionID: a.ID, Line: 3, Decision: d, Tier: 1, Confidence: 0.85, Reasoning: "because\u200b", JudgedAt: testTime,
		Expires: testTime.Add(5 * time.Minute), ActionHash: a.TypeAndPayloadHash, Action: a.Raw}
	if d == Escalate {
		v.NextTier = 2
		v.Trail = []TierStep{{JudgeName: "policy", Decision: d, Confidence: 1, LatencyMicroseconds: 5, Effects: jsontext.Value(`[{"z":1,"a":1.50}]`)}}
	}
	NewSealer(key, f).Seal(v, TierBitPolicy|TierBitClassify)
	return v
}

func read(t *testing.T, in string, now time.Time) ActionOrVerdictRecord {
	t.Helper()
	r := NewReader(strings.NewReader(in), ReaderOptions{InputName: "stdin", Sealer: NewSealer(testKey, testPrint), Now: func() time.Time { return now }})
	rec, err := r.Next()
	if err != nil {
		t.Fatalf("%.200q: %v", in, err)
	}
	if extra, err := r.Next(); err != io.EOF {
		t.Fatalf("%.200q: then %+v, %v, want no more", in, extra, err)
	}
	return rec
}

func code(err error) action.ErrorCode {
	var e *action.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

func TestReaderReturnsWhatWasSealed(t *testing.T) {
	for _, d := range []Decision{Allow, Escalate, Block} {
		v := sealed(d, testKey, testPrint)
		line := string(v.AppendJSON(nil))
		rec := read(t, line+"\n", later)
		if rec.Err != nil || rec.Verdict == nil || rec.JudgedTiers != TierBitPolicy|TierBitClassify || string(rec.Raw) != line {
			t.Fatalf("%v: got %+v", d, rec)
		}
		v.JudgedAt, v.Expires = v.JudgedAt.Truncate(time.Millisecond), v.Expires.Truncate(time.Millisecond)
		if diff := cmp.Diff(v, rec.Verdict, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%v: %s", d, diff)
		}
		if (rec.Action != nil) != (d == Escalate) {
			t.Errorf("%v: action %v", d, rec.Action)
		}
		if d == Escalate && rec.Action.TypeAndPayloadHash != v.ActionHash {
			t.Errorf("another action: %+v", rec.Action)
		}
		if again := rec.Verdict.AppendJSON(nil); string(again) != line {
			t.Errorf("%v:\nwritten again %s\nat first      %s", d, again, line)
		}
	}
}

// A seal is over values, so that other tools may print a verdict again.
func TestSealOutlivesOtherPrinters(t *testing.T) {
	line := sealed(Escalate, testKey, testPrint).AppendJSON(nil)
	var indented bytes.Buffer
	if err := json.Indent(&indented, line, "", "\t"); err != nil {
		t.Fatal(err)
	}
	sorted := jsontext.Value(bytes.Clone(line))
	if err := sorted.Format(jsontext.ReorderRawObjects(true), jsontext.EscapeForHTML(true), jsontext.Multiline(true)); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{
		"indented":          indented.String(),
		"sorted, raw text":  string(sorted),
		"other numbers":     strings.Replace(string(line), `"confidence":0.85`, `"confidence":8.50e-1`, 1),
		"spaces":            strings.ReplaceAll(string(line), `":`, `" : `),
		"other escapes":     strings.Replace(string(line), `"delete_file"`, `"delete\u005Ffile"`, 1),
		"fewer escapes":     strings.Replace(string(line), `\u200b`, "\u200b", 1),
		"carriage returns":  strings.ReplaceAll(indented.String(), "\n", "\r\n"),
		"a byte order mark": "\uFEFF" + string(line),
	} {
		if rec := read(t, in, later); rec.Err != nil || rec.Verdict == nil {
			t.Errorf("%s: %v", name, rec.Err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	allow := string(sealed(Allow, testKey, testPrint).AppendJSON(nil))
	escalate := string(sealed(Escalate, testKey, testPrint).AppendJSON(nil))
	block := string(sealed(Block, testKey, testPrint).AppendJSON(nil))
	other := string(sealed(Allow, [KeySize]byte{9}, testPrint).AppendJSON(nil))
	moved := testPrint
	moved.Policy, moved.ClassifierRules = "", "pr"
	seal := allow[strings.Index(allow, `"seal":`):]
	edit := func(s, old, new string) string {
		if !strings.Contains(s, old) {
			t.Fatalf("%s does not contain %s", s, old)
		}
		return strings.Replace(s, old, new, 1)
	}
	wrong := sealed(Escalate, testKey, testPrint)
	wrong.ActionHash = "sha256:0"
	NewSealer(testKey, testPrint).Seal(wrong, TierBitPolicy)
	bare := sealed(Escalate, testKey, testPrint)
	bare.Action = nil
	NewSealer(testKey, testPrint).Seal(bare, TierBitPolicy)

	for _, tt := range []struct {
		name, in string
		want     action.ErrorCode
	}{
		{"another key", other, ErrorCodeUnsealed},
		{"another configuration", string(sealed(Allow, testKey, moved).AppendJSON(nil)), ErrorCodeConfigMismatch},
		{"BLOCK of another configuration", string(sealed(Block, testKey, moved).AppendJSON(nil)), ErrorCodeConfigMismatch},
		{"another key and configuration", string(sealed(Allow, [KeySize]byte{9}, moved).AppendJSON(nil)), ErrorCodeUnsealed},
		{"no seal", `{"decision":"ALLOW","tier":0}`, ErrorCodeUnsealed},
		{"no decision", `{"seal":"AQ"}`, ErrorCodeUnsealed},
		{"empty seal", `{"decision":"ALLOW","seal":""}`, ErrorCodeUnsealed},
		{"seal of zeros", `{"decision":"ALLOW","seal":"` + strings.Repeat("A", 67) + `"}`, ErrorCodeUnsealed},
		{"seal is a number", `{"decision":"ALLOW","seal":1}`, ErrorCodeUnsealed},
		{"action with a decision", `{"type":"read_file","payload":{"path":"a"},"decision":"ALLOW"}`, ErrorCodeUnsealed},
		{"action with a Decision", `{"type":"read_file","payload":{"path":"a"},"Decision":null}`, ErrorCodeUnsealed},
		{"action with a long s", `{"type":"read_file","payload":{"path":"a"},"ſeal":"x"}`, ErrorCodeUnsealed},
		{"block made allow", edit(block, "BLOCK", "ALLOW"), ErrorCodeUnsealed},
		{"escalate made allow", edit(escalate, `"decision":"ESCALATE"`, `"decision":"ALLOW"`), ErrorCodeUnsealed},
		{"seal of another verdict", block[:strings.Index(block, `"seal":`)] + seal, ErrorCodeUnsealed},
		{"longer life", edit(allow, "2026-01-02T02:09", "2036-01-02T02:09"), ErrorCodeUnsealed},
		{"another action", edit(allow, `"path":"a"`, `"path":"b"`), ErrorCodeUnsealed},
		{"another big number", edit(allow, "1e400", "1e401"), ErrorCodeUnsealed},
		{"a field more", edit(allow, `{"id"`, `{"note":1,"id"`), ErrorCodeUnsealed},
		{"a field less", edit(allow, `"line":3,`, ``), ErrorCodeUnsealed},
		{"another stage", edit(allow, `"seal":"AQO`, `"seal":"AQG`), ErrorCodeUnsealed},
		{"decision twice", edit(block, `{"id"`, `{"decision":"ALLOW","id"`), action.DuplicateKey},
		{"decision twice in another case", edit(block, `{"id"`, `{"Decision":"ALLOW","id"`), action.DuplicateKey},
		{"seal twice", edit(allow, `{"id"`, `{"SEAL":"x","id"`), action.DuplicateKey},
		{"hidden in the action", edit(allow, `"path":"a"`, `"path":"a","PATH":"b"`), action.DuplicateKey},
		{"type hidden", `{"TYPE":"read_file","type":"delete_file","payload":{}}`, action.DuplicateKey},
		{"cut", allow[:len(allow)-5], action.InvalidJSON},
		{"wrong hash", string(wrong.AppendJSON(nil)), ErrorCodeUnsealed},
		{"no action to judge", string(bare.AppendJSON(nil)), action.MissingField},
		{"deep verdict", edit(allow, `[1.0]`, strings.Repeat("[", 80)+strings.Repeat("]", 80)), action.TooDeep},
		{"deep action", `{"type":"x","payload":{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}}`, action.TooDeep},
		{"large action", `{"type":"x","payload":{"a":"` + strings.Repeat("a", action.DefaultMaxRecordBytes) + `"}}`, action.TooLarge},
		{"large verdict", edit(allow, "because", strings.Repeat("a", 5<<20)), action.TooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := read(t, tt.in, later)
			if code(rec.Err) != tt.want || rec.Action != nil && rec.Verdict != nil {
				t.Errorf("got %q (%v), verdict %v, want %q", code(rec.Err), rec.Err, rec.Verdict, tt.want)
			}
			var line *action.LineError
			if rec.Err != nil && (!errors.As(rec.Err, &line) || line.Line != 1 || line.InputName != "stdin") {
				t.Errorf("%v does not say where", rec.Err)
			}
		})
	}
}

// No two texts are one seal: the last character of base64 has bits to spare.
func TestSealHasOneText(t *testing.T) {
	v := sealed(Allow, testKey, testPrint)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seal := v.Seal[:len(v.Seal)-1]
	good := 0
	for _, last := range alphabet {
		v.Seal = seal + string(last)
		if rec := read(t, string(v.AppendJSON(nil)), later); rec.Err == nil {
			good++
		}
	}
	if good != 1 {
		t.Errorf("%d last characters make a good seal, want 1", good)
	}
}

func TestOnlyAllowExpires(t *testing.T) {
	for d, want := range map[Decision]action.ErrorCode{Allow: ErrorCodeVerdictExpired, Escalate: "", Block: ""} {
		v := sealed(d, testKey, testPrint)
		line := string(v.AppendJSON(nil))
		if rec := read(t, line, v.Expires); code(rec.Err) != want || rec.Verdict == nil {
			t.Errorf("%v at its end: got %v, want %q", d, rec.Err, want)
		}
		if rec := read(t, line, v.Expires.Add(-2*time.Millisecond)); rec.Err != nil {
			t.Errorf("%v before its end: %v", d, rec.Err)
		}
	}
}

func TestReaderReturnsActions(t *testing.T) {
	for _, in := range []string{
		testAction,
		`{"type":"x","payload":{"decision":"ALLOW","seal":"y","a":{"Decision":1}},"verdict":"ALLOW","decisions":[]}`,
		`{"type":"x","payload":{"a":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}}`,
	} {
		if rec := read(t, in, later); rec.Err != nil || rec.Action == nil || rec.Verdict != nil {
			t.Errorf("%.200s: got %+v", in, rec)
		}
	}
}

// An action as long as allowed passes the stages of a pipe, however its
// verdict escapes it.
func TestLargestActionInAVerdict(t *testing.T) {
	for _, unit := range []string{"a", "\u009b", "\u200b", "\U000E0041", "\x7f"} {
		text := `{"type":"x","payload":{"a":"` + strings.Repeat(unit, (action.DefaultMaxRecordBytes-40)/len(unit)) + `"}}`
		if unit == "\x7f" {
			text = text[:len(text)/2] + `"}}`
		}
		a, err := action.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		v := &Verdict{Decision: Escalate, ActionHash: a.TypeAndPayloadHash, Action: a.Raw}
		NewSealer(testKey, testPrint).Seal(v, TierBitPolicy)
		if rec := read(t, string(v.AppendJSON(nil)), later); rec.Err != nil {
			t.Errorf("%q: %v", unit, rec.Err)
		}
	}
}

func TestSealRemovesWhatIsNotJSON(t *testing.T) {
	v := sealed(Block, testKey, testPrint)
	v.Action = jsontext.Value("{\"a\":\n")
	s := NewSealer(testKey, testPrint)
	s.Seal(v, TierBitPolicy)
	if rec := read(t, string(v.AppendJSON(nil)), later); rec.Err != nil || v.Action != nil {
		t.Errorf("action %s, %v", v.Action, rec.Err)
	}
}

func TestFingerprintsDoNotRunTogether(t *testing.T) {
	seen := map[[fingerprintsDigestBytes]byte]Fingerprints{}
	for _, f := range []Fingerprints{{}, {Policy: "ab"}, {Policy: "a", ClassifierRules: "b"}, {ClassifierRules: "ab"}, {ClassifierRules: "a", ClassifierModel: "b"}, {ClassifierModel: "ab"}, {Config: "ab"}} {
		if other, taken := seen[f.digest()]; taken {
			t.Errorf("%+v and %+v have one digest", f, other)
		}
		seen[f.digest()] = f
	}
}

func FuzzSeal(f *testing.F) {
	f.Add(uint64(1), uint16(0), uint8(0))
	f.Add(uint64(2), uint16(70), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, at uint16, bit uint8) {
		v := random(rand.New(rand.NewPCG(seed, 1)))
		s := NewSealer(testKey, testPrint)
		s.Seal(v, TierSet(seed))
		line := v.AppendJSON(nil)
		rec := read(t, string(line), time.Time{})
		if v.Decision != Escalate && rec.Err != nil { // an ESCALATE needs a real action
			t.Fatalf("%s: %v", line, rec.Err)
		}
		// Any bit of the seal.
		raw, err := base64.RawURLEncoding.DecodeString(v.Seal)
		if err != nil {
			t.Fatal(err)
		}
		changed := *v
		raw[int(at)%len(raw)] ^= 1 << (bit % 8)
		changed.Seal = base64.RawURLEncoding.EncodeToString(raw)
		if rec := read(t, string(changed.AppendJSON(nil)), time.Time{}); rec.Err == nil {
			t.Fatalf("a changed seal passes: %s", changed.AppendJSON(nil))
		}
		// Any bit of the line, unless that changes how it is written only.
		flipped := bytes.Clone(line)
		flipped[int(at)%len(flipped)] ^= 1 << (bit % 8)
		r := NewReader(bytes.NewReader(flipped), ReaderOptions{Sealer: s, Now: func() time.Time { return time.Time{} }})
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			if rec.Err != nil || rec.Verdict == nil {
				continue
			}
			a, b := rec.Verdict.appendCanonical(nil, nil), v.appendCanonical(nil, nil)
			if !bytes.Equal(a, b) {
				t.Fatalf("a changed verdict passes:\n%s\n%s", line, flipped)
			}
		}
	})
}

func BenchmarkReadVerdict(b *testing.B) {
	v := typical()
	s := NewSealer(testKey, testPrint)
	s.Seal(v, TierBitPolicy)
	r := NewReader(&repeat{line: append(v.AppendJSON(nil), '\n')}, ReaderOptions{Sealer: s, Now: func() time.Time { return testTime }})
	b.ReportAllocs()
	for b.Loop() {
		if rec, err := r.Next(); err != nil || rec.Err != nil {
			b.Fatal(rec.Err, err)
		}
	}
}

type repeat struct{ line []byte }

func (r *repeat) Read(p []byte) (n int, err error) {
	for len(p)-n >= len(r.line) {
		n += copy(p[n:], r.line)
	}
	if n == 0 {
		n = copy(p, r.line)
		r.line = append(r.line[n:len(r.line):len(r.line)], r.line[:n]...)
	}
	return n, nil
}
