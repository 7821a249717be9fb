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

// maxWrittenFiles is the maximum number of files, written by a text, that are analysed because they run later or name
// package sources.
const maxWrittenFiles = 64

// AnalyzeWrittenFile returns the effects that a text, written to a file with a canonical path, has once the file runs. It returns
// only effects that need review at the time of writing: foreign code that runs, a remote shell, secrets that are sent,
// and removal of the home folder or system folders. Other effects are judged when the file runs. A file that is never
// run has no effect.
//
// Effects of files that start automatically keep their kind; those of other files become RunCode or Destroy effects
// with the cause CauseLater.
func AnalyzeWrittenFile(file, text string, at *effect.Place) []effect.Effect {
	return analyzeWrittenFile(file, text, at, false)
}

// kubernetesWorkloadPattern matches Kubernetes manifests and pipelines that a cluster runs without further commands.
var kubernetesWorkloadPattern = prefilter.Lazy(`(?m)^\s*["']?kind["']?\s*:\s*["']?(?:CronJob|Job|Pod|DaemonSet|Deployment|StatefulSet|ReplicaSet|Workflow|CronWorkflow|Task|Pipeline)\b`)

// analyzeWrittenFile implements [AnalyzeWrittenFile]. runs means that the file runs now, even if
// its name is not that of a program.
func analyzeWrittenFile(file, text string, at *effect.Place, runs bool) (out []effect.Effect) {
	place := effect.Place{}
	if at != nil {
		place = *at
	}
	place.ReadScript = nil // files that it runs are judged when they run
	format, elsewhere := command.Recipe(file)
	if strings.HasPrefix(text, "#!") && (format == "" || format == "shell") {
		format = scriptLanguage(file, []byte(text))
	}
	class := place.PersistenceClass(file, false, false)
	if !runs {
		out = append(writtenPackageSources(file, text), settingCodeEffects(file, text)...)
	}
	if format == "" {
		return out
	}
	if len(text) > parse.MaxText {
		return append(out, tooLongEffect(file))
	}
	runs = runs || format == "notebook" || format == "yaml" && strings.Contains(text, "kind") && kubernetesWorkloadPattern().MatchString(text)
	defer func() {
		if recover() != nil {
			out = []effect.Effect{{Certainty: effect.Unknown, Cause: effect.CauseAnalysisFailure, Path: file, Reason: "the written file could not be analysed"}}
		}
	}()
	s := newState(text, &place)
	defer s.releaseState()
	whole := s.walkRecipeSteps(format)
	s.finish()
	if s.gaveUp || !whole {
		out = append(out, tooLongEffect(file))
	}
	l := fileRun{path: file, startClass: class, onOtherMachine: elsewhere, runsNow: runs, place: &place}
	for i := range s.effects {
		out = l.addEffect(out, &s.effects[i])
	}
	return out
}

// walkRecipeSteps walks the steps of a recipe, and reports whether it could walk all of them.
func (s *state) walkRecipeSteps(format string) bool {
	all := effect.Span{End: len(s.text)}
	steps, whole := recipe.Steps(format, s.text, nil)
	for _, step := range steps {
		from := len(s.effects)
		s.walkCode(step.Language, step.Text, all, []abstract.Value{})
		if s.gaveUp {
			break
		}
		if onlyWellKnownInstallers(s.effects[from:]) {
			s.removeEffects(from, effect.RunDownload)
		}
	}
	return whole
}

// tooLongEffect returns the effect of a written file that is too long to be analysed.
func tooLongEffect(file string) effect.Effect {
	return effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseLimit, Path: file, Reason: "the content written to " + abstract.Clip(file) + " is too long to be analysed"}
}

// removeEffects removes the effects of a kind from the list, starting at a given index.
func (s *state) removeEffects(from int, kind effect.Kind) {
	kept := s.effects[:from]
	for _, e := range s.effects[from:] {
		if e.RuleKind() != kind {
			kept = append(kept, e)
		}
	}
	s.effects = kept
}

// onlyWellKnownInstallers reports whether all HTTP requests are for URLs of well-known installers, over https, and there is at
// least one. Other effects are ignored.
func onlyWellKnownInstallers(effects []effect.Effect) bool {
	found := false
	for i := range effects {
		e := &effects[i]
		if e.Kind != effect.HTTPRequest {
			continue
		}
		address, secure := strings.CutPrefix(e.URL, "https://")
		if found = true; !secure || e.Pattern || !isInstallerURL(address) {
			return false
		}
	}
	return found
}

// isInstallerURL reports whether a URL without its scheme is in [command.Installers], or below one of them.
func isInstallerURL(address string) bool {
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

// A fileRun collects the effects that a written file has when it runs.
type fileRun struct {
	path, startClass string // startClass is the result of effect.PersistenceClass for path
	onOtherMachine   bool
	runsNow          bool // the file runs now
	place            *effect.Place
}

func (l *fileRun) addEffect(out []effect.Effect, e *effect.Effect) []effect.Effect {
	starts := l.startClass != "" && !effect.IsEverydayClass(l.startClass)
	base := path.Base(l.path)
	n := effect.Effect{Kind: effect.RunCode, Path: l.path, Cause: effect.CauseDeferred}
	switch e.RuleKind() {
	case effect.RunDownload, effect.RunDecoded:
		if l.startClass == "" && !l.runsNow {
			return out // many install scripts run downloads, so the file is judged when it runs
		}
		n.Labels, n.Reason = []effect.Label{effect.LabelNetwork}, base+" would run code from the network"
		if e.HasLabel(effect.LabelDecoded) {
			n.Labels, n.Reason = []effect.Label{effect.LabelDecoded}, base+" would run decoded code"
		}
	case effect.RemoteShell:
		n.Labels, n.Reason = []effect.Label{effect.LabelNetwork}, base+" would give a shell to the network"
	case effect.SendSecret:
		n.Labels, n.Reason = []effect.Label{effect.LabelSecret}, base+" would send secrets to the network"
	case effect.DeleteFile, effect.DeleteDirectory:
		if l.startClass == "" && !l.runsNow && !l.removesHome(e) || l.onOtherMachine || !l.removesOutsideWorkspace(e) {
			return out
		}
		n.Kind, n.Reason = effect.Destroy, base+" would remove "+abstract.Clip(e.Path)
	case effect.ChangeGuard:
		if !starts {
			return out // a change that weakens shield is judged when the file runs
		}
		n.Kind, n.Cause, n.Program, n.Reason = e.Kind, "", e.Program, base+": "+e.Reason
	default:
		return out
	}
	if starts && (e.Kind == effect.RemoteShell || e.RuleKind() == effect.SendSecret) {
		n.Kind, n.Labels, n.Harms = e.Kind, nil, e.Harms
	}
	for i := range out {
		if out[i].RuleKind() == n.RuleKind() && out[i].Reason == n.Reason {
			return out
		}
	}
	return append(out, n)
}

// removesOutsideWorkspace reports whether an effect removes a folder outside the workspace that is neither temporary nor a
// cache.
func (l *fileRun) removesOutsideWorkspace(e *effect.Effect) bool {
	if !e.Recursive || e.Path == "" || strings.HasPrefix(e.Path, "*") || l.place.Inside(e.Path, e.Pattern, e.Tree) {
		return false
	}
	return !effect.IsInSharedFolder(e.Path+"/") && !strings.Contains(e.Path+"/", "/var/cache/") && !strings.Contains(e.Path+"/", "/.cache/")
}

// removesHome reports whether an effect removes the home folder or a parent of it.
func (l *fileRun) removesHome(e *effect.Effect) bool {
	p := strings.TrimSuffix(strings.TrimSuffix(e.Path, "*"), "/")
	home := l.place.Home
	return home != "" && !strings.Contains(p, "*") && (p == "~" || p == home || strings.HasPrefix(home, p+"/"))
}

// recordFileText records the content that the text writes to a file, in each version, since a branch may not run. Content
// that scripts on disk write is not recorded.
//
// gone is the text that is replaced, "" if unknown.
func (s *state) recordFileText(file string, holds abstract.Value, gone string, more bool) {
	text := holds.Text
	if holds.IsPattern {
		text = patternAsShellText(text)
	}
	if holds.FullyUnknown || file == "" || s.diskScriptDepth > 0 || strings.TrimSpace(text+gone) == "" {
		return
	}
	w := effect.FileText{Path: file, Text: text, Replaced: gone}
	if last := len(s.writtenTexts) - 1; more && last >= 0 && s.writtenTexts[last].Path == file && strings.HasPrefix(text, s.writtenTexts[last].Text) {
		s.writtenTexts[last] = w
		return
	}
	if slices.Contains(s.writtenTexts, w) {
		return
	}
	if len(s.writtenTexts) == maxFiles {
		s.giveUp("the command writes too many files")
		return
	}
	s.writtenTexts = append(s.writtenTexts, w)
}

// noteOnlyContent records whether the content recorded last is the whole file, or is appended to it.
func (s *state) noteOnlyContent(f *writtenFile) {
	last := len(s.writtenTexts) - 1
	if last < 0 || s.writtenTexts[last].Path != f.path || !f.val.Known() || f.isFolder || f.isUncertain && s.writtenTexts[last].Replaced != "" {
		return
	}
	s.writtenTexts[last].IsWholeContent, s.writtenTexts[last].IsAppended = !f.keepsOldContent, f.keepsOldContent
}

// recordWrittenInput records the input of a program as possible content of the file that it writes, if the actual content
// is unknown: a filter writes a part of it, an editor adds text from it. If the input is a patch, the lines that
// it adds are recorded instead.
func (s *state) recordWrittenInput(t abstract.Target, holds, in abstract.Value) (patch bool) {
	if holds.Known() && holds.Text != "" || t.Pattern {
		return false
	}
	if patch = s.recordPatch(in); !patch {
		s.recordFileText(t.Path, in, "", false)
	}
	return patch
}

// recordPatch records what the lines added by a patch would do in their files, and reports whether a value is a
// patch. Lines that move to another file do not count as removed.
func (s *state) recordPatch(v abstract.Value) (found bool) {
	if !strings.Contains(v.Text, "+++ ") && !strings.Contains(v.Text, "*** ") || !s.spendSteps(1+len(v.Text)/512) {
		return false
	}
	for _, f := range patch.Files(v.Text) {
		if f.Added == "" && f.Removed == "" {
			continue
		}
		if found = true; s.gaveUp {
			break
		}
		if p, pattern := s.place().Path(f.Path, false); !pattern {
			v.Text = f.Added
			s.recordWrittenText(p, v, f.Removed)
			s.notePatched(p, &f)
		}
	}
	return found
}

// notePatched records the content of a file after a patch is applied.
func (s *state) notePatched(file string, f *patch.File) {
	last := len(s.writtenTexts) - 1
	if last < 0 || s.writtenTexts[last].Path != file {
		return
	}
	w := &s.writtenTexts[last]
	w.PositionUnknown = true
	defer func() {
		if slices.Contains(s.writtenTexts[:last], *w) {
			s.writtenTexts = s.writtenTexts[:last]
		}
	}()
	if s.startPlace.ReadScript == nil {
		return
	}
	old, err := s.startPlace.ReadScript(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if text, ok := f.Apply(string(old)); ok {
		w.ContentAfter, w.PositionUnknown = text, false
	}
}

// recordPatches is recordPatch for several values.
func (s *state) recordPatches(vals []abstract.Value) (found bool) {
	for _, v := range vals {
		found = s.recordPatch(v) || found
	}
	return found
}

// recordWrittenFiles records the later effects of files that the analysed text writes, such as git
// hooks and makefiles: the effects that they have when they run.
func (s *state) recordWrittenFiles() {
	seen, read := map[string]bool{}, 0
	for i := len(s.files) - 1; i >= 0; i-- {
		f := &s.files[i]
		if seen[f.path] || f.pattern || f.consumer != nil || !f.val.Known() || strings.TrimSpace(f.val.Text) == "" {
			continue
		}
		seen[f.path] = true
		if format, _ := command.Recipe(f.path); format != "" || len(packageSourceForms(f.path)) > 0 {
			read++
		}
		if read > maxWrittenFiles {
			s.emitDynamic(effect.CauseLimit, "the command writes more files that run later than shield reads", effect.Span{End: len(s.text)})
			return
		}
		for _, e := range AnalyzeWrittenFile(f.path, f.val.Text, s.startPlace) {
			e.Span = effect.Span{End: len(s.text)}
			s.emitOnce(e)
		}
	}
}
