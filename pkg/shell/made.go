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

// isCreatedByAnalyzedText reports whether this text created a file or folder of the workspace, so that deleting it loses no data: it
// did not exist before, and nothing was moved into it.
func (s *analysisState) isCreatedByAnalyzedText(p string) bool {
	if s.remoteOrContainerDepth > 0 || len(s.fileLinks) > 0 || !s.inWorkspace(p) {
		return false
	}
	made := ""
	for i := range s.effects {
		e := &s.effects[i]
		switch {
		case e.Kind == effect.MoveFile, e.Certainty == effect.Unknown, e.Kind == effect.ReadFile && e.Path == p && made == "":
			return false
		case e.PathIsPattern || e.Recursive || made != "":
		case (e.Kind == effect.WriteFile || e.Kind == effect.CreateDirectory) && e.Path == p,
			e.Kind == effect.CreateDirectory && strings.HasPrefix(p, e.Path+"/"):
			made = e.Path
		}
	}
	return made != "" && s.inWorkspace(made) && s.isAbsent(made)
}

// isBackupOfEditedFile reports whether a path is, or matches, backup copies of files that this text edited.
func (s *analysisState) isBackupOfEditedFile(p string) bool {
	return s.remoteOrContainerDepth == 0 && len(s.fileLinks) == 0 && slices.Contains(s.backupCopyPaths, p) && s.inWorkspace(p)
}

// inWorkspace reports whether a path is below a root of the workspace.
func (s *analysisState) inWorkspace(p string) bool {
	return p != "" && s.initialPathContext.IsInsideRoots(path.Dir(p), false, false)
}

// isAbsent reports whether a path certainly did not exist before the text runs.
func (s *analysisState) isAbsent(p string) bool {
	if s.initialPathContext.ReadScript == nil {
		return false
	}
	_, err := s.initialPathContext.ReadScript(p)
	return errors.Is(err, fs.ErrNotExist)
}

// recordBuiltProgramRun reports whether this text compiled a program from unchanged files of the workspace, and records that their
// code runs.
func (s *analysisState) recordBuiltProgramRun(base, p string, at effect.CommandTextSpan) bool {
	here := func(compiled bool) bool {
		return s.newestWrittenFile(func(f *writtenFile) bool { return f.path == p && f.compiledFromWorkspace == compiled }) != nil
	}
	if here(false) || !here(true) {
		return false
	}
	s.emitOnce(effect.Effect{Kind: effect.RunCode, Program: base, Path: p, Span: at})
	return true
}

// isCompilerOutput reports whether the newest file that the text wrote to a path is the output of a compiler.
func (s *analysisState) isCompilerOutput(p string) bool {
	f := s.newestWrittenFile(func(f *writtenFile) bool { return f.path == p })
	return f != nil && f.isCompilerOutput
}

// compilesWorkspaceFiles reports whether all inputs of a compiler are files of the workspace that this text did not write.
func (s *analysisState) compilesWorkspaceFiles(base string, use command.Interpretation, reads abstract.Value) bool {
	if !command.Compilers[base] || len(use.NestedCommandsAndCode) > 0 || reads.Taint&^(abstract.TaintUnknownText|abstract.TaintLocalMachineData|abstract.TaintUnprintedKeyStoreCredential) != 0 || len(reads.Text) > 0 && reads.IsLiteral() {
		return false
	}
	for _, t := range use.OperandEffects {
		if t.Kind != effect.ReadFile {
			continue
		}
		p, pattern := s.workingFolderContext().CanonicalPath(t.Word.Text, t.Word.IsGlobPattern)
		if !s.initialPathContext.IsInsideRoots(p, pattern, false) || len(s.writtenFileContents(p, pattern)) > 0 {
			return false
		}
	}
	return true
}

// isActivationScript reports whether a path is the activation script of a Python virtual environment.
func isActivationScript(p string) bool {
	dir, base := path.Split(p)
	return (base == "activate" || strings.HasPrefix(base, "activate.")) && (strings.HasSuffix(dir, "/bin/") || strings.HasSuffix(dir, "/Scripts/"))
}

// isUnwrittenShellSetupFile reports whether a missing script would only set up the shell, and no command of the text could have
// created it.
func (s *analysisState) isUnwrittenShellSetupFile(p string) bool {
	if !isActivationScript(p) && !isEnvFile(p) {
		return false
	}
	for i := range s.effects {
		e := &s.effects[i]
		if e.Kind == effect.WriteFile && (e.PathIsPattern || e.Recursive && (e.Path == p || strings.HasPrefix(p, strings.TrimSuffix(e.Path, "/")+"/"))) {
			return false
		}
	}
	return true
}
