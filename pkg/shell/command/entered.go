package command

import "strings"

// resolveInBaseFolder returns a path joined to the base folder that options such as tar -C have
// set. Absolute and partly unknown paths are returned unchanged.
func (r *argParser) resolveInBaseFolder(w Word) Word {
	if r.baseFolder == "" || w.Pattern || w.Text == "" || strings.IndexByte(`/~\`, w.Text[0]) >= 0 || len(w.Text) > 1 && w.Text[1] == ':' {
		return w
	}
	w.Text = strings.TrimSuffix(r.baseFolder, "/") + "/" + w.Text
	return w
}

// enterFoldersBefore makes the folder of each option such as tar -C before an operand the base
// folder, relative to the previous base folder. If the folder is unknown, it records a recursive
// read of it instead.
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
