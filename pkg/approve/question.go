package approve

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/huh"

	"github.com/shieldcli/shield/internal/term"
)

// The choices of a person, as values of the form.
const (
	choiceDeny     = "deny"
	choiceWhy      = "why"
	choiceOnce     = "once"
	choiceRemember = "remember"
)

// rememberFor is how long "approve this exact action" holds.
const rememberFor = 10 * time.Minute

// A question is a request on a screen: a headline with the time left, the
// request in a window that can be scrolled, and the choices below. The choices
// are drawn first and the window gets what is left, so that nothing in the
// request can push them away.
type question struct {
	r              *Request
	form           *huh.Form
	choice, reason string
	columns, lines int
	text           []string // the request, folded to columns
	top            int      // first line of text in the window
	bold           bool
	shown          time.Time // when the question appeared; zero before
	interrupted    bool
}

func newQuestion(r *Request, columns, lines int, bold bool) *question {
	q := &question{r: r, choice: choiceDeny, bold: bold}
	q.form = q.newForm().WithShowHelp(false).WithTheme(huh.ThemeBase()).WithKeyMap(keys())
	q.resize(columns, lines)
	return q
}

// newForm returns the choices, the harmless ones first, and the line for a
// reason.
func (q *question) newForm() *huh.Form {
	return huh.NewForm(
		huh.NewGroup(huh.NewSelect[string]().Options(options(q.r)...).Value(&q.choice)),
		huh.NewGroup(huh.NewInput().Title("Why not? The agent reads this.").CharLimit(maxReason).Value(&q.reason)).
			WithHideFunc(func() bool { return q.choice != choiceWhy }),
	)
}

func options(r *Request) []huh.Option[string] {
	list := []huh.Option[string]{
		huh.NewOption("Deny", choiceDeny),
		huh.NewOption("Deny and say why", choiceWhy),
		huh.NewOption("Approve once", choiceOnce),
	}
	if r.Remember {
		list = append(list, huh.NewOption(rememberLabel(), choiceRemember))
	}
	return list
}

func rememberLabel() string {
	return fmt.Sprintf("Approve this action for %d min", int(rememberFor.Minutes()))
}

// keys returns huh's keys without those that would hide a choice or leave.
func keys() *huh.KeyMap {
	k := huh.NewDefaultKeyMap()
	k.Quit = key.NewBinding(key.WithDisabled())
	for _, b := range []*key.Binding{&k.Select.Filter, &k.Select.SetFilter, &k.Select.ClearFilter} {
		b.SetEnabled(false)
	}
	return k
}

type tick time.Time

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Init implements tea.Model.
func (q *question) Init() tea.Cmd {
	q.shown = q.r.clock()
	q.r.Shown()
	return tea.Batch(q.form.Init(), everySecond())
}

// Update implements tea.Model.
func (q *question) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		q.resize(msg.Width, msg.Height)
		return q, tea.ClearScreen
	case tick:
		return q, everySecond()
	case tea.KeyMsg:
		if msg.Type == tea.KeyCtrlC {
			q.interrupted = true
			return q, tea.Quit
		}
		// A paste answers nothing: it may hold what an agent put on the clipboard.
		if q.r.clock().Sub(q.shown) < deaf || msg.Paste || q.scroll(msg.Type) {
			return q, nil
		}
	}
	form, cmd := q.form.Update(msg)
	if f, ok := form.(*huh.Form); ok {
		q.form = f
	}
	if q.form.State != huh.StateNormal {
		return q, tea.Quit
	}
	return q, cmd
}

// scroll moves the window and reports whether the key was meant for it.
func (q *question) scroll(k tea.KeyType) bool {
	page := max(q.window()-1, 1)
	switch k {
	case tea.KeyPgDown, tea.KeyRight:
		q.top += page
	case tea.KeyPgUp, tea.KeyLeft:
		q.top -= page
	case tea.KeyHome:
		q.top = 0
	case tea.KeyEnd:
		q.top = len(q.text)
	default:
		return false
	}
	q.clamp()
	return true
}

func (q *question) clamp() { q.top = max(min(q.top, len(q.text)-q.window()), 0) }

// choiceLines is how many lines the choices take at most, and chrome how many
// the headline, the line below the window and a blank one.
const (
	choiceLines = 4
	chrome      = 3
)

// window returns how many lines of the request can be seen.
func (q *question) window() int { return max(q.lines-choiceLines-chrome, 1) }

func (q *question) resize(columns, lines int) {
	q.columns, q.lines = max(columns, 10), max(lines, choiceLines+2)
	q.text = content(q.r, q.columns-1)
	q.form = q.form.WithWidth(q.columns - 1)
	q.clamp()
}

// View implements tea.Model.
func (q *question) View() string {
	left := q.r.TimeLeft().Round(time.Second)
	head := cutWidth(fmt.Sprintf("%d:%02d left  shield: allow this?", int(left.Minutes()), int(left.Seconds())%60), q.columns-1)
	if q.bold {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	out := []string{head}
	end := min(q.top+q.window(), len(q.text))
	out = append(out, q.text[q.top:end]...)
	more := ""
	switch {
	case end < len(q.text):
		more = fmt.Sprintf("-- %d more lines: PgDn --", len(q.text)-end)
	case q.top > 0:
		more = "-- end; PgUp goes back --"
	}
	out = append(out, cutWidth(more, q.columns-1))
	form := strings.Split(strings.TrimRight(q.form.View(), "\n"), "\n")
	out = append(out, form[:min(len(form), choiceLines+1)]...)
	return strings.Join(out, "\n")
}

// answer returns what the person said, after the program has ended.
func (q *question) answer() (Answer, error) {
	if q.interrupted {
		return Answer{Interrupt: true, Reason: "interrupted with ^C"}, nil
	}
	if q.form.State != huh.StateCompleted {
		return Answer{}, errUnanswered
	}
	return chosen(q.choice, q.reason)
}

func chosen(choice, reason string) (Answer, error) {
	switch choice {
	case choiceDeny:
		return Answer{}, nil
	case choiceWhy:
		return Answer{Reason: strings.TrimSpace(reason)}, nil
	case choiceOnce:
		return Answer{Approve: true}, nil
	case choiceRemember:
		return Answer{Approve: true, Remember: rememberFor}, nil
	default:
		return Answer{}, errUnanswered
	}
}

// maxText is how many lines of a request can be scrolled to.
const maxText = 5000

// content returns a request in lines of at most columns columns.
func content(r *Request, columns int) []string {
	var out []string
	// Every line of a value is marked, so that none can pose as one of shield's.
	add := func(name, value string) {
		out = append(out, cutWidth(name, columns))
		for _, line := range term.Fold(value, columns-2) {
			out = append(out, "| "+line)
		}
	}
	out = append(out, term.Fold("type: "+r.Type, columns)...)
	for _, f := range r.Payload {
		add(f.Name+":", f.Value)
	}
	if len(r.Effects) > 0 {
		add("effects:", strings.Join(r.Effects, "\n"))
	}
	if len(r.Tiers) > 0 {
		add("tiers:", strings.Join(r.Tiers, "\n"))
	}
	for _, f := range []Field{{"folder", r.CWD}, {"session", r.Session}} {
		if f.Value != "" {
			out = append(out, term.Fold(f.Name+": "+f.Value, columns)...)
		}
	}
	if len(out) > maxText {
		out = append(out[:maxText], cutWidth(fmt.Sprintf("… %d more lines are not shown", len(out)-maxText), columns))
	}
	return out
}

// cutWidth cuts an escaped text at a number of columns.
func cutWidth(s string, columns int) string { return term.Fold(s, columns)[0] }
