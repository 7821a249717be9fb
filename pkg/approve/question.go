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

// A question is a request on a screen: the one-sentence summary, the request in a scrollable window,
// the current choice, and the keys. The parts below the window are laid out first and the window gets
// the remaining lines, so that no text of the request can push the choice off the screen.
type question struct {
	r              *Request
	g              *gate
	reason         string     // the reason of a denial
	input          *huh.Input // the input line for the reason; nil if none is typed
	columns, lines int
	sentence       []string // the summary, folded to columns
	text           []string // the request, folded to columns
	top            int      // index of the first line in the window
	bold           bool
}

func newQuestion(r *Request, g *gate, columns, lines int, bold bool) *question {
	q := &question{r: r, g: g, bold: bold}
	q.resize(columns, lines)
	return q
}

// redrawInterval is how often the time left and the gate are checked.
const redrawInterval = 200 * time.Millisecond

type tick time.Time

func nextTick() tea.Cmd {
	return tea.Tick(redrawInterval, func(t time.Time) tea.Msg { return tick(t) })
}

// Init implements tea.Model.
func (q *question) Init() tea.Cmd {
	q.r.Shown()
	return nextTick()
}

// Update implements tea.Model.
func (q *question) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		q.resize(msg.Width, msg.Height)
		cmd = tea.ClearScreen
	case tick:
		q.g.update()
		cmd = nextTick()
	case tea.KeyMsg:
		cmd = q.key(msg)
	case tea.FocusMsg, tea.BlurMsg: // a message from the terminal instead of the person
	case fmt.Stringer: // the mouse, and bytes that bubbletea does not recognise as a key
		q.g.press(otherKey)
	default:
		cmd = q.edit(msg)
	}
	if q.g.state == gateAnswered {
		return q, tea.Quit
	}
	return q, cmd
}

// key handles a key message. Several typed characters in one message are handled one by one; a paste
// counts as one key that is no part of an answer.
func (q *question) key(msg tea.KeyMsg) tea.Cmd {
	if msg.Type == tea.KeyCtrlC {
		q.g.interrupt()
		return nil
	}
	if q.scroll(msg) {
		q.g.scrollKey()
		q.closeInput()
		return nil
	}
	typed := []rune{otherKey}
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
		if q.g.press(k) {
			if k != otherKey {
				msg.Runes = []rune{k}
			}
			cmds = append(cmds, q.edit(msg))
		} else if q.g.state == gateReason {
			cmds = append(cmds, q.openInput())
		}
	}
	q.closeInput()
	return tea.Batch(cmds...)
}

// openInput opens the input line for the reason of a denial.
func (q *question) openInput() tea.Cmd {
	q.reason = ""
	q.input = huh.NewInput().Prompt("> Deny, because: ").CharLimit(maxReason).Value(&q.reason)
	q.input.WithTheme(huh.ThemeBase()).WithWidth(q.columns - 1)
	return q.input.Focus()
}

// closeInput discards the reason once the gate no longer expects one.
func (q *question) closeInput() {
	if q.g.state != gateReason && q.g.state != gateDenying && q.g.state != gateAnswered {
		q.input, q.reason = nil, ""
	}
}

// edit passes a message to the input line for the reason.
func (q *question) edit(msg tea.Msg) tea.Cmd {
	if q.input == nil || q.g.state != gateReason {
		return nil
	}
	if key, ok := msg.(tea.KeyMsg); ok {
		switch key.Type {
		case tea.KeyEsc:
			q.g.leaveReason()
			return nil
		case tea.KeyCtrlV: // this key would start a program that reads the clipboard
			return nil
		default:
		}
	}
	_, cmd := q.input.Update(msg)
	return cmd
}

// scroll moves the window and reports whether the key is a scroll key.
func (q *question) scroll(msg tea.KeyMsg) bool {
	k := msg.Type
	if msg.Alt || q.input != nil && (k == tea.KeyHome || k == tea.KeyEnd) {
		return false
	}
	switch k {
	case tea.KeyPgDown:
		q.top += max(q.windowHeight()-1, 1)
	case tea.KeyPgUp:
		q.top -= max(q.windowHeight()-1, 1)
	case tea.KeyDown:
		q.top++
	case tea.KeyUp:
		q.top--
	case tea.KeyHome:
		q.top = 0
	case tea.KeyEnd:
		q.top = len(q.text)
	default:
		return false
	}
	q.clampScroll()
	return true
}

func (q *question) clampScroll() { q.top = max(min(q.top, len(q.text)-q.windowHeight()), 0) }

func (q *question) resize(columns, lines int) {
	q.columns, q.lines = max(columns, 4), max(lines, 1)
	q.sentence = term.Fold(q.r.Summary, q.columns-1)
	var whole bool
	q.text, whole = requestLines(q.r, q.columns-1)
	q.g.partial = q.g.partial || !whole
	if q.input != nil {
		q.input.WithWidth(q.columns - 1)
	}
	q.clampScroll()
}

// roomyLines is how many lines a screen needs for more than the summary, one line of the request, the
// choice and the keys.
const roomyLines = 8

// head returns the summary, in at most a quarter of the screen.
func (q *question) head() []string {
	if q.lines < 3 {
		return nil
	}
	room := q.columns - 1
	most := max(q.lines/4, 1)
	if len(q.sentence) <= most {
		return slices.Clone(q.sentence)
	}
	rest := strings.Join(q.sentence[most-1:], " ")
	return append(slices.Clone(q.sentence[:most-1]), term.Cut(rest, room))
}

// keys returns the keys that the person may press, in as many lines as fit.
func (q *question) keys() []string {
	most := 1
	if q.lines >= roomyLines {
		most = min(q.lines/5+1, 4)
	}
	room := q.columns - 1
	var lines []string
	for _, item := range append(q.g.help(), "PgUp PgDn: scroll", "^C: stop asking") {
		item = term.Cut(item, room)
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

// choice returns the line that shows the current answer.
func (q *question) choice() string {
	if q.input != nil {
		if q.g.state == gateReason {
			return strings.SplitN(q.input.View(), "\n", 2)[0]
		}
		return term.Cut(fmt.Sprintf("> Deny, unless a key is pressed now, because: %s", q.reason), q.columns-1)
	}
	return term.Cut(fmt.Sprintf("> %s   %s", q.g.choice(), timeLeft(q.r)), q.columns-1)
}

func timeLeft(r *Request) string {
	left := r.TimeLeft().Round(time.Second)
	return fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
}

// windowHeight returns how many lines of the request are visible.
func (q *question) windowHeight() int {
	used := len(q.head()) + 1 + len(q.keys())
	if q.lines >= roomyLines {
		used++ // the lines below the window
	}
	return max(q.lines-used, 0)
}

// View implements tea.Model.
func (q *question) View() string {
	head := q.head()
	if q.bold {
		for i := range head {
			head[i] = "\x1b[1m" + head[i] + "\x1b[0m"
		}
	}
	end := min(q.top+q.windowHeight(), len(q.text))
	out := append(head, q.text[q.top:end]...)
	if q.lines >= roomyLines {
		more := ""
		switch {
		case end < len(q.text):
			more = fmt.Sprintf("-- %d more lines: press PgDn --", len(q.text)-end)
		case q.top > 0:
			more = "-- end; press PgUp to go back --"
		}
		out = append(out, term.Cut(more, q.columns-1))
	}
	if q.lines > 1 {
		out = append(out, q.choice())
	}
	return strings.Join(append(out, q.keys()...), "\n")
}

// answer returns the person's answer after the program has ended.
func (q *question) answer() (Answer, error) {
	if q.g.state != gateAnswered {
		return Answer{}, errUnanswered
	}
	a := q.g.answer
	if q.input != nil && !a.Interrupt {
		a.Reason = strings.TrimSpace(q.reason)
	}
	return a, nil
}

// maxText is the largest number of lines in the scrollable text of a request.
const maxText = 5000

// requestLines returns a request in lines of at most columns columns: the deciding fields first, then
// the reason and the asking program, long fields last. whole means that the action is shown in full.
func requestLines(r *Request, columns int) (out []string, whole bool) {
	whole = !r.Cut
	// Every line of a value is marked, so that it cannot look like text of shield.
	add := func(name, value string) {
		out = append(out, term.Cut(name+":", columns))
		whole = whole && len(value) <= maxValue
		for _, line := range term.Fold(shortText(value, maxValue), columns-2) {
			out = append(out, "| "+line)
		}
	}
	out = append(out, term.Fold("type: "+r.Type, columns)...)
	for _, f := range r.Payload {
		if !f.bulky() {
			add(f.Name, f.Value)
		}
	}
	if r.Kind != "" {
		add("this kind", r.Kind)
	}
	if r.Tool != "" {
		add("tool", r.Tool)
	}
	if len(r.Effects) > 0 {
		add("effects", strings.Join(r.Effects, "\n"))
	}
	if len(r.Tiers) > 0 {
		add("what each tier decided", strings.Join(r.Tiers, "\n"))
	}
	for _, f := range []Field{{"asked by", r.Asker}, {"folder", r.CWD}, {"session", r.Session}, {"or answer at", r.Page}} {
		if f.Value != "" {
			out = append(out, term.Fold(f.Name+": "+f.Value, columns)...)
		}
	}
	for _, f := range r.Payload {
		if f.bulky() {
			add(f.Name, f.Value)
		}
	}
	if len(out) > maxText {
		whole = false
		out = append(out[:maxText], term.Cut(fmt.Sprintf("… %d more lines are not shown", len(out)-maxText), columns))
	}
	return out, whole
}
