// Package recipe reads files that list commands to run: Makefiles, package scripts, Dockerfiles, workflows,
// systemd units, crontabs and the like. Its parsers find the commands and ignore the rest.
package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A CodeBlock is code that a recipe, such as a Makefile, runs in one step.
type CodeBlock struct {
	Language string // language of Text, named as in command.NestedCommandOrCode.Language
	Text     string
}

// maxCodeBlocks is the maximum number of code blocks that CodeBlocks returns for one recipe, such as a Makefile.
const maxCodeBlocks = 4096

// CodeBlocks returns the steps of a recipe (formats are in loads.yaml and recipes.yaml of package
// command) for some goals: targets of a Makefile, scripts of a package. Without goals, and for
// formats without goals, it returns all steps. An unknown format has no steps. isComplete is false
// if there may be more steps.
func CodeBlocks(format, text string, goals []string) (blocks []CodeBlock, isComplete bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	isComplete = true
	switch format {
	case "make":
		blocks, isComplete = makefileCodeBlocks(text, goals)
	case "just":
		blocks, isComplete = makefileCodeBlocks(justfileToMakefile(text), goals)
	case "task":
		blocks = taskfileCodeBlocks(text, goals)
	case "package":
		blocks = packageScriptCodeBlocks(text, goals)
	default:
		if read, ok := codeBlockParserByFormat[format]; ok {
			blocks = read(text)
		} else if slices.Contains(wholeTextCodeFormats[:], format) {
			blocks = []CodeBlock{{format, text}}
		}
	}
	return blocks[:min(len(blocks), maxCodeBlocks)], isComplete && len(blocks) < maxCodeBlocks
}

// WithIncludes returns a recipe with each include line replaced by the included file, if read returns it.
func WithIncludes(format, text string, read func(name string) (string, bool)) string {
	if format != "make" || !strings.Contains(text, "include") {
		return text
	}
	left := maxIncludedFiles
	var put func(text string, depth int) string
	put = func(text string, depth int) string {
		return includePattern().ReplaceAllStringFunc(text, func(line string) string {
			var b strings.Builder
			for _, name := range strings.Fields(includePattern().FindStringSubmatch(line)[1]) {
				if more, ok := read(name); ok && left > 0 && depth < 8 {
					left--
					b.WriteString(put(more, depth+1) + "\n")
				}
			}
			if b.Len() == 0 {
				return line
			}
			return b.String()
		})
	}
	return put(text, 0)
}

// maxIncludedFiles is the maximum number of files that a recipe includes.
const maxIncludedFiles = 64

var includePattern = prefilter.LazyRegexp(`(?m)^ *[-s]?include[ \t]+([^\n#]+)(?:#.*)?$`)

// codeBlockParserByFormat maps recipe formats to their parsers. In these formats, all code of a recipe runs;
// there are no goals, such as make targets, that select a part.
var codeBlockParserByFormat = map[string]func(text string) []CodeBlock{
	"docker":   dockerfileCodeBlocks,
	"yaml":     yamlCodeBlocks,
	"unit":     systemdUnitCodeBlocks,
	"cron":     crontabCodeBlocks,
	"plist":    plistCodeBlocks,
	"procfile": procfileCodeBlocks,
	"groovy":   jenkinsfileCodeBlocks,
	"editor":   interactiveToolConfigCodeBlocks,
	"notebook": notebookCodeBlocks,
}

// wholeTextCodeFormats are the formats in which the whole text is one program, and therefore one code block.
// Their names are those of languages.
var wholeTextCodeFormats = [...]string{"shell", "python", "ruby", "node", "lua", "perl", "php", "code"}

// shellCodeBlocks returns texts as shell steps, without blank ones.
func shellCodeBlocks(texts ...string) []CodeBlock {
	var out []CodeBlock
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			out = append(out, CodeBlock{"shell", text})
		}
	}
	return out
}

// shellCodeBlocksPerLine returns the commands that a function finds in each line.
func shellCodeBlocksPerLine(lines []string, extractCommand func(line string) string) []CodeBlock {
	var out []CodeBlock
	for _, line := range lines {
		out = append(out, shellCodeBlocks(extractCommand(line))...)
	}
	return out
}

// splitIntoLogicalLines joins lines that end in a backslash with the next.
func splitIntoLogicalLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
}

// quoteWords returns words as a shell command.
func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = command.Quote(w)
	}
	return strings.Join(quoted, " ")
}
