// Package recipe reads files that say what others run: Makefiles, package
// scripts, Dockerfiles, workflows, units, crontabs and the like. Its readers
// are small and tolerant: they find the commands and leave the rest.
package recipe

import (
	"slices"
	"strings"
)

// A Step is text that a recipe runs.
type Step struct {
	Language string // as in command.Nested
	Text     string
}

// most bounds the steps of one recipe.
const most = 4096

// Steps returns what a recipe of a format, see loads.yaml of package command,
// runs for some goals: targets of a Makefile, scripts of a package. Without
// goals it is all that the recipe may run. A format that is not known runs
// nothing. If whole is false there are more steps.
func Steps(format, text string, goals []string) (steps []Step, whole bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	whole = true
	switch format {
	case "make":
		steps, whole = makeSteps(text, goals)
	case "just":
		steps, whole = makeSteps(justMake(text), goals)
	case "task":
		steps = taskSteps(text, goals)
	case "package":
		steps = packageSteps(text, goals)
	default:
		if read, ok := readers[format]; ok {
			steps = read(text)
		} else if slices.Contains(languages[:], format) {
			steps = []Step{{format, text}}
		}
	}
	return steps[:min(len(steps), most)], whole && len(steps) < most
}

// readers are those of formats of which all runs.
var readers = map[string]func(text string) []Step{
	"docker":   dockerSteps,
	"yaml":     yamlSteps,
	"unit":     unitSteps,
	"cron":     cronSteps,
	"plist":    plistSteps,
	"procfile": procSteps,
	"editor":   editorSteps,
}

// languages are the formats that are programs, and one step.
var languages = [...]string{"shell", "python", "ruby", "node", "lua", "perl", "php", "code"}

// shellSteps returns texts as steps of a shell, without those that are blank.
func shellSteps(texts ...string) []Step {
	var out []Step
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			out = append(out, Step{"shell", text})
		}
	}
	return out
}

// lineSteps returns the steps that lines of a text hold: what command finds in each.
func lineSteps(lines []string, command func(line string) string) []Step {
	var out []Step
	for _, line := range lines {
		out = append(out, shellSteps(command(line))...)
	}
	return out
}

// joinLines puts lines that end in a backslash together with the next.
func joinLines(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
}

// quote returns words as a command of a shell.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
