package approve

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"

	"github.com/shieldcli/shield/internal/hostile"
)

func TestNewCode(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for range 20000 {
		code, err := newApprovalCode()
		if err != nil {
			t.Fatal(err)
		}
		seen[code]++
		if len(code) != 3 || strings.Trim(code, approvalCodeLetters) != "" || code[0] == code[1] || code[1] == code[2] || code[0] == code[2] {
			t.Fatalf("code %q", code)
		}
		if slices.Contains(guessableCodes, code) {
			t.Fatalf("%q is what people type", code)
		}
	}
	if want := 10*9*8 - len(guessableCodes); len(seen) != want {
		t.Errorf("%d codes were drawn, want all %d", len(seen), want)
	}
	if strings.ContainsAny(approvalCodeLetters, "aeiouyhjklwbenftg") {
		t.Error("codes may hold vowels or movements")
	}
	for _, code := range guessableCodes {
		if wrongCodeIncrement(code) != 1 {
			t.Errorf("%q could never be drawn", code)
		}
	}
}

// A fakeClock is moved by hand.
type fakeClock struct{ now time.Time }

func (c *fakeClock) time() time.Time       { return c.now }
func (c *fakeClock) pass(by time.Duration) { c.now = c.now.Add(by) }

// testGate returns a gate with a code that a test knows.
func testGate(clock *fakeClock, remember bool) *keyInterpreter {
	return &keyInterpreter{approvalCode: "cdm", offersTimedApproval: remember, clock: clock.time, lastKeyAt: clock.now}
}

// typists take what is typed in the two ways in which it comes from a terminal.
var typists = map[string]func(t *testing.T, remember bool, strokes []hostile.Keystrokes) typing{"screen": typeAtScreen, "lines": typeAtLines}

// A typing is the result of some typing at a question.
type typing struct {
	answer Answer
	err    error // the question is still there
	opened int   // how often the gate has opened
}

// strokes types a text key by key; "~" is a pause in which the terminal is
// quiet.
func strokes(text string) []hostile.Keystrokes {
	var out []hostile.Keystrokes
	var pause time.Duration
	for _, r := range text {
		if r == '~' {
			pause += keyboardQuietPeriod
			continue
		}
		out = append(out, hostile.Keystrokes{PauseBefore: pause, Bytes: string(r)})
		pause = 0
	}
	return append(out, hostile.Keystrokes{PauseBefore: pause})
}

// A timed question gets the pauses of its typist as messages, so that the clock
// stands still while keys are taken.
type timed struct {
	*fullScreenQuestion
	clock  *fakeClock
	opened *int
}

func (m *timed) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch pause := msg.(type) {
	case time.Duration:
		m.clock.pass(pause)
		msg = redrawTick{}
	case redrawTick: // of the machine's clock
		return m, nil
	}
	was := m.interpreter.answerPhase
	_, cmd := m.fullScreenQuestion.Update(msg)
	if was != answerPhaseTypingAnswer && m.interpreter.answerPhase == answerPhaseTypingAnswer {
		*m.opened++
	}
	return m, cmd
}

// A keyboard is what bubbletea reads. Each read is a stroke. Before it, the
// pause is sent; that returns when all that was read before has been taken.
type keyboard struct {
	strokes []hostile.Keystrokes
	send    func(tea.Msg)
}

func (k *keyboard) Read(p []byte) (int, error) {
	for {
		if len(k.strokes) == 0 {
			k.send(tea.Quit())
			return 0, io.EOF
		}
		s := k.strokes[0]
		k.strokes = k.strokes[1:]
		k.send(s.PauseBefore)
		if s.Bytes != "" {
			return copy(p, s.Bytes), nil
		}
	}
}

func typeAtScreen(t *testing.T, remember bool, strokes []hostile.Keystrokes) (typed typing) {
	t.Helper()
	q, clock := screenQuestion(t, remember)
	keys := &keyboard{strokes: strokes}
	p := tea.NewProgram(&timed{fullScreenQuestion: q, clock: clock, opened: &typed.opened}, tea.WithInput(keys), tea.WithOutput(io.Discard),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(), tea.WithoutBracketedPaste())
	keys.send = p.Send
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	typed.answer, typed.err = q.answer()
	return typed
}

func screenQuestion(t *testing.T, remember bool) (*fullScreenQuestion, *fakeClock) {
	t.Helper()
	clock := &fakeClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	a := newTest(t, &memory{})
	a.options.Clock = clock.time
	r, err := a.newRequest(t.Context(), command1(t, push, "s"), remember, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return newFullScreenQuestion(r, testGate(clock, remember), 80, 24, false), clock
}

func typeAtLines(t *testing.T, remember bool, strokes []hostile.Keystrokes) (typed typing) {
	t.Helper()
	clock := &fakeClock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	q := &lineModeQuestion{interpreter: testGate(clock, remember), output: io.Discard}
	step := func(k *keyReadResult) {
		was := q.interpreter.answerPhase
		if q.interpreter.answerPhase == answerPhaseAnswered {
			return
		}
		if err := q.handleKeyEvent(k); err != nil {
			t.Fatal(err)
		}
		if was != answerPhaseTypingAnswer && q.interpreter.answerPhase == answerPhaseTypingAnswer {
			typed.opened++
		}
	}
	for _, s := range strokes {
		clock.pass(s.PauseBefore)
		step(nil)
		for _, r := range s.Bytes {
			step(&keyReadResult{key: r})
		}
	}
	typed.answer, typed.err = q.answer()
	return typed
}

// TestTyped lists what is typed and what it answers.
func TestTyped(t *testing.T) {
	t.Parallel()
	none := errUnanswered
	for _, tc := range []struct {
		typed    string
		remember bool
		want     Answer
		err      error
	}{
		{"~cdm\r", true, Answer{Approve: true}, nil},
		{"~~~cdm\r", true, Answer{Approve: true}, nil},
		{"~cdm\n", true, Answer{Approve: true}, nil},
		{"~c~d~m~\r", true, Answer{Approve: true}, nil}, // slowly
		{"~cdm 10\r", true, Answer{Approve: true, RememberFor: 10 * time.Minute}, nil},
		{"~cdm 10\r", false, Answer{}, none},
		{"~\r~", true, Answer{}, nil},
		{"~\r\r~", true, Answer{}, nil},
		{"~no\r~", true, Answer{}, nil},
		{"~no not now\r~", true, Answer{Reason: "not now"}, nil},
		{"~no, use a branch\r~", true, Answer{Reason: "use a branch"}, nil},
		{"~no ab\x7fc\r~", true, Answer{Reason: "ac"}, nil},
		{"~no cdm\r~", true, Answer{Reason: "cdm"}, nil},
		{"~no  \r~", true, Answer{}, nil},
		{"~x~cdm\r", true, Answer{Approve: true}, nil}, // after a mistake and a pause
		{"~no x\x1b~cdm\r", true, Answer{Approve: true}, nil},
		{"~\x03", true, Answer{WantsNoMoreQuestions: true, Reason: "interrupted with ^C"}, nil},
		{"x\x03", true, Answer{WantsNoMoreQuestions: true, Reason: "interrupted with ^C"}, nil},
		{"~no abc\x03", true, Answer{WantsNoMoreQuestions: true, Reason: "interrupted with ^C"}, nil},
		{"~cds\r~xsm\r~pqr\r", true, Answer{Reason: "too many wrong codes were typed; run the command again"}, nil},

		{"cdm\r", true, Answer{}, none}, // no pause before
		{"cdm\r~", true, Answer{}, none},
		{"xcdm\r", true, Answer{}, none},
		{"~xcdm\r", true, Answer{}, none},
		{"~ cdm\r", true, Answer{}, none},
		{"~cdm \r~", true, Answer{}, none},
		{"~cdmx\r~", true, Answer{}, none},
		{"~cdm 1\r~", true, Answer{}, none},
		{"~cdm 100\r~", true, Answer{}, none},
		{"~cdm10\r~", true, Answer{}, none},
		{"~CDM\r~", true, Answer{}, none},
		{"~cdcdm\r~", true, Answer{}, none},
		{"~cdx\x7fm\r~", true, Answer{}, none}, // a line is not edited
		{"~cd\x15cdm\r~", true, Answer{}, none},
		{"~cdm\x1b\r~", true, Answer{}, none},
		{"~cdm\t\r~", true, Answer{}, none},
		{"~cdm\x00\r~", true, Answer{}, none},
		{"~cdm", true, Answer{}, none},
		{"~cdm~", true, Answer{}, none},
		{"~git cdm\r", true, Answer{}, none},
		{"~ls\rcdm\r", true, Answer{}, none},
		{"~\rcdm\r", true, Answer{}, none}, // Enter, and on
		{"~\rls\r", true, Answer{}, none},
		{"~no\rls -la\r", true, Answer{}, none},
		{"~no why\rls\r", true, Answer{}, none},
		{"\r~", true, Answer{}, none}, // Enter of what was typed before
		{"\r\r\r~", true, Answer{}, none},
		{"~node x.js\r~", true, Answer{}, none},
		{"~yes\r~", true, Answer{}, none},
		{"~10\r~", true, Answer{}, none},
		{"~cat\r~pwd\r~vim\r~sed\r~", true, Answer{}, none},
		{"~cds\r~cds\r~", true, Answer{}, none}, // two mistakes
		{"cds\rcds\rcds\rcds\r", true, Answer{}, none},
	} {
		for name, play := range typists {
			got := play(t, tc.remember, strokes(tc.typed))
			if diff := cmp.Diff(tc.want, got.answer); diff != "" || !errors.Is(got.err, tc.err) {
				t.Errorf("%s: %q: error %v, want %v; answer (-want +got):\n%s", name, tc.typed, got.err, tc.err, diff)
			}
		}
	}
}

// TestScrollKeys: they neither answer nor shut an open gate, but are keys
// before it.
func TestScrollKeys(t *testing.T) {
	t.Parallel()
	const down, pageDown = "\x1b[B", "\x1b[6~"
	quietly := func(bytes string) hostile.Keystrokes {
		return hostile.Keystrokes{PauseBefore: keyboardQuietPeriod, Bytes: bytes}
	}
	soon := func(bytes string) hostile.Keystrokes {
		return hostile.Keystrokes{PauseBefore: keyboardQuietPeriod / 2, Bytes: bytes}
	}
	for name, tc := range map[string]struct {
		strokes []hostile.Keystrokes
		approve bool
	}{
		"in an open gate":          {[]hostile.Keystrokes{quietly(down), soon("cd"), soon(pageDown), soon("m"), soon("\r")}, true},
		"before it opens":          {[]hostile.Keystrokes{soon(down), soon("cdm"), soon("\r")}, false},
		"again and again":          {[]hostile.Keystrokes{soon(down), soon(down), soon(down), soon("cdm"), soon("\r")}, false},
		"while it is denied":       {[]hostile.Keystrokes{quietly("\r"), soon(down), soon(""), soon("cdm\r")}, true},
		"a movement sideways":      {[]hostile.Keystrokes{quietly("cd"), soon("\x1b[C"), soon("m\r")}, false},
		"the mouse":                {[]hostile.Keystrokes{quietly("cd"), soon("\x1b[<0;3;4M"), soon("m\r")}, false},
		"an unknown sequence":      {[]hostile.Keystrokes{quietly("cd"), soon("\x1b[99;7u"), soon("m\r")}, false},
		"a byte that is not a key": {[]hostile.Keystrokes{quietly("cd"), soon("\xff"), soon("m\r")}, false},
		"Alt and a letter":         {[]hostile.Keystrokes{quietly("cd"), soon("\x1bm"), soon("\r")}, false},
		"Alt and Enter":            {[]hostile.Keystrokes{quietly("cdm"), soon("\x1b\r")}, false},
		"a bracketed paste":        {[]hostile.Keystrokes{quietly("\x1b[200~cdm\r\x1b[201~")}, false},
		"an unbracketed paste":     {[]hostile.Keystrokes{quietly("x cdm\ncdm\n")}, false},
	} {
		if got := typeAtScreen(t, true, tc.strokes); got.answer.Approve != tc.approve {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestTypingApprovesNothing: whatever is typed by someone who does not look at
// the question, and pauses now and then, does not approve.
func TestTypingApprovesNothing(t *testing.T) {
	t.Parallel()
	for name, play := range typists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, denied := 0, 0
			for seed := range uint64(streams) {
				got := play(t, seed%2 == 0, hostile.RandomTyping(seed))
				if got.answer.Approve {
					t.Errorf("seed %d: %+v", seed, got.answer)
				}
				opened += got.opened
				if got.err == nil {
					denied++
				}
			}
			// Otherwise the pauses are too short for anything to count.
			if opened < streams {
				t.Errorf("the gate opened %d times; want it to, or this shows nothing", opened)
			}
			t.Logf("the gate opened %d times, %d questions were denied", opened, denied)
		})
	}
}

// TestCodeWithinTyping has the letters of the code everywhere in the typing, but
// never alone on a line after a pause.
func TestCodeWithinTyping(t *testing.T) {
	t.Parallel()
	for name, play := range typists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(streams) {
				rnd := rand.New(rand.NewPCG(seed, 2))
				typed := hostile.RandomTyping(seed)
				for range 8 {
					code := []hostile.Keystrokes{
						{PauseBefore: 2 * keyboardQuietPeriod, Bytes: []string{"x", "cd", "\x1b[D", "ls -", "\x00", "\t", "é"}[rnd.IntN(7)]},
						{Bytes: "cdm"}, {Bytes: []string{"\r", " 10\r", "\n", "cdm\r"}[rnd.IntN(4)]},
					}
					if rnd.IntN(2) == 0 { // the code, then anything
						code = []hostile.Keystrokes{{PauseBefore: 2 * keyboardQuietPeriod, Bytes: "cdm"}, {Bytes: []string{"x", " ", "c", "\x7f", "\x1b", "\x1b[C", " 1", " 100", "\t"}[rnd.IntN(9)]}, {Bytes: "\r"}}
					}
					typed = slices.Insert(typed, rnd.IntN(len(typed)+1), code...)
				}
				if got := play(t, true, typed); got.answer.Approve {
					t.Fatalf("seed %d: %q: %+v", seed, typed, got.answer)
				}
			}
		})
	}
}

// TestWrongAnswerNamesTheRight: a line that does not approve is quoted beside the one that
// would, also if it was begun before keys count; Enter behind it does not deny.
func TestWrongAnswerNamesTheRight(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, 2 * keyboardQuietPeriod} {
		clock := &fakeClock{time.Unix(1_800_000_000, 0)}
		g := testGate(clock, true)
		clock.pass(pause)
		g.pressKey('y')
		clock.pass(2 * keyboardQuietPeriod)
		g.pressKey(enterKey)
		g.advancePhaseAfterKeyboardQuiet()
		if got := g.currentAnswerText(); g.answerPhase == answerPhaseAnswered || g.answerPhase == answerPhaseConfirmingDenial || !strings.Contains(got, `"y" does not approve: type cdm`) {
			t.Errorf("after %v: state %d, %s", pause, g.answerPhase, got)
		}
		clock.pass(2 * keyboardQuietPeriod)
		for _, k := range "cdm\r" {
			g.pressKey(k)
		}
		if g.answerPhase != answerPhaseAnswered || !g.answer.Approve {
			t.Errorf("after %v: the code does not approve then", pause)
		}
	}
}
