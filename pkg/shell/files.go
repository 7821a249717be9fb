package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A file is content that the text wrote to a path. Later commands that read or run the path use it.
type file struct {
	path    string
	pattern bool
	val     abstract.Value
	append  bool
	adds    bool          // val is appended to the content that the file had before the text ran
	tree    bool          // path is a folder, and val the content put in it
	hosted  bool          // a tree that was cloned from one of [command.CodeHosts]
	weak    bool          // the write may not have happened
	torn    bool          // written through several descriptors at once
	from    *effect.Place // base of relative paths at the time of the write
	astray  bool          // it may have been written to another folder

	compiled bool // a program compiled from files of the workspace
	code     bool // a compiled program: val is its source code

	consumer *syntax.ProcSubst // >(…): what is written is the input of these commands
	fixed    *effect.Span
	base     int
	used     bool
}

const maxFiles = 512

func (s *state) addFile(f file) {
	if f.path == "" {
		return
	}
	if len(s.files) >= maxFiles {
		s.giveUp("the command writes too many files")
		return
	}
	f.adds = f.append
	for i := len(s.files) - 1; i >= 0; i-- {
		old := &s.files[i]
		if old.path != f.path {
			continue
		}
		f.adds = f.append && old.adds
		if old.consumer != nil {
			s.consume(i, f.val)
			return
		}
		if f.torn = f.torn || old.torn; f.torn {
			f.val = abstract.Unknown("what "+path.Base(f.path)+" holds", f.val.Taint|old.val.Taint).Of(abstract.FromFile)
			break
		}
		if f.append {
			was := old.val
			if old.weak {
				was = possibleOutput(abstract.Concat(s.fileValues(f.path, f.pattern)...))
			}
			f.val = abstract.Concat(was, f.val)
		}
		break
	}
	if slices.Contains(s.racing, f.path) {
		s.dynamic(effect.CauseUnresolved, "writes a file that another part of the command reads at the same time (race): "+abstract.Clip(f.path), f.val.From)
	}
	f.from, f.astray = s.place(), s.astray
	f.weak = f.weak || s.ended.any() || slices.Contains(s.contested, f.path)
	s.files = append(s.files, f)
	if !f.pattern && f.consumer == nil {
		s.says(f.path, f.val, "", f.append)
		s.noteOnlyContent(&f)
	}
}

// elsewhere reports whether a relative path may refer to a different file from the one that the text wrote.
func (s *state) elsewhere(p string, w abstract.Value) bool {
	if strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, "~") {
		return false
	}
	for i := len(s.files) - 1; i >= 0; i-- {
		if f := &s.files[i]; f.path == p {
			return f.from != s.place() && (f.astray || s.astray)
		}
	}
	return false
}

// consume walks the commands of >(…) with the content written to it.
func (s *state) consume(i int, in abstract.Value) {
	f := s.files[i]
	s.files[i].used = true
	s.within(func() {
		s.fixed, s.base = f.fixed, f.base
		s.walkConcurrent(func() { s.subshell(f.consumer.Stmts, in) })
	})
}

// feed gives the command's input to each >(…) that was opened since mark and has no input yet: a program such as
// tee writes to it.
func (s *state) feed(mark int, in abstract.Value) {
	for i := mark; i < len(s.files); i++ {
		if s.files[i].consumer != nil && !s.files[i].used {
			in.Taint |= abstract.Foreign
			s.consume(i, in)
		}
	}
}

// fileValues returns the contents that the text wrote to a path, newest first, at most 8. Every version is
// returned, because the newest may be in a branch that did not run.
func (s *state) fileValues(p string, pattern bool) []abstract.Value {
	var out []abstract.Value
	for i := len(s.files) - 1; i >= 0 && len(out) < 8; i-- {
		f := &s.files[i]
		if f.path == p && f.pattern == pattern || (pattern || f.pattern) && effect.Overlap(asPattern(p, pattern), asPattern(f.path, f.pattern), s.at.FoldCase) {
			out = append(out, f.val)
		}
	}
	return out
}

// written reports whether the newest version that fileValues returns is certainly the file's content; true if
// there is none.
func (s *state) written(p string, pattern bool) bool {
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		if f.path == p && !f.pattern && !pattern {
			return !f.weak
		}
		if (pattern || f.pattern) && effect.Overlap(asPattern(p, pattern), asPattern(f.path, f.pattern), s.at.FoldCase) {
			return false
		}
	}
	return true
}

// earlier returns the contents that the text wrote to a relative path in earlier working folders, since cd may
// fail.
func (s *state) earlier(w abstract.Value) []abstract.Value {
	if !w.Known() || strings.HasPrefix(w.Text, "/") || strings.HasPrefix(w.Text, "~") || len(s.files) == 0 {
		return nil
	}
	now := s.place().CWD
	var out []abstract.Value
	for _, seen := range append([]*effect.Place{s.at}, s.folders...) {
		if p, pattern := seen.Path(w.Text, false); seen.CWD != now {
			out = append(out, s.fileValues(p, pattern)...)
		}
	}
	return out[:min(len(out), maxAlternatives)]
}

// runVersions runs the versions of a file that the text wrote, newest first. If sure is set, the newest one runs
// and the others are walked only for rules.
func (s *state) runVersions(vals []abstract.Value, sure bool, run func(abstract.Value) abstract.Value) abstract.Value {
	var outs []abstract.Value
	var walks []func()
	for i, v := range vals {
		if i > 0 && sure {
			s.apart(func() { s.forShow(func() { run(v) }) })
			continue
		}
		walks = append(walks, func() { outs = append(outs, run(v)) })
	}
	switch {
	case len(walks) == 0:
	case sure:
		walks[0]()
	default:
		s.either(true, walks...)
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
	if w.Known() && quietDevice(w.Text) {
		return abstract.Value{}
	}
	p, pattern := s.path(kind, w, false)
	return s.content(p, pattern, w)
}

// content returns the content of a path, as far as the text or the path's name tells.
func (s *state) content(p string, pattern bool, w abstract.Value) abstract.Value {
	if vals := s.fileValues(p, pattern); len(vals) > 0 {
		s.reads(p)
		v, earlier := vals[0], s.earlier(w)
		vals = append(vals, earlier...)
		for _, o := range vals[1:] {
			v.Taint |= o.Taint
		}
		if !s.written(p, pattern) || len(earlier) > 0 || s.elsewhere(p, w) || slices.Contains(s.writing, p) {
			return possibleOutput(abstract.Concat(vals...))
		}
		return v
	}
	if text, ok := s.protectedList(p, pattern); ok {
		return abstract.Value{Text: text, Taint: w.Taint | abstract.Local | s.held(p, pattern), From: w.From}
	}
	v := abstract.Unknown("what "+w.String()+" holds", w.Taint&(abstract.Network|abstract.Secret)|abstract.Local).Of(abstract.FromFile)
	if p != "" && (effect.SecretPath(p, pattern) || s.linksToSecret(p)) {
		v.Taint |= abstract.Secret
		v.Secrets = w.String()
	}
	v.Taint |= s.held(p, pattern)
	return v
}
