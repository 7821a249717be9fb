package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A state is one analysis: what the shell knows that is walked, what all shells of the
// text share, where the walk is, and what it has found. It belongs to one goroutine.
type state struct {
	Shell
	machine
	scope

	text      string
	at        *effect.Place
	effects   []effect.Effect
	writes    []effect.Text
	words     strings.Builder
	steps     int
	gaveUp    bool
	asks      bool           // the text asks somewhere whether a variable is set: ${x+word}
	sent      abstract.Value // by the statement that was walked last, where it sends that
	differs   bool           // zsh reads some of the command that is walked in another way
	scripts   int            // shell scripts that were read and walked
	uncovered []string       // words and inputs that no effect covers
	unpacked  int64          // bytes that were unpacked of archives
	unread    int            // texts that are run and of which nothing is known
	blind     int            // texts in the language of one program, such as SQL, that were not read
}

// A machine is what all shells of a text share. It only grows: what a part of the text that
// may not run adds is marked so (see state.doubt).
type machine struct {
	files     []file
	seen      []string // files that the text has written and read
	racing    []string // those that something reads which runs beside what follows
	contested []string // files that may be written at any time by what runs beside
	links     []link
	moves     []move
	remotes   []command.GitRemote // names that the text gives to addresses of git
	backups   []string            // paths of copies that were kept of edited files
	folders   []*effect.Place     // that some shell was in
	defined   []*function         // all functions
}

// A scope is what holds for the part of the text that is walked: state.within ends it.
type scope struct {
	input  abstract.Value // standard input of the statement being walked, which its substitutions read
	source *source        // what is left of that
	fixed  *effect.Span   // where nested text came from, if the spans of its nodes mean nothing
	base   int            // where text being walked starts in state.text, if fixed is nil
	lists  int            // depth of lists of statements in the text that is walked
	filled bool           // placeholders are in the text that is walked

	body, row *ends   // of the function and of the line of the text being walked
	around    []*ends // of the loops around the walk

	depth    int
	onDisk   int         // depth of scripts and recipes that lie there
	remote   int         // depth of commands that run on another machine
	hosts    int         // how many of these are machines, and no containers
	standing int         // how many of these are containers that were there before
	binds    []bindMount // what a container that is walked has of this machine
	captured int         // depth of text whose output another part of the text takes
	inner    int         // depth of shells that the text starts, which may end before it does
	foreign  int         // depth of code of other languages, which may show what it takes
	quiet    int         // effects are not wanted: the value alone is
	calls    int         // depth of function calls
	running  []string    // recipes that are being walked, with their goals
	writing  []string    // files that the commands around this one write to

	joinsErrors bool             // a command around this one sends errors where output goes
	typed       []*syntax.Word   // the words of the command being walked
	ahead       []*syntax.Assign // before the command whose words are expanded: what they assign is not in them yet
}

// A source is a standard input that several commands read one after another.
type source struct {
	val  abstract.Value
	read bool // something of it
}

// left returns what is left of an input for the next command.
func (in *source) left() abstract.Value {
	if in.read {
		return rest(in.val)
	}
	return in.val
}

// within walks a part of the text in a scope of its own.
func (s *state) within(walk func()) {
	outer := s.scope
	walk()
	s.scope = outer
}

// nested walks text that some part of the command would run as shell text.
func (s *state) nested(text string, at effect.Span) (out abstract.Value) {
	if !s.enter(at) {
		return abstract.Unknown("…", abstract.Foreign)
	}
	s.within(func() {
		s.fixed = &at
		out = s.parsed(text)
	})
	s.leave()
	return out
}

// enter counts a level of commands inside commands.
func (s *state) enter(at effect.Span) bool {
	if s.depth >= maxDepth {
		s.giveUp("commands are nested too deeply")
		return false
	}
	s.depth++
	return true
}

func (s *state) leave() { s.depth-- }

// step spends the budget that bounds the time of an analysis.
func (s *state) step(n int) bool {
	s.steps += n
	if s.steps > maxSteps {
		s.giveUp("the command is too complex")
		return false
	}
	return true
}

// giveUp ends the analysis: the rest of the text counts as Dynamic.
func (s *state) giveUp(why string) {
	if !s.gaveUp {
		s.gaveUp = true
		s.effects = append(s.effects, effect.Effect{Sure: effect.Unknown, Cause: effect.CauseLimit, Reason: why, From: effect.Span{End: len(s.text)}})
	}
	s.steps = maxSteps + 1
}

// span returns the part of the whole text that offsets of the walked text mean.
func (s *state) span(start, end int) effect.Span {
	if s.fixed != nil {
		return *s.fixed
	}
	start, end = min(max(0, start+s.base), len(s.text)), min(max(0, end+s.base), len(s.text))
	return effect.Span{Start: start, End: max(start, end)}
}

func (s *state) spanOf(n syntax.Node) effect.Span {
	if s.fixed != nil {
		return *s.fixed
	}
	return s.span(int(n.Pos().Offset()), int(n.End().Offset()))
}

// place returns where relative paths start.
func (s *state) place() *effect.Place {
	if s.Shell.place != nil {
		return s.Shell.place
	}
	return s.at
}

// goTo moves the working folder.
func (s *state) goTo(place *effect.Place) {
	s.Shell.place = place
	if len(s.folders) < maxNames {
		s.folders = append(s.folders, place)
	}
}
