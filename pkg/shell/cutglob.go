package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/shieldcli/shield/pkg/shell/internal/abstract"
)

// A globPath is a path pattern, split before its last name: removing or replacing an extension changes only that
// name.
type globPath struct{ dir, name string }

// splitGlobPath splits a path pattern before its last name. ok is false if there is no last name, if it contains ** and is
// not ** alone below a folder, or if the pattern contains backslashes, braces or "!".
func splitGlobPath(v abstract.Value) (g globPath, ok bool) {
	if !v.IsPattern || v.FullyUnknown || strings.ContainsAny(v.Text, "\\{}!") {
		return globPath{}, false
	}
	i := strings.LastIndexByte(v.Text, '/') + 1
	g = globPath{v.Text[:i], v.Text[i:]}
	if v.IsPathList && !strings.Contains(g.name, "**") { // in a list of paths, only the last one changes
		g.name = "*"
	}
	return g, g.matchesWholeFolder() || g.name != "" && !strings.Contains(g.name, "**")
}

// matchesWholeFolder reports whether a path matches everything below a folder, or a list of such paths.
func (g globPath) matchesWholeFolder() bool { return g.name == "**" && g.dir != "" }

// isFixedGlob reports whether a glob has no wildcards.
func isFixedGlob(glob string) bool { return !strings.ContainsAny(glob, "*?[") }

// literalNamePart returns the literal text of a value that is part of a file name, without slashes; false for other
// values.
func literalNamePart(v abstract.Value) (string, bool) {
	return v.Text, v.Known() && v.Text != "" && isFixedGlob(v.Text) && !strings.ContainsAny(v.Text, "/\\")
}

// trimGlob computes ${x#pat}, ${x##pat}, ${x%pat} and ${x%%pat} for a path pattern. It returns
// false if the result is unknown.
func trimGlob(v, pat abstract.Value, op syntax.ParExpOperator) (abstract.Value, bool) {
	g, ok := splitGlobPath(v)
	if !ok {
		return v, false
	}
	end, literal := literalNamePart(pat)
	suffix := op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
	switch {
	case g.matchesWholeFolder():
		return v, suffix && literal
	case op == syntax.RemLargePrefix && pat.AsPattern() == "*/":
		v.Text = g.name
	case suffix && literal:
		v.Text = g.dir + trimGlobSuffix(g.name, end)
	case suffix && pat.AsPattern() == ".*" && strings.Contains(g.name, ".") && !strings.Contains(g.name, "[") &&
		(op == syntax.RemSmallSuffix || isFixedGlob(g.dir) && !strings.Contains(g.dir, ".")):
		v.Text = g.dir + "*"
	case op == syntax.RemSmallPrefix && pat.Known() && isFixedGlob(pat.Text) && strings.HasPrefix(v.Text, pat.Text) && len(pat.Text) < len(v.Text):
		v.Text = v.Text[len(pat.Text):]
	default:
		return v, false
	}
	return v, true
}

// trimGlobSuffix removes a suffix from the pattern of a file name. It returns *, which matches any
// name, if the pattern does not end in the suffix, has nothing before it, or contains [.
func trimGlobSuffix(name, end string) string {
	if rest, ok := strings.CutSuffix(name, end); ok && rest != "" && !strings.Contains(name, "[") {
		return rest
	}
	return "*"
}

// replaceInGlob computes ${x/orig/with} for a path pattern. It returns false if the result is
// unknown.
func replaceInGlob(v, orig, with abstract.Value) (abstract.Value, bool) {
	g, ok := splitGlobPath(v)
	old, literal := literalNamePart(orig)
	if _, safe := literalNamePart(with); !ok || !literal || !safe && with.Text != "" || !isFixedGlob(g.dir) || strings.Contains(g.dir, old) {
		return v, false
	}
	if !g.matchesWholeFolder() {
		v.Text = g.dir + "*"
	}
	return v, true
}

// computeGlobName computes basename and dirname of a path pattern.
func computeGlobName(base string, operands []abstract.Value) (abstract.Value, bool) {
	v := operands[0]
	g, ok := splitGlobPath(v)
	if !ok || g.matchesWholeFolder() {
		return v, false
	}
	v.From.Start, v.From.End = 0, 0
	if base == "basename" {
		if v.Text = g.name; len(operands) == 2 {
			end, literal := literalNamePart(operands[1])
			if !literal {
				return v, false
			}
			v.Text = trimGlobSuffix(g.name, end)
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
	case isFixedGlob(dir):
		return abstract.Lit(dir + "\n"), true
	default:
		v.Text = dir
		return v, !strings.HasSuffix(dir, "**")
	}
}
