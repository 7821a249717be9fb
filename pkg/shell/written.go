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

// AnalyzeWrittenFile returns the effects that a text, written to a file with a canonical path, has later. It
// returns only effects that need review at the time of writing: unusual package sources and settings that run
// code; a remote shell, secrets that are sent and removal of the home folder; in files that start automatically
// or without further commands, also foreign code that runs and removal of other folders outside the workspace;
// in files that start automatically, also tampering with shield. Other effects are judged when the file runs.
//
// In files that start automatically, a remote shell, sent secrets and tampering keep their kind. The other
// effects of code become RunCode or DestroyData effects with the cause CauseWrittenCodeRunsLater.
func AnalyzeWrittenFile(file, text string, at *effect.PathContext) []effect.Effect {
	return analyzeWrittenFile(file, text, at, false)
}

// kubernetesWorkloadPattern matches Kubernetes manifests and pipelines that a cluster runs without further commands.
var kubernetesWorkloadPattern = prefilter.LazyRegexp(`(?m)^\s*["']?kind["']?\s*:\s*["']?(?:CronJob|Job|Pod|DaemonSet|Deployment|StatefulSet|ReplicaSet|Workflow|CronWorkflow|Task|Pipeline)\b`)

// analyzeWrittenFile implements [AnalyzeWrittenFile]. runsNow means that the file runs now, even if
// its name is not that of a program.
func analyzeWrittenFile(file, text string, at *effect.PathContext, runsNow bool) (out []effect.Effect) {
	place := effect.PathContext{}
	if at != nil {
		place = *at
	}
	place.ReadScript = nil // files that the written file runs are not read here: they are judged when they run
	format, elsewhere := command.RecipeFormat(file)
	if strings.HasPrefix(text, "#!") && (format == "" || format == "shell") {
		format = scriptLanguage(file, []byte(text))
	}
	class := place.PersistenceClassName(file, false, false)
	if !runsNow {
		out = append(writtenFilePackageSourceEffects(file, text), settingsFileCodeEffects(file, text)...)
	}
	if format == "" {
		return out
	}
	if len(text) > parse.MaxCommandBytes {
		return append(out, writtenFileTooLongEffect(file))
	}
	runsNow = runsNow || format == "notebook" || format == "yaml" && strings.Contains(text, "kind") && kubernetesWorkloadPattern().MatchString(text)
	defer func() {
		if recover() != nil {
			out = []effect.Effect{{Certainty: effect.Unknown, Cause: effect.CauseAnalysisFailure, Path: file, Reason: "the written file could not be analysed"}}
		}
	}()
	s := newState(text, &place)
	defer s.returnToPool()
	whole := s.tryWalkAllRecipeSteps(format)
	s.walkTrapsAndUncalledFunctions()
	if s.isAnalysisAborted || !whole {
		out = append(out, writtenFileTooLongEffect(file))
	}
	l := writtenFileExecution{path: file, persistenceClass: class, onOtherMachine: elsewhere, runsNow: runsNow, pathContext: &place}
	for i := range s.effects {
		out = l.appendDeferredExecutionEffect(out, &s.effects[i])
	}
	return out
}

// tryWalkAllRecipeSteps walks the steps of a recipe, and reports whether it could walk all of them.
func (s *analysisState) tryWalkAllRecipeSteps(recipeFormat string) bool {
	all := effect.CommandTextSpan{End: len(s.analyzedText)}
	steps, whole := recipe.CodeBlocks(recipeFormat, s.analyzedText, nil)
	for _, step := range steps {
		from := len(s.effects)
		s.walkCode(step.Language, step.Text, all, []abstract.Value{})
		if s.isAnalysisAborted {
			break
		}
		if hasOnlyWellKnownInstallerRequests(s.effects[from:]) {
			s.removeEffects(from, effect.RunDownload)
		}
	}
	return whole
}

// writtenFileTooLongEffect returns the effect of a written file that is too long to be analysed.
func writtenFileTooLongEffect(file string) effect.Effect {
	return effect.Effect{Certainty: effect.Unknown, Cause: effect.CauseAnalysisLimitExceeded, Path: file, Reason: "the content written to " + abstract.ClipForMessage(file) + " is too long to be analysed"}
}

// removeEffects removes the effects of a kind from the list, starting at a given index.
func (s *analysisState) removeEffects(from int, kind effect.Kind) {
	kept := s.effects[:from]
	for _, e := range s.effects[from:] {
		if e.KindForPolicies() != kind {
			kept = append(kept, e)
		}
	}
	s.effects = kept
}

// hasOnlyWellKnownInstallerRequests reports whether all HTTP requests are for URLs of well-known installers, over https, and there is at
// least one. Other effects are ignored.
func hasOnlyWellKnownInstallerRequests(effects []effect.Effect) bool {
	found := false
	for i := range effects {
		e := &effects[i]
		if e.Kind != effect.HTTPRequest {
			continue
		}
		address, secure := strings.CutPrefix(e.URL, "https://")
		if found = true; !secure || e.PathIsPattern || !isInstallerURL(address) {
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

// A writtenFileExecution collects the effects that a written file has when it runs.
type writtenFileExecution struct {
	path, persistenceClass string // persistenceClass is the result of effect.PersistenceClassName for path
	onOtherMachine         bool
	runsNow                bool // the file runs now
	pathContext            *effect.PathContext
}

func (l *writtenFileExecution) appendDeferredExecutionEffect(effects []effect.Effect, fileCodeEffect *effect.Effect) []effect.Effect {
	starts := l.persistenceClass != "" && !effect.IsOftenWrittenPersistenceClass(l.persistenceClass)
	base := path.Base(l.path)
	n := effect.Effect{Kind: effect.RunCode, Path: l.path, Cause: effect.CauseWrittenCodeRunsLater}
	switch fileCodeEffect.KindForPolicies() {
	case effect.RunDownload, effect.RunDecodedText:
		if l.persistenceClass == "" && !l.runsNow {
			return effects // many install scripts run downloads, so the file is judged when it runs
		}
		n.DataLabels, n.Reason = []effect.TaintLabel{effect.LabelFromNetwork}, base+" would run code from the network"
		if fileCodeEffect.HasLabel(effect.LabelDecoderOutput) {
			n.DataLabels, n.Reason = []effect.TaintLabel{effect.LabelDecoderOutput}, base+" would run decoded code"
		}
	case effect.RemoteShell:
		n.DataLabels, n.Reason = []effect.TaintLabel{effect.LabelFromNetwork}, base+" would give a shell to the network"
	case effect.SendSecret:
		n.DataLabels, n.Reason = []effect.TaintLabel{effect.LabelFromCredentialLocation}, base+" would send secrets to the network"
	case effect.DeleteFile, effect.DeleteDirectory:
		if l.persistenceClass == "" && !l.runsNow && !l.removesHome(fileCodeEffect) || l.onOtherMachine || !l.removesOutsideWorkspace(fileCodeEffect) {
			return effects
		}
		n.Kind, n.Reason = effect.DestroyData, base+" would remove "+abstract.ClipForMessage(fileCodeEffect.Path)
	case effect.TamperWithShield:
		if !starts {
			return effects // a change that weakens shield is judged when the file runs
		}
		n.Kind, n.Cause, n.Program, n.Reason = fileCodeEffect.Kind, "", fileCodeEffect.Program, base+": "+fileCodeEffect.Reason
	default:
		return effects
	}
	if starts && (fileCodeEffect.Kind == effect.RemoteShell || fileCodeEffect.KindForPolicies() == effect.SendSecret) {
		n.Kind, n.DataLabels, n.Harms = fileCodeEffect.Kind, nil, fileCodeEffect.Harms
	}
	for i := range effects {
		if effects[i].KindForPolicies() == n.KindForPolicies() && effects[i].Reason == n.Reason {
			return effects
		}
	}
	return append(effects, n)
}

// removesOutsideWorkspace reports whether an effect removes a folder outside the workspace that is neither temporary nor a
// cache.
func (l *writtenFileExecution) removesOutsideWorkspace(e *effect.Effect) bool {
	if !e.Recursive || e.Path == "" || strings.HasPrefix(e.Path, "*") || l.pathContext.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot) {
		return false
	}
	return !effect.IsInSharedTemporaryFolder(e.Path+"/") && !strings.Contains(e.Path+"/", "/var/cache/") && !strings.Contains(e.Path+"/", "/.cache/")
}

// removesHome reports whether an effect removes the home folder or a parent of it.
func (l *writtenFileExecution) removesHome(e *effect.Effect) bool {
	p := strings.TrimSuffix(strings.TrimSuffix(e.Path, "*"), "/")
	home := l.pathContext.Home
	return home != "" && !strings.Contains(p, "*") && (p == "~" || p == home || strings.HasPrefix(home, p+"/"))
}

// recordWrittenFileText records each content that the text writes to a file, not only the last: the
// branch with the last write may not run. Content that scripts on disk write is not recorded.
//
// replacedText is the text that the content replaces; "" if unknown.
func (s *analysisState) recordWrittenFileText(file string, newContent abstract.Value, replacedText string, isAppend bool) {
	text := newContent.Text
	if newContent.IsGlobPattern {
		text = patternAsShellText(text)
	}
	if newContent.FullyUnknown || file == "" || s.scriptFileNestingDepth > 0 || strings.TrimSpace(text+replacedText) == "" {
		return
	}
	w := effect.WrittenFileText{Path: file, NewText: text, OldText: replacedText}
	if last := len(s.writtenFileTexts) - 1; isAppend && last >= 0 && s.writtenFileTexts[last].Path == file && strings.HasPrefix(text, s.writtenFileTexts[last].NewText) {
		s.writtenFileTexts[last] = w
		return
	}
	if slices.Contains(s.writtenFileTexts, w) {
		return
	}
	if len(s.writtenFileTexts) == maxTrackedWrittenFiles {
		s.abortAnalysis("the command writes too many files")
		return
	}
	s.writtenFileTexts = append(s.writtenFileTexts, w)
}

// setLastWriteMode records whether the content recorded last is the whole file, or is appended to it.
func (s *analysisState) setLastWriteMode(f *writtenFile) {
	last := len(s.writtenFileTexts) - 1
	if last < 0 || s.writtenFileTexts[last].Path != f.path || !f.content.IsLiteral() || f.isFolder || f.isWriteUncertain && s.writtenFileTexts[last].OldText != "" {
		return
	}
	s.writtenFileTexts[last].IsWholeContent, s.writtenFileTexts[last].IsAppended = !f.keepsOldContent, f.keepsOldContent
}

// recordInputAsFileContent records the input of a program as possible content of the file that it writes, if the actual content
// is unknown: a filter writes a part of it, an editor adds text from it. If the input is a patch, the lines that
// it adds are recorded instead.
func (s *analysisState) recordInputAsFileContent(t abstract.OutputTarget, content, in abstract.Value) (isPatch bool) {
	if content.IsLiteral() && content.Text != "" || t.PathIsGlobPattern {
		return false
	}
	if isPatch = s.recordPatch(in); !isPatch {
		s.recordWrittenFileText(t.Path, in, "", false)
	}
	return isPatch
}

// recordPatch records what the lines added by a patch would do in their files, and reports whether a value is a
// patch. Lines that move to another file do not count as removed.
func (s *analysisState) recordPatch(v abstract.Value) (found bool) {
	if !strings.Contains(v.Text, "+++ ") && !strings.Contains(v.Text, "*** ") || !s.spendSteps(1+len(v.Text)/512) {
		return false
	}
	for _, f := range patch.FindPatchedFiles(v.Text) {
		if f.AddedLines == "" && f.RemovedLines == "" {
			continue
		}
		if found = true; s.isAnalysisAborted {
			break
		}
		if p, pattern := s.workingFolderContext().CanonicalPath(f.Path, false); !pattern {
			v.Text = f.AddedLines
			s.recordInsertedFileText(p, v, f.RemovedLines)
			s.recordPatchedContent(p, &f)
		}
	}
	return found
}

// recordPatchedContent records the content of a file after a patch is applied.
func (s *analysisState) recordPatchedContent(file string, f *patch.File) {
	last := len(s.writtenFileTexts) - 1
	if last < 0 || s.writtenFileTexts[last].Path != file {
		return
	}
	w := &s.writtenFileTexts[last]
	w.IsTextPositionUnknown = true
	defer func() {
		if slices.Contains(s.writtenFileTexts[:last], *w) {
			s.writtenFileTexts = s.writtenFileTexts[:last]
		}
	}()
	if s.initialPathContext.ReadScript == nil {
		return
	}
	old, err := s.initialPathContext.ReadScript(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if text, ok := f.Apply(string(old)); ok {
		w.FullContentAfterWrite, w.IsTextPositionUnknown = text, false
	}
}

// recordPatches is recordPatch for several values.
func (s *analysisState) recordPatches(vals []abstract.Value) (found bool) {
	for _, v := range vals {
		found = s.recordPatch(v) || found
	}
	return found
}

// recordWrittenFileRunEffects records the later effects of files that the analysed text writes, such as git
// hooks and makefiles: the effects that they have when they run.
func (s *analysisState) recordWrittenFileRunEffects() {
	seen, read := map[string]bool{}, 0
	for i := len(s.writtenFiles) - 1; i >= 0; i-- {
		f := &s.writtenFiles[i]
		if seen[f.path] || f.isPathPattern || f.consumingProcessSubstitution != nil || !f.content.IsLiteral() || strings.TrimSpace(f.content.Text) == "" {
			continue
		}
		seen[f.path] = true
		if format, _ := command.RecipeFormat(f.path); format != "" || len(packageSourceSettingsForFile(f.path)) > 0 {
			read++
		}
		if read > maxWrittenFiles {
			s.emitUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command writes more files that run later than shield reads", effect.CommandTextSpan{End: len(s.analyzedText)})
			return
		}
		for _, e := range AnalyzeWrittenFile(f.path, f.content.Text, s.initialPathContext) {
			e.Span = effect.CommandTextSpan{End: len(s.analyzedText)}
			s.emitOnce(e)
		}
	}
}
