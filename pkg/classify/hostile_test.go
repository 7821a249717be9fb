package classify

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shieldcli/shield/internal/tokenizer"
	"github.com/shieldcli/shield/pkg/verdict"
)

// A hostileText is made to cost much, or to be read only in part.
type hostileText struct {
	name, text string
	long       bool // no model may read it to its end
}

// hostileTexts returns what attackers put in front of a model.
func hostileTexts() []hostileText {
	const limit = tokenizer.MaxNormalizedTextBytes - 100 // room for what stands around it
	fill := func(s string) string { return strings.Repeat(s, limit/len(s)) }
	var planes, all strings.Builder
	for plane := rune(0); plane <= 16; plane++ {
		for r := rune(0); r < 0x10000; r += 0x101 {
			planes.WriteRune(plane<<16 + r)
		}
		for r := rune(0); r < 0x10000; r++ {
			all.WriteRune(plane<<16 + r)
		}
	}
	noise := rand.New(rand.NewPCG(1, 2))
	junk := make([]byte, limit)
	for i := range junk {
		junk[i] = byte(noise.Uint32())
	}
	return []hostileText{
		{"nothing", "", false},
		{"megabytes of one letter", strings.Repeat("x", 8<<20), true},
		{"megabytes of spaces, then an attack", strings.Repeat(" ", 8<<20) + "rm -rf /", true},
		{"megabytes of zero-width spaces", strings.Repeat("\u200b", 4<<20), true},
		{"megabytes of NUL", strings.Repeat("\x00", 8<<20), true},
		{"ten thousand windows", strings.Repeat("a b ", 10_000*maxWindowTokens/2), true},
		{"one letter", fill("x"), false},
		{"words of one letter", fill("a "), true},
		{"punctuation", fill("-"), true},
		{"words nobody knows", fill(strings.Repeat("qzxj", 24) + " "), false},
		{"beginnings of words", fill("configuratio"), false},
		{"spaces", fill(" "), false},
		{"NUL", fill("\x00"), false},
		{"invalid UTF-8", fill("\xff\xc0\xaf\xed\xa0\x80"), false},
		{"random bytes", string(junk), false},
		{"every plane", planes.String(), false},
		{"every code point", all.String(), true},
		{"special tokens", fill("[SEP] [CLS] [PAD] [MASK] </s><s> "), true},
		{"marks on one letter", "e" + fill("\u0301\u0323"), false},
		{"marks in the wrong order", "e" + fill("\u0315\u0300\u05b0\u0327"), false},
		{"joined emoji", fill("👩\u200d"), false},
		{"flags", fill("🇫"), false},
		{"ideographs", strings.Repeat("字", limit/5), false},
		{"Hangul apart", strings.Repeat("\u1112\u1161\u11ab", limit/9), false},
		{"what grows eleven times", fill("\ufdfa"), true},
		{"lines", fill("\r\n"), false},
		{"metaspaces", fill("▁"), false},
		{"tag characters", fill("\U000e0072\U000e006d"), false},
	}
}

// TestHostileScores holds that such texts are never safe unless they were read to
// their end.
func TestHostileScores(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		m := openTest(t, name)
		if _, err := m.load(); err != nil {
			t.Fatal(err)
		}
		for _, h := range hostileTexts() {
			s, err := m.Score(t.Context(), h.text)
			switch {
			case err != nil && !errors.Is(err, ErrTooLong):
				t.Errorf("%s: %s: %v", name, h.name, err)
			case err != nil && s != (InjectionScore{}):
				t.Errorf("%s: %s: %+v beside an error", name, h.name, s)
			case err == nil && h.long && !s.HasInjectionLabel:
				t.Errorf("%s: %s: safe although it was not read to its end", name, h.name)
			}
		}
	}
}

// A text that is too long for the model is decided by a higher tier, whatever
// the rules say about it, also where failures are forgiven.
func TestTooLongIsUnexamined(t *testing.T) {
	t.Parallel()
	m := openTest(t, "bert")
	for _, open := range []bool{false, true} {
		c := command(run("make"))
		c.Action.Payload["command"] = "make " + strings.Repeat(" ", 8<<20)
		v, err := New(Options{Model: m, FailOpen: open}).Judge(t.Context(), c)
		if err != nil || v.Decision != verdict.Escalate || v.Confidence != 0.5 || v.ErrorCode != "" || !strings.HasPrefix(v.Reasoning, "unexamined: ") {
			t.Errorf("fail open %v: %v %v %q %q, %v", open, v.Decision, v.Confidence, v.ErrorCode, v.Reasoning, err)
		}
	}
}

// Who stops waiting gets no answer, in the middle of a long text too.
func TestScoreIsStopped(t *testing.T) {
	t.Parallel()
	m := openTest(t, "deberta")
	l, err := m.load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := &stopping{modelGraphRunner: l.session, stop: stop}
	s, err := m.score(ctx, &loadedModel{tokenizer: l.tokenizer, session: r}, make([]int64, 5*m.windowTokenCount))
	if !errors.Is(err, context.Canceled) || s != (InjectionScore{}) || r.calls != 2 {
		t.Errorf("%+v, %v after %d windows", s, err, r.calls)
	}
}

// stopping is a runner whose caller stops waiting during the second window.
type stopping struct {
	modelGraphRunner
	stop  func()
	calls int
}

func (r *stopping) run(ctx context.Context, ids []int64) ([]float32, error) {
	if r.calls++; r.calls == 2 {
		r.stop()
	}
	return r.modelGraphRunner.run(ctx, ids)
}

// FuzzScore: no text makes the model fail in another way than "too long", and
// no answer is outside its range.
func FuzzScore(f *testing.F) {
	bert, deberta := openTest(f, "bert"), openTest(f, "deberta")
	for _, h := range hostileTexts() {
		f.Add(h.text[:min(len(h.text), 2000)])
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range []*Model{bert, deberta} {
			s, err := m.Score(t.Context(), text)
			if err != nil && !errors.Is(err, ErrTooLong) {
				t.Errorf("%q: %v", text, err)
			}
			if err == nil && (s.LabelConfidence < 0.5 || s.LabelConfidence > 1) {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}
