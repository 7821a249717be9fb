package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A phrase is one that texts for people no longer use.
type phrase struct{ words, better string }

// TestRetiredWords demands that no text that a person reads holds a phrase of
// testdata/retired-words.txt.
func TestRetiredWords(t *testing.T) {
	t.Parallel()
	phrases := retired(t)
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "build", "golden", "shared", "training"}, path):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		text := readable(t, filepath.ToSlash(path))
		if text != nil {
			files++
		}
		for _, p := range phrases {
			for _, line := range text.find(p.words) {
				t.Errorf("%s:%d: %q; write: %s", path, line, p.words, p.better)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 400 {
		t.Errorf("only %d files were read", files)
	}
}

// TestRetiredWordsAreFound checks the search itself.
func TestRetiredWordsAreFound(t *testing.T) {
	t.Parallel()
	text := goText("x.go", []byte("package x\n\n// A path that Is\n// no path, and there is no path.\nvar x = \"this is \" +\n\t\"no\\npath\" // is nothing\nvar is, no, path = `is no pathway`, 1, 2\n"))
	if got := text.find("is no path"); !slices.Equal(got, []int{3, 5}) {
		t.Errorf("found in lines %v of %q", got, text.plain.String())
	}
	if got := plainText([]byte("a\n\nis no\n  path.\n")).find("is no path"); !slices.Equal(got, []int{3}) {
		t.Errorf("found in lines %v", got)
	}
}

// retired reads the list of phrases.
func retired(t *testing.T) []phrase {
	t.Helper()
	list, err := os.ReadFile("testdata/retired-words.txt")
	if err != nil {
		t.Fatal(err)
	}
	var phrases []phrase
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, better, ok := strings.Cut(line, " -> ")
		if !ok || words == "" || better == "" {
			t.Fatalf("testdata/retired-words.txt: %q is not PHRASE -> BETTER", line)
		}
		phrases = append(phrases, phrase{strings.ToLower(words), better})
	}
	return phrases
}

// readable returns what people read in a file, or nil if that is nothing: the
// comments and strings of Go, documents, man pages and YAML files.
func readable(t *testing.T, path string) *prose {
	t.Helper()
	read := plainText
	switch {
	case strings.HasSuffix(path, "_gen.go"), strings.HasSuffix(path, "_test.go"):
		return nil
	case strings.HasSuffix(path, ".go"):
		read = func(src []byte) *prose { return goText(path, src) }
	case strings.HasSuffix(path, ".md"), strings.HasPrefix(path, "man/"):
	case strings.HasSuffix(path, ".yaml") && !strings.HasPrefix(path, "testdata/"):
	default:
		return nil
	}
	src, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return read(src)
}

// A prose is text in lower case with one blank for all white space. Parts that
// do not belong together are apart by a NUL.
type prose struct {
	plain  strings.Builder
	blank  bool
	starts []int // of each piece, in plain
	lines  []int // of each piece, in the file
}

// add appends text that begins in a line of the file.
func (p *prose) add(line int, text string) {
	for part := range strings.Lines(text) {
		p.starts, p.lines = append(p.starts, p.plain.Len()), append(p.lines, line)
		for _, r := range part {
			if unicode.IsSpace(r) {
				p.blank = true
				continue
			}
			if p.blank {
				p.plain.WriteByte(' ')
			}
			p.blank = false
			p.plain.WriteRune(unicode.ToLower(r))
		}
		line++
	}
}

// find returns the lines of the file in which a phrase begins. "is no" and "are
// no" may be after "there".
func (p *prose) find(words string) (lines []int) {
	if p == nil {
		return nil
	}
	text := p.plain.String()
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return lines
		}
		start := at + i
		at = start + len(words)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[at:])
		no := strings.HasPrefix(words, "is no ") || strings.HasPrefix(words, "are no ")
		if letter(before) || letter(after) || no && strings.HasSuffix(text[:start], "there ") {
			continue
		}
		piece := sort.SearchInts(p.starts, start+1) - 1
		lines = append(lines, p.lines[piece])
	}
}

func letter(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// plainText returns all text of a file, less what begins lines of comments,
// headings and quotations.
func plainText(src []byte) *prose {
	p := &prose{}
	line := 0
	for text := range strings.Lines(string(src)) {
		line++
		p.add(line, strings.TrimLeft(text, " \t#>"))
		p.blank = true
	}
	return p
}

// goText returns the comments and strings of a Go file. Comments on lines that
// follow each other belong together, and so do strings that are joined by "+".
func goText(path string, src []byte) *prose {
	p := &prose{}
	set := token.NewFileSet()
	file := set.AddFile(path, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	comment, joined := -1, false
	for {
		pos, kind, text := s.Scan()
		line := file.Line(pos)
		switch kind {
		case token.EOF:
			return p
		case token.COMMENT:
			if line != comment+1 {
				p.plain.WriteByte(0)
			}
			p.add(line, strings.TrimPrefix(text, "//"))
			p.blank = true
			comment, joined = line+strings.Count(text, "\n"), false
		case token.STRING:
			value, err := strconv.Unquote(text)
			if err != nil {
				value = text
			}
			if !joined {
				p.plain.WriteByte(0)
			}
			if text[0] == '"' { // its line feeds are not the file's
				value = strings.ReplaceAll(value, "\n", " ")
			}
			p.add(line, value)
			joined = true
		case token.ADD:
		default:
			joined = false
		}
	}
}

// unclear are words that errors and help do not use: a reader must not have to find out who or what is meant.
var unclear = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|it is not known|to be had|anew|(speak|say|said|told|tell)s? of|(hand|pass)(s|es|ed)? (on|over)|stands? in|takes? it for|(there )?(is|are) no [a-z]+)\b`)

// TestMessageForm checks the form of what errors, flags and commands say, all over the code.
func TestMessageForm(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "build", "golden", "measure", "release", "shared", "testdata", "training"}, path):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_gen.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			kind, text := message(n)
			if text == "" {
				return true
			}
			counts[kind]++
			if fault := malformed(kind, text); fault != "" {
				t.Errorf("%s: %s %q: %s", set.Position(n.Pos()), kind, text, fault)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if counts["error"] < 1000 || counts["usage"] < 150 || counts["description"] < 40 {
		t.Errorf("only %v were read", counts)
	}
	for _, bad := range [][2]string{
		{"error", "Cannot read it"}, {"error", "cannot read it."}, {"error", "nobody reads it"}, {"error", "x is no file"}, {"error", strings.Repeat("long ", 60)},
		{"usage", "Print it"}, {"usage", "print it."}, {"usage", strings.Repeat("long ", 40)}, {"description", "Prints it"}, {"description", "whoever asks gets it."},
	} {
		if malformed(bad[0], bad[1]) == "" {
			t.Errorf("%s %q has no fault", bad[0], bad[1])
		}
	}
}

// message returns the kind and the text of an error, a flag's or command's usage, or a command's description.
func message(n ast.Node) (kind, text string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 {
			return "", ""
		}
		if of, ok := f.X.(*ast.Ident); ok && (of.Name == "errors" && f.Sel.Name == "New" || of.Name == "fmt" && f.Sel.Name == "Errorf") {
			return "error", literal(n.Args[0])
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Usage" || key.Name == "Description") {
			return strings.ToLower(key.Name), literal(n.Value)
		}
	}
	return "", ""
}

// literal returns the text of a string, or of several that are joined; "" if a part is computed.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		if x, y := literal(e.X), literal(e.Y); x != "" && y != "" {
			return x + y
		}
	}
	return ""
}

// malformed returns what is wrong with the form of a message; "" for nothing.
func malformed(kind, text string) string {
	most := map[string]int{"error": 260, "usage": 170, "description": 2000}[kind]
	first, rest, _ := strings.Cut(text, " ")
	capital := first != "" && unicode.IsUpper(rune(first[0])) && rest != "" && len(first) > 1 && unicode.IsLower(rune(first[1]))
	ends := strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "…") && !strings.HasSuffix(text, "..")
	switch {
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("more than %d characters", most)
	case vague(text) != "":
		return "says " + strconv.Quote(vague(text))
	case kind != "description" && capital && !slices.Contains(names, first):
		return "begins with a capital"
	case kind != "description" && ends:
		return "ends with a full stop"
	case kind == "description" && !ends:
		return "does not end with a full stop"
	}
	return ""
}

// vague returns the first unclear words of a text; "" if there are none.
func vague(text string) string {
	for _, words := range unclear.FindAllString(text, -1) {
		if !strings.HasPrefix(words, "there ") && !strings.HasSuffix(words, " no longer") {
			return words
		}
	}
	return ""
}

// names begin messages although they have a capital.
var names = []string{"Telegram", "Slack", "Discord", "PowerShell", "Claude"}
