// Package recipe reads files that list commands to run: Makefiles, package scripts, Dockerfiles, workflows,
// systemd units, crontabs and the like. Its parsers find the commands and ignore the rest.
package recipe

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// A Step is code that a recipe runs.
type Step struct {
	Language string // language of Text, named as in command.Nested
	Text     string
}

// maxSteps is the maximum number of steps of one recipe.
const maxSteps = 4096

// Steps returns the steps of a recipe (formats are in loads.yaml and recipes.yaml of package command) for some goals:
// targets of a Makefile, scripts of a package. Without goals, and for formats without goals, it returns all steps. An
// unknown format has no steps. whole is false if there may be more steps.
func Steps(format, text string, goals []string) (steps []Step, whole bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	whole = true
	switch format {
	case "make":
		steps, whole = makeSteps(text, goals)
	case "just":
		steps, whole = makeSteps(justfileToMakefile(text), goals)
	case "task":
		steps = taskSteps(text, goals)
	case "package":
		steps = packageSteps(text, goals)
	default:
		if read, ok := stepParsers[format]; ok {
			steps = read(text)
		} else if slices.Contains(programLanguages[:], format) {
			steps = []Step{{format, text}}
		}
	}
	return steps[:min(len(steps), maxSteps)], whole && len(steps) < maxSteps
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

var includePattern = prefilter.Lazy(`(?m)^ *[-s]?include[ \t]+([^\n#]+)(?:#.*)?$`)

// stepParsers are the parsers of formats without goals.
var stepParsers = map[string]func(text string) []Step{
	"docker":   dockerSteps,
	"yaml":     yamlSteps,
	"unit":     unitSteps,
	"cron":     cronSteps,
	"plist":    plistSteps,
	"procfile": procSteps,
	"groovy":   groovySteps,
	"editor":   editorSteps,
	"notebook": notebookSteps,
}

// programLanguages are the formats whose whole text is one program, and therefore one step.
var programLanguages = [...]string{"shell", "python", "ruby", "node", "lua", "perl", "php", "code"}

// shellSteps returns texts as shell steps, without blank ones.
func shellSteps(texts ...string) []Step {
	var out []Step
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			out = append(out, Step{"shell", text})
		}
	}
	return out
}

// lineSteps returns the commands that a function finds in each line.
func lineSteps(lines []string, command func(line string) string) []Step {
	var out []Step
	for _, line := range lines {
		out = append(out, shellSteps(command(line))...)
	}
	return out
}

// joinLines joins lines that end in a backslash with the next.
func joinLines(text string) []string {
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
