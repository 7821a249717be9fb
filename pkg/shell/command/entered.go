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

// applyChdirOptionsBefore applies the options that change the working folder, such as tar -C, as far as
// they precede an operand: their folder, relative to the base folder so far, becomes the base
// folder. If the folder is unknown, it records a recursive read of it instead.
func (r *argParser) applyChdirOptionsBefore(operandIndex int) {
	for ; r.valuesCheckedForChdir < len(r.values) && r.values[r.valuesCheckedForChdir].operandsBefore <= operandIndex; r.valuesCheckedForChdir++ {
		v := r.values[r.valuesCheckedForChdir]
		switch {
		case r.roleAfterOptionChanges(v.role) != argRoleChdirForLaterOperands:
		case v.word.IsGlobPattern:
			r.applyRole(argRoleReadTree, v.word, false)
		default:
			r.baseFolderFromChdirOptions = r.resolveInBaseFolder(v.word).Text
		}
	}
}
