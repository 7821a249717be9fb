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
	path              string
	pattern           bool
	val               abstract.Value
	appends           bool
	keepsOldContent   bool          // the write appends to the content that the file had before the command
	isFolder          bool          // the path is a folder, and the content is that of a file in it
	isFromCodeHost    bool          // a tree that was cloned from one of [command.CodeHosts]
	isUncertain       bool          // the write may not have happened
	hasSeveralWriters bool          // written through several descriptors at once
	place             *effect.Place // base of relative paths at the time of the write
	folderUncertain   bool          // it may have been written to another folder

	compiledFromWorkspace bool // a program compiled from files of the workspace
	isCompilerOutput      bool // a compiled program: val is its source code

	consumer       *syntax.ProcSubst // >(…): what is written is the input of these commands
	consumerSpan   *effect.Span
	consumerOffset int
	consumerRan    bool
}

const maxFiles = 512

func (s *state) addFile(f writtenFile) {
	if f.path == "" {
		return
	}
	if len(s.files) >= maxFiles {
		s.giveUp("the command writes too many files")
		return
	}
	f.keepsOldContent = f.appends
	for i := len(s.files) - 1; i >= 0; i-- {
		old := &s.files[i]
		if old.path != f.path {
			continue
		}
		f.keepsOldContent = f.appends && old.keepsOldContent
		if old.consumer != nil {
			s.walkConsumer(i, f.val)
			return
		}
		if f.hasSeveralWriters = f.hasSeveralWriters || old.hasSeveralWriters; f.hasSeveralWriters {
			f.val = abstract.Unknown("what "+path.Base(f.path)+" holds", f.val.Taint|old.val.Taint).WithOrigin(abstract.FromFile)
			break
		}
		if f.appends {
			was := old.val
			if old.isUncertain {
				was = possibleOutput(abstract.Concat(s.fileValues(f.path, f.pattern)...))
			}
			f.val = abstract.Concat(was, f.val)
		}
		break
	}
	if slices.Contains(s.concurrentReads, f.path) {
		s.emitDynamic(effect.CauseUnresolved, "writes "+abstract.Clip(f.path)+" while another part of the command reads this file (race); instead: run the parts one after the other", f.val.From)
	}
	f.place, f.folderUncertain = s.place(), s.folderUncertain
	f.isUncertain = f.isUncertain || s.possibleExits.any() || slices.Contains(s.concurrentWrites, f.path)
	s.files = append(s.files, f)
	if !f.pattern && f.consumer == nil {
		s.recordFileText(f.path, f.val, "", f.appends)
		s.noteOnlyContent(&f)
	}
}

// mayBeOtherFile reports whether a relative path may refer to a different file from the one that the text wrote.
func (s *state) mayBeOtherFile(p string, w abstract.Value) bool {
	if strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, "~") {
		return false
	}
	for i := len(s.files) - 1; i >= 0; i-- {
		if f := &s.files[i]; f.path == p {
			return f.place != s.place() && (f.folderUncertain || s.folderUncertain)
		}
	}
	return false
}

// walkConsumer walks the commands of >(…) with the content written to it.
func (s *state) walkConsumer(i int, in abstract.Value) {
	f := s.files[i]
	s.files[i].consumerRan = true
	s.walkInScope(func() {
		s.nestedSpan, s.textOffset = f.consumerSpan, f.consumerOffset
		s.walkConcurrent(func() { s.walkSubshellStmts(f.consumer.Stmts, in) })
	})
}

// feedConsumers gives the command's input to each >(…) that was opened since mark and has no input yet: a program such as
// tee writes to it.
func (s *state) feedConsumers(mark int, in abstract.Value) {
	for i := mark; i < len(s.files); i++ {
		if s.files[i].consumer != nil && !s.files[i].consumerRan {
			in.Taint |= abstract.UnknownText
			s.walkConsumer(i, in)
		}
	}
}

// fileValues returns the contents that the commands walked so far write to a path, newest first, at
// most 8. Every version is returned, because the newest may be in a branch that does not run.
func (s *state) fileValues(p string, pattern bool) []abstract.Value {
	var out []abstract.Value
	for i := len(s.files) - 1; i >= 0 && len(out) < 8; i-- {
		f := &s.files[i]
		if f.path == p && f.pattern == pattern || (pattern || f.pattern) && effect.Overlap(asPattern(p, pattern), asPattern(f.path, f.pattern), s.startPlace.FoldCase) {
			out = append(out, f.val)
		}
	}
	return out
}

// isContentCertain reports whether the newest version that fileValues returns is certainly the file's content; true if
// there is none.
func (s *state) isContentCertain(p string, pattern bool) bool {
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		if f.path == p && !f.pattern && !pattern {
			return !f.isUncertain
		}
		if (pattern || f.pattern) && effect.Overlap(asPattern(p, pattern), asPattern(f.path, f.pattern), s.startPlace.FoldCase) {
			return false
		}
	}
	return true
}

// earlierContents returns the contents that the text wrote to a relative path in earlier working folders, since cd may
// fail.
func (s *state) earlierContents(w abstract.Value) []abstract.Value {
	if !w.Known() || strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, "~") || len(s.files) == 0 {
		return nil
	}
	now := s.place().CWD
	var out []abstract.Value
	for _, seen := range append([]*effect.Place{s.startPlace}, s.workingFolders...) {
		if p, pattern := seen.Path(w.Text, false); seen.CWD != now {
			out = append(out, s.fileValues(p, pattern)...)
		}
	}
	return out[:min(len(out), maxAlternatives)]
}

// runFileVersions runs the versions of a file that the analysed text wrote, newest first. If sure
// is set, only the newest version runs; the others are walked as code that does not run, so that
// rules see their known effects.
func (s *state) runFileVersions(vals []abstract.Value, sure bool, run func(abstract.Value) abstract.Value) abstract.Value {
	var outs []abstract.Value
	var walks []func()
	for i, v := range vals {
		if i > 0 && sure {
			s.walkSubshell(func() { s.walkUnexecuted(func() { run(v) }) })
			continue
		}
		walks = append(walks, func() { outs = append(outs, run(v)) })
	}
	switch {
	case len(walks) == 0:
	case sure:
		walks[0]()
	default:
		s.walkAlternatives(true, walks...)
	}
	return abstract.Concat(outs...)
}

func asPattern(p string, pattern bool) string {
	if pattern {
		return p
	}
	return effect.Quote(p)
}

// readFile records that a file is read and returns its content.
func (s *state) readFile(kind effect.Kind, w abstract.Value) abstract.Value {
	if w.Known() && strings.HasPrefix(w.Text, "/dev/fd/") {
		if vals := s.fileValues(w.Text, false); len(vals) > 0 {
			return vals[0]
		}
	}
	if w.Known() && isStreamDevice(w.Text) {
		return abstract.Value{}
	}
	p, pattern := s.emitPath(kind, w, false)
	return s.fileContent(p, pattern, w)
}

// fileContent returns the content of a path, as far as it is known from earlier commands. Otherwise
// it returns an unknown value, whose taint depends on the path.
func (s *state) fileContent(p string, pattern bool, w abstract.Value) abstract.Value {
	if vals := s.fileValues(p, pattern); len(vals) > 0 {
		s.noteReadBack(p)
		v, earlier := vals[0], s.earlierContents(w)
		vals = append(vals, earlier...)
		for _, o := range vals[1:] {
			v.Taint |= o.Taint
		}
		if !s.isContentCertain(p, pattern) || len(earlier) > 0 || s.mayBeOtherFile(p, w) || slices.Contains(s.enclosingOutputs, p) {
			return possibleOutput(abstract.Concat(vals...))
		}
		return v
	}
	if text, ok := s.protectedListText(p, pattern); ok {
		return abstract.Value{Text: text, Taint: w.Taint | abstract.Local | s.earlierTaints(p, pattern), From: w.From}
	}
	v := abstract.Unknown("what "+w.String()+" holds", w.Taint&(abstract.Network|abstract.Secret)|abstract.Local).WithOrigin(abstract.FromFile)
	if p != "" && (effect.SecretPath(p, pattern) || s.linksToSecret(p)) {
		v.Taint |= abstract.Secret
		v.SecretDescription = w.String()
	}
	v.Taint |= s.earlierTaints(p, pattern)
	return v
}
