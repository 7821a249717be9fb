package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/effect"
)

// command adds the effects of a command: text for a shell, or a program with
// arguments, together with the folder, environment and standard input in the
// payload.
func (c *Case) command() {
	text, ok := commandText(c.Action.Payload)
	if !ok || strings.TrimSpace(text) == "" {
		c.dynamic(effect.CauseField, "the command is missing")
		return
	}
	c.inFolder()
	c.run(text, &c.place, text == c.Action.Text("command"))
	if c.Action.Text("sandbox") == "off" || c.Action.Payload["dangerouslyDisableSandbox"] == true {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangePrivilege, Cause: effect.CauseUnboxed, Reason: "sandbox: off"})
	}
	if c.Action.Given != "" && !c.startsKnown() {
		c.dynamic(effect.CauseTool, "the action type is unknown")
	}
}

// startsKnown reports whether a case starts programs, and only such as shield knows. A text that a
// tool calls a command may else be one of a database, or of a game.
func (c *Case) startsKnown() bool {
	starts := false
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Execute {
			if e.Class == effect.Unknown {
				return false
			}
			starts = true
		}
	}
	return starts
}

// inFolder makes the folder that the payload names the one that the case is in.
func (c *Case) inFolder() {
	for _, field := range [...]string{"cwd", "workdir", "working_directory"} {
		if dir := c.Action.Text(field); dir != "" {
			c.place.CWD = c.place.In(dir).CWD
		}
	}
}

// program adds the effects of the code in the payload: Python, unless it says another
// language. What else a tool may run, it is given as a command.
func (c *Case) program() {
	text := c.Action.Text("code")
	if strings.TrimSpace(text) == "" {
		c.dynamic(effect.CauseField, "the code is missing")
		return
	}
	c.inFolder()
	c.code(text, languageOf(c.Action.Payload))
	if c.Action.Payload["command"] != nil {
		c.command()
	}
}

// patch adds what a patch in the form of apply_patch, or of diff, changes.
func (c *Case) patch() {
	text := c.Action.Text("patch")
	if !strings.Contains(text, "*** ") && !strings.Contains(text, "+++ ") {
		c.dynamic(effect.CauseField, "the patch names no file")
		return
	}
	c.inFolder()
	c.run("apply_patch <<<"+quoteWord(text), &c.place, false)
}

// run adds the effects of a text for a shell. spans says that their positions are
// positions in the payload's own text.
func (c *Case) run(text string, at *effect.Place, spans bool) {
	switch {
	case len(text) > maxCommand:
		c.dynamic(effect.CauseLimit, "the command is longer than 64 KiB")
		c.unexamined("the command is longer than 64 KiB")
		return
	case depth(text) > maxDepth:
		c.dynamic(effect.CauseLimit, "the command is nested deeper than 200 levels")
		c.unexamined("the command is nested deeper than 200 levels")
		return
	}
	result, err := c.analyze(text, at)
	if err != nil {
		c.dynamic(effect.CauseFailure, "the command could not be analysed")
		c.unexamined("the command could not be analysed")
		return
	}
	from := len(c.Effects)
	if c.Effects == nil {
		c.Effects = result.Effects
	} else {
		c.Effects = append(c.Effects, result.Effects...)
	}
	c.Files = append(c.Files, result.Files...)
	c.writes = append(c.writes, result.Writes...)
	c.requests(from)
	if !spans {
		for i := range c.Effects[from:] {
			c.Effects[from+i].From = effect.Span{}
		}
	}
	if c.words == "" {
		c.words = result.Words
	} else if len(c.words)+len(result.Words) < maxCommand {
		c.words += "\n" + result.Words
	}
}

// analyze asks the shell. A panic in it is returned as an error, because a failing
// parser must not affect other actions.
func (c *Case) analyze(text string, at *effect.Place) (r effect.Result, err error) {
	if c.shell == nil {
		return r, errors.New("analyse command: no shell is configured")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("analyse command: %v", p)
		}
	}()
	return c.shell(text, at), nil
}

// depth returns how deep brackets are nested, inside and outside quotes.
func depth(text string) int {
	deepest, open := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			open++
			deepest = max(deepest, open)
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return deepest
}

// commandText returns the command of a payload as text for a shell.
func commandText(payload map[string]any) (text string, ok bool) {
	switch v := payload["command"].(type) {
	case string:
		text = v
	case []any:
		text = argv(v)
	case nil:
		text, _ = payload["program"].(string)
	default:
		return "", false
	}
	if args, isList := payload["args"].([]any); isList && len(args) > 0 {
		text = strings.TrimLeft(text+" "+argv(args), " ")
	} else if args, isText := payload["args"].(string); isText {
		text += " " + args
	}
	if name, _ := payload["shell"].(string); name != "" {
		text = inShell(name, text)
	}
	if env, isObject := payload["env"].(map[string]any); isObject {
		text = withEnvironment(env, text)
	}
	for _, field := range [...]string{"stdin", "input"} {
		if in, _ := payload[field].(string); in != "" {
			text = "printf %s " + quoteWord(in) + " | { " + text + "\n}"
		}
	}
	return text, true
}

// inShell returns a command that runs text in the given shell.
func inShell(name, text string) string {
	base := strings.ToLower(name[strings.LastIndexAny(name, `/\`)+1:])
	switch strings.TrimSuffix(base, ".exe") {
	case "powershell", "pwsh":
		return "powershell -Command " + quoteWord(text)
	case "cmd":
		return "cmd /c " + quoteWord(text)
	case "sh", "bash", "zsh", "dash", "ksh", "true", "default", "system":
		return text
	}
	return quoteWord(name) + " -c " + quoteWord(text)
}

// withEnvironment puts variables before a command.
func withEnvironment(env map[string]any, text string) string {
	var names []string
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		value, isText := env[name].(string)
		if !isText || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == "" {
			continue
		}
		b.WriteString("export " + name + "=" + quoteWord(value) + "\n")
	}
	return b.String() + text
}

// argv returns the words of a list as text for a shell.
func argv(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		word, isText := v.(string)
		if !isText {
			word = fmt.Sprint(v)
		}
		words[i] = quoteWord(word)
	}
	return strings.Join(words, " ")
}

// quoteWord quotes a word for a shell if necessary.
func quoteWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
