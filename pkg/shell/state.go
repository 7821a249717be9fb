package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// An analysisState is one analysis: the current shell, the data that all shells of the text share, the position of the
// walk, and the results. It belongs to one goroutine.
type analysisState struct {
	Shell
	stateSharedByAllShells
	nestedTextScope

	analyzedText                   string
	initialPathContext             *effect.PathContext
	effects                        []effect.Effect
	writtenFileTexts               []effect.WrittenFileText
	resolvedCommandLines           strings.Builder
	stepsSpent                     int
	isAnalysisAborted              bool
	hasPlusSignInText              bool           // the text contains ${x+word}, which tests whether a variable is set
	lastRedirectedOutput           abstract.Value // output that the last statement sent to its redirection target
	isReadDifferentlyByZsh         bool           // zsh reads part of the current command differently
	walkedScriptCount              int            // shell scripts that were read and walked
	argumentsWithoutRecordedEffect []string       // words and inputs without an effect
	unpackedBytes                  int64          // bytes unpacked from archives
	unknownExecutedTextCount       int            // texts that run with completely unknown content
	unanalyzedTextCount            int            // code texts that run but were not analysed: SQL and similar languages, or binary scripts
}

// A stateSharedByAllShells is the data that all shells of the analysed text share. It only grows, apart from the
// paths of concurrent jobs, of which those of a pipe are dropped at its end. A write that may not happen is
// marked with writtenFile.isWriteUncertain.
type stateSharedByAllShells struct {
	writtenFiles                 []writtenFile
	filesReadAfterWrite          []string // files that the text has written and then read
	pathsReadByConcurrentJobs    []string // files that a concurrent part of the text reads
	pathsWrittenByConcurrentJobs []string // files that a concurrent part may write at any time
	fileLinks                    []fileLink
	moves                        []fileMove
	gitRemotes                   []command.GitRemote   // remotes that the text adds to git repositories
	backupCopyPaths              []string              // paths of backup copies of edited files
	visitedWorkingFolders        []*effect.PathContext // working folders of all shells
	definedFunctions             []*function           // all functions that the text defines
}

// A nestedTextScope is the state of one nested part of the analysed text: analysisState.walkInNestedTextScope
// restores the outer scope at the end.
type nestedTextScope struct {
	statementStdin                  abstract.Value          // standard input of the current statement, which its substitutions read
	sharedInput                     *stdinSharedByCommands  // the unread rest of input
	spanOfNestedText                *effect.CommandTextSpan // span of nested text in the command, if offsets in the text cannot be mapped
	offsetInAnalyzedText            int                     // offset of the walked text in state.analyzedText, used if spanOfNestedText is nil
	statementListDepth              int                     // nesting depth of statement lists
	hasReplacedTemplatePlaceholders bool                    // the text had placeholders or templates, which were replaced by unset variables

	functionExits, currentLineExitStates *earlyExitStates   // exits of the function and of the line being walked
	loopExits                            []*earlyExitStates // exits of the enclosing loops

	nestingDepth                 int
	scriptFileNestingDepth       int         // nesting depth of scripts and recipes on disk
	remoteOrContainerDepth       int         // nesting depth of commands on another machine or in a container
	remoteMachineDepth           int         // nesting depth of commands on another machine; containers do not count
	persistentDataContainerDepth int         // nesting depth of containers that keep data: already running, with a named volume, or of a compose service
	bindMounts                   []bindMount // bind mounts of the container being walked
	capturedOutputDepth          int         // nesting depth of text whose output another part of the text reads
	childShellDepth              int         // nesting depth of child shells, which may exit before the text ends
	otherLanguageDepth           int         // nesting depth of code in other languages, which may print its input
	effectSuppressionDepth       int         // if > 0, effects are not recorded, only values computed
	functionCallDepth            int         // depth of function calls
	activeRecipePathsAndGoals    []string    // recipes being walked, with their goals
	enclosingCommandOutputPaths  []string    // output files of the enclosing commands

	isStderrMergedByEnclosingCommand bool             // an enclosing command redirects errors to its output
	currentCommandWords              []*syntax.Word   // the words of the command being walked
	prefixAssignmentsNotYetVisible   []*syntax.Assign // assignments before the command whose words are being expanded; not yet visible to them
}

// A stdinSharedByCommands is standard input that several commands read one after another.
type stdinSharedByCommands struct {
	val          abstract.Value
	isPartlyRead bool // a command has read, or may have read, a part of the input
}

// remaining returns the unread rest of the input, for the next command.
func (in *stdinSharedByCommands) remaining() abstract.Value {
	if in.isPartlyRead {
		return inputAfterPartialRead(in.val)
	}
	return in.val
}

// walkInNestedTextScope walks a part of the text in its own scope.
func (s *analysisState) walkInNestedTextScope(walk func()) {
	outer := s.nestedTextScope
	walk()
	s.nestedTextScope = outer
}

// walkNestedShellText walks text that a part of the command runs as shell code.
func (s *analysisState) walkNestedShellText(text string, at effect.CommandTextSpan) (output abstract.Value) {
	if !s.enterNesting(at) {
		return abstract.Unknown("…", abstract.TaintUnknownText)
	}
	s.walkInNestedTextScope(func() {
		s.spanOfNestedText = &at
		output = s.parseAndWalkShellText(text)
	})
	s.leaveNesting()
	return output
}

// enterNesting adds a level of nesting and reports whether it is allowed.
func (s *analysisState) enterNesting(at effect.CommandTextSpan) bool {
	if s.nestingDepth >= maxCommandNesting {
		s.abortAnalysis("commands are nested too deeply")
		return false
	}
	s.nestingDepth++
	return true
}

func (s *analysisState) leaveNesting() { s.nestingDepth-- }

// spendSteps spends n steps of the analysis budget and reports whether the walk may go on.
func (s *analysisState) spendSteps(n int) bool {
	s.stepsSpent += n
	if s.stepsSpent > maxAnalysisSteps {
		s.abortAnalysis("the command is too complex")
		return false
	}
	return true
}

// abortAnalysis ends the analysis and records that the effects of the whole text are unknown.
//
//go:noinline
func (s *analysisState) abortAnalysis(why string) {
	if !s.isAnalysisAborted {
		s.isAnalysisAborted = true
		s.effects = append(s.effects, effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseAnalysisLimitExceeded, Reason: why, Span: effect.CommandTextSpan{End: len(s.analyzedText)}})
	}
	s.stepsSpent = maxAnalysisSteps + 1
}

// span converts offsets in the walked text to a span in the whole text.
func (s *analysisState) span(start, end int) effect.CommandTextSpan {
	if s.spanOfNestedText != nil {
		return *s.spanOfNestedText
	}
	start, end = min(max(0, start+s.offsetInAnalyzedText), len(s.analyzedText)), min(max(0, end+s.offsetInAnalyzedText), len(s.analyzedText))
	return effect.CommandTextSpan{Start: start, End: max(start, end)}
}

func (s *analysisState) spanOf(n syntax.Node) effect.CommandTextSpan {
	if s.spanOfNestedText != nil {
		return *s.spanOfNestedText
	}
	return s.span(int(n.Pos().Offset()), int(n.End().Offset()))
}

// workingFolderContext returns the place in which relative paths are resolved.
func (s *analysisState) workingFolderContext() *effect.PathContext {
	if s.Shell.workingFolder != nil {
		return s.Shell.workingFolder
	}
	return s.initialPathContext
}

// changeFolder changes the working folder.
func (s *analysisState) changeFolder(place *effect.PathContext) {
	s.Shell.workingFolder = place
	if len(s.visitedWorkingFolders) < maxItemsPerAnalyzedList {
		s.visitedWorkingFolders = append(s.visitedWorkingFolders, place)
	}
}
