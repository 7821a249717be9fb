package command

import "strings"

// inEntered returns a path relative to the folder that options have entered, resolved from the working folder.
func (r *reader) inEntered(w Word) Word {
	if r.entered == "" || w.Pattern || w.Text == "" || strings.IndexByte(`/~\`, w.Text[0]) >= 0 || len(w.Text) > 1 && w.Text[1] == ':' {
		return w
	}
	w.Text = strings.TrimSuffix(r.entered, "/") + "/" + w.Text
	return w
}

// step enters the folders of options before an operand, each relative to the one before. An unknown folder counts
// as read completely.
func (r *reader) step(operand int) {
	for ; r.stepped < len(r.values) && r.values[r.stepped].before <= operand; r.stepped++ {
		v := r.values[r.stepped]
		switch {
		case r.turn(v.role) != roleStep:
		case v.word.Pattern:
			r.apply(roleReadTree, v.word, false)
		default:
			r.entered = r.inEntered(v.word).Text
		}
	}
}
