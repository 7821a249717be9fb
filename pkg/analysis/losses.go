package analysis

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/shieldcli/shield/internal/committed"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
	"github.com/shieldcli/shield/pkg/undo"
)

// FileLosses are the files that an action deletes or overwrites.
type FileLosses struct {
	AllLossesToBackUp            []undo.FileLoss // the files to back up
	LossesUnknownReason          string          // why the losses cannot be determined; "" if they can
	LossesPermanentWithoutBackup []undo.FileLoss // losses in AllLossesToBackUp that are permanent without a backup, and about which no rule asks the user
	HasLossOutsideWorkspace      bool            // some losses are outside the workspace

	effectsRestorableFromBackup map[int]bool // indexes of effects whose losses a backup of AllLossesToBackUp restores
	gitIndexPaths               []string     // index files of repositories, among the losses: git makes them again
}

const (
	maxFileLosses      = 256
	maxGitTrackedFiles = 50_000 // files in the index of a repository
)

// FindFileLosses returns the files that the action deletes or overwrites, except those that a build or the last
// commit restores.
func (c *ActionCase) FindFileLosses() *FileLosses {
	l := &FileLosses{effectsRestorableFromBackup: map[int]bool{}}
	later := false
	for i := range c.Effects {
		e := &c.Effects[i]
		before := len(l.AllLossesToBackUp)
		switch e.Kind {
		case effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile:
			if i < c.directEffectCount { // a later effect can be on the target of a link, which stays when the link is deleted or moved
				c.addEffectPathLosses(l, i, undo.FileLoss{Tree: e.Recursive || e.Kind != effect.DeleteFile})
			}
		case effect.WriteFile:
			switch {
			case e.Losses&effect.FileLossNone != 0:
			case e.Recursive:
				c.addFolderMergeLosses(l, i)
			default:
				c.addEffectPathLosses(l, i, undo.FileLoss{Write: true})
			}
		case effect.Execute:
			c.addImplicitProgramLosses(l, i)
		}
		if later = later || e.Losses&effect.FileLossAtUnknownTime != 0; later && len(l.AllLossesToBackUp) > before {
			l.setLossesUnknownReason("the command runs in the background, in a loop, or after a delay")
		}
	}
	if len(l.AllLossesToBackUp) > maxFileLosses {
		l.setLossesUnknownReason("the action names too many files")
	}
	return l
}

func (l *FileLosses) setLossesUnknownReason(why string) {
	if l.LossesUnknownReason == "" {
		l.LossesUnknownReason = why
	}
}

// addEffectPathLosses adds the losses of an effect on a path.
func (c *ActionCase) addEffectPathLosses(l *FileLosses, effectIndex int, loss undo.FileLoss) {
	e := &c.Effects[effectIndex]
	deletes := !loss.Write
	switch _, output := buildOutputs().FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive); {
	case e.IsRestorableWithoutBackup || isNullOrStdStream(e) || output:
		return
	case e.Path == "":
		if deletes {
			l.setLossesUnknownReason("the name of a deleted file is known only when the command runs")
		}
		return
	case !c.executionContext.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot):
		if isTemporaryFile(e) || c.ClearsCache(e) {
			return
		}
		l.HasLossOutsideWorkspace = true
	}
	if e.PathIsPattern {
		cut := strings.LastIndexByte(e.Path[:max(strings.IndexAny(e.Path, `*?[\`), 0)], '/')
		if cut <= 0 {
			if deletes {
				l.setLossesUnknownReason("the path begins with a wildcard or a variable")
			}
			return
		}
		rest := e.Path[cut+1:]
		pattern, fold := e.Path, c.executionContext.FoldCase
		folder := pattern[:cut]
		loss.Under, loss.Deep = true, strings.Contains(rest, "/") || strings.Contains(rest, "**")
		if real := c.resolveFolderSymlinks(folder); real != folder {
			pattern, folder = effect.QuoteGlobMeta(real)+pattern[cut:], real
		}
		loss.IsLostPath = func(p string) bool { return effect.PatternsOverlap(pattern, effect.QuoteGlobMeta(p), fold) }
		loss.Path = folder
	} else {
		loss.Path = path.Join(c.resolveFolderSymlinks(path.Dir(e.Path)), path.Base(e.Path))
		if !l.HasLossOutsideWorkspace && e.Certainty != effect.Possible && c.effectDiscardsFileContent(effectIndex, loss.Path) {
			l.LossesPermanentWithoutBackup = append(l.LossesPermanentWithoutBackup, loss)
		}
	}
	l.AllLossesToBackUp = append(l.AllLossesToBackUp, loss)
	l.effectsRestorableFromBackup[effectIndex] = true
}

// addFolderMergeLosses adds the losses of a program that copies files and folders into a folder: it overwrites the
// files whose names also exist in a source folder.
func (c *ActionCase) addFolderMergeLosses(l *FileLosses, effectIndex int) {
	e := &c.Effects[effectIndex]
	if c.files == nil || e.Path == "" || e.PathIsPattern || !c.executionContext.IsInsideRoots(e.Path, false, false) {
		return
	}
	into := c.resolveFolderSymlinks(e.Path)
	info, err := os.Lstat(into)
	if err != nil {
		return
	}
	if !info.IsDir() {
		c.addEffectPathLosses(l, effectIndex, undo.FileLoss{Write: true})
		return
	}
	var from []string
	for j := effectIndex - 1; j >= 0 && len(from) < maxFileLosses; j-- {
		o := &c.Effects[j]
		if o.Kind == effect.Execute {
			break
		}
		if read := o.Kind == effect.ReadFile || o.Kind == effect.MoveFile; read && o.Path != "" && !o.PathIsPattern {
			source := c.resolveFolderSymlinks(o.Path)
			if info, err := os.Lstat(source); err == nil && info.IsDir() && source != into {
				from = append(from, source)
			}
		}
	}
	deleted := slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return isDeletion(&o) && o.Recursive && o.Path == e.Path })
	switch {
	case len(from) == 0 && !deleted:
		return
	case len(from) == 0: // the source is another machine: files may be overwritten in place
		l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: into, Tree: true, Write: true})
		l.effectsRestorableFromBackup[effectIndex] = true
		return
	}
	also := func(p string) (file, folder bool) {
		below := strings.TrimPrefix(p, into)
		for _, source := range from {
			if info, err := os.Lstat(source + below); err == nil {
				file, folder = file || !info.IsDir(), folder || info.IsDir()
			}
		}
		return file, folder
	}
	l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{
		Path: into, Under: true, Deep: true, Write: true,
		IsLostPath:     func(p string) bool { file, _ := also(p); return file },
		MustSkipFolder: func(p string) bool { _, folder := also(p); return !folder },
	})
	l.effectsRestorableFromBackup[effectIndex] = true
}

// resolveFolderSymlinks returns the path of a folder without symbolic links.
func (c *ActionCase) resolveFolderSymlinks(folder string) string {
	if c.files == nil {
		return folder
	}
	real, _ := c.files.resolvePath(folder)
	return real
}

// effectDiscardsFileContent reports whether an effect discards the content of a file that is not empty. An action that
// also reads the file edits it.
func (c *ActionCase) effectDiscardsFileContent(effectIndex int, file string) bool {
	e := &c.Effects[effectIndex]
	if c.files == nil || e.Kind == effect.MoveFile || slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return o.Kind == effect.ReadFile && o.Path == e.Path }) {
		return false
	}
	info, err := localNoSymlinkDisk{c.files}.Lstat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// addImplicitProgramLosses adds the losses of a program that are not named in its operands.
func (c *ActionCase) addImplicitProgramLosses(l *FileLosses, programEffectIndex int) {
	e := &c.Effects[programEffectIndex]
	within := func(o *effect.Effect) bool { return o.Span.Start >= e.Span.Start && o.Span.End <= e.Span.End }
	const ofGit = effect.FileLossModifiedTracked | effect.FileLossModifiedOverwritten | effect.FileLossUntracked | effect.FileLossGitRefs
	switch {
	case e.Program == "git" && command.ParseGit(e.Args).Subcommand == "stash" && slices.Contains(e.Args, "pop"):
		l.setLossesUnknownReason("git stash pop overwrites files, and git keeps no copy of them")
	case e.Losses&effect.FileLossDatabaseContent != 0:
		for j := range c.Effects {
			if o := &c.Effects[j]; o.Kind == effect.WriteFile && within(o) && !o.PathIsPattern && c.executionContext.IsInsideRoots(o.Path, false, false) {
				for k := range l.AllLossesToBackUp {
					if l.effectsRestorableFromBackup[j] && l.AllLossesToBackUp[k].Path == o.Path {
						l.AllLossesToBackUp[k].Store = true
					}
				}
				l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: path.Join(c.resolveFolderSymlinks(path.Dir(o.Path)), path.Base(o.Path)), Store: true})
				l.effectsRestorableFromBackup[programEffectIndex], l.effectsRestorableFromBackup[j] = true, true
			}
		}
	case e.Losses&ofGit != 0:
		if c.addGitLosses(l, e, within) {
			l.effectsRestorableFromBackup[programEffectIndex] = true
		} else {
			l.setLossesUnknownReason("the git repository is outside the workspace or cannot be read")
		}
	}
}

// addGitLosses adds to l the files that a git command loses. e is the effect of that command, and
// isWithinGitCommand reports whether an effect belongs to it. areLossesKnown is false if the losses cannot be
// determined.
func (c *ActionCase) addGitLosses(l *FileLosses, e *effect.Effect, isWithinGitCommand func(*effect.Effect) bool) (areLossesKnown bool) {
	if e.FolderLosingFiles == "" || !c.executionContext.IsInsideRoots(e.FolderLosingFiles, false, false) {
		return false
	}
	if c.files == nil {
		return true
	}
	inside := func(p string) bool { return c.executionContext.IsInsideRoots(p, false, false) }
	r := committed.New(localNoSymlinkDisk{c.files}, inside, inside)
	defer r.Close()
	folder := c.resolveFolderSymlinks(e.FolderLosingFiles)
	t, areLossesKnown := r.ReadWorkTree(folder)
	if !areLossesKnown && c.files.overlay != nil {
		return c.files.overlay.TreatsMissingPathAsEmptyFile(path.Join(folder, ".git"))
	}
	if !areLossesKnown || len(t.Files) > maxGitTrackedFiles {
		return false
	}
	before := len(l.AllLossesToBackUp)
	if e.Losses&effect.FileLossGitRefs != 0 {
		for _, name := range [...]string{"refs/heads", "refs/tags", "refs/stash"} {
			l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: t.GitCommonDir + "/" + name, Tree: true})
		}
		for _, name := range [...]string{"packed-refs", "logs/refs/stash", "logs/refs/heads"} {
			l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: t.GitCommonDir + "/" + name, Tree: true, Write: true})
		}
	}
	dirty := e.Losses&effect.FileLossModifiedTracked != 0
	if e.Losses&effect.FileLossGitRefs != 0 {
		stashed, untracked := c.gitStashesBeforeProgram(e)
		if dirty = dirty || stashed; untracked {
			l.setLossesUnknownReason("git stash drop deletes untracked files that the same command stashes")
		}
	}
	if dirty || e.Losses&effect.FileLossModifiedOverwritten != 0 {
		var below []string                                                                                        // nil: all files
		around := func(o *effect.Effect) bool { return o.Span.Start <= e.Span.Start && o.Span.End >= e.Span.End } // o may be the effect of a program that runs the git command and passes file names to it, such as xargs
		if !dirty {
			below = []string{}
			for i := range c.Effects {
				if o := &c.Effects[i]; o.Kind == effect.WriteFile && (isWithinGitCommand(o) || around(o)) {
					if o.PathIsPattern {
						below = nil
						break
					}
					below = append(below, o.Path)
				}
			}
		}
		for _, file := range t.Files {
			if below != nil && !slices.ContainsFunc(below, func(p string) bool { return file.Path == p || strings.HasPrefix(file.Path, p+"/") }) {
				continue
			}
			if differsFromIndex(&file) || below != nil && restoresFromCommit(e) {
				l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: file.Path, Write: true})
			}
		}
		if len(l.AllLossesToBackUp) > before {
			l.gitIndexPaths = append(l.gitIndexPaths, t.GitDir+"/index")
			l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: t.GitDir + "/index"})
		}
	}
	l.LossesPermanentWithoutBackup = append(l.LossesPermanentWithoutBackup, l.AllLossesToBackUp[before:]...)
	named := slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return isDeletion(&o) && isWithinGitCommand(&o) })
	if e.Losses&effect.FileLossUntracked != 0 && !named {
		tracked := make(map[string]bool, len(t.Files))
		for i := range t.Files {
			tracked[t.Files[i].Path] = true
		}
		from := c.resolveFolderSymlinks(e.FolderLosingFiles)
		l.AllLossesToBackUp = append(l.AllLossesToBackUp, undo.FileLoss{Path: from, Under: true, Deep: true, MustSkipFolder: isDotGitFolder, IsLostPath: func(p string) bool {
			info, err := os.Lstat(p)
			return !tracked[p] && !isDotGitFolder(p) && err == nil && (!info.IsDir() || isEmptyFolder(p))
		}})
	}
	return true
}

// restoresFromCommit reports whether git restore takes files from a commit, so that changes that are only in the
// index are lost too.
func restoresFromCommit(e *effect.Effect) bool {
	git := command.ParseGit(e.Args)
	return git.Subcommand == "restore" && git.HasOption("sS", "--staged", "--source")
}

// gitStashesBeforeProgram reports whether the command stashes changes of tracked files, or untracked files, before a program
// that may drop the stash.
func (c *ActionCase) gitStashesBeforeProgram(program *effect.Effect) (stashesTracked, stashesUntracked bool) {
	for i := range c.Effects {
		e := &c.Effects[i]
		if git := command.ParseGit(e.Args); e.Kind == effect.Execute && e.Program == "git" && e.Span.Start < program.Span.Start && git.Subcommand == "stash" {
			if len(git.Args) == 0 || strings.HasPrefix(git.Args[0], "-") || git.Args[0] == "push" || git.Args[0] == "save" {
				stashesTracked, stashesUntracked = true, stashesUntracked || git.HasOption("ua", "--include-untracked", "--all")
			}
		}
	}
	return stashesTracked, stashesUntracked
}

func isEmptyFolder(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func isDotGitFolder(p string) bool { return path.Base(p) == ".git" }

// differsFromIndex reports whether a tracked file exists and differs from the index.
func differsFromIndex(f *committed.TrackedFile) bool {
	info, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return false
	}
	return err != nil || f.Racy || uint32(info.Size()) != f.Size || info.ModTime().UnixNano() != f.MTime
}

// FirstPermanentlyLostFilePath returns the path of one file that the action would lose permanently
// and about which no rule asks the user; "" if there is none. The last commit does not contain the
// file with the same content, and the session did not create the file. Git's index file is ignored.
func (c *ActionCase) FirstPermanentlyLostFilePath(l *FileLosses) string {
	if c.files == nil || len(l.LossesPermanentWithoutBackup) == 0 {
		return ""
	}
	inside := func(p string) bool { return c.executionContext.IsInsideRoots(p, false, false) }
	home := strings.TrimSuffix(c.executionContext.Home, "/") + "/"
	r := committed.New(localNoSymlinkDisk{c.files}, inside, func(p string) bool {
		return inside(p) || len(home) > 1 && strings.HasPrefix(p, home)
	})
	defer r.Close()
	for _, loss := range l.LossesPermanentWithoutBackup {
		isGitIndex := strings.HasSuffix(loss.Path, "/.git/index") || slices.Contains(l.gitIndexPaths, loss.Path)
		if !isGitIndex && !c.isCreatedBySessionOrMissing(loss.Path) && !c.isInLastCommit(r, c.files, loss.Path) {
			return loss.Path
		}
	}
	return ""
}

// CaseAssumingLossesBackedUp returns the case under the assumption that all losses are backed up, or nil if that makes no
// difference, or if the losses cannot be determined.
func (c *ActionCase) CaseAssumingLossesBackedUp() *ActionCase {
	l := c.FindFileLosses()
	if len(l.effectsRestorableFromBackup) == 0 || l.LossesUnknownReason != "" {
		return nil
	}
	k := *c
	k.Effects, k.MatchedRulesByEffectIndex, k.EarlierTierSteps = slices.Clone(c.Effects), nil, nil
	if c.Tier1AllowEvidence != nil {
		k.Tier1AllowEvidence = &Tier1DecisionEvidence{}
	}
	if c.MatchedRulesByEffectIndex != nil {
		k.MatchedRulesByEffectIndex = make([][]RuleMatch, len(k.Effects))
	}
	lost := 0 // deletions and moves that are not backed up
	for i := range k.Effects {
		e := &k.Effects[i]
		if removes := isDeletion(e) || e.Kind == effect.MoveFile; removes && !l.effectsRestorableFromBackup[i] && !(e.IsRestorableWithoutBackup || isNullOrStdStream(e) || i >= c.directEffectCount) {
			if _, output := buildOutputs().FirstCoveringGlob(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot, e.Recursive); !output {
				lost++
			}
		}
		e.IsBackedUpByShield = (l.effectsRestorableFromBackup[i] || i >= c.directEffectCount && (isDeletion(e) || e.Kind == effect.MoveFile)) && c.executionContext.IsInsideRoots(e.Path, e.PathIsPattern, e.DoubleStarExcludesDotDot)
	}
	for i := range k.Effects {
		if e := &k.Effects[i]; e.Kind == effect.Execute {
			k.markProgramEffectsBackedUp(i, l.effectsRestorableFromBackup[i])
		}
	}
	k.MinAllowTier = MinTierForActionType(c.Action.Type)
	if lost == 0 && !l.HasLossOutsideWorkspace {
		k.MinAllowTier = min(k.MinAllowTier, 1)
	}
	k.MinAllowTier = max(k.MinAllowTier, c.Action.MinAllowTier)
	return &k
}

// markProgramEffectsBackedUp marks the effect of running a program as backed up if a backup restores something
// that the program loses, and every file that the program deletes or moves is backed up or can be restored
// otherwise. programLosesData means that the program itself loses data, which a backup restores; then the
// effects of the program that destroy this data are marked too.
func (c *ActionCase) markProgramEffectsBackedUp(effectIndex int, programLosesData bool) {
	e := &c.Effects[effectIndex]
	kept, open := programLosesData, false
	var destroys []int
	for j := range c.Effects {
		o := &c.Effects[j]
		if o.Span.Start < e.Span.Start || o.Span.End > e.Span.End {
			continue
		}
		switch {
		case isDeletion(o) || o.Kind == effect.MoveFile:
			kept, open = kept || o.IsBackedUpByShield, open || !o.IsBackedUpByShield && !o.IsRestorableWithoutBackup
		case programLosesData && (o.Kind == effect.DestroyData && o.Program == e.Program || o.Kind == effect.ChangeRemoteSystem && e.Losses&effect.FileLossDatabaseContent != 0):
			destroys = append(destroys, j)
		}
	}
	if e.IsBackedUpByShield = kept && !open; e.IsBackedUpByShield {
		e.Harms = slices.DeleteFunc(slices.Clone(e.Harms), func(h effect.Harm) bool { return h == effect.DiscardsUnpublishedWork })
		for _, j := range destroys {
			c.Effects[j].IsBackedUpByShield = true
		}
	}
}

// buildOutputs are the files that a build creates again.
var buildOutputs = sync.OnceValue(func() *effect.Globs { return globsInAnyHome("build_output") })

// credentialFiles are the files whose names say that they hold credentials.
var credentialFiles = sync.OnceValue(func() *effect.Globs {
	return globsInAnyHome("credential_stores", "secret_names", "wallets", "system_secrets")
})

func globsInAnyHome(names ...string) *effect.Globs {
	var all []string
	for _, name := range names {
		list, _ := knowledge.GlobsOfPathList(name)
		all = append(all, list...)
	}
	globs, err := effect.NewGlobs(all, map[string][]string{"HOME": {anyUserHomePlaceholder}, "WORKSPACE": {"/"}})
	if err != nil {
		panic(err) // unreachable: a test compiles the lists
	}
	return globs
}

// IsBuildOutput reports whether a build creates a file or folder again.
func IsBuildOutput(p string) bool {
	_, ok := buildOutputs().FirstCoveringGlob(p, false, false, true)
	return ok
}

// IsCredentialFile reports whether a file is a credential file: by the start of its content, or, only if start
// is nil, by its name.
func IsCredentialFile(p string, contentStart []byte) bool {
	if contentStart != nil {
		return len(redact.FindDecodedCredentials(string(contentStart))) > 0
	}
	if slices.ContainsFunc(knowledge.TemplateWords, func(word string) bool { return strings.Contains(path.Base(p), word) }) {
		return false
	}
	_, ok := credentialFiles().FirstCoveringGlob(p, false, false, false)
	return ok
}
