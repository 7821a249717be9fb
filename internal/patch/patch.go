// Package patch parses patches and returns the changes to each file. It reads diffs, with or
// without git's headers, the apply_patch format, and search-and-replace blocks.
package patch

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// An Op is what a patch does to a file.
type Op int

// The operations.
const (
	Write  Op = iota // changes the file, or creates it
	Delete           // removes it
	Move             // renames the preceding file in the patch to this path, and changes it
)

// A File is what a patch does to one file.
type File struct {
	Op           Op
	Path         string // as the patch names it, without the a/ or b/ of git
	AddedLines   string // the lines that it adds
	RemovedLines string // removed lines that the patch does not also add in any file; "" if the file is deleted

	patchSectionLines []string // all lines of the file's section in the patch
}

// Apply returns the content of a file after the change, given its old content. ok is false if the
// old lines of a hunk are missing, or if they occur more than once and none of the places is at the
// line number that the hunk states.
func (f *File) Apply(old string) (text string, ok bool) {
	var out, pre, post []string
	left := strings.SplitAfter(old, "\n")
	if left[len(left)-1] == "" {
		left = left[:len(left)-1]
	}
	done, line := 0, 0 // number of lines already handled; first line of the hunk, from 1, or 0 if not stated
	flush := func() bool {
		defer func() { pre, post = nil, nil }()
		at := findHunk(left, pre, max(line-done, 0))
		switch {
		case len(pre)+len(post) == 0:
			return true
		case at < 0, at > len(left), line > 0 && line <= done:
			return false
		}
		out, left, done = append(append(out, left[:at]...), post...), left[at+len(pre):], done+at+len(pre)
		return true
	}
	lines := f.patchSectionLines
	for len(lines) > 0 && (strings.TrimSpace(lines[len(lines)-1]) == "" || strings.HasPrefix(lines[len(lines)-1], "*** ")) { // drop trailing lines that belong to no hunk
		lines = lines[:len(lines)-1]
	}
	for _, l := range append(slices.Clip(lines), "@@") {
		switch {
		case strings.HasPrefix(l, "@@"):
			if !flush() {
				return "", false
			}
			line = hunkOldStartLine(l)
		case l[0] == '+':
			post = append(post, l[1:])
		case l[0] == '-':
			pre = append(pre, l[1:])
		case l[0] == ' ', l == "\n", l == "\r\n":
			same := strings.TrimPrefix(l, " ")
			pre, post = append(pre, same), append(post, same)
		}
	}
	return strings.Join(append(out, left...), ""), true
}

// hunkOldStartLine returns the line of the old file at which a part of a patch begins, counted from 1, as its
// head "@@ -LINE,COUNT +LINE,COUNT @@" says it; 0 if the head says none.
func hunkOldStartLine(hunkHeader string) int {
	rest, ok := strings.CutPrefix(hunkHeader, "@@ -")
	if !ok {
		return 0
	}
	number, counts, _ := strings.Cut(rest, " ")
	number, count, _ := strings.Cut(number, ",")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || counts == "" {
		return 0
	}
	if count == "0" { // an empty old range: the new lines are inserted after line n
		n++
	}
	return n
}

// findHunk returns the index in lines at which the lines of a part of a patch begin; line is the
// line number that the part states, 0 if none. It is negative if they are missing or ambiguous. A
// part without lines begins at line, or else at the end.
func findHunk(lines, part []string, line int) int {
	if len(part) == 0 {
		if line > 0 {
			return line - 1
		}
		return len(lines)
	}
	found, n := -1, 0
	for at := 0; at+len(part) <= len(lines); at++ {
		if slices.EqualFunc(lines[at:at+len(part)], part, func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }) {
			if at == line-1 {
				return at
			}
			found, n = at, n+1
		}
	}
	if n > 1 {
		return -1
	}
	return found
}

// fileNameLinePrefixes are the prefixes of the lines that name a file, in the apply_patch format and in
// diffs. Hosts also accept apply_patch lines with white space before the prefix.
var fileNameLinePrefixes = [...]struct {
	text string
	op   Op
}{
	{"*** Add File: ", Write}, {"*** Update File: ", Write}, {"*** Move to: ", Move}, {"*** Delete File: ", Delete},
	{"+++ ", Write}, {"--- ", Write}, {"rename to ", Write}, {"copy to ", Write}, {"Index: ", Write},
	{"diff --git ", Write}, // the only line that names the file if a diff is binary or only changes file permissions
}

// applyPatchPrefixCount is how many of the first entries of fileNameLinePrefixes belong to the apply_patch
// format.
const applyPatchPrefixCount = 4

// parseFileNameLine reads a line that names a file; name is "" if it says that there is none.
func parseFileNameLine(line string) (op Op, name string, ok bool) {
	if bare := strings.TrimSpace(line); strings.HasPrefix(bare, "*** ") {
		line = bare
	}
	for i, h := range fileNameLinePrefixes {
		if name, is := strings.CutPrefix(line, h.text); is {
			if name = strings.TrimSpace(name); i < applyPatchPrefixCount {
				return h.op, name, true
			}
			if h.text == "diff --git " {
				name = newPathOfGitHeader(name)
			}
			if name, _, _ = strings.Cut(name, "\t"); name == "/dev/null" {
				name = ""
			}
			if plain, err := strconv.Unquote(name); err == nil && name[0] == '"' { // as git quotes it
				name = plain
			}
			if len(name) > 2 && (name[:2] == "a/" || name[:2] == "b/") {
				name = name[2:]
			}
			return h.op, name, true
		}
	}
	return Write, "", false
}

// newPathOfGitHeader returns the second of the two names of a line "diff --git a/NAME b/NAME".
func newPathOfGitHeader(oldAndNewPath string) string {
	for _, begin := range [...]string{` "b/`, " b/", " "} {
		if i := strings.LastIndex(oldAndNewPath, begin); i >= 0 {
			return oldAndNewPath[i+1:]
		}
	}
	return oldAndNewPath
}

// FindPatchedFiles returns what a patch changes, in its order.
func FindPatchedFiles(patch string) []File { return splitFiles(patch, parseFileNameLine)[1:] }

// splitFiles returns the files of a patch. The first element is not a file, but holds the lines
// before the first file.
func splitFiles(patch string, head func(line string) (Op, string, bool)) []File {
	out := []File{{}}
	for line := range strings.Lines(patch) {
		if op, name, ok := head(line); ok {
			if name != "" {
				out = append(out, File{Op: op, Path: name})
			}
			continue
		}
		f := &out[len(out)-1]
		f.patchSectionLines = append(f.patchSectionLines, line)
	}
	added := map[string]bool{}
	for _, f := range out[1:] { // out[0] holds the lines before the first file, which are not applied
		for _, line := range f.patchSectionLines {
			if line[0] == '+' {
				added[strings.TrimSpace(line[1:])] = true
			}
		}
	}
	for i := range out {
		var come, gone strings.Builder
		for _, line := range out[i].patchSectionLines {
			switch {
			case line[0] == '+':
				come.WriteString(line[1:])
			case line[0] == '-' && out[i].Op != Delete && !added[strings.TrimSpace(line[1:])]:
				gone.WriteString(line[1:])
			}
		}
		out[i].AddedLines, out[i].RemovedLines = come.String(), gone.String()
	}
	return out
}

// ParseApplyPatch parses a patch in the apply_patch format. It returns an error if a part of the
// patch does not clearly have this format.
func ParseApplyPatch(patch string) ([]File, error) {
	body, begins := strings.CutPrefix(strings.TrimSpace(strings.ReplaceAll(patch, "\r\n", "\n")), "*** Begin Patch\n")
	body, ends := strings.CutSuffix("\n"+body, "\n*** End Patch")
	if !begins || !ends {
		return nil, errors.New(`the patch does not begin with "*** Begin Patch" and end with "*** End Patch"; add these lines`)
	}
	files := splitFiles(body+"\n", func(line string) (Op, string, bool) {
		op, name, ok := parseFileNameLine(line)
		return op, name, ok && strings.HasPrefix(strings.TrimSpace(line), "*** ")
	})
	for i := range files {
		for _, line := range files[i].patchSectionLines {
			switch bare := strings.TrimSpace(line); {
			case strings.HasPrefix(line, "***") && bare != "*** End of File":
				return nil, errors.New("the patch has an unknown line that begins with ***; correct it")
			case i == 0 && bare != "":
				return nil, errors.New("the patch has a line before its first file; remove it")
			}
		}
		if files[i].Op == Move && (i == 1 || files[i-1].Op == Delete) {
			return nil, errors.New("a move in the patch names no target; write it")
		}
	}
	if len(files) == 1 {
		return nil, errors.New("the patch changes no file; name one")
	}
	return files[1:], nil
}

// RemovedAndAddedLines returns the removed and the added lines of a text that is a diff or has whole
// SEARCH/REPLACE blocks. isDiff is false for other texts.
func RemovedAndAddedLines(diffText string) (removedLines, addedLines string, isDiff bool) {
	if removedLines, addedLines, isDiff = linesOfSearchBlocks(diffText); isDiff {
		return removedLines, addedLines, true
	}
	if !strings.HasPrefix(diffText, "@@") && !strings.Contains(diffText, "\n@@") {
		return "", "", false
	}
	var out [2]strings.Builder
	for line := range strings.Lines(diffText) { // the lines of all files in the diff
		if i := strings.IndexByte("-+", line[0]); i >= 0 {
			out[i].WriteString(line[1:])
		}
	}
	return out[0].String(), out[1].String(), true
}

// linesOfSearchBlocks returns the old and the new lines of the SEARCH/REPLACE blocks of a text. hasBlock is
// false if the text has no whole block.
func linesOfSearchBlocks(text string) (oldLines, newLines string, hasBlock bool) {
	var out [2]strings.Builder
	in := -1
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, " \r\n")
		switch {
		case isBlockMark(bare, "-<", " SEARCH"):
			in = 0
		case in == 0 && isBlockMark(bare, "=", ""):
			in = 1
		case isBlockMark(bare, "+>", " REPLACE"):
			hasBlock = hasBlock || in == 1
			in = -1
		case in >= 0:
			out[in].WriteString(line)
		}
	}
	return out[0].String(), out[1].String(), hasBlock
}

// isBlockMark reports whether a line consists of at least three of the given signs, and then a word.
func isBlockMark(line, signs, word string) bool {
	marks, ok := strings.CutSuffix(line, word)
	return ok && len(marks) > 2 && strings.Trim(marks, signs) == ""
}

// DifferentLines returns the lines that only the old text has, and those that only the new text
// has, without surrounding blanks. If a line occurs 5 times in one text and 3 times in the other,
// it is returned twice.
func DifferentLines(old, text string) (gone, come []string) {
	more := map[string]int{}
	for line := range strings.Lines(old) {
		more[strings.TrimSpace(line)]++
	}
	for line := range strings.Lines(text) {
		more[strings.TrimSpace(line)]--
	}
	left := func(text string, sign int) (out []string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && more[line]*sign > 0 {
				more[line] -= sign
				out = append(out, line)
			}
		}
		return out
	}
	return left(old, 1), left(text, -1)
}
