package command

import "strings"

// resolveInBaseFolder returns a path relative to the folder that options have entered, resolved from the working folder.
func (r *argParser) resolveInBaseFolder(w Word) Word {
	if r.baseFolder == "" || w.Pattern || w.Text == "" || strings.IndexByte(`/~\`, w.Text[0]) >= 0 || len(w.Text) > 1 && w.Text[1] == ':' {
		return w
	}
	w.Text = strings.TrimSuffix(r.baseFolder, "/") + "/" + w.Text
	return w
}

// enterFoldersBefore enters the folders of options before an operand, each relative to the one before. An unknown folder counts
// as read completely.
func (r *argParser) enterFoldersBefore(operand int) {
	for ; r.checkedValues < len(r.values) && r.values[r.checkedValues].operandsBefore <= operand; r.checkedValues++ {
		v := r.values[r.checkedValues]
		switch {
		case r.changedRole(v.role) != roleStep:
		case v.word.Pattern:
			r.applyRole(roleReadTree, v.word, false)
		default:
			r.baseFolder = r.resolveInBaseFolder(v.word).Text
		}
	}
}
