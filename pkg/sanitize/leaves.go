package sanitize

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// maxResultNestingDepth is the maximum nesting of a result.
const maxResultNestingDepth = 128

// A resultLeaf is one string of a result, or a member name.
type resultLeaf struct {
	jsonPointer      string // JSON pointer
	isMemberName     bool
	text             string
	joinedTextOffset int // offset in the joined text
	replacedSpans    []replacedSpan
}

// collectLeaves adds the strings of a value as leaves, members sorted by name, and returns their total
// length.
func (r *Report) collectLeaves(v any, jsonPointer string, depth int) (textBytes int, exceedsMaxDepth bool) {
	if depth > maxResultNestingDepth {
		return 0, true
	}
	add := func(key bool, where, s string) {
		if s != "" {
			r.leaves = append(r.leaves, resultLeaf{jsonPointer: where, isMemberName: key, text: s})
		}
		textBytes += len(s) + 1
	}
	switch v := v.(type) {
	case string:
		add(false, jsonPointer, v)
	case []any:
		for i, e := range v {
			n, d := r.collectLeaves(e, jsonPointer+"/"+strconv.Itoa(i), depth+1)
			textBytes, exceedsMaxDepth = textBytes+n, exceedsMaxDepth || d
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			at := jsonPointer + "/" + pointerEscaper.Replace(k)
			add(true, at, k)
			n, d := r.collectLeaves(v[k], at, depth+1)
			textBytes, exceedsMaxDepth = textBytes+n, exceedsMaxDepth || d
		}
	}
	return textBytes, exceedsMaxDepth
}

// pointerEscaper escapes the name of a member as RFC 6901 says.
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// joinLeaves returns all strings as one text, one per line.
func (r *Report) joinLeaves(total int) string {
	if len(r.leaves) == 1 {
		return r.leaves[0].text
	}
	var b strings.Builder
	b.Grow(total)
	for i := range r.leaves {
		r.leaves[i].joinedTextOffset = b.Len()
		b.WriteString(r.leaves[i].text)
		b.WriteByte('\n')
	}
	return b.String()
}

// leafAtJoinedOffset returns the string or member name of the result that contains a byte offset of the text
// that joinLeaves returned. For the newline after a string it returns that string.
func (r *Report) leafAtJoinedOffset(joinedTextOffset int) *resultLeaf {
	return &r.leaves[sort.Search(len(r.leaves)-1, func(i int) bool { return r.leaves[i+1].joinedTextOffset > joinedTextOffset })]
}

// assignReplacedSpansToLeaves assigns spans of the joined text of a result to the strings and member names (the
// leaves) that contain them. A span over several leaves is split.
func (r *Report) assignReplacedSpansToLeaves(spans []replacedSpan) {
	for _, sp := range spans {
		for from := sp.start; from < sp.end; {
			l := r.leafAtJoinedOffset(from)
			end := min(sp.end, l.joinedTextOffset+len(l.text))
			if from < end {
				l.replacedSpans = append(l.replacedSpans, replacedSpan{from - l.joinedTextOffset, end - l.joinedTextOffset, sp.replacement})
			}
			from = max(end, from) + 1
		}
	}
}

func sortedKeys(v map[string]any) []string { return slices.Sorted(maps.Keys(v)) }
