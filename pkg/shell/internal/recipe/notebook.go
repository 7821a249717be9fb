package recipe

import (
	"encoding/json"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// notebookSteps returns what the cells of a notebook run. A text that is no notebook
// is one cell, as tools hand it that edit one.
func notebookSteps(text string) (out []Step) {
	var file struct {
		Cells []struct {
			Kind   string `json:"cell_type"`
			Source any    `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal([]byte(text), &file) != nil {
		return cellSteps(text)
	}
	for _, cell := range file.Cells {
		if cell.Kind != "code" {
			continue
		}
		source, _ := cell.Source.(string)
		lines, _ := cell.Source.([]any)
		for _, line := range lines {
			s, _ := line.(string)
			source += s
		}
		out = append(out, cellSteps(source)...)
	}
	return out
}

// cellSteps returns what a shell runs of a cell, and the rest as Python. Magics are
// those of IPython 8: lines that begin with "%", and "%%" for a whole cell.
func cellSteps(text string) []Step {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	if magic, ok := strings.CutPrefix(first, "%%"); ok {
		words := append(strings.Fields(magic), "", "")
		switch name := words[0]; name {
		case "bash", "sh", "system", "sx", "!":
			return shellSteps(inShell(rest))
		case "script", "perl", "ruby", "pypy", "python2", "python3":
			return shellSteps(strings.TrimPrefix(magic, "script ") + fed(rest))
		case "writefile", "file":
			return shellSteps("tee " + strings.TrimPrefix(magic, name) + " >/dev/null" + fed(rest))
		case "javascript", "js", "html", "latex", "markdown", "svg":
			return nil
		}
		text = rest
	}
	var code strings.Builder
	steps := lineSteps(joinLines(text), func(line string) string {
		if parts := shellForm().FindStringSubmatch(line); parts != nil {
			return inShell(parts[1])
		}
		if parts := magicForm().FindStringSubmatch(line); parts != nil {
			return magicCommand(parts[1], inShell(parts[2]))
		}
		code.WriteString(line + "\n")
		return ""
	})
	if strings.TrimSpace(code.String()) == "" {
		return steps
	}
	return append(steps, Step{"python", code.String()})
}

var (
	shellForm = prefilter.Lazy(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?(?:!!?|%(?:sx|system)[ \t]+)(.*)$`)
	magicForm = prefilter.Lazy(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?%([A-Za-z_]\w*)(?:[ \t]+(.*))?$`)
	putIn     = prefilter.Lazy(`\{[A-Za-z_][^{},]*\}`)
)

// inShell returns a command of a cell for a shell: IPython puts values of Python in it.
func inShell(command string) string { return putIn().ReplaceAllLiteralString(command, "${python}") }

// magicCommand returns the command that does what a magic of one line does.
func magicCommand(name, arguments string) string {
	switch name {
	case "pip", "conda", "mamba", "micromamba", "uv", "cd", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "less", "more", "man":
		return name + " " + arguments
	case "run":
		return "python3 " + arguments
	}
	return ""
}

// fed returns a text as the input of the command before it.
func fed(text string) string { return " <<<" + quote([]string{text}) }
