package recipe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
)

// notebookCodeBlocks returns the commands in the cells of a notebook. A text that is not a notebook counts as one cell,
// as passed by tools that edit notebooks.
func notebookCodeBlocks(text string) (out []CodeBlock) {
	var file struct {
		Cells []struct {
			Kind   string `json:"cell_type"`
			Source any    `json:"source"`
		} `json:"cells"`
		Meta json.RawMessage `json:"metadata"`
	}
	b := &notebook{}
	if json.Unmarshal([]byte(text), &file) != nil {
		return b.cellCodeBlocks(text)
	}
	language, python := notebookLanguage(file.Meta)
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
			out = append(out, b.cellCodeBlocks(source)...)
		}
		switch language {
		case "python", "ipython":
		case "bash", "sh", "zsh":
			out = append(out, shellCodeBlocks(source)...)
		case "ruby", "perl", "php", "lua", "powershell":
			out = append(out, CodeBlock{language, source})
		case "javascript", "typescript":
			out = append(out, CodeBlock{"node", source})
		default:
			out = append(out, CodeBlock{"code", source})
		}
	}
	return out
}

// notebookLanguage returns the language in a notebook's metadata, and whether its cells may still be Python: the kernel's
// name decides what runs, the language is only a label.
func notebookLanguage(meta json.RawMessage) (language string, isPythonPossible bool) {
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
	cdCommands     []string // arguments of %cd, in order
	exportCommands []string // shell commands that set the same variables as IPython's magic %env in the cells so far
}

// cellShellCodeBlocks returns the code blocks of a shell command in a notebook cell. It puts the
// commands with which earlier cells change the folder and set variables in front of the shell
// command.
func (b *notebook) cellShellCodeBlocks(command string) []CodeBlock {
	if strings.TrimSpace(command) == "" {
		return nil
	}
	set := strings.Join(append(slices.Clone(b.exportCommands), b.cdCommands...), "; ")
	if set != "" {
		command = set + "; " + command
	}
	return shellCodeBlocks(command)
}

// pythonCodeBlock returns a code block with the Python code of a notebook cell. It puts calls of
// os.chdir, which repeat the %cd commands of earlier cells, in front of the code.
func (b *notebook) pythonCodeBlock(code string) CodeBlock {
	for i := len(b.cdCommands) - 1; i >= 0; i-- {
		folder := strconv.Quote(strings.Trim(strings.TrimPrefix(b.cdCommands[i], "cd "), `"'`))
		if strings.Contains(folder, "$") {
			folder = "unknown_folder" // a name without a value, so the folder is unknown
		}
		code = "import os; os.chdir(" + folder + ")\n" + code
	}
	return CodeBlock{"python", code}
}

// cellCodeBlocks returns the shell commands of a cell, and the rest as Python. Magics are those of IPython 8: lines
// that begin with "%", and "%%" for a whole cell.
func (b *notebook) cellCodeBlocks(text string) []CodeBlock {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	if magic, ok := strings.CutPrefix(first, "%%"); ok {
		words := append(strings.Fields(magic), "", "")
		switch name := words[0]; name {
		case "bash", "sh", "system", "sx", "!":
			return b.cellShellCodeBlocks(replaceInterpolationsWithShellVariable(rest))
		case "script", "perl", "ruby", "pypy", "python2", "python3":
			return b.cellShellCodeBlocks(strings.TrimPrefix(magic, "script ") + quoteAsHereString(rest))
		case "writefile", "file":
			return b.cellShellCodeBlocks("tee " + strings.TrimPrefix(magic, name) + " >/dev/null" + quoteAsHereString(rest))
		case "javascript", "js", "html", "latex", "markdown", "svg":
			return nil
		}
		text = rest
	}
	var code strings.Builder
	var steps []CodeBlock
	for _, line := range splitIntoLogicalLines(text) {
		if parts := statementWrappingMagicPattern().FindStringSubmatch(line); parts != nil {
			line = parts[1] + parts[2]
		}
		if parts := cellShellPattern().FindStringSubmatch(line); parts != nil {
			steps = append(steps, b.cellShellCodeBlocks(replaceInterpolationsWithShellVariable(parts[1]))...)
		} else if parts := lineMagicPattern().FindStringSubmatch(line); parts != nil {
			steps = append(steps, b.magicCodeBlocks(parts[1], replaceInterpolationsWithShellVariable(parts[2]))...)
		} else {
			if parts := automagicPattern().FindStringSubmatch(line); parts != nil {
				steps = append(steps, b.magicCodeBlocks(parts[1], replaceInterpolationsWithShellVariable(parts[2]))...)
			}
			code.WriteString(line + "\n")
		}
	}
	if strings.TrimSpace(code.String()) == "" {
		return steps
	}
	return append(steps, b.pythonCodeBlock(code.String()))
}

var (
	cellShellPattern              = prefilter.LazyRegexp(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?(?:!!?|%(?:sx|system)[ \t]+)(.*)$`)
	lineMagicPattern              = prefilter.LazyRegexp(`^[ \t]*(?:[\w.\[\], \t]+=[ \t]*)?%([A-Za-z_]\w*)(?:[ \t]+(.*))?$`)
	automagicPattern              = prefilter.LazyRegexp(`^(cd|pushd|popd|pip|conda|ls|cat|cp|mv|rm|mkdir|rmdir|ln)[ \t]+([^=(,:;\[ \t<>+*%&|^!@].*)$`) // IPython takes a line that is not Python for a magic
	statementWrappingMagicPattern = prefilter.LazyRegexp(`^([ \t]*)%(?:time|timeit|prun|memit|mprun|lprun|capture)[ \t]+(?:-\w+(?:[ \t]+\d+)?[ \t]+)*(.*)$`)
	ipythonInterpolationPattern   = prefilter.LazyRegexp(`\{[A-Za-z_][^{},]*\}`)
)

// replaceInterpolationsWithShellVariable returns a shell command of a cell, with a variable in place of each Python value that IPython inserts.
func replaceInterpolationsWithShellVariable(command string) string {
	return ipythonInterpolationPattern().ReplaceAllLiteralString(command, "${python}")
}

// maxCdAndExportCommands is the maximum number of changes of the folder and of variables that are recorded.
const maxCdAndExportCommands = 16

// magicCodeBlocks returns the code blocks that a line magic of IPython, such as %cd or %pip, runs.
func (b *notebook) magicCodeBlocks(name, arguments string) []CodeBlock {
	switch name {
	case "popd":
		return b.magicCodeBlocks("cd", `"$unknown"`)
	case "cd", "pushd":
		if b.cdCommands = append(b.cdCommands, "cd "+arguments); len(b.cdCommands) > maxCdAndExportCommands {
			b.cdCommands = append(b.cdCommands[:0], `cd "$unknown"`)
		}
		return shellCodeBlocks("cd " + arguments)
	case "env", "set_env":
		variable, value, ok := strings.Cut(arguments, "=")
		if !ok {
			variable, value, ok = strings.Cut(arguments, " ")
		}
		if !ok {
			return nil
		}
		set := "export " + strings.TrimSpace(variable) + "=" + quoteWords([]string{strings.TrimSpace(value)})
		if b.exportCommands = append(b.exportCommands, set); len(b.exportCommands) > maxCdAndExportCommands {
			b.exportCommands = b.exportCommands[1:]
		}
		return b.cellShellCodeBlocks(":")
	case "pip", "conda", "mamba", "micromamba", "uv", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "less", "more", "man":
		return b.cellShellCodeBlocks(name + " " + arguments)
	case "sc": // %sc NAME=COMMAND
		_, command, _ := strings.Cut(arguments, "=")
		return b.cellShellCodeBlocks(command)
	case "alias": // %alias NAME COMMAND
		_, command, _ := strings.Cut(strings.TrimLeft(arguments, " \t"), " ")
		return b.cellShellCodeBlocks(command)
	case "store": // %store VARIABLE > FILE
		if _, file, ok := strings.Cut(arguments, ">"); ok {
			return b.cellShellCodeBlocks("echo \"$unknown\" >" + file)
		}
		return nil
	case "run":
		return b.cellShellCodeBlocks("python3 " + arguments)
	}
	return nil
}

// quoteAsHereString returns a here-string with a text.
func quoteAsHereString(text string) string { return " <<<" + quoteWords([]string{text}) }
