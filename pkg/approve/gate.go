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

// A keyInterpreter decides which keys answer a question at a terminal. People go on
// typing when a question comes up, so keys count only after the terminal has
// been quiet, and only a line that no one types by accident approves: the code
// of the question and nothing else, then Enter. Any other key shuts the gate
// until the terminal has been quiet again.
type keyInterpreter struct {
	code           string
	offersRemember bool // an approval for some minutes is possible
	offersKind     bool // an approval of the kind is possible
	asksToolClass  bool // the answer can set the class of the tool
	denyOnly       bool // the action is not shown in full, so it can only be denied
	clock          func() time.Time

	phase       inputPhase
	lastKeyAt   time.Time // time of the last key; before the first, the time of the question
	currentLine string    // keys of the current line, typed after the terminal was quiet for a second
	typedKeys   string    // keys since the last Enter, also ignored ones; Enter after ignored keys alone is no answer
	invalidLine string    // the last line that was not an answer
	wrongCodes  int       // number of wrong codes

	answer Answer // the answer, once phase is phaseAnswered
}

// An inputPhase is the kind of input that a [keyInterpreter] waits for.
type inputPhase int

const (
	phaseAwaitingQuiet    inputPhase = iota // waiting for the terminal to be quiet
	phaseInvalidLine                        // waiting for the terminal to be quiet, after an invalid line
	phaseTypingLine                         // a line is being typed
	phaseTypingReason                       // the reason of a denial is being typed, as free text
	phaseConfirmingDenial                   // Enter was pressed; wait until the terminal is quiet, so that no one is still typing
	phaseAnswered                           // the question is answered
)

// quietPeriod is how long no key may have been pressed before one counts, and after
// Enter before the question is denied.
const quietPeriod = time.Second

// maxTerminalWrongCodes is how many wrong codes deny, so that no one can go on guessing.
const maxTerminalWrongCodes = 3

// Keys and words that a person types as an answer, which [keyInterpreter.helpLines] explains.
const (
	enterKey         = '\r'
	otherKey         = '\x00' // a key that is not a character
	denyWord         = "no"
	rememberDuration = 10 * time.Minute
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

// newKeyInterpreter returns the interpreter of the keys for a question that appears now. remember
// and kind say which approvals the question offers.
func newKeyInterpreter(remember, kind bool, clock func() time.Time) (*keyInterpreter, error) {
	code, err := newCode()
	return &keyInterpreter{code: code, offersRemember: remember, offersKind: kind, clock: clock, lastKeyAt: clock()}, err
}

// checkQuiet changes the phase if no key was pressed for a [quietPeriod]: the person can now type
// an answer, or a denial that waited for this becomes final. The code that shows the question calls
// it at least once per quietPeriod.
func (g *keyInterpreter) checkQuiet() {
	if g.clock().Sub(g.lastKeyAt) < quietPeriod {
		return
	}
	switch g.phase {
	case phaseAwaitingQuiet, phaseInvalidLine:
		g.phase, g.currentLine = phaseTypingLine, ""
	case phaseConfirmingDenial:
		g.phase = phaseAnswered
	default:
	}
}

// pressKey takes a key. It reports whether the key belongs to the reason of a
// denial, which the caller edits.
func (g *keyInterpreter) pressKey(k rune) (edits bool) {
	if g.phase == phaseAwaitingQuiet || g.phase == phaseInvalidLine {
		g.checkQuiet()
	}
	g.lastKeyAt = g.clock()
	switch g.phase {
	case phaseTypingReason:
		if k != enterKey {
			return true
		}
		g.phase = phaseConfirmingDenial
	case phaseConfirmingDenial:
		if k != enterKey { // the person is still typing
			g.phase = phaseAwaitingQuiet
		}
	case phaseTypingLine, phaseInvalidLine:
		if k == enterKey {
			g.enterLine()
		} else {
			g.rememberKey(k)
			g.addLineKey(k)
		}
	case phaseAwaitingQuiet:
		if k == enterKey {
			g.typedKeys = ""
		} else {
			g.rememberKey(k)
		}
	default:
	}
	return false
}

// rememberKey remembers a key of a line.
func (g *keyInterpreter) rememberKey(k rune) {
	if g.invalidLine = ""; len(g.typedKeys) < 16 && unicode.IsPrint(k) {
		g.typedKeys += string(k)
	}
}

// pressScrollKey takes a key that only moves the text. It does not shut an open gate.
func (g *keyInterpreter) pressScrollKey() {
	if g.phase == phaseAwaitingQuiet || g.phase == phaseInvalidLine {
		g.checkQuiet()
	}
	if g.phase != phaseTypingLine && g.phase != phaseTypingReason {
		g.pressKey(otherKey)
	}
}

// cancelReason leaves the reason of a denial.
func (g *keyInterpreter) cancelReason() { g.phase = phaseAwaitingQuiet }

// interrupt ends the question for a person who wants no more questions.
func (g *keyInterpreter) interrupt() {
	g.phase, g.answer = phaseAnswered, Answer{StopAsking: true, Reason: "interrupted with ^C"}
}

// validLines returns the lines that are valid answers.
func (g *keyInterpreter) validLines() []string {
	if g.denyOnly {
		return []string{denyWord}
	}
	lines := []string{g.code, denyWord}
	if g.offersRemember {
		lines = append(lines, g.rememberLine())
	}
	if g.offersKind {
		lines = append(lines, g.kindLine())
	}
	if g.asksToolClass {
		for _, class := range analysis.ToolClasses {
			lines = append(lines, g.classLine(class))
		}
	}
	return lines
}

func (g *keyInterpreter) classLine(class analysis.ToolClass) string {
	return g.code + " " + string(class)
}

// classOfLine returns the class that a line gives to the tool; "" if it gives none.
func (g *keyInterpreter) classOfLine(line string) analysis.ToolClass {
	if rest, ok := strings.CutPrefix(line, g.code+" "); ok && g.asksToolClass {
		return classOfChoice(rest)
	}
	return ""
}

func (g *keyInterpreter) kindLine() string { return g.code + " kind" }

func (g *keyInterpreter) rememberLine() string {
	return fmt.Sprintf("%s %d", g.code, wholeMinutes(rememberDuration))
}

func wholeMinutes(d time.Duration) int { return int(d.Minutes()) }

// addLineKey takes a key of a line that is not entered yet.
func (g *keyInterpreter) addLineKey(k rune) {
	if len(g.currentLine) < 16 { // a longer line is not an answer
		g.currentLine += string(k)
	}
	switch {
	case g.currentLine == denyWord+" ", g.currentLine == denyWord+",":
		g.phase = phaseTypingReason
	case !slices.ContainsFunc(g.validLines(), func(l string) bool { return strings.HasPrefix(l, g.currentLine) }):
		g.phase = phaseInvalidLine
	}
}

// enterLine takes Enter at the end of a line.
func (g *keyInterpreter) enterLine() {
	was, line, typed := g.phase, g.currentLine, g.typedKeys
	g.phase, g.currentLine, g.typedKeys = phaseAwaitingQuiet, "", ""
	switch {
	case was == phaseInvalidLine || line == "" && typed != "":
		if g.invalidLine = typed; g.invalidLine == "" {
			g.invalidLine = line
		}
		if g.wrongCodes += countCode(line); g.wrongCodes >= maxTerminalWrongCodes {
			g.phase, g.answer = phaseAnswered, Answer{Reason: "too many wrong codes were typed; run the command again"}
		}
	case g.denyOnly && line != "" && line != denyWord:
	case line == g.code:
		g.phase, g.answer = phaseAnswered, Answer{Approve: true}
	case g.offersRemember && line == g.rememberLine():
		g.phase, g.answer = phaseAnswered, Answer{Approve: true, RememberFor: rememberDuration}
	case g.offersKind && line == g.kindLine():
		g.phase, g.answer = phaseAnswered, Answer{Approve: true, ApproveKind: true}
	case g.classOfLine(line) != "":
		class := g.classOfLine(line)
		g.phase, g.answer = phaseAnswered, Answer{Approve: class != analysis.ClassNever, Class: class}
	case line == "", line == denyWord:
		g.phase = phaseConfirmingDenial
	}
}

// countCode returns 1 if a line has the form of a code.
func countCode(line string) int {
	if len(line) == 3 && strings.Trim(line, codeLetters) == "" {
		return 1
	}
	return 0
}

// helpLines lists what a person may type, the most important first.
func (g *keyInterpreter) helpLines() []string {
	if g.denyOnly {
		return []string{"Enter: deny", denyWord + " REASON Enter: deny and say why", "to approve: open the page, which shows all of it: shield approvals"}
	}
	list := []string{g.code + " Enter: approve once", "Enter: deny"}
	if g.offersRemember {
		list = append(list, fmt.Sprintf("%s Enter: approve for %d min", g.rememberLine(), wholeMinutes(rememberDuration)))
	}
	if g.offersKind {
		list = append(list, g.kindLine()+" Enter: approve actions of this kind for this session")
	}
	if g.asksToolClass {
		list = append(list, g.code+" CLASS Enter: approve, and set the class of the tool (reads, workspace or elsewhere)", g.classLine(analysis.ClassNever)+" Enter: deny, now and always")
	}
	return append(list, denyWord+" REASON Enter: deny and say why")
}

// hintFor says about a line that is not an answer what would approve.
func (g *keyInterpreter) hintFor(said string) string {
	if g.denyOnly {
		return fmt.Sprintf("%q does not approve: deny here, or approve on the page (shield approvals)", said)
	}
	return fmt.Sprintf("%q does not approve: type %s", said, g.code)
}

// choiceText returns the answer that the keys typed so far would give, and what the person can do
// next, such as press Enter.
func (g *keyInterpreter) choiceText() string {
	switch {
	case g.phase == phaseConfirmingDenial:
		return "Deny in one second; press a key to cancel"
	case (g.phase == phaseAwaitingQuiet || g.phase == phaseInvalidLine) && g.invalidLine != "":
		return "Deny by default; stop typing for one second. " + g.hintFor(g.invalidLine)
	case g.phase == phaseAwaitingQuiet || g.phase == phaseInvalidLine:
		return "Deny by default; stop typing for one second before you answer"
	case g.currentLine == g.code:
		return "Approve once: press Enter"
	case g.offersRemember && g.currentLine == g.rememberLine():
		return fmt.Sprintf("Approve for %d min: press Enter", wholeMinutes(rememberDuration))
	case g.offersKind && g.currentLine == g.kindLine():
		return "Approve actions of this kind for this session: press Enter"
	case g.classOfLine(g.currentLine) != "":
		if class := g.classOfLine(g.currentLine); class != analysis.ClassNever {
			return "Approve once; the tool " + ClassWords[class] + ": press Enter"
		}
		return "Deny; the tool is never used: press Enter"
	case g.currentLine != "":
		return "Deny by default; typed: " + g.currentLine
	case g.invalidLine != "":
		return "Deny by default; type your answer. " + g.hintFor(g.invalidLine)
	default:
		return "Deny by default; type your answer"
	}
}
