package approve

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/shieldcli/shield/pkg/analysis"
)

// A gate decides which keys answer a question at a terminal. People go on
// typing when a question comes up, so keys count only after the terminal has
// been quiet, and only a line that no one types by accident approves: the code
// of the question and nothing else, then Enter. Any other key shuts the gate
// until the terminal has been quiet again.
type gate struct {
	code     string
	remember bool // an approval for some minutes is possible
	kind     bool // an approval of the kind is possible
	tool     bool // the answer can set the class of the tool
	partial  bool // the action is not shown in full, so it can only be denied
	clock    func() time.Time

	state    phase
	last     time.Time // time of the last key; before the first, the time of the question
	line     string    // keys since the gate opened
	typed    string    // like typed, but with keys from before: Enter after them is not an answer
	hintText string    // the last line that was not an answer
	wrong    int       // number of wrong codes

	answer Answer // the answer, once state is answered
}

// A phase is what a gate is waiting for.
type phase int

const (
	gateShut      phase = iota // waiting for the terminal to be quiet
	gateShutAgain              // the same, after an invalid line
	gateOpen                   // a line is being typed
	gateReason                 // the reason of a denial is being typed, as free text
	gateDenying                // Enter was pressed; wait until the terminal is quiet, so that no one is still typing
	gateAnswered               // the question is answered
)

// quietTime is how long no key may have been pressed before one counts, and after
// Enter before the question is denied.
const quietTime = time.Second

// maxWrong is how many wrong codes deny, so that no one can go on guessing.
const maxWrong = 3

// What a person types; see [gate.help].
const (
	enterKey    = '\r'
	otherKey    = '\x00' // a key that is not a character
	denyWord    = "no"
	rememberFor = 10 * time.Minute
)

// codeLetters are the letters of codes. There is no vowel, which would make
// words; none of h, j, k, l, w, b, e, n, f, t and g, which move the cursor in
// vi; and no y, which looks like v.
const codeLetters = "cdmpqrsvxz"

// guessableCodes are the codes that people type: programs, folders, neighbours on a
// keyboard.
var guessableCodes = []string{
	"cmd", "cmp", "cms", "csv", "cvs", "cvx", "cxz", "dmz", "mcs", "mpv", "pdm", "pvs", "rcd", "rcp", "rcs", "rpm",
	"rvm", "scp", "src", "srm", "srv", "svc", "vcs", "vcx", "vpc", "xcv", "zxc",
}

// newCode draws three different letters.
func newCode() (string, error) {
	for {
		n, err := rand.Int(rand.Reader, big.NewInt(1000))
		if err != nil {
			return "", fmt.Errorf("draw a code: %w", err)
		}
		a, b, c := codeLetters[n.Int64()/100], codeLetters[n.Int64()/10%10], codeLetters[n.Int64()%10]
		code := string([]byte{a, b, c})
		if a != b && b != c && a != c && !slices.Contains(guessableCodes, code) {
			return code, nil
		}
	}
}

// newGate returns the gate of a question that appears now.
func newGate(remember, kind bool, clock func() time.Time) (*gate, error) {
	code, err := newCode()
	return &gate{code: code, remember: remember, kind: kind, clock: clock, last: clock()}, err
}

// update does what is due when no key is pressed. The code that shows the
// question calls it at least once per [quietTime].
func (g *gate) update() {
	if g.clock().Sub(g.last) < quietTime {
		return
	}
	switch g.state {
	case gateShut, gateShutAgain:
		g.state, g.line = gateOpen, ""
	case gateDenying:
		g.state = gateAnswered
	default:
	}
}

// press takes a key. It reports whether the key belongs to the reason of a
// denial, which the caller edits.
func (g *gate) press(k rune) (edits bool) {
	if g.state == gateShut || g.state == gateShutAgain {
		g.update()
	}
	g.last = g.clock()
	switch g.state {
	case gateReason:
		if k != enterKey {
			return true
		}
		g.state = gateDenying
	case gateDenying:
		if k != enterKey { // the person is still typing
			g.state = gateShut
		}
	case gateOpen, gateShutAgain:
		if k == enterKey {
			g.enter()
		} else {
			g.addKey(k)
			g.add(k)
		}
	case gateShut:
		if k == enterKey {
			g.typed = ""
		} else {
			g.addKey(k)
		}
	default:
	}
	return false
}

// addKey remembers a key of a line.
func (g *gate) addKey(k rune) {
	if g.hintText = ""; len(g.typed) < 16 && unicode.IsPrint(k) {
		g.typed += string(k)
	}
}

// scrollKey takes a key that only moves the text. It does not shut an open gate.
func (g *gate) scrollKey() {
	if g.state == gateShut || g.state == gateShutAgain {
		g.update()
	}
	if g.state != gateOpen && g.state != gateReason {
		g.press(otherKey)
	}
}

// leaveReason leaves the reason of a denial.
func (g *gate) leaveReason() { g.state = gateShut }

// interrupt ends the question for a person who wants no more questions.
func (g *gate) interrupt() {
	g.state, g.answer = gateAnswered, Answer{Interrupt: true, Reason: "interrupted with ^C"}
}

// lines returns the lines that are valid answers.
func (g *gate) lines() []string {
	if g.partial {
		return []string{denyWord}
	}
	lines := []string{g.code, denyWord}
	if g.remember {
		lines = append(lines, g.rememberLine())
	}
	if g.kind {
		lines = append(lines, g.kindLine())
	}
	if g.tool {
		for _, class := range analysis.Classes {
			lines = append(lines, g.classLine(class))
		}
	}
	return lines
}

func (g *gate) classLine(class analysis.Class) string { return g.code + " " + string(class) }

// class returns the class that a line gives to the tool; "" if it gives none.
func (g *gate) class(line string) analysis.Class {
	if rest, ok := strings.CutPrefix(line, g.code+" "); ok && g.tool {
		return classOf(rest)
	}
	return ""
}

func (g *gate) kindLine() string { return g.code + " kind" }

func (g *gate) rememberLine() string { return fmt.Sprintf("%s %d", g.code, minutes(rememberFor)) }

func minutes(d time.Duration) int { return int(d.Minutes()) }

// add takes a key of a line that is not entered yet.
func (g *gate) add(k rune) {
	if len(g.line) < 16 { // a longer line is not an answer
		g.line += string(k)
	}
	switch {
	case g.line == denyWord+" ", g.line == denyWord+",":
		g.state = gateReason
	case !slices.ContainsFunc(g.lines(), func(l string) bool { return strings.HasPrefix(l, g.line) }):
		g.state = gateShutAgain
	}
}

// enter takes Enter at the end of a line.
func (g *gate) enter() {
	was, line, typed := g.state, g.line, g.typed
	g.state, g.line, g.typed = gateShut, "", ""
	switch {
	case was == gateShutAgain || line == "" && typed != "":
		if g.hintText = typed; g.hintText == "" {
			g.hintText = line
		}
		if g.wrong += codesIn(line); g.wrong >= maxWrong {
			g.state, g.answer = gateAnswered, Answer{Reason: "too many wrong codes were typed; run the command again"}
		}
	case g.partial && line != "" && line != denyWord:
	case line == g.code:
		g.state, g.answer = gateAnswered, Answer{Approve: true}
	case g.remember && line == g.rememberLine():
		g.state, g.answer = gateAnswered, Answer{Approve: true, Remember: rememberFor}
	case g.kind && line == g.kindLine():
		g.state, g.answer = gateAnswered, Answer{Approve: true, Kind: true}
	case g.class(line) != "":
		class := g.class(line)
		g.state, g.answer = gateAnswered, Answer{Approve: class != analysis.ClassNever, Class: class}
	case line == "", line == denyWord:
		g.state = gateDenying
	}
}

// codesIn returns 1 if a line has the form of a code.
func codesIn(line string) int {
	if len(line) == 3 && strings.Trim(line, codeLetters) == "" {
		return 1
	}
	return 0
}

// help lists what a person may type, the most important first.
func (g *gate) help() []string {
	if g.partial {
		return []string{"Enter: deny", denyWord + " REASON Enter: deny and say why", "to approve: open the page, which shows all of it: shield approvals"}
	}
	list := []string{g.code + " Enter: approve once", "Enter: deny"}
	if g.remember {
		list = append(list, fmt.Sprintf("%s Enter: approve for %d min", g.rememberLine(), minutes(rememberFor)))
	}
	if g.kind {
		list = append(list, g.kindLine()+" Enter: approve this kind for this session")
	}
	if g.tool {
		list = append(list, g.code+" reads, workspace or elsewhere Enter: approve, and say what the tool does", g.classLine(analysis.ClassNever)+" Enter: deny, now and always")
	}
	return append(list, denyWord+" REASON Enter: deny and say why")
}

// hint says about a line that is not an answer what would approve.
func (g *gate) hint(said string) string {
	if g.partial {
		return fmt.Sprintf("%q does not approve: deny here, or approve on the page (shield approvals)", said)
	}
	return fmt.Sprintf("%q does not approve: type %s", said, g.code)
}

// choice says what would be answered now, and what the gate waits for.
func (g *gate) choice() string {
	switch {
	case g.state == gateDenying:
		return "Deny, unless a key is pressed now"
	case (g.state == gateShut || g.state == gateShutAgain) && g.hintText != "":
		return "Deny   stop typing for a second; " + g.hint(g.hintText)
	case g.state == gateShut || g.state == gateShutAgain:
		return "Deny   stop typing for a second before you answer"
	case g.line == g.code:
		return "Approve once: press Enter"
	case g.remember && g.line == g.rememberLine():
		return fmt.Sprintf("Approve for %d min: press Enter", minutes(rememberFor))
	case g.kind && g.line == g.kindLine():
		return "Approve this kind for this session: press Enter"
	case g.class(g.line) != "":
		return "The tool " + ClassWords[g.class(g.line)] + ": press Enter"
	case g.line != "":
		return "Deny   typed: " + g.line
	case g.hintText != "":
		return "Deny   type your answer; " + g.hint(g.hintText)
	default:
		return "Deny   type your answer"
	}
}
