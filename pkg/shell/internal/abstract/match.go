package abstract

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether a shell glob matches a whole text. It goes back to the
// last star only, so its time is at most the product of both lengths.
func Match(glob, text string) bool {
	g, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		if g < len(glob) && glob[g] == '*' {
			star, mark = g, t
			g++
			continue
		}
		if n, ok := matchOne(glob[min(g, len(glob)):], text[t]); ok {
			g += n
			t++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		g, t = star+1, mark
	}
	return strings.Trim(glob[min(g, len(glob)):], "*") == ""
}

// matchOne matches the first element of a glob with a byte and returns the
// element's length.
func matchOne(glob string, c byte) (int, bool) {
	if glob == "" {
		return 0, false
	}
	switch glob[0] {
	case '?':
		return 1, true
	case '\\':
		if len(glob) > 1 {
			return 2, glob[1] == c
		}
	case '[':
		end := strings.IndexByte(glob[1:], ']')
		if end <= 0 {
			break
		}
		return end + 2, matchSet(glob[1:end+1], c)
	}
	return 1, glob[0] == c
}

func matchSet(set string, c byte) bool {
	not := set[0] == '!' || set[0] == '^'
	if not {
		set = set[1:]
	}
	in := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			in = in || set[i] <= c && c <= set[i+2]
			i += 2
			continue
		}
		in = in || set[i] == c
	}
	return in != not && c < utf8.RuneSelf
}

// GlobPattern brings a shell glob into the language of effect.Overlap.
func GlobPattern(glob string) string {
	if !strings.Contains(glob, "[!") {
		return glob
	}
	return strings.ReplaceAll(glob, "[!", "[^")
}

func JoinValues(vs []Value) Value {
	var b Builder
	for i, v := range vs {
		if i > 0 {
			b.Literal(" ")
		}
		b.Add(v)
	}
	return b.Value()
}

// WindowsGlob takes a path that holds a glob for a pattern, as programs of
// Windows expand theirs.
func WindowsGlob(v Value) Value {
	if v.Known() && strings.ContainsAny(v.Text, "*?") {
		v.IsPattern, v.Show, v.Text = true, v.Text, strings.ReplaceAll(v.Text, `\`, "/")
	}
	return v
}
