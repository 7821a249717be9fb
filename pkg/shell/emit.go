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
func (s *analysisState) emit(e effect.Effect) {
	if s.effectSuppressionDepth > 0 {
		return
	}
	if e.Certainty == effect.Unknown && e.Cause == "" {
		e.Cause = effect.CauseUnanalysedCode // the program's entry says that it runs code that is not in the command
	}
	if len(s.effects) >= maxEffects {
		s.abortAnalysis("the command has too many effects")
		return
	}
	s.effects = append(s.effects, e)
}

// emitUnknownEffect records an effect that is unknown until the text runs. It is not inlined: inlined
// copies of such helpers, which have many callers, made up a tenth of the package's code.
//
//go:noinline
func (s *analysisState) emitUnknownEffect(cause effect.EffectCause, why string, at effect.CommandTextSpan) {
	s.emitOnce(effect.Effect{Certainty: effect.Unknown, Cause: cause, Reason: why, Span: at})
}

// emitOnce records an effect unless the same was recorded before.
func (s *analysisState) emitOnce(e effect.Effect) {
	for i := max(0, len(s.effects)-64); i < len(s.effects); i++ {
		if s.effects[i].Kind == e.Kind && sameEffect(&s.effects[i], &e) {
			return
		}
	}
	s.emit(e)
}

func sameEffect(a, b *effect.Effect) bool {
	return a.KindForPolicies() == b.KindForPolicies() && a.Path == b.Path && a.PathIsPattern == b.PathIsPattern && a.DoubleStarExcludesDotDot == b.DoubleStarExcludesDotDot && a.Recursive == b.Recursive &&
		a.RemoteServiceName == b.RemoteServiceName && a.RemoteOperationVerb == b.RemoteOperationVerb && a.RemoteTargetName == b.RemoteTargetName && a.URL == b.URL && a.Host == b.Host && a.Program == b.Program && a.Class == b.Class &&
		a.CauseOrFirstHarm() == b.CauseOrFirstHarm() && a.Reason == b.Reason && a.Span == b.Span && slices.Equal(a.Args, b.Args)
}

// dropRepeatedEffects removes each effect at index firstEffect or later that is equal to one of the
// 64 effects directly before firstEffect, as another iteration of a loop produces them.
func (s *analysisState) dropRepeatedEffects(firstEffect int) {
	if firstEffect > len(s.effects) {
		return
	}
	first := max(0, firstEffect-64)
	kept := s.effects[:firstEffect]
	for _, e := range s.effects[firstEffect:] {
		if !slices.ContainsFunc(s.effects[first:firstEffect], func(o effect.Effect) bool { return sameEffect(&o, &e) }) {
			kept = append(kept, e)
		}
	}
	s.effects = kept
}

// isNonTemporaryRemotePath reports whether a path on another machine is absolute, or in a home folder, and not in a
// cache or a folder for temporary files.
func isNonTemporaryRemotePath(p string) bool {
	return !effect.IsInSharedTemporaryFolder(p) && !strings.HasPrefix(p, "/var/cache/") && (strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~"))
}

// isInOrBelow reports whether a path on another machine is in a list, or below a path of the list.
func isInOrBelow(p string, list map[string]bool) bool {
	for p = strings.TrimRight(p, "/*."); p != ""; p = p[:max(strings.LastIndexByte(p, '/'), 0)] {
		if list[p] {
			return true
		}
	}
	return false
}

// isLikelyDataFolderInContainer reports whether the name of a folder in a container suggests that it stores data.
func isLikelyDataFolderInContainer(containerPath string) bool {
	return command.StoredFolders[path.Base(strings.TrimRight(containerPath, "/*."))]
}

// recordRemotePath records an effect on a path on another machine or in a container. It records
// only these effects: deleted data, overwritten disks, changed login files, written files that run
// later, and read credentials.
func (s *analysisState) recordRemotePath(kind effect.Kind, v abstract.Value, recursive bool) {
	e := effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, RemoteTargetName: v.String(), Span: v.SourceSpan}
	switch {
	case kind == effect.WriteFile && s.remoteMachineDepth > 0 && isInOrBelow(v.Text, command.LoginFiles):
		e.RemoteOperationVerb, e.Harms = "grant", []effect.Harm{effect.GrantsCredentialsOrRoles}
	case kind == effect.WriteFile && s.remoteMachineDepth > 0 && isDisk(v.Text):
	case kind == effect.WriteFile && s.remoteMachineDepth > 0 && autostartPersistenceClassNames[effect.PersistenceClassName(v.Text, v.IsGlobPattern, false)]:
		e.RemoteOperationVerb, e.Harms = "run", []effect.Harm{effect.RunsCommandsOnRemoteMachines}
	case kind == effect.ReadFile && s.remoteMachineDepth > 0 && isNonTemporaryRemotePath(v.Text) && effect.IsSecretPath(v.Text, v.IsGlobPattern):
		e = effect.Effect{Kind: effect.ReadSecret, RemoteTargetName: v.String(), Span: v.SourceSpan, Reason: "reads credentials on another machine: " + abstract.ClipForMessage(v.String())}
	case kind != effect.DeleteFile && kind != effect.DeleteDirectory || !recursive && !v.IsGlobPattern:
		return
	case s.remoteMachineDepth > 0 && !isNonTemporaryRemotePath(v.Text):
		return
	case s.remoteMachineDepth == 0 && (s.persistentDataContainerDepth == 0 || !isNonTemporaryRemotePath(v.Text) || isInOrBelow(v.Text, command.MadeFolders) && !isLikelyDataFolderInContainer(v.Text)):
		return
	}
	s.emitOnce(e)
}

// isDisk reports whether a path is the device of a disk or partition.
func isDisk(p string) bool {
	name, is := strings.CutPrefix(p, "/dev/")
	return is && slices.ContainsFunc([]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "mapper/"}, func(start string) bool { return strings.HasPrefix(name, start) })
}

// emitPathEffect records an effect on the path that a word names. It returns the canonical path, and whether that is a
// pattern.
func (s *analysisState) emitPathEffect(kind effect.Kind, v abstract.Value, recursive bool) (path string, isPathPattern bool) {
	if v.IsLiteral() && v.Text == "" {
		return "", false
	}
	e := effect.Effect{Kind: kind, Recursive: recursive, Span: v.SourceSpan}
	if v.FullyUnknown || v.IsGlobPattern && !hasLiteralName(v.Text) {
		e.PathIsPattern = true
		switch s.emitOnce(e); {
		case v.Origin&(abstract.OriginUnanalysedComputation|abstract.OriginAssignmentToUnknownName) != 0 && changesPath(kind):
			s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "the target of the change is unknown: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
		case v.HasUnanalysedComputation() && kind == effect.ReadFile: // a computed path may hide the name of a secret file
			s.emitUnknownEffect(effect.CauseOtherUnresolvedCommandText, "the file that is read is unknown: "+abstract.ClipForMessage(v.String()), v.SourceSpan)
		}
		return "", true
	}
	if s.remoteOrContainerDepth > 0 {
		here, ok := hostPathOf(s.bindMounts, v.Text)
		if !ok || kind != effect.DeleteFile && kind != effect.DeleteDirectory {
			s.recordRemotePath(kind, v, recursive)
			return v.Text, v.IsGlobPattern
		}
		v.Text = here
	}
	e.Path, e.PathIsPattern = s.workingFolderContext().CanonicalPath(v.Text, v.IsGlobPattern)
	if (kind == effect.DeleteFile || kind == effect.DeleteDirectory) && (!e.PathIsPattern && s.isCreatedByAnalyzedText(e.Path) || s.isBackupOfEditedFile(e.Path)) {
		return e.Path, false
	}
	// If the path begins with "**" or contains several "**", a "**" may stand for an unknown part of the path,
	// which can contain "..".
	e.DoubleStarExcludesDotDot = v.DoubleStarExcludesDotDot && e.PathIsPattern && !strings.HasPrefix(e.Path, "**") && strings.Count(e.Path, "**") == 1
	s.emitOnce(e)
	s.emitForFileLinkTargets(e)
	if kind == effect.DeleteFile || kind == effect.DeleteDirectory {
		s.recordMovedFileLoss(e)
	}
	return e.Path, e.PathIsPattern
}

// hasLiteralName reports whether a pattern that starts with an unknown part contains a name that a rule could match:
// "**/.ssh" does, "**/*" does not.
func hasLiteralName(pattern string) bool {
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

// changesPath reports whether an effect on a path changes the file or folder.
func changesPath(kind effect.Kind) bool {
	switch kind {
	case effect.ReadFile, effect.ListDirectory:
		return false
	}
	return true
}
