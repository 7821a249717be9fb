package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A globPath is a path pattern, split before its last name: removing or replacing an extension changes only that
// name.
type globPath struct{ dir, name string }

// splitGlobPath splits a path pattern before its last name. ok is false if the last name is empty or
// contains **, unless the pattern has the form FOLDER/**, or if the pattern contains backslashes, braces
// or "!".
func splitGlobPath(v abstract.Value) (g globPath, ok bool) {
	if !v.IsGlobPattern || v.FullyUnknown || strings.ContainsAny(v.Text, "\\{}!") {
		return globPath{}, false
	}
	i := strings.LastIndexByte(v.Text, '/') + 1
	g = globPath{v.Text[:i], v.Text[i:]}
	if v.HasPathPerLine && !strings.Contains(g.name, "**") { // of several paths in a text, an operation changes only one, so any name remains possible
		g.name = "*"
	}
	return g, g.matchesWholeFolder() || g.name != "" && !strings.Contains(g.name, "**")
}

// matchesWholeFolder reports whether the pattern is a folder followed by **, which matches every
// path below the folder.
func (g globPath) matchesWholeFolder() bool { return g.name == "**" && g.dir != "" }

// hasNoWildcards reports whether a glob has no wildcards.
func hasNoWildcards(glob string) bool { return !strings.ContainsAny(glob, "*?[") }

// literalTextWithoutSlashOrWildcard returns the literal text of a value that is part of a file name, without slashes; false for other
// values.
func literalTextWithoutSlashOrWildcard(v abstract.Value) (string, bool) {
	return v.Text, v.IsLiteral() && v.Text != "" && hasNoWildcards(v.Text) && !strings.ContainsAny(v.Text, "/\\")
}

// trimPathPatternExpansion computes ${x#pat}, ${x##pat}, ${x%pat} and ${x%%pat} for a path pattern. It returns
// false if the result is unknown.
func trimPathPatternExpansion(pathPattern, trimmedPattern abstract.Value, op syntax.ParExpOperator) (abstract.Value, bool) {
	g, ok := splitGlobPath(pathPattern)
	if !ok {
		return pathPattern, false
	}
	end, literal := literalTextWithoutSlashOrWildcard(trimmedPattern)
	suffix := op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
	switch {
	case g.matchesWholeFolder():
		return pathPattern, suffix && literal
	case op == syntax.RemLargePrefix && trimmedPattern.AsPattern() == "*/":
		pathPattern.Text = g.name
	case suffix && literal:
		pathPattern.Text = g.dir + trimSuffixFromNamePattern(g.name, end)
	case suffix && trimmedPattern.AsPattern() == ".*" && strings.Contains(g.name, ".") && !strings.Contains(g.name, "[") &&
		(op == syntax.RemSmallSuffix || hasNoWildcards(g.dir) && !strings.Contains(g.dir, ".")):
		pathPattern.Text = g.dir + "*"
	case op == syntax.RemSmallPrefix && trimmedPattern.IsLiteral() && hasNoWildcards(trimmedPattern.Text) && strings.HasPrefix(pathPattern.Text, trimmedPattern.Text) && len(trimmedPattern.Text) < len(pathPattern.Text):
		pathPattern.Text = pathPattern.Text[len(trimmedPattern.Text):]
	default:
		return pathPattern, false
	}
	return pathPattern, true
}

// trimSuffixFromNamePattern removes a suffix from the pattern of a file name. It returns *, which matches any
// name, if the pattern does not end in the suffix, has nothing before it, or contains [.
func trimSuffixFromNamePattern(namePattern, suffix string) string {
	if rest, ok := strings.CutSuffix(namePattern, suffix); ok && rest != "" && !strings.Contains(namePattern, "[") {
		return rest
	}
	return "*"
}

// replaceInGlob computes ${x/orig/with} for a path pattern. It returns false if the result is
// unknown.
func replaceInGlob(v, orig, with abstract.Value) (abstract.Value, bool) {
	g, ok := splitGlobPath(v)
	old, literal := literalTextWithoutSlashOrWildcard(orig)
	if _, safe := literalTextWithoutSlashOrWildcard(with); !ok || !literal || !safe && with.Text != "" || !hasNoWildcards(g.dir) || strings.Contains(g.dir, old) {
		return v, false
	}
	if !g.matchesWholeFolder() {
		v.Text = g.dir + "*"
	}
	return v, true
}

// computeGlobBasenameOrDirname computes basename and dirname of a path pattern.
func computeGlobBasenameOrDirname(program string, operands []abstract.Value) (abstract.Value, bool) {
	v := operands[0]
	g, ok := splitGlobPath(v)
	if !ok || g.matchesWholeFolder() {
		return v, false
	}
	v.SourceSpan.Start, v.SourceSpan.End = 0, 0
	if program == "basename" {
		if v.Text = g.name; len(operands) == 2 {
			end, literal := literalTextWithoutSlashOrWildcard(operands[1])
			if !literal {
				return v, false
			}
			v.Text = trimSuffixFromNamePattern(g.name, end)
		}
		return v, len(operands) < 3
	}
	switch dir := strings.TrimRight(g.dir, "/"); {
	case len(operands) > 1:
		return v, false
	case g.dir == "":
		return abstract.Lit(".\n"), true
	case dir == "":
		return abstract.Lit("/\n"), true
	case hasNoWildcards(dir):
		return abstract.Lit(dir + "\n"), true
	default:
		v.Text = dir
		return v, !strings.HasSuffix(dir, "**")
	}
}
