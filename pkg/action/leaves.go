package action

import (
	"strconv"

	"github.com/shieldcli/shield/internal/brief"
	"github.com/shieldcli/shield/internal/sorted"
)

// A PayloadLeaf is one text within a payload.
type PayloadLeaf struct {
	Path             string // position of the text in the payload, such as "headers.Accept" or "to[0]"
	NearestFieldName string // name of the innermost field that contains the text, such as "Accept" or "to"
	Text             string
	IsFieldName      bool // Text is the name of a field; only names that are not plain words are returned
}

// Leaves returns all strings of the payload in the order of field names, including strings in lists and
// objects, and field names that are not plain words. It stops after limit texts, or after 16·limit values of
// any kind; complete is then false.
func (a *Action) Leaves(limit int) (leaves []PayloadLeaf, complete bool) {
	w := leafWalk{maxLeaves: limit, valueVisitsLeft: 16 * limit}
	complete = w.walkObject("", a.Payload)
	return w.leaves, complete
}

type leafWalk struct {
	leaves          []PayloadLeaf
	maxLeaves       int
	valueVisitsLeft int // values that may still be visited
}

func (w *leafWalk) addLeaf(l PayloadLeaf) bool {
	if len(w.leaves) >= w.maxLeaves {
		return false
	}
	w.leaves = append(w.leaves, l)
	return true
}

func (w *leafWalk) walkValue(path, name string, v any) bool {
	if w.valueVisitsLeft--; w.valueVisitsLeft < 0 {
		return false
	}
	switch v := v.(type) {
	case string:
		return w.addLeaf(PayloadLeaf{Path: path, NearestFieldName: name, Text: v})
	case []any:
		for i, e := range v {
			if !w.walkValue(path+"["+strconv.Itoa(i)+"]", name, e) {
				return false
			}
		}
	case map[string]any:
		return w.walkObject(path+".", v)
	}
	return true
}

func (w *leafWalk) walkObject(prefix string, m map[string]any) bool {
	for _, name := range sorted.Keys(m) {
		path := prefix + brief.TruncateWithEllipsis(name, maxPathFieldNameBytes)
		if !isIdentifierLikeFieldName(name) && !w.addLeaf(PayloadLeaf{Path: path, NearestFieldName: name, Text: name, IsFieldName: true}) {
			return false
		}
		if !w.walkValue(path, name, m[name]) {
			return false
		}
	}
	return true
}

// maxPathFieldNameBytes is the maximum length of a name that is a plain word, in bytes, and of a name in a path,
// in characters. Longer names are shortened in a path: paths of sixty names of a megabyte would not fit into
// memory.
const maxPathFieldNameBytes = 64

// isIdentifierLikeFieldName reports whether a field's name is a plain word: at most 64 bytes of ASCII letters,
// digits and the characters _-.$@. [Action.Leaves] returns other names as texts, because an attack can be in a
// name as well as in a value.
func isIdentifierLikeFieldName(name string) bool {
	if len(name) > maxPathFieldNameBytes {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.', c == '$', c == '@':
		default:
			return false
		}
	}
	return true
}
