package command

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
)

// fileNamesReachingFindActions returns the names of the files on which find runs the actions, such
// as -exec or -delete, at the indexes actionArgIndexes of args, according to its -name tests; nil
// if any name is possible.
//
// The constant anyEmptyFolderMarker represents empty folders of any name. Only tests that always
// apply count: "-name a -o -name b" gives both names, "! -name a" none.
func fileNamesReachingFindActions(args []Word, actionArgIndexes ...int) []string {
	x, _, ok := parseFindExpression(args)
	if !ok {
		return nil
	}
	var out []string
	for _, place := range actionArgIndexes {
		names := x.fileNamesByActionArgIndex[place]
		if names == nil {
			return nil
		}
		out = append(out, names...)
	}
	sorted.SortStrings(out)
	return slices.Compact(out)
}

// parseFindExpression parses the expression of find and returns it, with the names for which it is true; nil for any
// name. ok is false if it cannot be parsed.
func parseFindExpression(args []Word) (x findCommandExpression, names []string, ok bool) {
	x = findCommandExpression{args: args, fileNamesByActionArgIndex: map[int][]string{}}
	for x.next = 1; x.next < len(args) && !args[x.next].IsGlobPattern && !beginsFindExpression(args[x.next].Text); x.next++ {
	}
	names = x.parseAlternatives(nil, 0)
	return x, names, !x.failed && x.next == len(args)
}

// FileNamesPrintedByFind returns the file names that find prints, as far as its arguments tell; nil if any name is possible.
func FileNamesPrintedByFind(args []Word) []string {
	x, names, ok := parseFindExpression(args)
	if i := slices.IndexFunc(args, func(w Word) bool { return w.Text == "-print" || w.Text == "-print0" }); i >= 0 {
		names = x.fileNamesByActionArgIndex[i]
	}
	if !ok || slices.Contains(names, anyEmptyFolderMarker) {
		return nil
	}
	return names
}

// anyEmptyFolderMarker represents empty folders, of any name, in a list of names.
const anyEmptyFolderMarker = "\x00"

// findsOnlyFolders reports whether find finds only folders.
func (x *findCommandExpression) findsOnlyFolders() bool {
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

// beginsFindExpression reports whether a word begins find's expression.
func beginsFindExpression(word string) bool {
	return word != "" && (word[0] == '-' || strings.Contains("(),!", word))
}

// A findCommandExpression is a find expression that is being parsed.
type findCommandExpression struct {
	args                      []Word
	next                      int
	fileNamesByActionArgIndex map[int][]string // index of an action such as -delete in args → names of the files that reach the action; nil for any
	failed                    bool             // the expression cannot be parsed
}

// maxBracketDepth is the maximum nesting of brackets in an expression, and maxFindFileNames the maximum number of names.
const (
	maxBracketDepth  = 64
	maxFindFileNames = 16
)

// parseAlternatives parses the expression between brackets: alternatives, separated by -o and commas. given are the possible
// names, nil for any; it returns the names for which the expression can be true.
func (x *findCommandExpression) parseAlternatives(given []string, depth int) []string {
	out := x.parseConjunction(given, depth)
	for x.next < len(x.args) && !x.failed {
		switch x.args[x.next].Text {
		case "-o", "-or":
			x.next++
			if side := x.parseConjunction(given, depth); out == nil || side == nil || len(out)+len(side) > maxFindFileNames {
				out = nil
			} else {
				out = slices.Concat(out, side)
			}
		case ",":
			x.next++
			out = x.parseConjunction(given, depth)
		default:
			return out
		}
	}
	return out
}

// parseConjunction parses tests and actions joined by "and".
func (x *findCommandExpression) parseConjunction(given []string, depth int) (out []string) {
	for x.next < len(x.args) && !x.failed {
		switch w := x.args[x.next]; w.Text {
		case "-o", "-or", ",", ")":
			return out
		case "-a", "-and":
			x.next++
		default:
			names := given
			if out != nil {
				names = out
			}
			if more := x.parseTerm(names, depth); out == nil {
				out = more
			}
		}
	}
	return out
}

// parseTerm parses one test or action, or an expression in brackets.
func (x *findCommandExpression) parseTerm(given []string, depth int) []string {
	at, w := x.next, x.args[x.next]
	x.next++
	x.failed = x.failed || w.IsGlobPattern || depth > maxBracketDepth
	switch w.Text {
	case "(":
		out := x.parseAlternatives(given, depth+1)
		x.failed = x.failed || x.next >= len(x.args) || x.args[x.next].Text != ")"
		x.next++
		return out
	case "!", "-not":
		if x.next < len(x.args) {
			x.parseTerm(given, depth+1)
		}
	case "-name":
		if x.next >= len(x.args) || x.args[x.next].IsGlobPattern || beginsFindExpression(x.args[x.next].Text) { // -name has no value, or its value is unknown or looks like the next test
			x.failed = true
			return nil
		}
		x.next++
		return []string{x.args[x.next-1].Text}
	case "-empty":
		if x.findsOnlyFolders() {
			return []string{anyEmptyFolderMarker}
		}
	case "-delete", "-print", "-print0":
		x.fileNamesByActionArgIndex[at] = given
	case "-exec", "-execdir", "-ok", "-okdir":
		x.fileNamesByActionArgIndex[at] = given
		for ; x.next < len(x.args); x.next++ {
			if text := x.args[x.next].Text; text == ";" || text == "+" && x.args[x.next-1].Text == "{}" {
				x.next++
				return nil
			}
		}
	default: // all other tests of find, and their values, count as not restricting the names of the found files, even those that restrict them, such as -iname
	}
	return nil
}
