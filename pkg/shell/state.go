package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A state is one analysis: the current shell, the data that all shells of the text share, the position of the
// walk, and the results. It belongs to one goroutine.
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
	asks      bool           // the text contains ${x+word}, which tests whether a variable is set
	sent      abstract.Value // output that the last statement sent to its redirection target
	differs   bool           // zsh reads part of the current command differently
	scripts   int            // shell scripts that were read and walked
	uncovered []string       // words and inputs without an effect
	unpacked  int64          // bytes unpacked from archives
	unread    int            // texts that run with completely unknown content
	blind     int            // texts for one program, such as SQL, that were not analysed
}

// A machine is the data that all shells of a text share. It only grows: changes that may not happen are marked as
// uncertain (see state.doubt).
type machine struct {
	files     []file
	seen      []string // files that the text has written and then read
	racing    []string // files that a concurrent part of the text reads
	contested []string // files that a concurrent part may write at any time
	links     []link
	moves     []move
	remotes   []command.GitRemote // remotes that the text adds to git repositories
	backups   []string            // paths of backup copies of edited files
	folders   []*effect.Place     // working folders of all shells
	defined   []*function         // all functions that the text defines
}

// A scope is the state of one nested part of the text: state.within restores it at the end.
type scope struct {
	input  abstract.Value // standard input of the current statement, which its substitutions read
	source *source        // the unread rest of input
	fixed  *effect.Span   // span of nested text in the command, if offsets in the text cannot be mapped
	base   int            // offset of the walked text in state.text, if fixed is nil
	lists  int            // nesting depth of statement lists
	filled bool           // the text had placeholders or templates, which were replaced by unset variables

	body, row *ends   // exits of the function and of the line being walked
	around    []*ends // exits of the enclosing loops

	depth    int
	onDisk   int         // nesting depth of scripts and recipes on disk
	remote   int         // nesting depth of commands on another machine or in a container
	hosts    int         // how many of these are on machines, not in containers
	standing int         // how many of these are in containers that keep data: they already ran, or have a named volume or a compose service
	binds    []bindMount // bind mounts of the container being walked
	captured int         // nesting depth of text whose output another part of the text reads
	inner    int         // nesting depth of child shells, which may exit before the text ends
	foreign  int         // nesting depth of code in other languages, which may print its input
	quiet    int         // if > 0, effects are not recorded, only values computed
	calls    int         // depth of function calls
	running  []string    // recipes being walked, with their goals
	writing  []string    // output files of the enclosing commands

	joinsErrors bool             // an enclosing command redirects errors to its output
	typed       []*syntax.Word   // the words of the command being walked
	ahead       []*syntax.Assign // assignments before the command whose words are being expanded; not yet visible to them
}

// A source is standard input that several commands read one after another.
type source struct {
	val  abstract.Value
	read bool // a command has read some of it
}

// left returns the unread rest of the input, for the next command.
func (in *source) left() abstract.Value {
	if in.read {
		return rest(in.val)
	}
	return in.val
}

// within walks a part of the text in its own scope.
func (s *state) within(walk func()) {
	outer := s.scope
	walk()
	s.scope = outer
}

// nested walks text that a part of the command runs as shell code.
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

// enter adds a level of nesting and reports whether it is allowed.
func (s *state) enter(at effect.Span) bool {
	if s.depth >= maxDepth {
		s.giveUp("commands are nested too deeply")
		return false
	}
	s.depth++
	return true
}

func (s *state) leave() { s.depth-- }

// step spends n steps of the analysis budget and reports whether the walk may go on.
func (s *state) step(n int) bool {
	s.steps += n
	if s.steps > maxSteps {
		s.giveUp("the command is too complex")
		return false
	}
	return true
}

// giveUp ends the analysis: the whole text counts as Dynamic.
//
//go:noinline
func (s *state) giveUp(why string) {
	if !s.gaveUp {
		s.gaveUp = true
		s.effects = append(s.effects, effect.Effect{Sure: effect.Unknown, Cause: effect.CauseLimit, Reason: why, From: effect.Span{End: len(s.text)}})
	}
	s.steps = maxSteps + 1
}

// span converts offsets in the walked text to a span in the whole text.
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

// place returns the place in which relative paths are resolved.
func (s *state) place() *effect.Place {
	if s.Shell.place != nil {
		return s.Shell.place
	}
	return s.at
}

// goTo changes the working folder.
func (s *state) goTo(place *effect.Place) {
	s.Shell.place = place
	if len(s.folders) < maxNames {
		s.folders = append(s.folders, place)
	}
}
