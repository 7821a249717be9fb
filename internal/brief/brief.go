// Package brief shortens text that is shown to people.
package brief

// TruncateWithEllipsis returns a text truncated to maxChars characters, with an ellipsis if it was
// longer.
//
//go:noinline
func TruncateWithEllipsis(s string, maxChars int) string {
	last := 0 // byte offset at which a longer text is cut
	for i := range s {
		if maxChars--; maxChars == 0 {
			last = i
		}
		if maxChars < 0 {
			return s[:last] + "…"
		}
	}
	return s
}
