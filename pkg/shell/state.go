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
	sharedState
	scope

	text                string
	startPlace          *effect.Place
	effects             []effect.Effect
	writtenTexts        []effect.FileText
	commandLines        strings.Builder
	steps               int
	gaveUp              bool
	hasSetTests         bool           // the text contains ${x+word}, which tests whether a variable is set
	redirectedOutput    abstract.Value // output that the last statement sent to its redirection target
	zshDiffers          bool           // zsh reads part of the current command differently
	walkedScriptCount   int            // shell scripts that were read and walked
	wordsWithoutEffect  []string       // words and inputs without an effect
	unpackedBytes       int64          // bytes unpacked from archives
	unknownCodeCount    int            // texts that run with completely unknown content
	unanalyzedTextCount int            // texts for one program, such as SQL, that were not analysed
}

// A sharedState is the data that all shells of the analysed text share. It only grows: a write that
// may not happen is marked with writtenFile.isUncertain.
type sharedState struct {
	files            []writtenFile
	readBackFiles    []string // files that the text has written and then read
	concurrentReads  []string // files that a concurrent part of the text reads
	concurrentWrites []string // files that a concurrent part may write at any time
	links            []link
	moves            []move
	gitRemotes       []command.GitRemote // remotes that the text adds to git repositories
	backupPaths      []string            // paths of backup copies of edited files
	workingFolders   []*effect.Place     // working folders of all shells
	definedFunctions []*function         // all functions that the text defines
}

// A scope is the state of one nested part of the analysed text: state.walkInScope restores the
// outer scope at the end.
type scope struct {
	input           abstract.Value // standard input of the current statement, which its substitutions read
	sharedInput     *sharedInput   // the unread rest of input
	nestedSpan      *effect.Span   // span of nested text in the command, if offsets in the text cannot be mapped
	textOffset      int            // offset of the walked text in state.text, used if nestedSpan is nil
	listDepth       int            // nesting depth of statement lists
	hadPlaceholders bool           // the text had placeholders or templates, which were replaced by unset variables

	functionExits, lineExits *earlyExits   // exits of the function and of the line being walked
	loopExits                []*earlyExits // exits of the enclosing loops

	nestingDepth             int
	diskScriptDepth          int         // nesting depth of scripts and recipes on disk
	remoteDepth              int         // nesting depth of commands on another machine or in a container
	remoteHostDepth          int         // nesting depth of commands on another machine, without containers
	persistentContainerDepth int         // nesting depth of containers that keep data: already running, with a named volume, or of a compose service
	bindMounts               []bindMount // bind mounts of the container being walked
	captureDepth             int         // nesting depth of text whose output another part of the text reads
	childShellDepth          int         // nesting depth of child shells, which may exit before the text ends
	otherLanguageDepth       int         // nesting depth of code in other languages, which may print its input
	suppressedDepth          int         // if > 0, effects are not recorded, only values computed
	callDepth                int         // depth of function calls
	runningRecipes           []string    // recipes being walked, with their goals
	enclosingOutputs         []string    // output files of the enclosing commands

	mergesStderr       bool             // an enclosing command redirects errors to its output
	currentWords       []*syntax.Word   // the words of the command being walked
	pendingAssignments []*syntax.Assign // assignments before the command whose words are being expanded; not yet visible to them
}

// A sharedInput is standard input that several commands read one after another.
type sharedInput struct {
	val          abstract.Value
	isPartlyRead bool // a command has read some of it
}

// remaining returns the unread rest of the input, for the next command.
func (in *sharedInput) remaining() abstract.Value {
	if in.isPartlyRead {
		return remainingInput(in.val)
	}
	return in.val
}

// walkInScope walks a part of the text in its own scope.
func (s *state) walkInScope(walk func()) {
	outer := s.scope
	walk()
	s.scope = outer
}

// walkNested walks text that a part of the command runs as shell code.
func (s *state) walkNested(text string, at effect.Span) (out abstract.Value) {
	if !s.enterNesting(at) {
		return abstract.Unknown("…", abstract.UnknownText)
	}
	s.walkInScope(func() {
		s.nestedSpan = &at
		out = s.walkShellText(text)
	})
	s.leaveNesting()
	return out
}

// enterNesting adds a level of nesting and reports whether it is allowed.
func (s *state) enterNesting(at effect.Span) bool {
	if s.nestingDepth >= maxDepth {
		s.giveUp("commands are nested too deeply")
		return false
	}
	s.nestingDepth++
	return true
}

func (s *state) leaveNesting() { s.nestingDepth-- }

// spendSteps spends n steps of the analysis budget and reports whether the walk may go on.
func (s *state) spendSteps(n int) bool {
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
		s.effects = append(s.effects, effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseLimit, Reason: why, Span: effect.Span{End: len(s.text)}})
	}
	s.steps = maxSteps + 1
}

// span converts offsets in the walked text to a span in the whole text.
func (s *state) span(start, end int) effect.Span {
	if s.nestedSpan != nil {
		return *s.nestedSpan
	}
	start, end = min(max(0, start+s.textOffset), len(s.text)), min(max(0, end+s.textOffset), len(s.text))
	return effect.Span{Start: start, End: max(start, end)}
}

func (s *state) spanOf(n syntax.Node) effect.Span {
	if s.nestedSpan != nil {
		return *s.nestedSpan
	}
	return s.span(int(n.Pos().Offset()), int(n.End().Offset()))
}

// place returns the place in which relative paths are resolved.
func (s *state) place() *effect.Place {
	if s.Shell.place != nil {
		return s.Shell.place
	}
	return s.startPlace
}

// changeFolder changes the working folder.
func (s *state) changeFolder(place *effect.Place) {
	s.Shell.place = place
	if len(s.workingFolders) < maxItems {
		s.workingFolders = append(s.workingFolders, place)
	}
}
