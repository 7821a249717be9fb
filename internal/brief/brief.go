// Package brief shortens text that is shown to people.
package brief

// Text returns a text in at most n characters, with an ellipsis for what is left out.
func Text(s string, n int) string {
	last := 0 // where the n-th character begins
	for i := range s {
		if n--; n == 0 {
			last = i
		}
		if n < 0 {
			return s[:last] + "…"
		}
	}
	return s
}
