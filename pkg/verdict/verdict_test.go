package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/canonjson"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))

// full returns a verdict with every field set.
func full() *Verdict {
	return &Verdict{
		ActionID: "a1", Line: 7, Decision: Escalate, Tier: 1, Confidence: 0.85, Reasoning: "heuristic [recursive_delete, high]: <rm -rf> & \"more\"",
		Rule: "XP-011", RefusalRef: "3f2", NextTier: 2, IsAllowedDespiteFailure: true, ErrorCode: "none", AllowConditions: []string{AllowConditionFilesBackedUp, "x\n"}, BackupSetID: "u17", EvaluatorPromptHash: "sha256:p", ActionHash: "sha256:a",
		JudgedAt: testTime, Expires: testTime.Add(5 * time.Minute),
		Trail: []TierStep{
			{JudgeName: "policy", Decision: Escalate, Confidence: 1, Rule: "r", AllowedPendingHigherTier: true, Reasoning: "no rule", ErrorCode: "e", LatencyMicroseconds: 12,
				Effects: jsontext.Value(`[{"kind":"read_file"}]`), JudgedActionTextVariants: jsontext.Value(`[ ]`), SessionDataForNextProcess: jsontext.Value(`{"/x":["network"]}`)},
			{Tier: 1, JudgeName: "model", Decision: Allow},
		},
		Action: jsontext.Value("{\n  \"type\": \"x y\",\n  \"payload\": {\"n\": 1.50, \"s\": \"\\\" {\\\\\"}\n}"),
		Seal:   "s",
	}
}

func TestOrder(t *testing.T) {
	if !(NoDecision < Allow && Allow < Escalate && Escalate < Block) {
		t.Error("the larger decision is not the stricter")
	}
}

func TestAppendJSON(t *testing.T) {
	want := `{"id":"a1","line":7,"decision":"ESCALATE","tier":1,"confidence":0.85,"reasoning":"heuristic [recursive_delete, high]: <rm -rf> & \"more\"",` +
		`"rule":"XP-011","ref":"3f2","next_tier":2,"degraded":true,"error":"none","conditions":["kept","x\n"],"undo":"u17","prompt_hash":"sha256:p","action_hash":"sha256:a",` +
		`"evaluated_at":"2026-01-02T02:04:05.678Z","expires_at":"2026-01-02T02:09:05.678Z",` +
		`"trail":[{"tier":0,"source":"policy","decision":"ESCALATE","confidence":1,"rule":"r","allows":true,"reasoning":"no rule","error":"e","latency_us":12,"effects":[{"kind":"read_file"}],"views":[],"session":{"/x":["network"]}},` +
		`{"tier":1,"source":"model","decision":"ALLOW","confidence":0}],` +
		`"action":{"type":"x y","payload":{"n":1.50,"s":"\" {\\"}},"seal":"s"}`
	if diff := cmp.Diff(want, string(full().AppendJSON(nil))); diff != "" {
		t.Error(diff)
	}
	want = `{"line":0,"decision":"BLOCK","tier":0,"confidence":0,"reasoning":"","evaluated_at":"0001-01-01T00:00:00.000Z","expires_at":"0001-01-01T00:00:00.000Z"}`
	if got := string(new(Verdict).AppendJSON(nil)); got != want {
		t.Errorf("zero verdict:\n got %s\nwant %s", got, want)
	}
}

// The fields are in the order of the struct, under the names of its tags.
func TestAppendJSONFollowsTheStruct(t *testing.T) {
	for _, v := range []any{*full(), full().Trail[0]} {
		var tags []string
		for f := range reflect.TypeOf(v).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(v).Field(f).Tag.Get("json"), ",")
			if name != "-" {
				tags = append(tags, name)
			}
		}
		var out []byte
		switch v := v.(type) {
		case Verdict:
			out = v.AppendJSON(nil)
		case TierStep:
			out = v.append(nil, compactStyle)
		}
		members, err := canonjson.ParseObjectMembers(nil, out, 64)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range members {
			names = append(names, m.Name)
		}
		if diff := cmp.Diff(tags, names); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnknownDecisionsAreBlocks(t *testing.T) {
	for _, d := range []Decision{NoDecision, Block, Block + 1, 255} {
		out := (&Verdict{Decision: d, Trail: []TierStep{{Decision: d}}}).AppendJSON(nil)
		if n := bytes.Count(out, []byte(`"decision":"BLOCK"`)); n != 2 {
			t.Errorf("%d is written as %s", d, out)
		}
	}
}

func TestConfidence(t *testing.T) {
	for in, want := range map[float64]string{1: "1", 0.95: "0.95", 0.7: "0.7", math.Copysign(0, -1): "0",
		math.Inf(1): "0", math.NaN(): "0", 0.30000000000000004: "0.30000000000000004", 1e-9: "1e-9"} {
		if got := string(appendConfidence(nil, in)); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
	for _, at := range []time.Time{
		{}, day, day.Add(time.Millisecond), day.Add(999*time.Millisecond + 999*time.Microsecond), day.Add(120 * time.Millisecond),
		time.Date(-1, 1, 1, 0, 0, 0, 7e6, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 70e6, time.UTC),
	} {
		if got, want := string(appendTime(nil, at)), strconv.Quote(at.UTC().Format(timeFormat)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What a terminal would obey or hide is escaped, and means the same.
func TestInvisibleCharacters(t *testing.T) {
	const s = "a\x00\x1b[2J\x7f\u009b\u00ad\u200b\u202e\u2028\u2066\ufeff\U000E0041\"\\\n\t\r<é€😀"
	want := `a\u0000\u001b[2J\u007f\u009b\u00ad\u200b\u202e\u2028\u2066\ufeff\udb40\udc41\"\\\n\t\r<é€😀`
	got := string(appendJSONString(nil, s))
	if got != `"`+want+`"` {
		t.Errorf("\n got %s\nwant %q", got, want)
	}
	var back string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back != s {
		t.Errorf("read back as %q, %v", back, err)
	}
	raw := "{ \"a\u202e\\\"\u009b \" : \"\U000E0041\x7f\" }"
	if got, want := string(appendCompact(nil, []byte(raw))), `{"a\u202e\"\u009b ":"\udb40\udc41\u007f"}`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got := string(appendJSONString(nil, "a\xffb\xc0\xaf")); got != "\"a\uFFFDb\uFFFD\uFFFD\"" {
		t.Errorf("invalid UTF-8: %q", got)
	}
}

type failing struct{ after int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	lines := func() int { return bytes.Count(out.Bytes(), []byte("\n")) }
	for i := 1; i <= 3; i++ {
		if err := w.Write(full()); err != nil || lines() != i {
			t.Fatalf("after %d verdicts: %d lines, %v", i, lines(), err)
		}
	}
	out.Reset()
	if err := w.PassUnchanged([]byte(`{ "x" : "\u0041" }`)); err != nil || out.String() != `{ "x" : "\u0041" }`+"\n" {
		t.Errorf("got %q, %v, want the same bytes", out.String(), err)
	}
	out.Reset()
	if err := w.PassUnchanged([]byte("{\r\n \"x\" : \"\\u0041 \"\n}")); err != nil || out.String() != `{"x":"\u0041 "}`+"\n" {
		t.Errorf("got %q, %v, want it on one line", out.String(), err)
	}
	w = NewWriter(&failing{after: 1})
	if err := w.Write(full()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Write(full()); !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
	}
}

// random returns a verdict of random parts, odd strings among them.
func random(r *rand.Rand) *Verdict {
	odd := []string{"", "a", "\x00\u202e\xff", "é\"\\\n", "😀\ufb33", strings.Repeat("x", 300)}
	str := func() string { return odd[r.IntN(len(odd))] }
	raw := func() jsontext.Value {
		return []jsontext.Value{nil, jsontext.Value(`{"b":[1.0,9007199254740993],"a":"\u0041\u202e"}`), jsontext.Value("[ 1 ,\n null ]")}[r.IntN(3)]
	}
	v := &Verdict{
		ActionID: str(), Line: r.IntN(1 << 30), Decision: Decision(1 + r.IntN(3)), Tier: r.IntN(4), Confidence: r.Float64(), Reasoning: str(), Rule: str(),
		RefusalRef: str(), NextTier: r.IntN(4), IsAllowedDespiteFailure: r.IntN(2) == 0, ErrorCode: str(), EvaluatorPromptHash: str(), ActionHash: str(),
		JudgedAt: testTime.Add(time.Duration(r.Int64N(1e18))), Expires: testTime.Add(time.Duration(r.Int64N(1e18))), Action: raw(),
	}
	for range r.IntN(3) {
		v.Trail = append(v.Trail, TierStep{Tier: r.IntN(4), JudgeName: str(), Decision: Decision(1 + r.IntN(3)), Confidence: r.Float64(), Rule: str(), Reasoning: str(),
			ErrorCode: str(), LatencyMicroseconds: r.Int64N(1 << 40), Effects: raw(), JudgedActionTextVariants: raw()})
	}
	return v
}

// The form that is sealed is the canonical form of what is written.
func TestCanonicalForm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		v := random(r)
		want, err := canonjson.Append(nil, v.AppendJSON(nil), maxVerdictNestingDepth)
		if err != nil {
			t.Fatalf("%s: %v", v.AppendJSON(nil), err)
		}
		if diff := cmp.Diff(string(want), string(v.appendCanonical(nil, nil))); diff != "" {
			t.Fatal(diff)
		}
		if !json.Valid(v.AppendJSON(nil)) {
			t.Fatalf("encoding/json refuses %s", v.AppendJSON(nil))
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	v := typical()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = v.AppendJSON(buf[:0])
	}
}

func BenchmarkWrite(b *testing.B) {
	v, w := typical(), NewWriter(io.Discard)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	v, s := typical(), NewSealer([KeySize]byte{1}, Fingerprints{})
	b.ReportAllocs()
	for b.Loop() {
		s.Seal(v, TierBitPolicy|TierBitClassify)
	}
}

// typical returns the verdict on a short command that the rules decide.
func typical() *Verdict {
	return &Verdict{
		ActionID: "a1", Line: 1, Decision: Block, Tier: 1, Confidence: 0.95, Reasoning: "heuristic [recursive_delete, high]: the command deletes a system folder; name a folder of the workspace",
		Rule: "XP-011", ActionHash: "sha256:" + strings.Repeat("0123456789abcdef", 4), JudgedAt: testTime, Expires: testTime.Add(time.Minute),
		Action: jsontext.Value(`{"id":"a1","type":"execute_command","payload":{"command":"rm -rf build && make -j4 all"},"cwd":"/home/me/app"}`),
	}
}
