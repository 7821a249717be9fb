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

// A keyInterpreter decides which keys answer a question at a terminal. People go on typing when a question
// appears, so keys count only after no key was pressed for a while. Only a line that no one types by accident
// approves: the code of the question, alone or followed by a word of [keyInterpreter.validAnswerLines], then
// Enter. After a key that cannot be part of an answer, the interpreter ignores keys until the keyboard has been
// quiet again.
type keyInterpreter struct {
	approvalCode          string
	offersTimedApproval   bool // an approval for some minutes is possible
	offersAdvanceApproval bool // the user can also approve all actions of this kind in advance
	offersToolClassChoice bool // the answer can set the class of the tool
	denyOnly              bool // the action is not shown in full, so it can only be denied
	clock                 func() time.Time

	answerPhase        answerPhase
	lastKeyAt          time.Time // time of the last key; before the first, the time of the question
	currentLine        string    // keys of the current line, typed after the terminal was quiet for a second
	keysSinceLastEnter string    // keys since the last Enter, including keys pressed too early to count; Enter after only such keys is not an answer
	invalidLine        string    // the last line that was not an answer
	wrongCodes         int       // number of wrong codes

	answer Answer // the answer, once phase is answerPhaseAnswered
}

// An answerPhase is the kind of input that a [keyInterpreter] waits for.
type answerPhase int

const (
	answerPhaseAwaitingKeyboardQuiet answerPhase = iota // waiting for the terminal to be quiet
	answerPhaseInvalidLine                              // waiting for the terminal to be quiet, after an invalid line
	answerPhaseTypingAnswer                             // a line is being typed
	answerPhaseTypingDenialReason                       // the reason of a denial is being typed, as free text
	answerPhaseConfirmingDenial                         // Enter was pressed; wait until the terminal is quiet, so that no one is still typing
	answerPhaseAnswered                                 // the question is answered
)

// keyboardQuietPeriod is how long no key must have been pressed before a key counts as part of an
// answer, and how long no key must be pressed after Enter before a denial becomes final.
const keyboardQuietPeriod = time.Second

// maxTerminalWrongCodes is how many wrong codes deny, so that no one can go on guessing.
const maxTerminalWrongCodes = 3

// Keys and words that a person types as an answer, which [keyInterpreter.helpLines] explains.
const (
	enterKey              = '\r'
	nonCharacterKey       = '\x00' // a key that is not a character
	denyWord              = "no"
	timedApprovalDuration = 10 * time.Minute
)

// approvalCodeLetters are the letters of codes. There is no vowel, which would make
// words; none of h, j, k, l, w, b, e, n, f, t and g, which move the cursor in
// vi; and no y, which looks like v.
const approvalCodeLetters = "cdmpqrsvxz"

// guessableCodes are approval codes that a person could type for another purpose: names of programs
// and folders, and neighbouring keys. They are never used as codes.
var guessableCodes = []string{
	"cmd", "cmp", "cms", "csv", "cvs", "cvx", "cxz", "dmz", "mcs", "mpv", "pdm", "pvs", "rcd", "rcp", "rcs", "rpm",
	"rvm", "scp", "src", "srm", "srv", "svc", "vcs", "vcx", "vpc", "xcv", "zxc",
}

// newApprovalCode draws three different letters.
func newApprovalCode() (string, error) {
	for {
		n, err := rand.Int(rand.Reader, big.NewInt(1000))
		if err != nil {
			return "", fmt.Errorf("draw a code: %w", err)
		}
		a, b, c := approvalCodeLetters[n.Int64()/100], approvalCodeLetters[n.Int64()/10%10], approvalCodeLetters[n.Int64()%10]
		code := string([]byte{a, b, c})
		if a != b && b != c && a != c && !slices.Contains(guessableCodes, code) {
			return code, nil
		}
	}
}

// newKeyInterpreter returns the interpreter of the keys for a question that appears now.
// offersTimedApproval and offersAdvanceApproval say which approvals the question offers.
func newKeyInterpreter(offersTimedApproval, offersAdvanceApproval bool, clock func() time.Time) (*keyInterpreter, error) {
	code, err := newApprovalCode()
	return &keyInterpreter{approvalCode: code, offersTimedApproval: offersTimedApproval, offersAdvanceApproval: offersAdvanceApproval, clock: clock, lastKeyAt: clock()}, err
}

// advancePhaseAfterKeyboardQuiet changes the phase if no key was pressed for a [keyboardQuietPeriod]: the person can now type
// an answer, or a denial that waited for this becomes final. The code that shows the question calls
// it at least once per keyboardQuietPeriod.
func (g *keyInterpreter) advancePhaseAfterKeyboardQuiet() {
	if g.clock().Sub(g.lastKeyAt) < keyboardQuietPeriod {
		return
	}
	switch g.answerPhase {
	case answerPhaseAwaitingKeyboardQuiet, answerPhaseInvalidLine:
		g.answerPhase, g.currentLine = answerPhaseTypingAnswer, ""
	case answerPhaseConfirmingDenial:
		g.answerPhase = answerPhaseAnswered
	default:
	}
}

// pressKey takes a key. It reports whether the key belongs to the reason of a
// denial, which the caller edits.
func (g *keyInterpreter) pressKey(k rune) (editsDenialReason bool) {
	if g.answerPhase == answerPhaseAwaitingKeyboardQuiet || g.answerPhase == answerPhaseInvalidLine {
		g.advancePhaseAfterKeyboardQuiet()
	}
	g.lastKeyAt = g.clock()
	switch g.answerPhase {
	case answerPhaseTypingDenialReason:
		if k != enterKey {
			return true
		}
		g.answerPhase = answerPhaseConfirmingDenial
	case answerPhaseConfirmingDenial:
		if k != enterKey { // the person is still typing
			g.answerPhase = answerPhaseAwaitingKeyboardQuiet
		}
	case answerPhaseTypingAnswer, answerPhaseInvalidLine:
		if k == enterKey {
			g.enterLine()
		} else {
			g.recordKeySinceEnter(k)
			g.appendKeyToCurrentLine(k)
		}
	case answerPhaseAwaitingKeyboardQuiet:
		if k == enterKey {
			g.keysSinceLastEnter = ""
		} else {
			g.recordKeySinceEnter(k)
		}
	default:
	}
	return false
}

// recordKeySinceEnter adds a printable character to keysSinceLastEnter, unless that is full, and clears
// invalidLine.
func (g *keyInterpreter) recordKeySinceEnter(k rune) {
	if g.invalidLine = ""; len(g.keysSinceLastEnter) < 16 && unicode.IsPrint(k) {
		g.keysSinceLastEnter += string(k)
	}
}

// pressScrollKey handles a key that only scrolls the text. It does not interrupt a person who is
// typing an answer or a reason.
func (g *keyInterpreter) pressScrollKey() {
	if g.answerPhase == answerPhaseAwaitingKeyboardQuiet || g.answerPhase == answerPhaseInvalidLine {
		g.advancePhaseAfterKeyboardQuiet()
	}
	if g.answerPhase != answerPhaseTypingAnswer && g.answerPhase != answerPhaseTypingDenialReason {
		g.pressKey(nonCharacterKey)
	}
}

// cancelDenialReason discards the reason of a denial that is being typed; the question then waits for an
// answer again.
func (g *keyInterpreter) cancelDenialReason() { g.answerPhase = answerPhaseAwaitingKeyboardQuiet }

// interrupt ends the question for a person who wants no more questions.
func (g *keyInterpreter) interrupt() {
	g.answerPhase, g.answer = answerPhaseAnswered, Answer{WantsNoMoreQuestions: true, Reason: "interrupted with ^C"}
}

// validAnswerLines returns the lines that are valid answers.
func (g *keyInterpreter) validAnswerLines() []string {
	if g.denyOnly {
		return []string{denyWord}
	}
	lines := []string{g.approvalCode, denyWord}
	if g.offersTimedApproval {
		lines = append(lines, g.timedApprovalAnswerLine())
	}
	if g.offersAdvanceApproval {
		lines = append(lines, g.advanceApprovalAnswerLine())
	}
	if g.offersToolClassChoice {
		for _, class := range analysis.ToolClasses {
			lines = append(lines, g.toolClassAnswerLine(class))
		}
	}
	return lines
}

func (g *keyInterpreter) toolClassAnswerLine(class analysis.ToolClass) string {
	return g.approvalCode + " " + string(class)
}

// classOfLine returns the class that a line gives to the tool; "" if it gives none.
func (g *keyInterpreter) classOfLine(line string) analysis.ToolClass {
	if rest, ok := strings.CutPrefix(line, g.approvalCode+" "); ok && g.offersToolClassChoice {
		return classOfChoice(rest)
	}
	return ""
}

func (g *keyInterpreter) advanceApprovalAnswerLine() string { return g.approvalCode + " kind" }

func (g *keyInterpreter) timedApprovalAnswerLine() string {
	return fmt.Sprintf("%s %d", g.approvalCode, truncatedMinutes(timedApprovalDuration))
}

func truncatedMinutes(d time.Duration) int { return int(d.Minutes()) }

// appendKeyToCurrentLine appends a typed character to the current line. It changes the phase if the line now
// begins the reason of a denial, or can no longer become a valid answer.
func (g *keyInterpreter) appendKeyToCurrentLine(k rune) {
	if len(g.currentLine) < 16 { // a longer line is not an answer
		g.currentLine += string(k)
	}
	switch {
	case g.currentLine == denyWord+" ", g.currentLine == denyWord+",":
		g.answerPhase = answerPhaseTypingDenialReason
	case !slices.ContainsFunc(g.validAnswerLines(), func(l string) bool { return strings.HasPrefix(l, g.currentLine) }):
		g.answerPhase = answerPhaseInvalidLine
	}
}

// enterLine takes Enter at the end of a line.
func (g *keyInterpreter) enterLine() {
	was, line, typed := g.answerPhase, g.currentLine, g.keysSinceLastEnter
	g.answerPhase, g.currentLine, g.keysSinceLastEnter = answerPhaseAwaitingKeyboardQuiet, "", ""
	switch {
	case was == answerPhaseInvalidLine || line == "" && typed != "":
		if g.invalidLine = typed; g.invalidLine == "" {
			g.invalidLine = line
		}
		if g.wrongCodes += wrongCodeIncrement(line); g.wrongCodes >= maxTerminalWrongCodes {
			g.answerPhase, g.answer = answerPhaseAnswered, Answer{Reason: "too many wrong codes were typed; run the command again"}
		}
	case g.denyOnly && line != "" && line != denyWord:
	case line == g.approvalCode:
		g.answerPhase, g.answer = answerPhaseAnswered, Answer{Approve: true}
	case g.offersTimedApproval && line == g.timedApprovalAnswerLine():
		g.answerPhase, g.answer = answerPhaseAnswered, Answer{Approve: true, RememberFor: timedApprovalDuration}
	case g.offersAdvanceApproval && line == g.advanceApprovalAnswerLine():
		g.answerPhase, g.answer = answerPhaseAnswered, Answer{Approve: true, IsAdvanceApproval: true}
	case g.classOfLine(line) != "":
		class := g.classOfLine(line)
		g.answerPhase, g.answer = answerPhaseAnswered, Answer{Approve: class != analysis.ToolClassForbidden, Class: class}
	case line == "", line == denyWord:
		g.answerPhase = answerPhaseConfirmingDenial
	}
}

// wrongCodeIncrement returns 1 if an invalid line has the form of an approval code, so that it counts as a wrong
// code; otherwise 0.
func wrongCodeIncrement(line string) int {
	if len(line) == 3 && strings.Trim(line, approvalCodeLetters) == "" {
		return 1
	}
	return 0
}

// helpLines lists what a person may type, the most important first.
func (g *keyInterpreter) helpLines() []string {
	if g.denyOnly {
		return []string{"Enter: deny", denyWord + " REASON Enter: deny and say why", "to approve: open the page, which shows all of it: shield approvals"}
	}
	list := []string{g.approvalCode + " Enter: approve once", "Enter: deny"}
	if g.offersTimedApproval {
		list = append(list, fmt.Sprintf("%s Enter: approve for %d min", g.timedApprovalAnswerLine(), truncatedMinutes(timedApprovalDuration)))
	}
	if g.offersAdvanceApproval {
		list = append(list, g.advanceApprovalAnswerLine()+" Enter: approve actions of this kind for this session")
	}
	if g.offersToolClassChoice {
		list = append(list, g.approvalCode+" CLASS Enter: approve, and set the class of the tool (reads, workspace or elsewhere)", g.toolClassAnswerLine(analysis.ToolClassForbidden)+" Enter: deny, now and always")
	}
	return append(list, denyWord+" REASON Enter: deny and say why")
}

// invalidLineHint returns a hint for a typed line that is not an answer: what the person must type to
// approve.
func (g *keyInterpreter) invalidLineHint(typedLine string) string {
	if g.denyOnly {
		return fmt.Sprintf("%q does not approve: deny here, or approve on the page (shield approvals)", typedLine)
	}
	return fmt.Sprintf("%q does not approve: type %s", typedLine, g.approvalCode)
}

// currentAnswerText returns the answer that the keys typed so far would give, and what the person can do
// next, such as press Enter.
func (g *keyInterpreter) currentAnswerText() string {
	switch {
	case g.answerPhase == answerPhaseConfirmingDenial:
		return "Deny in one second; press a key to cancel"
	case (g.answerPhase == answerPhaseAwaitingKeyboardQuiet || g.answerPhase == answerPhaseInvalidLine) && g.invalidLine != "":
		return "Deny by default; stop typing for one second. " + g.invalidLineHint(g.invalidLine)
	case g.answerPhase == answerPhaseAwaitingKeyboardQuiet || g.answerPhase == answerPhaseInvalidLine:
		return "Deny by default; stop typing for one second before you answer"
	case g.currentLine == g.approvalCode:
		return "Approve once: press Enter"
	case g.offersTimedApproval && g.currentLine == g.timedApprovalAnswerLine():
		return fmt.Sprintf("Approve for %d min: press Enter", truncatedMinutes(timedApprovalDuration))
	case g.offersAdvanceApproval && g.currentLine == g.advanceApprovalAnswerLine():
		return "Approve actions of this kind for this session: press Enter"
	case g.classOfLine(g.currentLine) != "":
		if class := g.classOfLine(g.currentLine); class != analysis.ToolClassForbidden {
			return "Approve once, and record that the tool " + ToolClassDescriptions[class] + ": press Enter"
		}
		return "Deny, and forbid the tool: press Enter"
	case g.currentLine != "":
		return "Deny by default; typed: " + g.currentLine
	case g.invalidLine != "":
		return "Deny by default; type your answer. " + g.invalidLineHint(g.invalidLine)
	default:
		return "Deny by default; type your answer"
	}
}
