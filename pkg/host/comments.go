package host

import "bytes"

// plain returns a settings text as strict JSON of the same length: a byte
// order mark, comments, and commas before a closing bracket become spaces.
// Offsets are the same in both, so that people's files are searched in the one
// and changed in the other.
func plain(doc []byte) []byte {
	out := bytes.Clone(doc)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	if bytes.HasPrefix(out, []byte("\ufeff")) {
		blank(0, len("\ufeff"))
	}
	last, comma := byte('{'), 0 // what came last, and where if it is a comma behind a value
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			last = c
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			end := len(out)
			if n := bytes.IndexByte(out[i:], '\n'); n >= 0 {
				end = i + n
			}
			blank(i, end)
			i = end - 1
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			n := bytes.Index(out[i+2:], []byte("*/"))
			if n < 0 {
				return out // not JSON, with comments or without
			}
			end := i + 2 + n + 2
			blank(i, end)
			i = end - 1
		case isSpace(c):
		case c == ',' && last != ',' && last != '{' && last != '[':
			last, comma = c, i
		default:
			if (c == '}' || c == ']') && last == ',' && comma > 0 {
				out[comma] = ' '
			}
			last, comma = c, 0
		}
	}
	return out
}
