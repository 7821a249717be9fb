package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// An actionApplier executes the simple parts of actions that later ones depend on: writes of file tools,
// here-documents of cat, and cd, mkdir, rm, git rm, mv, git add and commit with literal words, all
// below one folder. It runs nothing else.
type actionApplier struct{ home string }

// absolutePath returns a path as an absolute path.
func absolutePath(cwd, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// writeHomeFile writes a file below the home folder. A failed write is ignored.
func (w *actionApplier) writeHomeFile(cwd, path, text string) {
	if f := absolutePath(cwd, path); strings.HasPrefix(f, w.home+"/") {
		_ = writeFile(f, text)
	}
}

// applyAction executes the simple parts of an action.
func (w *actionApplier) applyAction(s *step, root string) {
	cwd := cmp.Or(s.CWD, root)
	switch s.Type {
	case "write_file":
		path, content := s.text("path"), s.text("content")
		if path == "" {
			return
		}
		if s.Old == nil {
			w.writeHomeFile(cwd, path, content)
			return
		}
		have, err := os.ReadFile(absolutePath(cwd, path))
		switch {
		case err != nil:
			content = *s.Old + "\n" + content
		case *s.Old != "" && strings.Contains(string(have), *s.Old):
			content = strings.Replace(string(have), *s.Old, content, 1)
		default:
			content = string(have) + "\n" + content
		}
		w.writeHomeFile(cwd, path, content)
	case "execute_command":
		command := s.text("command")
		for _, d := range findHereDocs(command) {
			if d.file != "" {
				w.writeHomeFile(cwd, d.file, d.text+"\n")
			}
		}
		w.runSimpleCommands(withoutHereDocs(command), cwd)
	}
}

var hereDocumentPattern = regexp.MustCompile(`(?:cat\s*>\s*(\S+)\s*)?<<-?\s*['"\\]?(\w+)['"]?\n`)

// A hereDoc is a here-document of a command.
type hereDoc struct {
	file     string // the file that cat writes it to; "" if none
	text     string
	from, to int
}

// findHereDocs returns the here-documents of a command.
func findHereDocs(command string) (out []hereDoc) {
	for at := 0; ; {
		m := hereDocumentPattern.FindStringSubmatchIndex(command[at:])
		if m == nil {
			return out
		}
		begin, tag := at+m[1], command[at+m[4]:at+m[5]]
		end := regexp.MustCompile(`\n` + regexp.QuoteMeta(tag) + `\b`).FindStringIndex(command[begin-1:])
		if end == nil {
			at = begin
			continue
		}
		d := hereDoc{from: at + m[0], to: begin - 1 + end[1]}
		if stop := begin - 1 + end[0]; stop > begin {
			d.text = command[begin:stop]
		}
		if m[2] >= 0 {
			d.file = strings.Trim(command[at+m[2]:at+m[3]], `'"`)
		}
		out = append(out, d)
		at = d.to
	}
}

func withoutHereDocs(command string) string {
	var b strings.Builder
	at := 0
	for _, d := range findHereDocs(command) {
		b.WriteString(command[at:d.from])
		at = d.to
	}
	return b.String() + command[at:]
}

var (
	commandSeparator = regexp.MustCompile(`&&|\|\||;|\n`)
	redirectPattern  = regexp.MustCompile(`^(?:\d?>|/dev/null|&)`)
)

// runSimpleCommands executes the commands with literal words of a command line.
func (w *actionApplier) runSimpleCommands(command, cwd string) {
	for _, part := range commandSeparator.Split(command, -1) {
		words, ok := splitWords(part)
		if !ok || strings.ContainsAny(part, "|`$(") {
			continue
		}
		var plain []string
		for _, word := range words {
			if !redirectPattern.MatchString(word) {
				plain = append(plain, word)
			}
		}
		if len(plain) > 0 {
			cwd = w.runCommand(plain, cwd)
		}
	}
}

// runCommand executes one command of literal words and returns the working folder after it.
func (w *actionApplier) runCommand(words []string, cwd string) string {
	var inside, flags []string
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") {
			flags = append(flags, word)
			continue
		}
		if strings.HasPrefix(word, "~") {
			word = w.home + word[1:]
		}
		path := absolutePath(cwd, word)
		found, err := filepath.Glob(path)
		if err != nil || len(found) == 0 {
			found = []string{path}
		}
		for _, f := range found {
			if strings.HasPrefix(f, w.home+"/") {
				inside = append(inside, f)
			}
		}
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	workspace := strings.HasPrefix(cwd, w.home+"/")
	switch {
	case words[0] == "cd" && len(inside) > 0:
		if info, err := os.Stat(inside[0]); err == nil && info.IsDir() {
			return inside[0]
		}
	case words[0] == "mkdir":
		for _, f := range inside {
			_ = os.MkdirAll(f, 0o755)
		}
	case words[0] == "rm", words[0] == "git" && second == "rm" && !strings.Contains(strings.Join(flags, " "), "--cached"):
		for _, f := range inside {
			_ = os.RemoveAll(f)
		}
	case words[0] == "mv" && len(inside) == 2:
		to := inside[1]
		if info, err := os.Stat(to); err == nil && info.IsDir() {
			to = filepath.Join(to, filepath.Base(inside[0]))
		}
		_ = os.Rename(inside[0], to)
	case words[0] == "git" && second == "commit" && workspace:
		_ = runGit(cwd, "commit", "-q", "-am", "x")
	case words[0] == "git" && second == "add" && workspace:
		_ = runGit(cwd, "add", "-A")
	}
	return cwd
}

// splitWords splits a command into words and removes quotes, without expansion.
func splitWords(s string) (words []string, ok bool) {
	var b strings.Builder
	word, quote := false, rune(0)
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, word = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				b.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, word = r, true
		case r == ' ' || r == '\t' || r == '\r' || r == '\n':
			if word {
				words = append(words, b.String())
				b.Reset()
				word = false
			}
		default:
			b.WriteRune(r)
			word = true
		}
	}
	if word {
		words = append(words, b.String())
	}
	return words, quote == 0 && !escaped
}
