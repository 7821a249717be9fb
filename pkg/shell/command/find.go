package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
)

// found returns the file names, given by -name tests, for which find reaches the arguments at places, which run a
// command or delete; nil if any name is possible.
//
// Empty folders are emptyName. Only tests that always apply count: "-name a -o -name b" gives both names, "! -name
// a" none.
func found(args []Word, places ...int) []string {
	x, _, ok := readExpression(args)
	if !ok {
		return nil
	}
	var out []string
	for _, place := range places {
		names := x.reached[place]
		if names == nil {
			return nil
		}
		out = append(out, names...)
	}
	sorted.Strings(out)
	return slices.Compact(out)
}

// readExpression parses the expression of find and returns it, with the names for which it is true; nil for any
// name. ok is false if it cannot be parsed.
func readExpression(args []Word) (x expression, names []string, ok bool) {
	x = expression{args: args, reached: map[int][]string{}}
	for x.i = 1; x.i < len(args) && !args[x.i].Pattern && !beginsExpression(args[x.i].Text); x.i++ {
	}
	names = x.list(nil, 0)
	return x, names, !x.failed && x.i == len(args)
}

// FoundNames returns the file names that find prints, as far as its arguments tell; nil if any name is possible.
func FoundNames(args []Word) []string {
	x, names, ok := readExpression(args)
	if i := slices.IndexFunc(args, func(w Word) bool { return w.Text == "-print" || w.Text == "-print0" }); i >= 0 {
		names = x.reached[i]
	}
	if !ok || slices.Contains(names, emptyName) {
		return nil
	}
	return names
}

// emptyName represents empty folders, of any name, in a list of names.
const emptyName = "\x00"

// folders reports whether find finds only folders.
func (x *expression) folders() bool {
	only := false
	for i, w := range x.args {
		switch w.Text {
		case "-o", "-or", ",":
			return false
		case "-type":
			only = only || i+1 < len(x.args) && x.args[i+1].Text == "d" && x.args[i-1].Text != "!" && x.args[i-1].Text != "-not"
		}
	}
	return only
}

// beginsExpression reports whether a word begins find's expression.
func beginsExpression(word string) bool {
	return word != "" && (word[0] == '-' || strings.Contains("(),!", word))
}

// An expression is a find expression that is being parsed.
type expression struct {
	args    []Word
	i       int
	reached map[int][]string // names for which an action is reached, by its argument index
	failed  bool             // the expression cannot be parsed
}

// maxNested is the maximum nesting of brackets in an expression, and maxFound the maximum number of names.
const (
	maxNested = 64
	maxFound  = 16
)

// list parses the expression between brackets: alternatives, separated by -o and commas. given are the possible
// names, nil for any; it returns the names for which the expression can be true.
func (x *expression) list(given []string, depth int) []string {
	out := x.all(given, depth)
	for x.i < len(x.args) && !x.failed {
		switch x.args[x.i].Text {
		case "-o", "-or":
			x.i++
			if side := x.all(given, depth); out == nil || side == nil || len(out)+len(side) > maxFound {
				out = nil
			} else {
				out = slices.Concat(out, side)
			}
		case ",":
			x.i++
			out = x.all(given, depth)
		default:
			return out
		}
	}
	return out
}

// all parses tests and actions joined by "and".
func (x *expression) all(given []string, depth int) (out []string) {
	for x.i < len(x.args) && !x.failed {
		switch w := x.args[x.i]; w.Text {
		case "-o", "-or", ",", ")":
			return out
		case "-a", "-and":
			x.i++
		default:
			names := given
			if out != nil {
				names = out
			}
			if more := x.term(names, depth); out == nil {
				out = more
			}
		}
	}
	return out
}

// term parses one test or action, or an expression in brackets.
func (x *expression) term(given []string, depth int) []string {
	at, w := x.i, x.args[x.i]
	x.i++
	x.failed = x.failed || w.Pattern || depth > maxNested
	switch w.Text {
	case "(":
		out := x.list(given, depth+1)
		x.failed = x.failed || x.i >= len(x.args) || x.args[x.i].Text != ")"
		x.i++
		return out
	case "!", "-not":
		if x.i < len(x.args) {
			x.term(given, depth+1)
		}
	case "-name":
		if x.i >= len(x.args) || x.args[x.i].Pattern || beginsExpression(x.args[x.i].Text) { // the value may be missing
			x.failed = true
			return nil
		}
		x.i++
		return []string{x.args[x.i-1].Text}
	case "-empty":
		if x.folders() {
			return []string{emptyName}
		}
	case "-delete", "-print", "-print0":
		x.reached[at] = given
	case "-exec", "-execdir", "-ok", "-okdir":
		x.reached[at] = given
		for ; x.i < len(x.args); x.i++ {
			if text := x.args[x.i].Text; text == ";" || text == "+" && x.args[x.i-1].Text == "{}" {
				x.i++
				return nil
			}
		}
	default: // other tests take their values as further words, which begin no test
	}
	return nil
}
