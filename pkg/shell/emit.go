package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// emit records an effect.
func (s *state) emit(e effect.Effect) {
	if s.quiet > 0 {
		return
	}
	if e.Sure == effect.Unknown && e.Cause == "" {
		e.Cause = effect.CauseCode // a table says that the program runs code that the command does not show
	}
	if len(s.effects) >= maxEffects {
		s.giveUp("the command has too many effects")
		return
	}
	s.effects = append(s.effects, e)
}

func (s *state) dynamic(cause effect.Cause, why string, at effect.Span) {
	s.emitOnce(effect.Effect{Sure: effect.Unknown, Cause: cause, Reason: why, From: at})
}

// emitOnce records an effect unless the same was recorded before.
func (s *state) emitOnce(e effect.Effect) {
	for i := max(0, len(s.effects)-64); i < len(s.effects); i++ {
		if s.effects[i].Kind == e.Kind && sameEffect(&s.effects[i], &e) {
			return
		}
	}
	s.emit(e)
}

func sameEffect(a, b *effect.Effect) bool {
	return a.Word() == b.Word() && a.Path == b.Path && a.Pattern == b.Pattern && a.Tree == b.Tree && a.Recursive == b.Recursive &&
		a.Service == b.Service && a.Verb == b.Verb && a.Target == b.Target && a.URL == b.URL && a.Host == b.Host && a.Program == b.Program && a.Class == b.Class &&
		a.Variant() == b.Variant() && a.Reason == b.Reason && a.From == b.From && slices.Equal(a.Args, b.Args)
}

// dropRepeated removes effects from mark on that were recorded shortly before
// it: another turn of a loop that did nothing new.
func (s *state) dropRepeated(mark int) {
	if mark > len(s.effects) {
		return
	}
	first := max(0, mark-64)
	kept := s.effects[:mark]
	for _, e := range s.effects[mark:] {
		if !slices.ContainsFunc(s.effects[first:mark], func(o effect.Effect) bool { return sameEffect(&o, &e) }) {
			kept = append(kept, e)
		}
	}
	s.effects = kept
}

// isPersistentRemotePath reports whether a path of another machine is written out from its top, and no
// place for what may go.
func isPersistentRemotePath(p string) bool {
	return !effect.Shared(p) && !strings.HasPrefix(p, "/var/cache/") && (strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"))
}

// within reports whether a path of another machine is one of a list, or is below one.
func within(p string, list map[string]bool) bool {
	for p = strings.TrimRight(p, "/*."); p != ""; p = p[:max(strings.LastIndexByte(p, '/'), 0)] {
		if list[p] {
			return true
		}
	}
	return false
}

// isDataFolder reports whether the name of a folder of a container says that it keeps data.
func isDataFolder(p string) bool {
	return command.StoredFolders[path.Base(strings.TrimRight(p, "/*."))]
}

// pathElsewhere records what happens to a path of another machine or a container
// on which others depend: what it keeps is gone, or who may log in changes.
func (s *state) pathElsewhere(kind effect.Kind, v abstract.Value, recursive bool) {
	e := effect.Effect{Kind: effect.ChangeRemote, Verb: "delete", Harms: []effect.Harm{effect.Destroys}, Target: v.String(), From: v.From}
	switch {
	case kind == effect.WriteFile && s.hosts > 0 && within(v.Text, command.LoginFiles):
		e.Verb, e.Harms = "grant", []effect.Harm{effect.Grants}
	case kind == effect.WriteFile && s.hosts > 0 && isDisk(v.Text):
	case kind == effect.WriteFile && s.hosts > 0 && startClasses[effect.Persists(v.Text, v.IsPattern, false)]:
		e.Verb, e.Harms = "run", []effect.Harm{effect.Runs}
	case kind == effect.ReadFile && s.hosts > 0 && isPersistentRemotePath(v.Text) && effect.SecretPath(v.Text, v.IsPattern):
		e = effect.Effect{Kind: effect.ReadSecret, Target: v.String(), From: v.From, Reason: "reads credentials on another machine: " + abstract.Clip(v.String())}
	case kind != effect.DeleteFile && kind != effect.DeleteDirectory || !recursive && !v.IsPattern:
		return
	case s.hosts > 0 && !isPersistentRemotePath(v.Text):
		return
	case s.hosts == 0 && (s.standing == 0 || !isPersistentRemotePath(v.Text) || within(v.Text, command.MadeFolders) && !isDataFolder(v.Text)):
		return
	}
	s.emitOnce(e)
}

// isDisk reports whether a path is a disk of a machine, or a part of one.
func isDisk(p string) bool {
	name, is := strings.CutPrefix(p, "/dev/")
	return is && slices.ContainsFunc([]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "mapper/"}, func(start string) bool { return strings.HasPrefix(name, start) })
}

// path records an effect on a path that a word names.
func (s *state) path(kind effect.Kind, v abstract.Value, recursive bool) (path string, pattern bool) {
	if v.Known() && v.Text == "" {
		return "", false
	}
	e := effect.Effect{Kind: kind, Recursive: recursive, From: v.From}
	if v.Bare || v.IsPattern && !says(v.Text) {
		e.Pattern = true
		switch s.emitOnce(e); {
		case v.Origin&(abstract.FromText|abstract.Forgotten) != 0 && isChange(kind):
			s.dynamic(effect.CauseUnresolved, "the target of the change is unknown: "+abstract.Clip(v.String()), v.From)
		case v.Computed() && kind == effect.ReadFile: // of words that are written out, which may hide a name
			s.dynamic(effect.CauseUnresolved, "the file that is read is unknown: "+abstract.Clip(v.String()), v.From)
		}
		return "", true
	}
	if s.remote > 0 {
		here, ok := hostPathOf(s.binds, v.Text)
		if !ok || kind != effect.DeleteFile && kind != effect.DeleteDirectory {
			s.pathElsewhere(kind, v, recursive)
			return v.Text, v.IsPattern
		}
		v.Text = here
	}
	e.Path, e.Pattern = s.place().Path(v.Text, v.IsPattern)
	if (kind == effect.DeleteFile || kind == effect.DeleteDirectory) && (!e.Pattern && s.made(e.Path) || s.backedUp(e.Path)) {
		return e.Path, false
	}
	// Where another part became unknown on the way, nothing holds the path.
	e.Tree = v.Tree && e.Pattern && !strings.HasPrefix(e.Path, "**") && strings.Count(e.Path, "**") == 1
	s.emitOnce(e)
	s.behind(e)
	if kind == effect.DeleteFile || kind == effect.DeleteDirectory {
		s.loses(e)
	}
	return e.Path, e.Pattern
}

// says reports whether a pattern that starts with something unknown contains
// anything that a rule could match: "**/*" does not, "**/.ssh" does.
func says(pattern string) bool {
	if len(pattern) < 2 || pattern[:2] != "**" {
		return true
	}
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '/', '.', '-', '_':
		default:
			return true
		}
	}
	return false
}

// isChange reports whether an effect on a path changes what is there.
func isChange(kind effect.Kind) bool {
	switch kind {
	case effect.ReadFile, effect.ListDirectory:
		return false
	}
	return true
}
