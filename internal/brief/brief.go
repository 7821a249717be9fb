// Package brief shortens text that is shown to people.
package brief

// Text returns a text truncated to n characters, with an ellipsis if it was longer.
//
//go:noinline
func Text(s string, n int) string {
	last := 0 // offset of the n-th character
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
