package shell

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/patch"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
	"github.com/shieldcli/shield/pkg/shell/internal/parse"
	"github.com/shieldcli/shield/pkg/shell/internal/recipe"
)

// maxWritten is the maximum number of files, written by a text, that are analysed because they run later or name
// package sources.
const maxWritten = 64

// Written returns the effects that a text, written to a file with a canonical path, has once the file runs. It returns
// only effects that need review at the time of writing: foreign code that runs, a remote shell, secrets that are sent,
// and removal of the home folder or system folders. Other effects are judged when the file runs. A file that is never
// run has no effect.
//
// Effects of files that start automatically keep their kind; those of other files become RunCode or Destroy effects
// with the cause CauseLater.
func Written(file, text string, at *effect.Place) []effect.Effect {
	return written(file, text, at, false)
}

// workload matches Kubernetes manifests and pipelines that a cluster runs without further commands.
var workload = prefilter.Lazy(`(?m)^\s*["']?kind["']?\s*:\s*["']?(?:CronJob|Job|Pod|DaemonSet|Deployment|StatefulSet|ReplicaSet|Workflow|CronWorkflow|Task|Pipeline)\b`)

// written implements Written; runs says that the file runs now, whatever its name.
func written(file, text string, at *effect.Place, runs bool) (out []effect.Effect) {
	place := effect.Place{}
	if at != nil {
		place = *at
	}
	place.Script = nil // files that it runs are judged when they run
	format, elsewhere := command.Recipe(file)
	if strings.HasPrefix(text, "#!") && (format == "" || format == "shell") {
		format = scriptLanguage(file, []byte(text))
	}
	class := place.Persists(file, false, false)
	if !runs {
		out = append(writtenSources(file, text), settingCode(file, text)...)
	}
	if format == "" {
		return out
	}
	if len(text) > parse.MaxText {
		return append(out, unread(file))
	}
	runs = runs || format == "notebook" || format == "yaml" && strings.Contains(text, "kind") && workload().MatchString(text)
	defer func() {
		if recover() != nil {
			out = []effect.Effect{{Sure: effect.Unknown, Cause: effect.CauseFailure, Path: file, Reason: "the written file could not be analysed"}}
		}
	}()
	s := newState(text, &place)
	defer s.end()
	whole := s.recipeSteps(format)
	s.finish()
	if s.gaveUp || !whole {
		out = append(out, unread(file))
	}
	l := later{file: file, class: class, elsewhere: elsewhere, runs: runs, at: &place}
	for i := range s.effects {
		out = l.add(out, &s.effects[i])
	}
	return out
}

// recipeSteps walks the steps of a recipe, and reports whether it could walk all of them.
func (s *state) recipeSteps(format string) bool {
	all := effect.Span{End: len(s.text)}
	steps, whole := recipe.Steps(format, s.text, nil)
	for _, step := range steps {
		from := len(s.effects)
		s.code(step.Language, step.Text, all, []abstract.Value{})
		if s.gaveUp {
			break
		}
		if wellKnown(s.effects[from:]) {
			s.without(from, effect.RunDownload)
		}
	}
	return whole
}

// unread returns the effect of a written file that is too long to be analysed.
func unread(file string) effect.Effect {
	return effect.Effect{Sure: effect.Unknown, Cause: effect.CauseLimit, Path: file, Reason: "the content written to " + abstract.Clip(file) + " is too long to be analysed"}
}

// without removes the effects of a kind from index from on.
func (s *state) without(from int, kind effect.Kind) {
	kept := s.effects[:from]
	for _, e := range s.effects[from:] {
		if e.Word() != kind {
			kept = append(kept, e)
		}
	}
	s.effects = kept
}

// wellKnown reports whether all HTTP requests are for URLs of well-known installers, over https, and there is at
// least one. Other effects are ignored.
func wellKnown(effects []effect.Effect) bool {
	found := false
	for i := range effects {
		e := &effects[i]
		if e.Kind != effect.HTTPRequest {
			continue
		}
		address, secure := strings.CutPrefix(e.URL, "https://")
		if found = true; !secure || e.Pattern || !installer(address) {
			return false
		}
	}
	return found
}

// installer reports whether a URL without its scheme is in [command.Installers], or below one of them.
func installer(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	if strings.Contains(address, "..") || strings.ContainsAny(address, `%\#@`) {
		return false // the URL may resolve to another host or path
	}
	for n := len(address); n > 0; n = strings.LastIndexByte(address[:n], '/') {
		if command.Installers[address[:n]] {
			return true
		}
	}
	return false
}

// A later collects the effects that a written file has when it runs.
type later struct {
	file, class string // class as in effect.Persists
	elsewhere   bool
	runs        bool // the file runs now
	at          *effect.Place
}

func (l *later) add(out []effect.Effect, e *effect.Effect) []effect.Effect {
	starts := l.class != "" && !effect.Everyday(l.class)
	base := path.Base(l.file)
	n := effect.Effect{Kind: effect.RunCode, Path: l.file, Cause: effect.CauseLater}
	switch e.Word() {
	case effect.RunDownload, effect.RunDecoded:
		if l.class == "" && !l.runs {
			return out // installers do this; the file is judged when it runs
		}
		n.Labels, n.Reason = []effect.Label{effect.LabelNetwork}, base+" would run code from the network"
		if e.Is(effect.LabelDecoded) {
			n.Labels, n.Reason = []effect.Label{effect.LabelDecoded}, base+" would run decoded code"
		}
	case effect.RemoteShell:
		n.Labels, n.Reason = []effect.Label{effect.LabelNetwork}, base+" would give a shell to the network"
	case effect.SendSecret:
		n.Labels, n.Reason = []effect.Label{effect.LabelSecret}, base+" would send secrets to the network"
	case effect.DeleteFile, effect.DeleteDirectory:
		if l.class == "" && !l.runs && !l.removesHome(e) || l.elsewhere || !l.removesOutside(e) {
			return out
		}
		n.Kind, n.Reason = effect.Destroy, base+" would remove "+abstract.Clip(e.Path)
	case effect.ChangeGuard:
		if !starts {
			return out // it is judged when the file runs
		}
		n.Kind, n.Cause, n.Program, n.Reason = e.Kind, "", e.Program, base+": "+e.Reason
	default:
		return out
	}
	if starts && (e.Kind == effect.RemoteShell || e.Word() == effect.SendSecret) {
		n.Kind, n.Labels, n.Harms = e.Kind, nil, e.Harms
	}
	for i := range out {
		if out[i].Word() == n.Word() && out[i].Reason == n.Reason {
			return out
		}
	}
	return append(out, n)
}

// removesOutside reports whether an effect removes a folder outside the workspace that is neither temporary nor a
// cache.
func (l *later) removesOutside(e *effect.Effect) bool {
	if !e.Recursive || e.Path == "" || strings.HasPrefix(e.Path, "*") || l.at.Inside(e.Path, e.Pattern, e.Tree) {
		return false
	}
	return !effect.Shared(e.Path+"/") && !strings.Contains(e.Path+"/", "/var/cache/") && !strings.Contains(e.Path+"/", "/.cache/")
}

// removesHome reports whether an effect removes the home folder or a parent of it.
func (l *later) removesHome(e *effect.Effect) bool {
	p := strings.TrimSuffix(strings.TrimSuffix(e.Path, "*"), "/")
	home := l.at.Home
	return home != "" && !strings.Contains(p, "*") && (p == "~" || p == home || strings.HasPrefix(home, p+"/"))
}

// says records the content that the text writes to a file, in each version, since a branch may not run. Content
// that scripts on disk write is not recorded.
//
// gone is the text that is replaced, "" if unknown.
func (s *state) says(file string, holds abstract.Value, gone string, more bool) {
	text := holds.Text
	if holds.IsPattern {
		text = unpattern(text)
	}
	if holds.Bare || file == "" || s.onDisk > 0 || strings.TrimSpace(text+gone) == "" {
		return
	}
	w := effect.Text{Path: file, Text: text, Gone: gone}
	if last := len(s.writes) - 1; more && last >= 0 && s.writes[last].Path == file && strings.HasPrefix(text, s.writes[last].Text) {
		s.writes[last] = w
		return
	}
	if slices.Contains(s.writes, w) {
		return
	}
	if len(s.writes) == maxFiles {
		s.giveUp("the command writes too many files")
		return
	}
	s.writes = append(s.writes, w)
}

// noteOnlyContent records whether the content recorded last is the whole file, or is appended to it.
func (s *state) noteOnlyContent(f *file) {
	last := len(s.writes) - 1
	if last < 0 || s.writes[last].Path != f.path || !f.val.Known() || f.tree || f.weak && s.writes[last].Gone != "" {
		return
	}
	s.writes[last].Whole, s.writes[last].Added = !f.adds, f.adds
}

// writesInput records the input of a program as possible content of the file that it writes, if the actual content
// is unknown: a filter writes a part of it, an editor adds text from it. If the input is a patch, the lines that
// it adds are recorded instead.
func (s *state) writesInput(t abstract.Target, holds, in abstract.Value) (patch bool) {
	if holds.Known() && holds.Text != "" || t.Pattern {
		return false
	}
	if patch = s.putsPatch(in); !patch {
		s.says(t.Path, in, "", false)
	}
	return patch
}

// putsPatch records what the lines added by a patch would do in their files, and reports whether a value is a
// patch. Lines that move to another file do not count as removed.
func (s *state) putsPatch(v abstract.Value) (found bool) {
	if !strings.Contains(v.Text, "+++ ") && !strings.Contains(v.Text, "*** ") || !s.step(1+len(v.Text)/512) {
		return false
	}
	for _, f := range patch.Files(v.Text) {
		if f.Added == "" && f.Gone == "" {
			continue
		}
		if found = true; s.gaveUp {
			break
		}
		if p, pattern := s.place().Path(f.Path, false); !pattern {
			v.Text = f.Added
			s.recordWrittenText(p, v, f.Gone)
			s.notePatched(p, &f)
		}
	}
	return found
}

// notePatched records the content of a file after a patch is applied.
func (s *state) notePatched(file string, f *patch.File) {
	last := len(s.writes) - 1
	if last < 0 || s.writes[last].Path != file {
		return
	}
	w := &s.writes[last]
	w.Lost = true
	defer func() {
		if slices.Contains(s.writes[:last], *w) {
			s.writes = s.writes[:last]
		}
	}()
	if s.at.Script == nil {
		return
	}
	old, err := s.at.Script(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if text, ok := f.Apply(string(old)); ok {
		w.After, w.Lost = text, false
	}
}

// putsPatches is putsPatch for several values.
func (s *state) putsPatches(vals []abstract.Value) (found bool) {
	for _, v := range vals {
		found = s.putsPatch(v) || found
	}
	return found
}

// writtenFiles records what files that the text writes and that run later would do.
func (s *state) writtenFiles() {
	seen, read := map[string]bool{}, 0
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		if seen[f.path] || f.pattern || f.consumer != nil || !f.val.Known() || strings.TrimSpace(f.val.Text) == "" {
			continue
		}
		seen[f.path] = true
		if format, _ := command.Recipe(f.path); format != "" || len(sourceForms(f.path)) > 0 {
			read++
		}
		if read > maxWritten {
			s.dynamic(effect.CauseLimit, "the command writes more files that run later than shield reads", effect.Span{End: len(s.text)})
			return
		}
		for _, e := range Written(f.path, f.val.Text, s.at) {
			e.From = effect.Span{End: len(s.text)}
			s.emitOnce(e)
		}
	}
}
