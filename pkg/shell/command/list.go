package command

import "slices"

// appendOperandsFromFileOrStdin adds the operands that are listed in files or on standard input.
func (r *argParser) appendOperandsFromFileOrStdin() {
	if len(r.result.OperandListFiles) == 0 && r.result.Stdin != StreamOperandList {
		return
	}
	if r.operandsFromFileOrStdin == nil {
		r.setNotUnderstood("%s works on files that a list names", r.args[0].Text)
		return
	}
	n := len(r.args)
	r.args = append(slices.Clip(r.args), r.operandsFromFileOrStdin...)
	for i := range r.operandsFromFileOrStdin {
		r.operandArgIndexes = append(r.operandArgIndexes, n+i)
	}
}
