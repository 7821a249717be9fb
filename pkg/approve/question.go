package approve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/huh"

	"github.com/shieldcli/shield/internal/term"
)

// A fullScreenQuestion shows a request on the whole screen: the one-sentence summary, the request
// in a scrollable window, the current choice, and the keys. The parts below the window are laid out
// first and the window gets the remaining lines, so that no text of the request can push the choice
// off the screen.
type fullScreenQuestion struct {
	request           *Request
	interpreter       *keyInterpreter
	denialReason      string     // the reason of a denial
	denialReasonInput *huh.Input // the input line for the reason; nil if none is typed
	columns, rows     int
	summaryLines      []string // the summary, folded to columns
	requestLines      []string // the request, folded to columns
	firstVisibleLine  int      // index of the first line in the window
	bold              bool
}

func newFullScreenQuestion(r *Request, g *keyInterpreter, columns, lines int, bold bool) *fullScreenQuestion {
	q := &fullScreenQuestion{request: r, interpreter: g, bold: bold}
	q.resize(columns, lines)
	return q
}

// redrawInterval is how often the question on the terminal shows the time left, and checks whether
// the person has stopped typing.
const redrawInterval = 200 * time.Millisecond

type redrawTick time.Time

func nextTick() tea.Cmd {
	return tea.Tick(redrawInterval, func(t time.Time) tea.Msg { return redrawTick(t) })
}

// Init implements tea.Model.
func (q *fullScreenQuestion) Init() tea.Cmd {
	q.request.StartTimer()
	return nextTick()
}

// Update implements tea.Model.
func (q *fullScreenQuestion) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		q.resize(msg.Width, msg.Height)
		cmd = tea.ClearScreen
	case redrawTick:
		q.interpreter.advancePhaseAfterKeyboardQuiet()
		cmd = nextTick()
	case tea.KeyMsg:
		cmd = q.handleKey(msg)
	case tea.FocusMsg, tea.BlurMsg: // a message from the terminal instead of the person
	case fmt.Stringer: // the mouse, and bytes that bubbletea does not recognise as a key
		q.interpreter.pressKey(nonCharacterKey)
	default:
		cmd = q.editReason(msg)
	}
	if q.interpreter.answerPhase == answerPhaseAnswered {
		return q, tea.Quit
	}
	return q, cmd
}

// handleKey handles a key message. Several typed characters in one message are handled one by one; a paste
// counts as one key that is no part of an answer.
func (q *fullScreenQuestion) handleKey(msg tea.KeyMsg) tea.Cmd {
	if msg.Type == tea.KeyCtrlC {
		q.interpreter.interrupt()
		return nil
	}
	if q.handleScroll(msg) {
		q.interpreter.pressScrollKey()
		q.closeUnneededReasonInput()
		return nil
	}
	typed := []rune{nonCharacterKey}
	switch {
	case msg.Alt || msg.Paste:
	case msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace:
		typed = msg.Runes
	case msg.Type == tea.KeyEnter || msg.Type == tea.KeyCtrlJ:
		typed = []rune{enterKey}
	default:
	}
	var cmds []tea.Cmd
	for _, k := range typed {
		if q.interpreter.pressKey(k) {
			if k != nonCharacterKey {
				msg.Runes = []rune{k}
			}
			cmds = append(cmds, q.editReason(msg))
		} else if q.interpreter.answerPhase == answerPhaseTypingDenialReason {
			cmds = append(cmds, q.openDenialReasonInput())
		}
	}
	q.closeUnneededReasonInput()
	return tea.Batch(cmds...)
}

// openDenialReasonInput opens the input line for the reason of a denial.
func (q *fullScreenQuestion) openDenialReasonInput() tea.Cmd {
	q.denialReason = ""
	q.denialReasonInput = huh.NewInput().Prompt("> Deny, because: ").CharLimit(maxAnswerReasonBytes).Value(&q.denialReason)
	q.denialReasonInput.WithTheme(huh.ThemeBase()).WithWidth(q.columns - 1)
	return q.denialReasonInput.Focus()
}

// closeUnneededReasonInput discards the reason for a denial once the question no longer accepts a reason.
func (q *fullScreenQuestion) closeUnneededReasonInput() {
	if q.interpreter.answerPhase != answerPhaseTypingDenialReason && q.interpreter.answerPhase != answerPhaseConfirmingDenial && q.interpreter.answerPhase != answerPhaseAnswered {
		q.denialReasonInput, q.denialReason = nil, ""
	}
}

// editReason passes a message to the input line for the reason.
func (q *fullScreenQuestion) editReason(msg tea.Msg) tea.Cmd {
	if q.denialReasonInput == nil || q.interpreter.answerPhase != answerPhaseTypingDenialReason {
		return nil
	}
	if key, ok := msg.(tea.KeyMsg); ok {
		switch key.Type {
		case tea.KeyEsc:
			q.interpreter.cancelDenialReason()
			return nil
		case tea.KeyCtrlV: // this key would start a program that reads the clipboard
			return nil
		default:
		}
	}
	_, cmd := q.denialReasonInput.Update(msg)
	return cmd
}

// handleScroll moves the window and reports whether the key is a scroll key.
func (q *fullScreenQuestion) handleScroll(msg tea.KeyMsg) bool {
	k := msg.Type
	if msg.Alt || q.denialReasonInput != nil && (k == tea.KeyHome || k == tea.KeyEnd) {
		return false
	}
	switch k {
	case tea.KeyPgDown:
		q.firstVisibleLine += max(q.visibleRequestLineCount()-1, 1)
	case tea.KeyPgUp:
		q.firstVisibleLine -= max(q.visibleRequestLineCount()-1, 1)
	case tea.KeyDown:
		q.firstVisibleLine++
	case tea.KeyUp:
		q.firstVisibleLine--
	case tea.KeyHome:
		q.firstVisibleLine = 0
	case tea.KeyEnd:
		q.firstVisibleLine = len(q.requestLines)
	default:
		return false
	}
	q.clampScroll()
	return true
}

func (q *fullScreenQuestion) clampScroll() {
	q.firstVisibleLine = max(min(q.firstVisibleLine, len(q.requestLines)-q.visibleRequestLineCount()), 0)
}

func (q *fullScreenQuestion) resize(columns, lines int) {
	q.columns, q.rows = max(columns, 4), max(lines, 1)
	q.summaryLines = term.WrapLines(q.request.Summary, q.columns-1)
	var whole bool
	q.requestLines, whole = requestLines(q.request, q.columns-1)
	q.interpreter.denyOnly = q.interpreter.denyOnly || !whole
	if q.denialReasonInput != nil {
		q.denialReasonInput.WithWidth(q.columns - 1)
	}
	q.clampScroll()
}

// minScreenRowsForFullQuestion is the number of screen rows from which the optional lines are shown: the
// scroll hint, and more than one line of key help. On a smaller screen, the request gets these
// lines.
const minScreenRowsForFullQuestion = 8

// visibleSummaryLines returns the summary, in at most a quarter of the screen.
func (q *fullScreenQuestion) visibleSummaryLines() []string {
	if q.rows < 3 {
		return nil
	}
	room := q.columns - 1
	most := max(q.rows/4, 1)
	if len(q.summaryLines) <= most {
		return slices.Clone(q.summaryLines)
	}
	rest := strings.Join(q.summaryLines[most-1:], " ")
	return append(slices.Clone(q.summaryLines[:most-1]), term.TruncateWithEllipsis(rest, room))
}

// keyHelpLines returns the keys that the person may press, in as many lines as fit.
func (q *fullScreenQuestion) keyHelpLines() []string {
	most := 1
	if q.rows >= minScreenRowsForFullQuestion {
		most = min(q.rows/5+1, 4)
	}
	room := q.columns - 1
	var lines []string
	for _, item := range append(q.interpreter.helpLines(), "PgUp PgDn: scroll", "^C: stop asking") {
		item = term.TruncateWithEllipsis(item, room)
		last := len(lines) - 1
		switch {
		case last >= 0 && term.Width(lines[last])+3+term.Width(item) <= room:
			lines[last] += "   " + item
		case len(lines) < most:
			lines = append(lines, item)
		default:
			return lines
		}
	}
	return lines
}

// currentAnswerLine returns the line that shows the current answer.
func (q *fullScreenQuestion) currentAnswerLine() string {
	if q.denialReasonInput != nil {
		if q.interpreter.answerPhase == answerPhaseTypingDenialReason {
			return strings.SplitN(q.denialReasonInput.View(), "\n", 2)[0]
		}
		return term.TruncateWithEllipsis(fmt.Sprintf("> Deny in one second; press a key to cancel. Reason: %s", q.denialReason), q.columns-1)
	}
	return term.TruncateWithEllipsis(fmt.Sprintf("> %s   %s", q.interpreter.currentAnswerText(), timeLeftToAnswerText(q.request)), q.columns-1)
}

func timeLeftToAnswerText(r *Request) string {
	left := r.TimeLeft().Round(time.Second)
	return fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
}

// visibleRequestLineCount returns how many lines of the request are visible.
func (q *fullScreenQuestion) visibleRequestLineCount() int {
	used := len(q.visibleSummaryLines()) + 1 + len(q.keyHelpLines())
	if q.rows >= minScreenRowsForFullQuestion {
		used++ // the scroll hint below the request
	}
	return max(q.rows-used, 0)
}

// View implements tea.Model.
func (q *fullScreenQuestion) View() string {
	head := q.visibleSummaryLines()
	if q.bold {
		for i := range head {
			head[i] = "\x1b[1m" + head[i] + "\x1b[0m"
		}
	}
	end := min(q.firstVisibleLine+q.visibleRequestLineCount(), len(q.requestLines))
	out := append(head, q.requestLines[q.firstVisibleLine:end]...)
	if q.rows >= minScreenRowsForFullQuestion {
		more := ""
		switch {
		case end < len(q.requestLines):
			more = fmt.Sprintf("-- %d more lines: press PgDn --", len(q.requestLines)-end)
		case q.firstVisibleLine > 0:
			more = "-- end; press PgUp to go back --"
		}
		out = append(out, term.TruncateWithEllipsis(more, q.columns-1))
	}
	if q.rows > 1 {
		out = append(out, q.currentAnswerLine())
	}
	return strings.Join(append(out, q.keyHelpLines()...), "\n")
}

// answer returns the person's answer after the program has ended.
func (q *fullScreenQuestion) answer() (Answer, error) {
	if q.interpreter.answerPhase != answerPhaseAnswered {
		return Answer{}, errUnanswered
	}
	a := q.interpreter.answer
	if q.denialReasonInput != nil && !a.WantsNoMoreQuestions {
		a.Reason = strings.TrimSpace(q.denialReason)
	}
	return a, nil
}

// maxRequestLines is the largest number of lines in the scrollable text of a request.
const maxRequestLines = 5000

// requestLines returns a request in lines of at most columns columns: the deciding fields first, then
// the reason and the asking program, long fields last. whole means that the action is shown in full.
func requestLines(r *Request, columns int) (out []string, whole bool) {
	whole = !r.IsPayloadTruncated
	// Every line of a value is marked, so that it cannot look like text of shield.
	add := func(name, value string) {
		out = append(out, term.TruncateWithEllipsis(name+":", columns))
		whole = whole && len(value) <= maxFieldBytes
		for _, line := range term.WrapLines(truncateMultilineText(value, maxFieldBytes), columns-2) {
			out = append(out, "| "+line)
		}
	}
	out = append(out, term.WrapLines("type: "+r.ActionType, columns)...)
	for _, f := range r.Payload {
		if !f.isBulky() {
			add(f.Name, f.Value)
		}
	}
	if r.AdvanceApprovalScope != "" {
		add("this kind", r.AdvanceApprovalScope)
	}
	if r.UnknownToolDescription != "" {
		add("tool", r.UnknownToolDescription)
	}
	if len(r.Effects) > 0 {
		add("effects", strings.Join(r.Effects, "\n"))
	}
	if len(r.TierResultTexts) > 0 {
		add("what each tier decided", strings.Join(r.TierResultTexts, "\n"))
	}
	for _, f := range []PayloadField{{"asked by", r.AskingProgramDescription}, {"folder", r.CWD}, {"session", r.Session}, {"or answer at", r.PageAddressAndCode}} {
		if f.Value != "" {
			out = append(out, term.WrapLines(f.Name+": "+f.Value, columns)...)
		}
	}
	for _, f := range r.Payload {
		if f.isBulky() {
			add(f.Name, f.Value)
		}
	}
	if len(out) > maxRequestLines {
		whole = false
		out = append(out[:maxRequestLines], term.TruncateWithEllipsis(fmt.Sprintf("… %d more lines are not shown", len(out)-maxRequestLines), columns))
	}
	return out, whole
}
