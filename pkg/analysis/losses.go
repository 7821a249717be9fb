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

// Losses are the files that an action deletes or overwrites.
type Losses struct {
	List    []undo.Loss // the files to back up
	Open    string      // why the losses cannot be determined; "" if they can
	Needed  []undo.Loss // losses of List that are permanent without a backup, though no rule asks
	Outside bool        // some losses are outside the workspace

	of map[int]bool // indexes of effects whose losses a backup of List restores
}

const (
	maxLosses  = 256
	maxTracked = 50_000 // files in the index of a repository
)

// Losses returns the files that the action deletes or overwrites, except those that a build or the last
// commit restores.
func (c *Case) Losses() *Losses {
	l := &Losses{of: map[int]bool{}}
	later := false
	for i := range c.Effects {
		e := &c.Effects[i]
		before := len(l.List)
		switch e.Kind {
		case effect.DeleteFile, effect.DeleteDirectory, effect.MoveFile:
			if i < c.stated { // a link's target is not lost when the link is deleted
				c.loses(l, i, undo.Loss{Tree: e.Recursive || e.Kind != effect.DeleteFile})
			}
		case effect.WriteFile:
			switch {
			case e.Loses&effect.LosesNothing != 0:
			case e.Recursive:
				c.mergeLoses(l, i)
			default:
				c.loses(l, i, undo.Loss{Write: true})
			}
		case effect.Execute:
			c.programLoses(l, i)
		}
		if later = later || e.Loses&effect.LosesLater != 0; later && len(l.List) > before {
			l.noteUnkept("it runs in the background, in a loop, or after a delay")
		}
	}
	if len(l.List) > maxLosses {
		l.noteUnkept("too many files are named")
	}
	return l
}

func (l *Losses) noteUnkept(why string) {
	if l.Open == "" {
		l.Open = why
	}
}

// loses adds the losses of an effect on a path.
func (c *Case) loses(l *Losses, i int, loss undo.Loss) {
	e := &c.Effects[i]
	deletes := !loss.Write
	switch _, output := outputs().Covers(e.Path, e.Pattern, e.Tree, e.Recursive); {
	case e.Restorable || nowhere(e) || output:
		return
	case e.Path == "":
		if deletes {
			l.noteUnkept("its name is known only when the command runs")
		}
		return
	case !c.place.Inside(e.Path, e.Pattern, e.Tree):
		if temporary(e) || c.ClearsCache(e) {
			return
		}
		l.Outside = true
	}
	if e.Pattern {
		cut := strings.LastIndexByte(e.Path[:max(strings.IndexAny(e.Path, `*?[\`), 0)], '/')
		if cut <= 0 {
			if deletes {
				l.noteUnkept("the files are unknown")
			}
			return
		}
		rest := e.Path[cut+1:]
		pattern, fold := e.Path, c.place.FoldCase
		folder := pattern[:cut]
		loss.Under, loss.Deep = true, strings.Contains(rest, "/") || strings.Contains(rest, "**")
		if real := c.realFolder(folder); real != folder {
			pattern, folder = effect.Quote(real)+pattern[cut:], real
		}
		loss.Match = func(p string) bool { return effect.Overlap(pattern, effect.Quote(p), fold) }
		loss.Path = folder
	} else {
		loss.Path = path.Join(c.realFolder(path.Dir(e.Path)), path.Base(e.Path))
		if !l.Outside && e.Sure != effect.May && c.losesContent(i, loss.Path) {
			l.Needed = append(l.Needed, loss)
		}
	}
	l.List = append(l.List, loss)
	l.of[i] = true
}

// mergeLoses adds the losses of a program that copies files and folders into a folder: it overwrites the
// files whose names also exist in a source folder.
func (c *Case) mergeLoses(l *Losses, i int) {
	e := &c.Effects[i]
	if c.files == nil || e.Path == "" || e.Pattern || !c.place.Inside(e.Path, false, false) {
		return
	}
	into := c.realFolder(e.Path)
	info, err := os.Lstat(into)
	if err != nil {
		return
	}
	if !info.IsDir() {
		c.loses(l, i, undo.Loss{Write: true})
		return
	}
	var from []string
	for j := i - 1; j >= 0 && len(from) < maxLosses; j-- {
		o := &c.Effects[j]
		if o.Kind == effect.Execute {
			break
		}
		if read := o.Kind == effect.ReadFile || o.Kind == effect.MoveFile; read && o.Path != "" && !o.Pattern {
			source := c.realFolder(o.Path)
			if info, err := os.Lstat(source); err == nil && info.IsDir() && source != into {
				from = append(from, source)
			}
		}
	}
	deleted := slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return deletes(&o) && o.Recursive && o.Path == e.Path })
	switch {
	case len(from) == 0 && !deleted:
		return
	case len(from) == 0: // the source is another machine: files may be overwritten in place
		l.List = append(l.List, undo.Loss{Path: into, Tree: true, Write: true})
		l.of[i] = true
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
	l.List = append(l.List, undo.Loss{
		Path: into, Under: true, Deep: true, Write: true,
		Match: func(p string) bool { file, _ := also(p); return file },
		Skip:  func(p string) bool { _, folder := also(p); return !folder },
	})
	l.of[i] = true
}

// realFolder returns the path of a folder without symbolic links.
func (c *Case) realFolder(folder string) string {
	if c.files == nil {
		return folder
	}
	real, _ := c.files.follow(folder)
	return real
}

// losesContent reports whether an effect discards the content of a file that is not empty. An action that
// also reads the file edits it.
func (c *Case) losesContent(i int, file string) bool {
	e := &c.Effects[i]
	if c.files == nil || e.Kind == effect.MoveFile || slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return o.Kind == effect.ReadFile && o.Path == e.Path }) {
		return false
	}
	info, err := disk{c.files}.Lstat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// programLoses adds the losses of a program that are not named in its operands.
func (c *Case) programLoses(l *Losses, i int) {
	e := &c.Effects[i]
	within := func(o *effect.Effect) bool { return o.From.Start >= e.From.Start && o.From.End <= e.From.End }
	const ofGit = effect.LosesDirty | effect.LosesBelow | effect.LosesUntracked | effect.LosesRefs
	switch {
	case e.Program == "git" && command.Git(e.Args).Sub == "stash" && slices.Contains(e.Args, "pop"):
		l.noteUnkept("git stash pop changes files first, and keeps no copy of them")
	case e.Loses&effect.LosesDatabase != 0:
		for j := range c.Effects {
			if o := &c.Effects[j]; o.Kind == effect.WriteFile && within(o) && !o.Pattern && c.place.Inside(o.Path, false, false) {
				for k := range l.List {
					if l.of[j] && l.List[k].Path == o.Path {
						l.List[k].Store = true
					}
				}
				l.List = append(l.List, undo.Loss{Path: path.Join(c.realFolder(path.Dir(o.Path)), path.Base(o.Path)), Store: true})
				l.of[i], l.of[j] = true, true
			}
		}
	case e.Loses&ofGit != 0:
		if c.gitLoses(l, e, within) {
			l.of[i] = true
		} else {
			l.noteUnkept("the repository cannot be read")
		}
	}
}

// gitLoses adds the losses of a git command. ok is false if they cannot be determined.
func (c *Case) gitLoses(l *Losses, e *effect.Effect, within func(*effect.Effect) bool) (ok bool) {
	if e.Folder == "" || !c.place.Inside(e.Folder, false, false) {
		return false
	}
	if c.files == nil {
		return true
	}
	inside := func(p string) bool { return c.place.Inside(p, false, false) }
	r := committed.New(disk{c.files}, inside, inside)
	defer r.Close()
	folder := c.realFolder(e.Folder)
	t, ok := r.Tree(folder)
	if !ok && c.files.layer != nil {
		return c.files.layer.Absent(path.Join(folder, ".git"))
	}
	if !ok || len(t.Files) > maxTracked {
		return false
	}
	before := len(l.List)
	if e.Loses&effect.LosesRefs != 0 {
		for _, name := range [...]string{"refs/heads", "refs/tags", "refs/stash"} {
			l.List = append(l.List, undo.Loss{Path: t.Common + "/" + name, Tree: true})
		}
		for _, name := range [...]string{"packed-refs", "logs/refs/stash", "logs/refs/heads"} {
			l.List = append(l.List, undo.Loss{Path: t.Common + "/" + name, Tree: true, Write: true})
		}
	}
	dirty := e.Loses&effect.LosesDirty != 0
	if e.Loses&effect.LosesRefs != 0 {
		stashed, untracked := c.stashes(e)
		if dirty = dirty || stashed; untracked {
			l.noteUnkept("git stash drop deletes untracked files that the same command stashes")
		}
	}
	if dirty || e.Loses&effect.LosesBelow != 0 {
		var below []string                                                                                        // nil: all files
		around := func(o *effect.Effect) bool { return o.From.Start <= e.From.Start && o.From.End >= e.From.End } // the effect of a program that passes file names to git, such as xargs
		if !dirty {
			below = []string{}
			for i := range c.Effects {
				if o := &c.Effects[i]; o.Kind == effect.WriteFile && (within(o) || around(o)) {
					if o.Pattern {
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
			if differsFromIndex(&file) || below != nil && fromCommit(e) {
				l.List = append(l.List, undo.Loss{Path: file.Path, Write: true})
			}
		}
		if len(l.List) > before {
			l.List = append(l.List, undo.Loss{Path: t.Folder + "/index"})
		}
	}
	l.Needed = append(l.Needed, l.List[before:]...)
	named := slices.ContainsFunc(c.Effects, func(o effect.Effect) bool { return deletes(&o) && within(&o) })
	if e.Loses&effect.LosesUntracked != 0 && !named {
		tracked := make(map[string]bool, len(t.Files))
		for i := range t.Files {
			tracked[t.Files[i].Path] = true
		}
		from := c.realFolder(e.Folder)
		l.List = append(l.List, undo.Loss{Path: from, Under: true, Deep: true, Skip: isGitFolder, Match: func(p string) bool {
			info, err := os.Lstat(p)
			return !tracked[p] && !isGitFolder(p) && err == nil && (!info.IsDir() || isEmpty(p))
		}})
	}
	return true
}

// fromCommit reports whether git restore takes files from a commit, so that changes that are only in the
// index are lost too.
func fromCommit(e *effect.Effect) bool {
	git := command.Git(e.Args)
	return git.Sub == "restore" && git.Has("sS", "--staged", "--source")
}

// stashes reports whether the command stashes changes of tracked files, or untracked files, before a program
// that may drop the stash.
func (c *Case) stashes(before *effect.Effect) (changes, untracked bool) {
	for i := range c.Effects {
		e := &c.Effects[i]
		if git := command.Git(e.Args); e.Kind == effect.Execute && e.Program == "git" && e.From.Start < before.From.Start && git.Sub == "stash" {
			if len(git.Args) == 0 || strings.HasPrefix(git.Args[0], "-") || git.Args[0] == "push" || git.Args[0] == "save" {
				changes, untracked = true, untracked || git.Has("ua", "--include-untracked", "--all")
			}
		}
	}
	return changes, untracked
}

func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func isGitFolder(p string) bool { return path.Base(p) == ".git" }

// differsFromIndex reports whether a tracked file exists and differs from the index.
func differsFromIndex(f *committed.Tracked) bool {
	info, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return false
	}
	return err != nil || f.Racy || uint32(info.Size()) != f.Size || info.ModTime().UnixNano() != f.MTime
}

// Lost returns one of the files that the action would lose permanently though no rule asks: it is not
// identical in the last commit, and the session did not create it. "" means that there is none. The index
// file does not count.
func (c *Case) Lost(l *Losses) string {
	if c.files == nil || len(l.Needed) == 0 {
		return ""
	}
	inside := func(p string) bool { return c.place.Inside(p, false, false) }
	home := strings.TrimSuffix(c.place.Home, "/") + "/"
	r := committed.New(disk{c.files}, inside, func(p string) bool {
		return inside(p) || len(home) > 1 && strings.HasPrefix(p, home)
	})
	defer r.Close()
	for _, loss := range l.Needed {
		if path.Base(loss.Path) != "index" && !c.madeBySession(loss.Path) && !c.kept(r, c.files, loss.Path) {
			return loss.Path
		}
	}
	return ""
}

// Kept returns the case under the assumption that all losses are backed up, or nil if that makes no
// difference, or if the losses cannot be determined.
func (c *Case) Kept() *Case {
	l := c.Losses()
	if len(l.of) == 0 || l.Open != "" {
		return nil
	}
	k := *c
	k.Effects, k.Met, k.Trail = slices.Clone(c.Effects), nil, nil
	if c.Evidence != nil {
		k.Evidence = &Evidence{}
	}
	if c.Met != nil {
		k.Met = make([][]RuleMatch, len(k.Effects))
	}
	lost := 0 // deletions and moves that are not backed up
	for i := range k.Effects {
		e := &k.Effects[i]
		if removes := deletes(e) || e.Kind == effect.MoveFile; removes && !l.of[i] && !(e.Restorable || nowhere(e) || i >= c.stated) {
			if _, output := outputs().Covers(e.Path, e.Pattern, e.Tree, e.Recursive); !output {
				lost++
			}
		}
		e.Kept = (l.of[i] || i >= c.stated && (deletes(e) || e.Kind == effect.MoveFile)) && c.place.Inside(e.Path, e.Pattern, e.Tree)
	}
	for i := range k.Effects {
		if e := &k.Effects[i]; e.Kind == effect.Execute {
			k.programKept(i, l.of[i])
		}
	}
	k.MinTier = MinTier(c.Action.Type)
	if lost == 0 && !l.Outside {
		k.MinTier = min(k.MinTier, 1)
	}
	k.MinTier = max(k.MinTier, c.Action.MinTier)
	return &k
}

// programKept marks a program as kept if all its losses are backed up, and its destructive effects too.
// stated says that it has losses of its own.
func (c *Case) programKept(i int, stated bool) {
	e := &c.Effects[i]
	kept, open := stated, false
	var destroys []int
	for j := range c.Effects {
		o := &c.Effects[j]
		if o.From.Start < e.From.Start || o.From.End > e.From.End {
			continue
		}
		switch {
		case deletes(o) || o.Kind == effect.MoveFile:
			kept, open = kept || o.Kept, open || !o.Kept && !o.Restorable
		case stated && (o.Kind == effect.Destroy && o.Program == e.Program || o.Kind == effect.ChangeRemote && e.Loses&effect.LosesDatabase != 0):
			destroys = append(destroys, j)
		}
	}
	if e.Kept = kept && !open; e.Kept {
		e.Harms = slices.DeleteFunc(slices.Clone(e.Harms), func(h effect.Harm) bool { return h == effect.Discards })
		for _, j := range destroys {
			c.Effects[j].Kept = true
		}
	}
}

// outputs are the files that a build creates again.
var outputs = sync.OnceValue(func() *effect.Globs { return listed("build_output") })

// secretFiles are the files whose names say that they hold credentials.
var secretFiles = sync.OnceValue(func() *effect.Globs { return listed("credential_stores", "secret_names", "wallets", "system_secrets") })

func listed(names ...string) *effect.Globs {
	var all []string
	for _, name := range names {
		list, _ := knowledge.Paths(name)
		all = append(all, list...)
	}
	globs, err := effect.NewGlobs(all, map[string][]string{"HOME": {anyHome}, "WORKSPACE": {"/"}})
	if err != nil {
		panic(err) // unreachable: a test compiles the lists
	}
	return globs
}

// MadeAgain reports whether a build creates a file or folder again.
func MadeAgain(p string) bool {
	_, ok := outputs().Covers(p, false, false, true)
	return ok
}

// HoldsCredential reports whether a file is a credential file: by the start of its content, or, only if start
// is nil, by its name.
func HoldsCredential(p string, start []byte) bool {
	if start != nil {
		return len(redact.Find(string(start))) > 0
	}
	if slices.ContainsFunc(knowledge.TemplateWords, func(word string) bool { return strings.Contains(path.Base(p), word) }) {
		return false
	}
	_, ok := secretFiles().Covers(p, false, false, false)
	return ok
}
