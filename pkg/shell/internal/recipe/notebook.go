package recipe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// notebookSteps returns the commands in the cells of a notebook. A text that is not a notebook counts as one cell,
// as passed by tools that edit notebooks.
func notebookSteps(text string) (out []Step) {
	var file struct {
		Cells []struct {
			Kind   string `json:"cell_type"`
			Source any    `json:"source"`
		} `json:"cells"`
		Meta json.RawMessage `json:"metadata"`
	}
	b := &notebook{}
	if json.Unmarshal([]byte(text), &file) != nil {
		return b.cellSteps(text)
	}
	language, python := kernelOf(file.Meta)
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
		if python {
			out = append(out, b.cellSteps(source)...)
		}
		switch language {
		case "python", "ipython":
		case "bash", "sh", "zsh":
			out = append(out, shellSteps(source)...)
		case "ruby", "perl", "php", "lua", "powershell":
			out = append(out, Step{language, source})
		case "javascript", "typescript":
			out = append(out, Step{"node", source})
		default:
			out = append(out, Step{"code", source})
		}
	}
	return out
}

// kernelOf returns the language in a notebook's metadata, and whether its cells may still be Python: the kernel's
// name decides what runs, the language is only a label.
func kernelOf(meta json.RawMessage) (language string, python bool) {
	var parts struct {
		Kernelspec json.RawMessage
		Info       json.RawMessage `json:"language_info"`
	}
	var kernel struct{ Name, Language string }
	var info struct{ Name string }
	_ = json.Unmarshal(meta, &parts) // a field of an unexpected JSON type stays empty
	_ = json.Unmarshal(parts.Kernelspec, &kernel)
	_ = json.Unmarshal(parts.Info, &info)
	language = strings.ToLower(cmp.Or(kernel.Language, info.Name, "python"))
	agree := kernel.Language != "" && strings.Contains(strings.ToLower(kernel.Name), language)
	return language, !agree || language == "python" || language == "ipython"
}

// A notebook is the state that the cells of a notebook share.
type notebook struct {
	folderCommands   []string // arguments of %cd, in order
	variableCommands []string // commands that set the variables of %env
}

// cellShellSteps returns the steps of a shell command in a notebook cell. The commands that set the
// folder and variables in earlier cells are put in front of it.
func (b *notebook) cellShellSteps(command string) []Step {
	if strings.TrimSpace(command) == "" {
		return nil
	}
	set := strings.Join(append(slices.Clone(b.variableCommands), b.folderCommands...), "; ")
	if set != "" {
		command = set + "; " + command
	}
	return shellSteps(command)
}

// pythonStep returns the step of Python code in a notebook cell. Calls of os.chdir that repeat the
// %cd commands of earlier cells are put in front of it.
func (b *notebook) pythonStep(code string) Step {
	for i := len(b.folderCommands) - 1; i >= 0; i-- {
		code = "import os; os.chdir(" + strconv.Quote(strings.Trim(strings.TrimPrefix(b.folderCommands[i], "cd "), `"'`)) + ")\n" + code
	}
	return Step{"python", code}
}

// cellSteps returns the shell commands of a cell, and the rest as Python. Magics are those of IPython 8: lines
// that begin with "%", and "%%" for a whole cell.
func (b *notebook) cellSteps(text string) []Step {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	if magic, ok := strings.CutPrefix(first, "%%"); ok {
		words := append(strings.Fields(magic), "", "")
		switch name := words[0]; name {
		case "bash", "sh", "system", "sx", "!":
			return b.cellShellSteps(inShell(rest))
		case "script", "perl", "ruby", "pypy", "python2", "python3":
			return b.cellShellSteps(strings.TrimPrefix(magic, "script ") + hereString(rest))
		case "writefile", "file":
			return b.cellShellSteps("tee " + strings.TrimPrefix(magic, name) + " >/dev/null" + hereString(rest))
		case "javascript", "js", "html", "latex", "markdown", "svg":
			return nil
		}
		text = rest
	}
	var code strings.Builder
	var steps []Step
	for _, line := range joinLines(text) {
		if parts := timedMagicPattern().FindStringSubmatch(line); parts != nil {
			line = parts[1] + parts[2]
		}
		if parts := cellShellPattern().FindStringSubmatch(line); parts != nil {
			steps = append(steps, b.cellShellSteps(inShell(parts[1]))...)
		} else if parts := lineMagicPattern().FindStringSubmatch(line); parts != nil {
			steps = append(steps, b.magicSteps(parts[1], inShell(parts[2]))...)
		} else {
			code.WriteString(line + "\n")
		}
	}
	if strings.TrimSpace(code.String()) == "" {
		return steps
	}
	return append(steps, b.pythonStep(code.String()))
}

var (
	cellShellPattern   = prefilter.Lazy(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?(?:!!?|%(?:sx|system)[ \t]+)(.*)$`)
	lineMagicPattern   = prefilter.Lazy(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?%([A-Za-z_]\w*)(?:[ \t]+(.*))?$`)
	timedMagicPattern  = prefilter.Lazy(`^([ \t]*)%(?:time|timeit|prun|memit|mprun|lprun|capture)[ \t]+(?:-\w+(?:[ \t]+\d+)?[ \t]+)*(.*)$`)
	pythonValuePattern = prefilter.Lazy(`\{[A-Za-z_][^{},]*\}`)
)

// inShell returns a shell command of a cell, with a variable in place of each Python value that IPython inserts.
func inShell(command string) string {
	return pythonValuePattern().ReplaceAllLiteralString(command, "${python}")
}

// maxCellChanges is the maximum number of changes of the folder and of variables that are recorded.
const maxCellChanges = 16

// magicSteps returns the steps of a one-line magic.
func (b *notebook) magicSteps(name, arguments string) []Step {
	switch name {
	case "cd":
		if b.folderCommands = append(b.folderCommands, "cd "+arguments); len(b.folderCommands) > maxCellChanges {
			b.folderCommands = append(b.folderCommands[:0], `cd "$unknown"`)
		}
		return shellSteps("cd " + arguments)
	case "env", "set_env":
		variable, value, ok := strings.Cut(arguments, "=")
		if !ok {
			variable, value, ok = strings.Cut(arguments, " ")
		}
		if !ok {
			return nil
		}
		set := "export " + strings.TrimSpace(variable) + "=" + quoteWords([]string{strings.TrimSpace(value)})
		if b.variableCommands = append(b.variableCommands, set); len(b.variableCommands) > maxCellChanges {
			b.variableCommands = b.variableCommands[1:]
		}
		return b.cellShellSteps(":")
	case "pip", "conda", "mamba", "micromamba", "uv", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "less", "more", "man":
		return b.cellShellSteps(name + " " + arguments)
	case "run":
		return b.cellShellSteps("python3 " + arguments)
	}
	return nil
}

// hereString returns a here-string with a text.
func hereString(text string) string { return " <<<" + quoteWords([]string{text}) }
