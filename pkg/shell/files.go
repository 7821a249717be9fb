package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A writtenFile is content that a command of the analysed text writes to a path. Later commands
// that read or run the path use it.
type writtenFile struct {
	path                        string
	isPathPattern               bool
	content                     abstract.Value
	appends                     bool
	keepsOldContent             bool                // the write appends to the content that the file had before the command
	isFolder                    bool                // the path is a folder, and the content is that of a file in it
	isFromCodeHost              bool                // a tree that was cloned from one of [command.CodeHosts]
	isWriteUncertain            bool                // the write may not have happened
	hasSeveralWriters           bool                // written through several descriptors at once
	workingFolderContextAtWrite *effect.PathContext // base of relative paths at the time of the write
	isParentFolderUncertain     bool                // the working folder was uncertain at the write: the file may be in another folder

	compiledFromWorkspace bool // a program compiled from files of the workspace
	isCompilerOutput      bool // a compiled program: content is its source code

	consumingProcessSubstitution  *syntax.ProcSubst // >(…): what is written is the input of these commands
	spanAroundProcessSubstitution *effect.CommandTextSpan
	processSubstitutionTextOffset int
	hasProcessSubstitutionRun     bool
}

const maxTrackedWrittenFiles = 512

func (s *analysisState) addFile(f writtenFile) {
	if f.path == "" {
		return
	}
	if len(s.writtenFiles) >= maxTrackedWrittenFiles {
		s.abortAnalysis("the command writes too many files")
		return
	}
	f.keepsOldContent = f.appends
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		old := &s.writtenFiles[i]
		if old.path != f.path {
			continue
		}
		f.keepsOldContent = f.appends && old.keepsOldContent
		if old.consumingProcessSubstitution != nil {
			s.walkConsumingProcessSubstitution(i, f.content)
			return
		}
		if f.hasSeveralWriters = f.hasSeveralWriters || old.hasSeveralWriters; f.hasSeveralWriters {
			f.content = abstract.Unknown("what "+path.Base(f.path)+" holds", f.content.Taint|old.content.Taint).WithOrigin(abstract.OriginFileContent)
			break
		}
		if f.appends {
			was := old.content
			if old.isWriteUncertain {
				was = outputOfPossiblySkippedCommand(abstract.Concat(s.writtenFileContents(f.path, f.isPathPattern)...))
			}
			f.content = abstract.Concat(was, f.content)
		}
		break
	}
	if slices.Contains(s.pathsReadByConcurrentJobs, f.path) {
		s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "writes "+abstract.ClipForMessage(f.path)+" while another part of the command reads this file (race); instead: run the parts one after the other", f.content.SourceSpan)
	}
	f.workingFolderContextAtWrite, f.isParentFolderUncertain = s.workingFolderContext(), s.isWorkingFolderUncertain
	f.isWriteUncertain = f.isWriteUncertain || s.possibleExits.isExitPossible() || slices.Contains(s.pathsWrittenByConcurrentJobs, f.path)
	s.writtenFiles = append(s.writtenFiles, f)
	if !f.isPathPattern && f.consumingProcessSubstitution == nil {
		s.recordWrittenFileText(f.path, f.content, "", f.appends)
		s.setLastWriteMode(&f)
	}
}

// canPathWordNameOtherFile reports whether a relative path may refer to a different file from the one that the text wrote.
func (s *analysisState) canPathWordNameOtherFile(writtenFilePath string, pathWord abstract.Value) bool {
	if strings.HasPrefix(pathWord.Text, "/") || strings.HasPrefix(pathWord.Text, "~") {
		return false
	}
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		if f := &s.writtenFiles[i]; f.path == writtenFilePath {
			return f.workingFolderContextAtWrite != s.workingFolderContext() && (f.isParentFolderUncertain || s.isWorkingFolderUncertain)
		}
	}
	return false
}

// walkConsumingProcessSubstitution walks the commands of >(…) with the content written to it.
func (s *analysisState) walkConsumingProcessSubstitution(fileIndex int, stdin abstract.Value) {
	f := s.writtenFiles[fileIndex]
	s.writtenFiles[fileIndex].hasProcessSubstitutionRun = true
	s.walkInNestedTextScope(func() {
		s.spanOfNestedText, s.offsetInAnalyzedText = f.spanAroundProcessSubstitution, f.processSubstitutionTextOffset
		s.walkConcurrent(func() { s.walkSubshellStmts(f.consumingProcessSubstitution.Stmts, stdin) })
	})
}

// feedInputToOpenedSubstitutions walks the process substitutions >(…) in s.writtenFiles from index firstNewFile
// on that have not run yet, with commandInput as their input: a program such as tee copies its input to them.
func (s *analysisState) feedInputToOpenedSubstitutions(firstNewFile int, commandInput abstract.Value) {
	for i := firstNewFile; i < len(s.writtenFiles); i++ {
		if s.writtenFiles[i].consumingProcessSubstitution != nil && !s.writtenFiles[i].hasProcessSubstitutionRun {
			commandInput.Taint |= abstract.TaintUnknownText
			s.walkConsumingProcessSubstitution(i, commandInput)
		}
	}
}

// writtenFileContents returns the contents that the commands walked so far write to a path, newest first, at
// most 8. Every version is returned, because the newest may be in a branch that does not run.
func (s *analysisState) writtenFileContents(filePath string, isPattern bool) []abstract.Value {
	var out []abstract.Value
	for i := len(s.writtenFiles) - 1; i >= 0 && len(out) < 8; i-- {
		f := &s.writtenFiles[i]
		if f.path == filePath && f.isPathPattern == isPattern || (isPattern || f.isPathPattern) && effect.PatternsOverlap(quoteUnlessPattern(filePath, isPattern), quoteUnlessPattern(f.path, f.isPathPattern), s.initialPathContext.FoldCase) {
			out = append(out, f.content)
		}
	}
	return out
}

// isWrittenContentCertain reports whether the newest version that writtenFileContents returns is certainly the file's content; true if
// there is none.
func (s *analysisState) isWrittenContentCertain(filePath string, isPattern bool) bool {
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		f := &s.writtenFiles[i]
		if f.path == filePath && !f.isPathPattern && !isPattern {
			return !f.isWriteUncertain
		}
		if (isPattern || f.isPathPattern) && effect.PatternsOverlap(quoteUnlessPattern(filePath, isPattern), quoteUnlessPattern(f.path, f.isPathPattern), s.initialPathContext.FoldCase) {
			return false
		}
	}
	return true
}

// contentsInEarlierWorkingFolders returns the contents that the text wrote to a relative path in earlier working folders, since cd may
// fail.
func (s *analysisState) contentsInEarlierWorkingFolders(relativePath abstract.Value) []abstract.Value {
	if !relativePath.IsLiteral() || strings.HasPrefix(relativePath.Text, "/") || strings.HasPrefix(relativePath.Text, "~") || len(s.writtenFiles) == 0 {
		return nil
	}
	now := s.workingFolderContext().CWD
	var out []abstract.Value
	for _, seen := range append([]*effect.PathContext{s.initialPathContext}, s.visitedWorkingFolders...) {
		if p, pattern := seen.CanonicalPath(relativePath.Text, false); seen.CWD != now {
			out = append(out, s.writtenFileContents(p, pattern)...)
		}
	}
	return out[:min(len(out), maxPossibleVariableValues)]
}

// walkWrittenFileVersions runs the versions of a file that the analysed text wrote, newest first.
// If isNewestCertain is true, only the newest version runs; the others are walked as code that does
// not run, so that rules see their known effects.
func (s *analysisState) walkWrittenFileVersions(contents []abstract.Value, isNewestCertain bool, run func(abstract.Value) abstract.Value) abstract.Value {
	var outs []abstract.Value
	var walks []func()
	for i, v := range contents {
		if i > 0 && isNewestCertain {
			s.walkSubshell(func() { s.walkUnreachableCode(func() { run(v) }) })
			continue
		}
		walks = append(walks, func() { outs = append(outs, run(v)) })
	}
	switch {
	case len(walks) == 0:
	case isNewestCertain:
		walks[0]()
	default:
		s.walkAlternativeBranches(true, walks...)
	}
	return abstract.Concat(outs...)
}

func quoteUnlessPattern(p string, isPattern bool) string {
	if isPattern {
		return p
	}
	return effect.QuoteGlobMeta(p)
}

// readFile records that a file is read and returns its content.
func (s *analysisState) readFile(kind effect.Kind, w abstract.Value) abstract.Value {
	if w.IsLiteral() && strings.HasPrefix(w.Text, "/dev/fd/") {
		if vals := s.writtenFileContents(w.Text, false); len(vals) > 0 {
			return vals[0]
		}
	}
	if w.IsLiteral() && isStreamDevice(w.Text) {
		return abstract.Value{}
	}
	p, pattern := s.emitPathEffect(kind, w, false)
	return s.fileContent(p, pattern, w)
}

// fileContent returns the content of a path, as far as it is known from earlier commands. Otherwise
// it returns an unknown value, whose taint depends on the path.
func (s *analysisState) fileContent(p string, pattern bool, w abstract.Value) abstract.Value {
	if vals := s.writtenFileContents(p, pattern); len(vals) > 0 {
		s.recordReadAfterWrite(p)
		v, earlier := vals[0], s.contentsInEarlierWorkingFolders(w)
		vals = append(vals, earlier...)
		for _, o := range vals[1:] {
			v.Taint |= o.Taint
		}
		if !s.isWrittenContentCertain(p, pattern) || len(earlier) > 0 || s.canPathWordNameOtherFile(p, w) || slices.Contains(s.enclosingCommandOutputPaths, p) {
			return outputOfPossiblySkippedCommand(abstract.Concat(vals...))
		}
		return v
	}
	if text, ok := s.protectedPathListText(p, pattern); ok {
		return abstract.Value{Text: text, Taint: w.Taint | abstract.TaintLocalMachineData | s.taintsFromEarlierActions(p, pattern), SourceSpan: w.SourceSpan}
	}
	v := abstract.Unknown("what "+w.String()+" holds", w.Taint&(abstract.TaintNetwork|abstract.TaintReadCredentials)|abstract.TaintLocalMachineData).WithOrigin(abstract.OriginFileContent)
	if p != "" && (effect.IsSecretPath(p, pattern) || s.linksToSecret(p)) {
		v.Taint |= abstract.TaintReadCredentials
		v.SecretDescription = w.String()
	}
	v.Taint |= s.taintsFromEarlierActions(p, pattern)
	return v
}
