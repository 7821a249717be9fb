package command

import "strings"

// resolveInBaseFolder returns a path joined to the base folder that options such as tar -C have
// set. Absolute and partly unknown paths are returned unchanged.
func (r *argParser) resolveInBaseFolder(w Word) Word {
	if r.baseFolder == "" || w.IsGlobPattern || w.Text == "" || strings.IndexByte(`/~\`, w.Text[0]) >= 0 || len(w.Text) > 1 && w.Text[1] == ':' {
		return w
	}
	w.Text = strings.TrimSuffix(r.baseFolder, "/") + "/" + w.Text
	return w
}

// enterFoldersBefore makes the folder of each option such as tar -C before an operand the base
// folder, relative to the previous base folder. If the folder is unknown, it records a recursive
// read of it instead.
func (r *argParser) enterFoldersBefore(operand int) {
	for ; r.folderCheckedValueCount < len(r.values) && r.values[r.folderCheckedValueCount].operandsBefore <= operand; r.folderCheckedValueCount++ {
		v := r.values[r.folderCheckedValueCount]
		switch {
		case r.roleAfterOptionChanges(v.role) != argRoleChdirForLaterOperands:
		case v.word.IsGlobPattern:
			r.applyRole(argRoleReadTree, v.word, false)
		default:
			r.baseFolder = r.resolveInBaseFolder(v.word).Text
		}
	}
}
