package command

import "strings"

// resolveInBaseFolder returns a path joined to the base folder that options such as tar -C have
// set. Absolute and partly unknown paths are returned unchanged.
func (r *argParser) resolveInBaseFolder(w Word) Word {
	if r.baseFolderFromChdirOptions == "" || w.IsGlobPattern || w.Text == "" || strings.IndexByte(`/~\`, w.Text[0]) >= 0 || len(w.Text) > 1 && w.Text[1] == ':' {
		return w
	}
	w.Text = strings.TrimSuffix(r.baseFolderFromChdirOptions, "/") + "/" + w.Text
	return w
}

// applyChdirOptionsBefore applies the options that change the working folder, such as tar -C, and that precede
// the operand with index operandIndex. The folder that an option names is relative to the base folder so far and
// becomes the new base folder. If the named folder is unknown, the base folder stays the same, and a recursive
// read of the unknown folder is recorded.
func (r *argParser) applyChdirOptionsBefore(operandIndex int) {
	for ; r.valuesCheckedForChdir < len(r.values) && r.values[r.valuesCheckedForChdir].operandsBefore <= operandIndex; r.valuesCheckedForChdir++ {
		v := r.values[r.valuesCheckedForChdir]
		switch {
		case r.roleAfterOptionChanges(v.role) != argRoleChdirForLaterOperands:
		case v.word.IsGlobPattern:
			r.applyRole(argRoleReadFolderTree, v.word, false)
		default:
			r.baseFolderFromChdirOptions = r.resolveInBaseFolder(v.word).Text
		}
	}
}
