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

// noteCopies records the writes of a command that copies or moves the operands parsed so far to
// dst. tree means that folders are copied; folder means that dst is a folder. If dst may be a
// folder, files are written below it: copying authorized_keys to ~/.ssh writes
// ~/.ssh/authorized_keys.
func (r *argParser) noteCopies(dst Word, tree, folder bool) {
	sources := r.sourceIndexes()
	if len(sources) != 1 || looksLikeFolder(dst.Text) {
		folder = true
	}
	if len(sources) > maxCopiedFiles || len(dst.Text) > maxCopyPathBytes {
		r.addOperandEffect(effect.WriteFile, dst, true)
		return
	}
	if !folder {
		r.addOperandEffect(effect.WriteFile, dst, tree)
	}
	for _, i := range sources {
		src := r.args[i]
		name := lastElement(src.Text)
		if _, path, remote := splitRemotePath(src); remote && r.operandShape.rest == roleRemoteSrc {
			name = lastElement(path.Text)
		}
		if name == "" || src.Pattern || len(name) > maxCopyPathBytes || dst.Pattern {
			r.addOperandEffect(effect.WriteFile, dst, tree || src.Pattern)
			continue
		}
		r.addOperandEffect(effect.WriteFile, joinPath(dst, name), tree)
	}
	if len(sources) == 0 {
		r.addOperandEffect(effect.WriteFile, dst, true)
		if name := lastElement(dst.Text); name != "" && len(r.operandShape.tail) > 0 { // ln creates the link in the working folder
			r.addOperandEffect(effect.WriteFile, Word{Text: name, Pattern: dst.Pattern, Span: dst.Span}, false)
		}
	}
}

// sourceIndexes returns the indices of the operands that are copied or moved.
func (r *argParser) sourceIndexes() []int {
	n := len(r.operands) - len(r.operandShape.tail)
	if n < len(r.operandShape.head) || n < 0 {
		return nil
	}
	return r.operands[len(r.operandShape.head):n]
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
func (r *argParser) foundFilesPattern(start Word, name string) (w Word, tree bool) {
	meta := !start.Pattern && strings.ContainsAny(start.Text, `*?[]{}\`)
	if meta || len(start.Text)+len(name) > maxCopyPathBytes || name == "" && r.flags&widen != 0 {
		return start, true
	}
	w = start
	w.Text = strings.TrimSuffix(w.Text, "/") + "/**"
	if name != "" {
		w.Text += "/" + name
	}
	// Symbolic links may lead anywhere; the option to follow them may come after the folder.
	w.FromSearch = !w.Pattern && !slices.ContainsFunc(r.args, func(w Word) bool {
		return w.Pattern || w.Text == "-L" || w.Text == "-H" || w.Text == "-follow"
	})
	w.Pattern = true
	return w, name == ""
}

// findStartFolders returns the start folders of find.
func (r *argParser) findStartFolders() []Word {
	var ws []Word
	for _, i := range r.operands {
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

// deleteFoundFiles records that find deletes the files that it finds.
func (r *argParser) deleteFoundFiles() {
	var places []int
	for i, w := range r.args {
		if w.Text == "-delete" {
			places = append(places, i)
		}
	}
	names := namesReachingArgs(r.args, places...)
	for _, start := range r.findStartFolders() {
		if names == nil {
			r.addOperandEffect(effect.DeleteFile, start, true)
		}
		for _, name := range names {
			if name == emptyFolders { // deleting empty folders loses nothing
				r.raiseClass(localWrite)
				continue
			}
			w, tree := r.foundFilesPattern(start, name)
			r.addOperandEffect(effect.DeleteFile, w, tree)
		}
	}
	if len(r.operands) > maxCopiedFiles {
		r.setNotUnderstood("too many operands", "")
	}
}

// fillPlaceholders replaces {} in the command of find -exec with the files found: one command for each start folder
// and file name.
func (r *argParser) fillPlaceholders(role role, words []Word) [][]Word {
	if role != roleArgvSemi || r.innermostLevel.style&expr == 0 || !slices.ContainsFunc(words, func(w Word) bool { return w.Text == "{}" }) {
		return [][]Word{words}
	}
	names := []string{""}
	for i := 1; i < len(r.args); i++ {
		if &r.args[i] == &words[0] {
			if list := namesReachingArgs(r.args, i-1); len(list) > 0 && !slices.Contains(list, emptyFolders) {
				names = list
			}
		}
	}
	starts := r.findStartFolders()
	var out [][]Word
	for _, start := range starts {
		for _, name := range names {
			what, tree := r.foundFilesPattern(start, name)
			if tree && !what.Pattern || len(starts)*len(names) > maxFoundNames || name == "" && len(starts) > 1 {
				what = Word{Text: "**", Pattern: true, Span: start.Span}
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

// noteCompressedFile records that gzip and the like replace a file by one with or without a suffix.
func (r *argParser) noteCompressedFile(w Word, tree bool) {
	r.addOperandEffect(effect.ReadFile, w, tree)
	r.addOperandEffect(effect.WriteFile, w, tree)
	if tree || w.Pattern || len(w.Text) > maxCopyPathBytes || strings.ContainsAny(w.Text, `*?[]{}\`) {
		return
	}
	if i := strings.LastIndexByte(w.Text, '.'); i > 0 && w.Text[i-1] != '/' {
		short := w
		short.Text = w.Text[:i]
		r.addOperandEffect(effect.WriteFile, short, false)
	}
	r.noteSuffixedFile(w)
}

// noteBackupSuffix records the suffix of backup copies of edited files.
func (r *argParser) noteBackupSuffix(w Word) {
	if !w.Pattern && !strings.ContainsAny(w.Text, "*/") {
		r.backupSuffix = w.Text
	}
}

// noteEditedFile records a file that is read and written, and its backup copy.
func (r *argParser) noteEditedFile(w Word, tree bool) {
	r.addOperandEffect(effect.ReadFile, w, tree)
	r.addOperandEffect(effect.WriteFile, w, tree)
	if r.backupSuffix == "" || tree {
		return
	}
	w.Text += r.backupSuffix
	if w.Pattern {
		w.Text = strings.TrimSuffix(w.Text, r.backupSuffix) + globEscaper.Replace(r.backupSuffix)
	}
	r.addOperandEffect(effect.WriteFile, w, false)
	r.result.OperandEffects[len(r.result.OperandEffects)-1].IsBackupCopy = true
}

// noteSuffixedFile records a write to a file whose name is a given name followed by an unknown
// suffix, such as a.txt.gz for a.txt.
func (r *argParser) noteSuffixedFile(w Word) {
	if !w.Pattern {
		w.Text, w.Pattern = globEscaper.Replace(w.Text), true
	}
	w.Text += ".*"
	r.addOperandEffect(effect.WriteFile, w, false)
}

var globEscaper = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)
