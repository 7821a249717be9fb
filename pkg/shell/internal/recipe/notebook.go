package recipe

import (
	"encoding/json"
	"strings"
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

// cellSteps returns the lines of a cell that a shell runs, and the rest as Python.
func cellSteps(text string) []Step {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	if magic, ok := strings.CutPrefix(first, "%%"); ok {
		words := append(strings.Fields(magic), "", "")
		switch name := words[0]; {
		case name == "bash", name == "sh", name == "system", name == "sx", name == "!", name == "script" && strings.HasSuffix(words[1], "sh"):
			return shellSteps(rest)
		case name == "javascript", name == "js", name == "html", name == "latex", name == "markdown", name == "svg":
			return nil
		}
		text = rest
	}
	var code strings.Builder
	steps := lineSteps(strings.Split(text, "\n"), func(line string) string {
		command := strings.TrimLeft(line, " \t")
		for _, sign := range [...]string{"!!", "!", "%sx ", "%system "} {
			if run, ok := strings.CutPrefix(command, sign); ok {
				return run
			}
		}
		if !strings.HasPrefix(command, "%") {
			code.WriteString(line + "\n")
		}
		return ""
	})
	if strings.TrimSpace(code.String()) == "" {
		return steps
	}
	return append(steps, Step{"python", code.String()})
}
