package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// made reports whether a file or folder of the workspace is one that this text
// itself made, so that deleting it loses nothing: it was not there before, and
// nothing was moved into it.
func (s *state) made(p string) bool {
	if s.remote > 0 || len(s.links) > 0 || !s.inWorkspace(p) {
		return false
	}
	made := ""
	for i := range s.effects {
		e := &s.effects[i]
		switch {
		case e.Kind == effect.MoveFile, e.Sure == effect.Unknown, e.Kind == effect.ReadFile && e.Path == p && made == "":
			return false
		case e.Pattern || e.Recursive || made != "":
		case (e.Kind == effect.WriteFile || e.Kind == effect.CreateDirectory) && e.Path == p,
			e.Kind == effect.CreateDirectory && strings.HasPrefix(p, e.Path+"/"):
			made = e.Path
		}
	}
	return made != "" && s.inWorkspace(made) && s.absent(made)
}

// backedUp reports whether a path is, or matches, copies that this text had kept of
// files which it edited: what they held before is what the edit has replaced.
func (s *state) backedUp(p string) bool {
	return s.remote == 0 && len(s.links) == 0 && slices.Contains(s.backups, p) && s.inWorkspace(p)
}

// inWorkspace reports whether a path is below a root.
func (s *state) inWorkspace(p string) bool {
	return p != "" && s.at.Inside(path.Dir(p), false, false)
}

// absent reports whether a path surely names nothing before the text runs.
func (s *state) absent(p string) bool {
	if s.at.Script == nil {
		return false
	}
	_, err := s.at.Script(p)
	return errors.Is(err, fs.ErrNotExist)
}

// built reports whether a program is one that this text compiled from files of
// the workspace as they lie there, and records that their code runs.
func (s *state) built(base, p string, at effect.Span) bool {
	here := func(compiled bool) bool {
		return s.newest(func(f *file) bool { return f.path == p && f.compiled == compiled }) != nil
	}
	if here(false) || !here(true) {
		return false
	}
	s.emitOnce(effect.Effect{Kind: effect.RunCode, Program: base, Path: p, From: at})
	return true
}

// isProgram reports whether the last that the text wrote to a path is the output
// of a compiler, whose value is the source.
func (s *state) isProgram(p string) bool {
	f := s.newest(func(f *file) bool { return f.path == p })
	return f != nil && f.code
}

// compiles reports whether a compiler takes all that it compiles from the
// workspace, and none of it from elsewhere in the text.
func (s *state) compiles(base string, use command.Use, reads abstract.Value) bool {
	if !command.Compilers[base] || len(use.Nested) > 0 || reads.Taint&^(abstract.Foreign|abstract.Local|abstract.Held) != 0 || len(reads.Text) > 0 && reads.Known() {
		return false
	}
	for _, t := range use.Touches {
		if t.Kind != effect.ReadFile {
			continue
		}
		p, pattern := s.place().Path(t.Word.Text, t.Word.Pattern)
		if !s.at.Inside(p, pattern, false) || len(s.fileValues(p, pattern)) > 0 {
			return false
		}
	}
	return true
}

// activates reports whether a path is the script by which a virtual environment
// of Python sets up a shell.
func activates(p string) bool {
	dir, base := path.Split(p)
	return (base == "activate" || strings.HasPrefix(base, "activate.")) && (strings.HasSuffix(dir, "/bin/") || strings.HasSuffix(dir, "/Scripts/"))
}

// setUp reports whether a script that does not exist only sets up the shell, and
// nothing that the text itself unpacks or copies could put it there.
func (s *state) setUp(p string) bool {
	if !activates(p) && !settings(p) {
		return false
	}
	for i := range s.effects {
		e := &s.effects[i]
		if e.Kind == effect.WriteFile && (e.Pattern || e.Recursive && (e.Path == p || strings.HasPrefix(p, strings.TrimSuffix(e.Path, "/")+"/"))) {
			return false
		}
	}
	return true
}
