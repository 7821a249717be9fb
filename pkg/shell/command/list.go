package command

import "slices"

// list adds the operands that are listed in files or on standard input.
func (r *reader) list() {
	if len(r.use.Lists) == 0 && r.use.Stdin != Listed {
		return
	}
	if r.listed == nil {
		r.doubt("%s works on files that a list names", r.args[0].Text)
		return
	}
	n := len(r.args)
	r.args = append(slices.Clip(r.args), r.listed...)
	for i := range r.listed {
		r.operands = append(r.operands, n+i)
	}
}
