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

// addGitEffects adds the effects of the git command that a tool such as git_commit runs, in the repository that the
// payload names.
func (c *Case) addGitEffects() {
	sub := strings.ReplaceAll(strings.TrimPrefix(c.Action.Type, "git_"), "_", "-")
	g := gitCall{sub: sub}
	g.addFields(c.Action.Payload)
	if g.hasUnmappedValue {
		c.addUnknownEffect(effect.CauseInvalidField, "the git tool call has more than "+strconv.Itoa(maxGitWords)+" field values")
	}
	from := len(c.Effects)
	if sub == "set-working-dir" { // a command of the tool server, not of git
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.Execute, Program: "git", Args: []string{sub}, Class: effect.LocalWrite})
	} else {
		c.addShellEffects(g.shellText(), &c.place, false)
	}
	kind := effect.ReadFile
	if slices.ContainsFunc(c.Effects[from:], func(e effect.Effect) bool { return e.Kind == effect.Execute && e.Class != effect.ReadOnly }) {
		kind = effect.WriteFile
	}
	for _, repository := range g.repositories {
		c.addPathEffects(kind, repository, true)
	}
	for _, p := range g.paths {
		if at, pattern := c.place.Path(p, false); !c.place.Inside(at, pattern, false) {
			c.addPathEffects(kind, p, false)
		}
	}
	if c.Action.Payload["command"] != nil {
		c.addCommandEffects()
	}
}

// A gitCall collects the arguments of a tool call as arguments of git.
type gitCall struct {
	sub              string
	repositories     []string
	verbs            []string // second-level subcommands, as add in git remote add
	options          []string
	operands         []gitOperand
	paths            []string // texts that can only be paths
	hasUnmappedValue bool     // a value could not be turned into an argument of git
}

// A gitOperand is an operand with its rank; operands are sorted by rank.
type gitOperand struct {
	rank int
	text string
}

// addFields adds the fields of an object.
func (g *gitCall) addFields(payload map[string]any) {
	for _, name := range sorted.Keys(payload) {
		g.addField(name, payload[name])
	}
}

// maxGitWords is the maximum number of arguments of a call.
const maxGitWords = 512

func (g *gitCall) addField(field string, v any) {
	if len(g.options)+len(g.operands) > maxGitWords {
		g.hasUnmappedValue = true
		return
	}
	words := knowledge.Words(field)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch v := v.(type) {
	case nil:
	case bool:
		if v {
			g.addFlag(words)
		}
	case string:
		g.addText(strings.Join(words, "-"), last, v)
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok && field == "path" && !isGitOption(text) { // an option in a list of paths is kept as one
				g.operands = append(g.operands, gitOperand{gitFileRank, text})
				if looksLikePath(text) {
					g.paths = append(g.paths, text)
				}
				continue
			}
			g.addField(field, item)
		}
	case map[string]any:
		g.addFields(v)
	default: // a number sets a count; in a field without a count, 1 sets a flag
		if fmt.Sprintf("%s", v) == "1" && !gitCountFields[last] {
			g.addFlag(words)
		}
	}
}

// addFlag adds an option without a value.
func (g *gitCall) addFlag(words []string) {
	name := strings.Join(words, "-")
	switch {
	case (g.sub == "checkout" || g.sub == "switch") && (words[0] == "create" || words[0] == "new"):
		g.options = append(g.options, map[string]string{"checkout": "-b", "switch": "-c"}[g.sub])
	case len(name) == 1:
		g.options = append(g.options, "-"+name)
	case name != "":
		g.options = append(g.options, "--"+name)
	}
}

// addText adds the text of a field.
func (g *gitCall) addText(name, last, text string) {
	rank, operand := gitOperandRanks[last]
	if looksLikePath(text) {
		g.paths = append(g.paths, text)
	}
	switch lower := strings.ToLower(text); {
	case text == "" || name == "command" && g.sub != "command":
	case gitProseFields[last]:
		switch {
		case isGitOption(text) && !strings.ContainsAny(text, " \t\n"):
			g.options = append(g.options, text)
		case slices.Contains([]string{"commit", "tag", "merge", "stash", "notes"}, g.sub):
			g.options = append(g.options, "-m", text)
		}
	case lower == "true" || lower == "yes":
		g.addFlag(strings.Split(name, "-"))
	case lower == "false" || lower == "no":
	case last == "args" || last == "arguments" || last == "options" || last == "flags":
		g.options = append(g.options, strings.Fields(text)...)
	case (last == "mode" || last == "type") && gitResetModes[text]:
		g.options = append(g.options, "--"+text)
	case last == "action" || last == "operation" || last == "subcommand" || last == "mode":
		g.verbs = append(g.verbs, g.gitVerb(lower))
	case isGitOption(text):
		g.options = append(g.options, optionWords(text)...)
	case gitRepositoryFields[name] && !(g.sub == "clone" || g.sub == "init") || name == "repo" || name == "repo-path":
		g.repositories = append(g.repositories, text)
	case operand:
		g.operands = append(g.operands, gitOperand{rank, text})
	default:
		g.options = append(g.options, "--"+name+"="+text)
	}
}

// optionWords splits a text that git reads as an option into the option and its value; it returns one word if
// they are joined.
func optionWords(text string) []string {
	if first, _, _ := strings.Cut(text, " "); strings.Contains(first, "=") {
		return []string{text}
	}
	return strings.Fields(text)
}

// gitVerb returns git's subcommand or option for a verb that a tool applies to branches, tags and the like.
func (g *gitCall) gitVerb(text string) string {
	if g.sub == "branch" || g.sub == "tag" {
		switch text {
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
	return text
}

// shellText returns the git command as shell text.
func (g *gitCall) shellText() string {
	var b strings.Builder
	b.WriteString("git")
	word := func(text string) {
		if text != "" {
			b.WriteString(" " + command.QuoteWord(text))
		}
	}
	for _, repository := range g.repositories {
		word("-C")
		word(repository)
	}
	for _, w := range gitSubcommandWords(g.sub) {
		word(w)
	}
	for _, w := range append(g.verbs, g.options...) {
		word(w)
	}
	sorted.By(g.operands, func(a, b gitOperand) int { return a.rank - b.rank })
	if g.sub == "push" && len(g.operands) > 0 && g.operands[0].rank > 1 && g.operands[0].rank < 6 {
		word("origin")
	}
	files := false
	for _, o := range g.operands {
		if o.rank >= gitFileRank && !files && g.sub != "clone" && g.sub != "init" && g.sub != "worktree" && !isGitOption(o.text) {
			files = true
			word("--")
		}
		word(o.text)
	}
	return b.String()
}

// gitFileRank is the lowest rank of operands that are files.
const gitFileRank = 8

// gitOperandRanks gives the rank of an operand by the name, or last word, of its field.
var gitOperandRanks = map[string]int{
	"remote": 1, "upstream": 1, "name": 2, "key": 2, "tag": 3, "path": gitFileRank, "branch": 3, "value": 3, "base": 4, "point": 4, "commit": 4, "commits": 4,
	"revision": 4, "rev": 4, "hash": 4, "ref": 4, "refs": 4, "refspec": 4, "target": 4, "source": 4, "from": 4, "to": 5, "stash": 4, "url": 6,
	"uri": 6, "destination": gitFileRank, "directory": gitFileRank, "file": gitFileRank, "files": gitFileRank, "paths": gitFileRank, "pathspec": gitFileRank,
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
