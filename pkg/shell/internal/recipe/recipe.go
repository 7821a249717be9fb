// Package recipe reads files that say what others run: Makefiles, package
// scripts, Dockerfiles, workflows, units, crontabs and the like. Its readers
// are small and tolerant: they find the commands and leave the rest.
package recipe

import (
	"strings"
)

// A Step is text that a recipe runs.
type Step struct {
	Language string // as in command.Nested
	Text     string
}

// most bounds the steps of one recipe.
const most = 256

// Steps returns what a recipe of a format, see loads.yaml of package command,
// runs for some goals: targets of a Makefile, scripts of a package. Without
// goals it is all that the recipe may run. A format that is not known runs
// nothing. complete is false if there are more steps than are returned.
func Steps(format, text string, goals []string) (out []Step, complete bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch format {
	case "make":
		out = makeSteps(text, goals)
	case "just":
		out = makeSteps(justMake(text), goals)
	case "task":
		out = taskSteps(text, goals)
	case "package":
		out = packageSteps(text, goals)
	case "docker":
		out = dockerSteps(text)
	case "yaml":
		out = yamlSteps(text)
	case "unit":
		out = unitSteps(text)
	case "cron":
		out = cronSteps(text)
	case "plist":
		out = plistSteps(text)
	case "procfile":
		out = procSteps(text)
	case "editor":
		out = editorSteps(text)
	case "shell", "python", "ruby", "node", "lua", "perl", "php", "code":
		out = []Step{{format, text}}
	}
	return out[:min(len(out), most)], len(out) <= most
}

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
