package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// addGitToolEffects adds the effects of the git command that a tool such as git_commit runs, in the repository that the
// payload names.
func (c *ActionCase) addGitToolEffects() {
	sub := strings.ReplaceAll(strings.TrimPrefix(c.Action.Type, "git_"), "_", "-")
	g := gitCall{subcommand: sub}
	g.addFields(c.Action.Payload)
	if g.hasTooManyArgs {
		c.addUnknownEffect(effect.CauseInvalidActionField, "the git tool call has more than "+strconv.Itoa(maxGitWords)+" values; instead: use fewer values")
	}
	from := len(c.Effects)
	if sub == "set-working-dir" { // a command of the tool server, not of git
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.Execute, Program: "git", Args: []string{sub}, Class: effect.LocalWrite})
	} else {
		c.addShellEffects(g.shellText(), &c.executionContext, false)
	}
	kind := effect.ReadFile
	if slices.ContainsFunc(c.Effects[from:], func(e effect.Effect) bool { return e.Kind == effect.Execute && e.Class != effect.ReadOnly }) {
		kind = effect.WriteFile
	}
	for _, repository := range g.repositories {
		c.addPathEffects(kind, repository, true)
	}
	for _, p := range g.paths {
		if at, pattern := c.executionContext.CanonicalPath(p, false); !c.executionContext.IsInsideRoots(at, pattern, false) {
			c.addPathEffects(kind, p, false)
		}
	}
	if c.Action.Payload["command"] != nil {
		c.addCommandEffects()
	}
}

// A gitCall collects the arguments of a tool call as arguments of git.
type gitCall struct {
	subcommand             string
	repositories           []string
	secondLevelSubcommands []string // second-level subcommands, as add in git remote add
	options                []string
	operands               []gitOperand
	paths                  []string // texts that can only be paths
	hasTooManyArgs         bool     // the payload has more than maxGitWords options and operands
}

// A gitOperand is an argument of git that is not an option. Operands are written in ascending position.
type gitOperand struct {
	position int
	text     string
}

// addFields adds the fields of a tool call's payload to g, as options, operands or repositories of the git
// command.
func (g *gitCall) addFields(payload map[string]any) {
	for _, name := range sorted.Keys(payload) {
		g.addField(name, payload[name])
	}
}

// maxGitWords is the maximum number of arguments of a call.
const maxGitWords = 512

func (g *gitCall) addField(field string, v any) {
	if len(g.options)+len(g.operands) > maxGitWords {
		g.hasTooManyArgs = true
		return
	}
	words := knowledge.SplitNameWords(field)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch v := v.(type) {
	case nil:
	case bool:
		if v {
			g.addFlagFromFieldWords(words)
		}
	case string:
		g.addFieldTextAsArg(strings.Join(words, "-"), last, v)
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok && field == "path" && !isGitOption(text) { // an item of the list "path" is a file operand of git, unless it has the form of an option
				g.operands = append(g.operands, gitOperand{minGitPathOperandPosition, text})
				if looksLikePath(text) {
					g.paths = append(g.paths, text)
				}
				continue
			}
			g.addField(field, item)
		}
	case map[string]any:
		g.addFields(v)
	default: // a number: 1 means true unless the field holds a count; other numbers are ignored
		if fmt.Sprintf("%s", v) == "1" && !gitCountFields[last] {
			g.addFlagFromFieldWords(words)
		}
	}
}

// addFlagFromFieldWords adds an option without a value.
func (g *gitCall) addFlagFromFieldWords(fieldNameWords []string) {
	name := strings.Join(fieldNameWords, "-")
	switch {
	case (g.subcommand == "checkout" || g.subcommand == "switch") && (fieldNameWords[0] == "create" || fieldNameWords[0] == "new"):
		g.options = append(g.options, map[string]string{"checkout": "-b", "switch": "-c"}[g.subcommand])
	case len(name) == 1:
		g.options = append(g.options, "-"+name)
	case name != "":
		g.options = append(g.options, "--"+name)
	}
}

// addFieldTextAsArg adds the text of a field.
func (g *gitCall) addFieldTextAsArg(fieldName, lastFieldWord, fieldText string) {
	rank, operand := gitOperandPositionByFieldName[lastFieldWord]
	if looksLikePath(fieldText) {
		g.paths = append(g.paths, fieldText)
	}
	switch lower := strings.ToLower(fieldText); {
	case fieldText == "" || fieldName == "command" && g.subcommand != "command":
	case gitProseFields[lastFieldWord]:
		switch {
		case isGitOption(fieldText) && !strings.ContainsAny(fieldText, " \t\n"):
			g.options = append(g.options, fieldText)
		case slices.Contains([]string{"commit", "tag", "merge", "stash", "notes"}, g.subcommand):
			g.options = append(g.options, "-m", fieldText)
		}
	case lower == "true" || lower == "yes":
		g.addFlagFromFieldWords(strings.Split(fieldName, "-"))
	case lower == "false" || lower == "no":
	case lastFieldWord == "args" || lastFieldWord == "arguments" || lastFieldWord == "options" || lastFieldWord == "flags":
		g.options = append(g.options, strings.Fields(fieldText)...)
	case (lastFieldWord == "mode" || lastFieldWord == "type") && gitResetModes[fieldText]:
		g.options = append(g.options, "--"+fieldText)
	case lastFieldWord == "action" || lastFieldWord == "operation" || lastFieldWord == "subcommand" || lastFieldWord == "mode":
		g.secondLevelSubcommands = append(g.secondLevelSubcommands, g.gitSubcommandOrOptionForVerb(lower))
	case isGitOption(fieldText):
		g.options = append(g.options, splitOptionAndValue(fieldText)...)
	case gitRepositoryFields[fieldName] && !(g.subcommand == "clone" || g.subcommand == "init") || fieldName == "repo" || fieldName == "repo-path":
		g.repositories = append(g.repositories, fieldText)
	case operand:
		g.operands = append(g.operands, gitOperand{rank, fieldText})
	default:
		g.options = append(g.options, "--"+fieldName+"="+fieldText)
	}
}

// splitOptionAndValue splits a text that git reads as an option into the option and its value; it returns one word if
// they are joined.
func splitOptionAndValue(text string) []string {
	if first, _, _ := strings.Cut(text, " "); strings.Contains(first, "=") {
		return []string{text}
	}
	return strings.Fields(text)
}

// gitSubcommandOrOptionForVerb returns git's subcommand or option for a verb that a tool applies to branches, tags and the like.
func (g *gitCall) gitSubcommandOrOptionForVerb(toolVerb string) string {
	if g.subcommand == "branch" || g.subcommand == "tag" {
		switch toolVerb {
		case "create", "add":
			return ""
		case "delete", "remove":
			return "--delete"
		case "list", "show", "show-current":
			return "--list"
		case "rename", "move":
			return "--move"
		}
	}
	return toolVerb
}

// shellText returns the git command as shell text.
func (g *gitCall) shellText() string {
	var b strings.Builder
	b.WriteString("git")
	word := func(text string) {
		if text != "" {
			b.WriteString(" " + command.QuoteWordIfNeeded(text))
		}
	}
	for _, repository := range g.repositories {
		word("-C")
		word(repository)
	}
	for _, w := range gitSubcommandWords(g.subcommand) {
		word(w)
	}
	for _, w := range append(g.secondLevelSubcommands, g.options...) {
		word(w)
	}
	sorted.SortStableBy(g.operands, func(a, b gitOperand) int { return a.position - b.position })
	if g.subcommand == "push" && len(g.operands) > 0 && g.operands[0].position > 1 && g.operands[0].position < 6 {
		word("origin")
	}
	files := false
	for _, o := range g.operands {
		if o.position >= minGitPathOperandPosition && !files && g.subcommand != "clone" && g.subcommand != "init" && g.subcommand != "worktree" && !isGitOption(o.text) {
			files = true
			word("--")
		}
		word(o.text)
	}
	return b.String()
}

// minGitPathOperandPosition is the lowest position of operands that are files. The operands of a git command
// are written in the order of their position.
const minGitPathOperandPosition = 8

// gitOperandPositionByFieldName gives the rank of an operand by the name, or last word, of its field.
var gitOperandPositionByFieldName = map[string]int{
	"remote": 1, "upstream": 1, "name": 2, "key": 2, "tag": 3, "path": minGitPathOperandPosition, "branch": 3, "value": 3, "base": 4, "point": 4, "commit": 4, "commits": 4,
	"revision": 4, "rev": 4, "hash": 4, "ref": 4, "refs": 4, "refspec": 4, "target": 4, "source": 4, "from": 4, "to": 5, "stash": 4, "url": 6,
	"uri": 6, "destination": minGitPathOperandPosition, "directory": minGitPathOperandPosition, "file": minGitPathOperandPosition, "files": minGitPathOperandPosition, "paths": minGitPathOperandPosition, "pathspec": minGitPathOperandPosition,
}

// gitRepositoryFields are the names of fields that name the repository.
var gitRepositoryFields = map[string]bool{"path": true, "repo": true, "repo-path": true, "repository": true, "repository-path": true, "directory": true, "cwd": true, "working-directory": true}

// gitCountFields are the last words of the names of fields that hold numbers.
var gitCountFields = map[string]bool{"count": true, "lines": true, "limit": true, "depth": true, "n": true, "number": true, "skip": true, "offset": true, "page": true, "max": true, "index": true, "timeout": true}

// gitProseFields are the last words of the names of fields that hold text for people.
var gitProseFields = map[string]bool{"message": true, "body": true, "title": true, "description": true, "comment": true, "notes": true}

// gitSubcommandWords returns git's subcommand and options for a tool by its name without "git_".
func gitSubcommandWords(sub string) []string {
	switch sub {
	case "diff-staged":
		return []string{"diff", "--staged"}
	case "diff-unstaged":
		return []string{"diff"}
	case "create-branch", "list-branches":
		return []string{"branch"}
	case "list-tags":
		return []string{"tag"}
	}
	return []string{sub}
}

// gitResetModes are the values of the field "mode" of git_reset.
var gitResetModes = map[string]bool{"hard": true, "soft": true, "mixed": true, "keep": true, "merge": true}

// isGitOption reports whether git reads a text as an option.
func isGitOption(text string) bool { return len(text) > 1 && text[0] == '-' && text[1] != ' ' }
