package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// Limits of the list of files that a copy into a folder writes. Beyond these limits shield treats
// the whole target folder as written.
const (
	maxCopiedFiles   = 64
	maxCopyPathBytes = 1024 // bytes
)

// addCopyWrites records the writes of a command that copies or moves the operands parsed so far to
// dst. isRecursive means that folders are copied; isIntoFolder means that dst is a folder. If dst
// may be a folder, files are written below it: copying authorized_keys to ~/.ssh writes
// ~/.ssh/authorized_keys.
func (r *argParser) addCopyWrites(dst Word, isRecursive, isIntoFolder bool) {
	sources := r.sourceIndexes()
	if len(sources) != 1 || looksLikeFolder(dst.Text) {
		isIntoFolder = true
	}
	if len(sources) > maxCopiedFiles || len(dst.Text) > maxCopyPathBytes {
		r.addOperandEffect(effect.WriteFile, dst, true)
		return
	}
	if !isIntoFolder {
		r.addOperandEffect(effect.WriteFile, dst, isRecursive)
	}
	for _, i := range sources {
		src := r.args[i]
		name := lastElement(src.Text)
		if _, path, remote := splitRemotePath(src); remote && r.operandRoles.middleRole == argRoleRemoteCopySource {
			name = lastElement(path.Text)
		}
		if name == "" || src.IsGlobPattern || len(name) > maxCopyPathBytes || dst.IsGlobPattern {
			r.addOperandEffect(effect.WriteFile, dst, isRecursive || src.IsGlobPattern)
			continue
		}
		r.addOperandEffect(effect.WriteFile, joinPath(dst, name), isRecursive)
	}
	if len(sources) == 0 {
		r.addOperandEffect(effect.WriteFile, dst, true)
		if name := lastElement(dst.Text); name != "" && len(r.operandRoles.lastRoles) > 0 { // ln creates the link in the working folder
			r.addOperandEffect(effect.WriteFile, Word{Text: name, IsGlobPattern: dst.IsGlobPattern, Span: dst.Span}, false)
		}
	}
}

// sourceIndexes returns the indices of the operands that are copied or moved.
func (r *argParser) sourceIndexes() []int {
	n := len(r.operandArgIndexes) - len(r.operandRoles.lastRoles)
	if n < len(r.operandRoles.firstRoles) || n < 0 {
		return nil
	}
	return r.operandArgIndexes[len(r.operandRoles.firstRoles):n]
}

// looksLikeFolder reports whether a path has the form of a folder's path.
func looksLikeFolder(path string) bool {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		path = path[i+1:]
	}
	switch path {
	case "", ".", "..", "~":
		return true
	}
	return false
}

// lastElement returns the name under which a path is copied into a folder, or
// "" if its content is copied, as with dir/ and dir/. .
func lastElement(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch name {
	case ".", "..", "~":
		return ""
	}
	return name
}

// joinPath returns the path of name in a folder.
func joinPath(dir Word, name string) Word {
	if strings.HasSuffix(dir.Text, "/") {
		dir.Text += name
	} else {
		dir.Text += "/" + name
	}
	return dir
}

// foundFilesPattern returns the files that find finds below a start folder, as a pattern with the name if one is given.
func (r *argParser) foundFilesPattern(start Word, name string) (w Word, withDescendants bool) {
	meta := !start.IsGlobPattern && strings.ContainsAny(start.Text, `*?[]{}\`)
	if meta || len(start.Text)+len(name) > maxCopyPathBytes || name == "" && r.activeActionFlags&actionFlagFindFiltersIneffective != 0 {
		return start, true
	}
	w = start
	w.Text = strings.TrimSuffix(w.Text, "/") + "/**"
	if name != "" {
		w.Text += "/" + name
	}
	// Symbolic links may lead anywhere; the option to follow them may come after the folder.
	w.DoubleStarExcludesDotDot = !w.IsGlobPattern && !slices.ContainsFunc(r.args, func(w Word) bool {
		return w.IsGlobPattern || w.Text == "-L" || w.Text == "-H" || w.Text == "-follow"
	})
	w.IsGlobPattern = true
	return w, name == ""
}

// startFoldersOfFindCommand returns the start folders of find.
func (r *argParser) startFoldersOfFindCommand() []Word {
	var ws []Word
	for _, i := range r.operandArgIndexes {
		ws = append(ws, r.args[i])
		if len(ws) == maxCopiedFiles {
			break
		}
	}
	if ws == nil {
		ws = []Word{r.workingFolder()}
	}
	return ws
}

// addFindDeleteEffects records that find deletes the files that it finds.
func (r *argParser) addFindDeleteEffects() {
	var places []int
	for i, w := range r.args {
		if w.Text == "-delete" {
			places = append(places, i)
		}
	}
	names := fileNamesReachingFindActions(r.args, places...)
	for _, start := range r.startFoldersOfFindCommand() {
		if names == nil {
			r.addOperandEffect(effect.DeleteFile, start, true)
		}
		for _, name := range names {
			if name == anyEmptyFolderMarker { // deleting empty folders loses nothing
				r.raiseProgramClass(localWriteProgramClassRank)
				continue
			}
			w, tree := r.foundFilesPattern(start, name)
			r.addOperandEffect(effect.DeleteFile, w, tree)
		}
	}
	if len(r.operandArgIndexes) > maxCopiedFiles {
		r.setNotUnderstood("too many operands", "")
	}
}

// fillPlaceholders replaces {} in the command of find -exec with the files found: one command for each start folder
// and file name.
func (r *argParser) fillPlaceholders(role argRole, words []Word) [][]Word {
	if role != argRoleArgvUntilSemicolon || r.innermostSyntax.argStyle&argStyleDashlessOptions == 0 || !slices.ContainsFunc(words, func(w Word) bool { return w.Text == "{}" }) {
		return [][]Word{words}
	}
	names := []string{""}
	for i := 1; i < len(r.args); i++ {
		if &r.args[i] == &words[0] {
			if list := fileNamesReachingFindActions(r.args, i-1); len(list) > 0 && !slices.Contains(list, anyEmptyFolderMarker) {
				names = list
			}
		}
	}
	starts := r.startFoldersOfFindCommand()
	var out [][]Word
	for _, start := range starts {
		for _, name := range names {
			what, tree := r.foundFilesPattern(start, name)
			if tree && !what.IsGlobPattern || len(starts)*len(names) > maxFindFileNames || name == "" && len(starts) > 1 {
				what = Word{Text: "**", IsGlobPattern: true, Span: start.Span}
			}
			filled := slices.Clone(words)
			for i, w := range words {
				if w.Text == "{}" {
					filled[i] = what
					filled[i].Span = w.Span
				}
			}
			if out = append(out, filled); what.Text == "**" {
				return out[len(out)-1:]
			}
		}
	}
	return out
}

// addCompressedFileEffects records that gzip and the like replace a file by one with or without a suffix.
func (r *argParser) addCompressedFileEffects(w Word, isRecursive bool) {
	r.addOperandEffect(effect.ReadFile, w, isRecursive)
	r.addOperandEffect(effect.WriteFile, w, isRecursive)
	if isRecursive || w.IsGlobPattern || len(w.Text) > maxCopyPathBytes || strings.ContainsAny(w.Text, `*?[]{}\`) {
		return
	}
	if i := strings.LastIndexByte(w.Text, '.'); i > 0 && w.Text[i-1] != '/' {
		short := w
		short.Text = w.Text[:i]
		r.addOperandEffect(effect.WriteFile, short, false)
	}
	r.addWriteWithAnySuffix(w)
}

// setBackupSuffix records the suffix of backup copies of edited files.
func (r *argParser) setBackupSuffix(w Word) {
	if !w.IsGlobPattern && !strings.ContainsAny(w.Text, "*/") {
		r.backupSuffix = w.Text
	}
}

// addEditedFileEffects records a file that is read and written, and its backup copy.
func (r *argParser) addEditedFileEffects(w Word, isRecursive bool) {
	r.addOperandEffect(effect.ReadFile, w, isRecursive)
	r.addOperandEffect(effect.WriteFile, w, isRecursive)
	if r.backupSuffix == "" || isRecursive {
		return
	}
	w.Text += r.backupSuffix
	if w.IsGlobPattern {
		w.Text = strings.TrimSuffix(w.Text, r.backupSuffix) + globEscaper.Replace(r.backupSuffix)
	}
	r.addOperandEffect(effect.WriteFile, w, false)
	r.result.OperandEffects[len(r.result.OperandEffects)-1].IsBackupCopy = true
}

// addWriteWithAnySuffix records a write to a file whose name is a given name followed by an unknown
// suffix, such as a.txt.gz for a.txt.
func (r *argParser) addWriteWithAnySuffix(w Word) {
	if !w.IsGlobPattern {
		w.Text, w.IsGlobPattern = globEscaper.Replace(w.Text), true
	}
	w.Text += ".*"
	r.addOperandEffect(effect.WriteFile, w, false)
}

var globEscaper = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)
