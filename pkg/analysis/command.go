package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// addCommandEffects adds the effects of a command: text for a shell, or a program with
// arguments, together with the folder, environment and standard input in the
// payload.
func (c *ActionCase) addCommandEffects() {
	text, ok := commandText(c.Action.Payload)
	if !ok || strings.TrimSpace(text) == "" {
		c.addUnknownEffect(effect.CauseInvalidActionField, "the command is missing")
		return
	}
	c.setWorkingFolderFromPayload()
	place := c.executionContext
	if inner, ok := strings.CutPrefix(text, powerShellCommandPrefix); ok && inner == command.QuoteWordIfNeeded(c.Action.Text("command")) {
		text, place.IsCommandTextPowerShell = c.Action.Text("command"), true
	}
	place.IsCommandTextPowerShell = place.IsCommandTextPowerShell || c.Action.IsPowerShellCommand && text == c.Action.Text("command")
	c.addShellEffects(text, &place, text == c.Action.Text("command"))
	c.addEffectsInPayloadWorkingFolders(text)
	c.addEffectsWithArgsAppendedByTool(text)
	c.addRemoteExecutionEffect()
	if c.Action.Text("sandbox") == "off" || c.Action.Payload["dangerouslyDisableSandbox"] == true {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangePrivilege, Cause: effect.CauseRunsOutsideHostSandbox, Reason: "sandbox: off"})
	}
	c.addPrivilegeElevationEffect()
	if c.Action.OriginalTypeSharedByOtherTools != "" && !c.startsOnlyKnownPrograms() {
		c.addUnknownEffect(effect.CauseUnknownTool, unknownToolReason)
	}
}

// addEffectsWithArgsAppendedByTool analyses shellCommand again together with each payload field that is a list
// of texts and whose role is not known: the tool may append these texts to the command as arguments.
func (c *ActionCase) addEffectsWithArgsAppendedByTool(shellCommand string) {
	for _, field := range fieldsBesideCommand(c.Action.Payload) {
		list, _ := c.Action.Payload[field].([]any)
		if len(list) > 0 && len(list) <= maxPayloadTexts && commandFieldRole(field) == fieldRoleOther && !slices.ContainsFunc(list, func(v any) bool { _, isText := v.(string); return !isText }) {
			c.addShellEffects(shellCommand+" "+quoteArgs(list), &c.executionContext, false)
		}
	}
}

// addPrivilegeElevationEffect adds the effect of running with more privileges, if a field of the payload asks for them.
func (c *ActionCase) addPrivilegeElevationEffect() {
	for _, field := range fieldsBesideCommand(c.Action.Payload) {
		v := fmt.Sprint(c.Action.Payload[field])
		words := knowledge.SplitNameWords(field)
		switch {
		case field == "sandbox" || c.Action.Payload["dangerouslyDisableSandbox"] == true && field == "dangerouslyDisableSandbox" || len(words) == 0 || slices.Contains([]string{"false", "0", "no", "", "never", "<nil>"}, v):
		case slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains([]string{"sudo", "privileged", "elevated", "elevate", "escalated", "escalation", "escalate", "admin"}, w)
		}), slices.Contains(words, "sandbox") && (strings.Contains(v, "escalat") || slices.ContainsFunc(words, func(w string) bool { return w == "no" || w == "disable" || w == "bypass" || w == "skip" })),
			len(words) > 1 && slices.Contains(words, "as") && words[len(words)-1] == "root", v == "true" && field == "root", v == "root" && slices.Contains([]string{"user", "username", "as"}, words[len(words)-1]):
			c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangePrivilege, Cause: effect.CauseRunsOutsideHostSandbox, Reason: field + ": " + redact.TruncateBytes(v, 40)})
		}
	}
}

// addRemoteExecutionEffect adds the effect of running on another machine or in a container, if a field of the payload
// asks for it.
func (c *ActionCase) addRemoteExecutionEffect() {
	for _, field := range fieldsBesideCommand(c.Action.Payload) {
		words := knowledge.SplitNameWords(field)
		if len(words) == 0 || c.Action.Text(field) == "" {
			continue
		}
		switch v := c.Action.Text(field); words[len(words)-1] {
		case "host", "hostname", "connection":
			if strings.ContainsAny(v, ".@") && !effect.MayBeThisMachine(effect.CanonicalHost(v)) {
				c.addUnknownEffect(effect.CauseUnknownTool, "the command runs on "+redact.TruncateBytes(v, 40)+", which is not this machine; instead: ask the user to approve this command")
			}
		case "container", "pod", "vm", "instance", "machine", "device", "ssh", "node", "cluster", "namespace", "remote":
			c.addUnknownEffect(effect.CauseUnknownTool, "the command runs in "+redact.TruncateBytes(c.Action.Text(field), 40)+", which is not this machine; instead: ask the user to approve this command")
		}
	}
}

// startsOnlyKnownPrograms reports whether a case starts programs and shield knows all of them. Otherwise a text that a
// tool calls a command may be a command of a database or a game.
func (c *ActionCase) startsOnlyKnownPrograms() bool {
	starts := false
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.Execute {
			if e.Class == effect.UnknownClass {
				return false
			}
			starts = true
		}
	}
	return starts
}

// setWorkingFolderFromPayload sets the case's working directory to the folder in the payload's field cwd,
// workdir or working_directory.
func (c *ActionCase) setWorkingFolderFromPayload() {
	for _, field := range [...]string{"cwd", "workdir", "working_directory"} {
		if dir := c.Action.Text(field); dir != "" {
			c.executionContext.CWD = c.executionContext.WithCWD(dir).CWD
		}
	}
}

// addEffectsInPayloadWorkingFolders analyses shellCommand again in each folder that the payload names in a field
// that may hold the command's working directory. The case's own working directory is skipped.
func (c *ActionCase) addEffectsInPayloadWorkingFolders(shellCommand string) {
	own := c.executionContext.CWD
	for _, field := range fieldsBesideCommand(c.Action.Payload) {
		dir := c.Action.Text(field)
		if dir == "" || commandFieldRole(field) != fieldRoleWorkingFolder {
			continue
		}
		if c.executionContext.CWD = c.executionContext.WithCWD(dir).CWD; c.executionContext.CWD != own {
			c.addShellEffects(shellCommand, &c.executionContext, false)
		}
		c.executionContext.CWD = own
	}
}

// fieldsBesideCommand returns the names of a payload's fields, without "command", in order.
func fieldsBesideCommand(payload map[string]any) (names []string) {
	for name := range payload {
		if name != "command" {
			names = append(names, name)
		}
	}
	sorted.SortStrings(names)
	return names
}

// A fieldRole says what a payload field is for a command: for example its arguments, its environment or its
// working folder.
type fieldRole uint8

const (
	fieldRoleOther fieldRole = iota
	fieldRoleCommandText
	fieldRoleArguments
	fieldRoleEnvironment
	fieldRoleShell
	fieldRoleStdin
	fieldRoleWorkingFolder
)

// commandFieldRole returns the role of a field in an action that runs a command, by its name.
func commandFieldRole(fieldName string) fieldRole {
	words := knowledge.SplitNameWords(fieldName)
	if len(words) == 0 {
		return fieldRoleOther
	}
	last := words[len(words)-1]
	if last == "list" && len(words) > 1 {
		last = words[len(words)-2]
	}
	switch {
	case fieldName == "command" || fieldName == "program" || fieldName == "sandbox":
		return fieldRoleCommandText
	case slices.Contains([]string{"args", "arg", "argument", "arguments", "argv", "flag", "flags", "option", "options", "opt", "opts", "operand", "operands", "param", "params", "parameter", "parameters", "positional", "positionals"}, last):
		return fieldRoleArguments
	case slices.Contains([]string{"env", "envs", "environment", "environ", "vars", "variables"}, last):
		return fieldRoleEnvironment
	case words[0] == "shell" || slices.Contains([]string{"interpreter", "executable"}, last):
		return fieldRoleShell
	case words[0] == "stdin" || fieldName == "input":
		return fieldRoleStdin
	case slices.Contains([]string{"cwd", "workdir", "folder", "chdir", "cd", "dir", "directory", "root", "workspace"}, last):
		return fieldRoleWorkingFolder
	}
	return fieldRoleOther
}

// addPayloadCodeEffects adds the effects of the code in the payload, which is Python unless the payload
// names another language. If the payload also contains a command, it adds the effects of the
// command.
func (c *ActionCase) addPayloadCodeEffects() {
	text := c.Action.Text("code")
	if strings.TrimSpace(text) == "" {
		c.addUnknownEffect(effect.CauseInvalidActionField, "the code is missing")
		return
	}
	c.setWorkingFolderFromPayload()
	c.addCodeEffects(text, payloadCodeLanguage(c.Action.Payload))
	if c.Action.Payload["command"] != nil {
		c.addCommandEffects()
	}
}

// addPatchEffects adds the changes of a patch in the format of apply_patch or diff.
func (c *ActionCase) addPatchEffects() {
	text := c.Action.Text("patch")
	if !strings.Contains(text, "*** ") && !strings.Contains(text, "+++ ") {
		c.addUnknownEffect(effect.CauseInvalidActionField, "the patch names no file")
		return
	}
	c.setWorkingFolderFromPayload()
	c.addShellEffects("apply_patch <<<"+command.QuoteWordIfNeeded(text), &c.executionContext, false)
}

// addShellEffects adds the effects of a shell command. spansReferToPayload says that their
// positions refer to the payload's own text.
func (c *ActionCase) addShellEffects(text string, at *effect.PathContext, spansReferToPayload bool) {
	switch {
	case len(text) > maxCommandBytes:
		c.addUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command is longer than 64 KiB")
		c.setUnexamined("the command is longer than 64 KiB")
		return
	case bracketDepth(text) > maxBracketDepth:
		c.addUnknownEffect(effect.CauseAnalysisLimitExceeded, "the command is nested deeper than 200 levels")
		c.setUnexamined("the command is nested deeper than 200 levels")
		return
	}
	result, err := c.analyzeShell(text, at)
	if err != nil {
		c.addUnknownEffect(effect.CauseAnalysisFailure, "the command could not be analysed")
		c.setUnexamined("the command could not be analysed")
		return
	}
	from := len(c.Effects)
	if c.Effects == nil {
		c.Effects = result.Effects
	} else {
		c.Effects = append(c.Effects, result.Effects...)
	}
	c.LabelledFiles = append(c.LabelledFiles, result.LabelledFiles...)
	c.filesWrittenByCommand = append(c.filesWrittenByCommand, result.Writes...)
	for _, text := range result.TextsCoveredByNoEffect {
		c.addTextWithoutEffect(text)
	}
	for _, w := range result.Writes {
		c.Effects = append(c.Effects, webOrReverseShellEffects(w.Path, w.NewText)...)
	}
	c.addRemoteChangesFromURLs(from)
	if !spansReferToPayload {
		for i := range c.Effects[from:] {
			c.Effects[from+i].Span = effect.CommandTextSpan{}
		}
	}
	if c.resolvedCommandText == "" {
		c.resolvedCommandText = result.ResolvedCommandText
	} else if len(c.resolvedCommandText)+len(result.ResolvedCommandText) < maxCommandBytes {
		c.resolvedCommandText += "\n" + result.ResolvedCommandText
	}
}

// analyzeShell calls the shell analysis. It returns a panic as an error, because a failing parser must not affect
// other actions.
func (c *ActionCase) analyzeShell(text string, at *effect.PathContext) (r effect.CommandAnalysis, err error) {
	if c.shellAnalyzer == nil {
		return r, errors.New("analyse command: the shell analysis is not configured; set Analyzer.Shell")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("analyse command: %v", p)
		}
	}()
	return c.shellAnalyzer(text, at), nil
}

// bracketDepth returns the nesting depth of brackets, inside and outside quotes.
func bracketDepth(text string) int {
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

// commandText returns the command of a payload as shell text.
func commandText(payload map[string]any) (text string, ok bool) {
	switch v := payload["command"].(type) {
	case string:
		text = v
	case []any:
		text = quoteArgs(v)
	case nil:
		text, _ = payload["program"].(string)
	default:
		return "", false
	}
	fields := fieldsBesideCommand(payload)
	for _, field := range fields {
		if commandFieldRole(field) == fieldRoleArguments {
			text = strings.TrimLeft(text+" "+shellArgsText(payload[field]), " ")
		}
	}
	for _, field := range fields {
		switch commandFieldRole(field) {
		case fieldRoleShell:
			if name, _ := payload[field].(string); name != "" {
				text = wrapInShell(name, text)
			}
		case fieldRoleEnvironment:
			text = prependExportLines(payload[field], text)
		case fieldRoleStdin:
			if in := joinPayloadTextsByNewline(payload[field]); in != "" {
				text = "printf %s " + command.QuoteWordIfNeeded(in) + " | { " + text + "\n}"
			}
		}
	}
	return text, true
}

// shellArgsText returns the words that a field adds to a command.
func shellArgsText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		return quoteArgs(v)
	}
	return "" // an object contains settings of the tool instead of command words
}

// powerShellCommandPrefix makes the next word run as PowerShell code.
const powerShellCommandPrefix = "powershell -Command "

// wrapInShell returns a command that runs text in the given shell.
func wrapInShell(name, text string) string {
	if program, rest, ok := strings.Cut(name, " "); ok {
		if last := name[strings.LastIndexByte(name, ' ')+1:]; strings.HasPrefix(last, "-") && strings.HasSuffix(last, "c") {
			return name + " " + command.QuoteWordIfNeeded(text)
		}
		if strings.HasPrefix(strings.TrimSpace(rest), "-") {
			return name + " -c " + command.QuoteWordIfNeeded(text)
		}
		return program + " " + rest + " " + command.QuoteWordIfNeeded(text) // a shell on another machine, as with ssh
	}
	base := strings.ToLower(name[strings.LastIndexAny(name, `/\`)+1:])
	switch strings.TrimSuffix(base, ".exe") {
	case "powershell", "pwsh":
		return powerShellCommandPrefix + command.QuoteWordIfNeeded(text)
	case "cmd":
		return "cmd /c " + command.QuoteWordIfNeeded(text)
	case "sh", "bash", "zsh", "dash", "ksh", "true", "default", "system":
		return text
	}
	return command.QuoteWordIfNeeded(name) + " -c " + command.QuoteWordIfNeeded(text)
}

// prependExportLines prefixes a command with variables: an object of names and values, or a list of texts
// NAME=VALUE.
func prependExportLines(env any, shellCommand string) string {
	var b strings.Builder
	set := func(name, value string) {
		if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" && name != "" {
			b.WriteString("export " + name + "=" + command.QuoteWordIfNeeded(value) + "\n")
		}
	}
	switch env := env.(type) {
	case string:
		for line := range strings.FieldsFuncSeq(env, func(r rune) bool { return r == '\n' || r == ';' }) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			set(name, value)
		}
	case []any:
		if name, ok := parseEnvNameValuePair(env); ok {
			set(name[0], name[1])
			break
		}
		for _, item := range env {
			shellCommand = prependExportLines(item, shellCommand)
		}
	case map[string]any:
		for _, name := range sorted.Keys(env) {
			if value, isText := env[name].(string); isText {
				set(name, value)
			}
		}
		if name, ok := env["name"].(string); ok { // a list of names and values
			value, _ := env["value"].(string)
			set(name, value)
		}
	}
	return b.String() + shellCommand
}

// parseEnvNameValuePair returns a list of two texts as a name and a value.
func parseEnvNameValuePair(list []any) (pair [2]string, ok bool) {
	if len(list) != 2 {
		return pair, false
	}
	for i, v := range list {
		if pair[i], ok = v.(string); !ok {
			return pair, false
		}
	}
	return pair, !strings.Contains(pair[0], "=")
}

// quoteArgs returns a list of arguments as shell text.
func quoteArgs(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		word, isText := v.(string)
		if !isText {
			word = fmt.Sprint(v)
		}
		words[i] = command.QuoteWordIfNeeded(word)
	}
	return strings.Join(words, " ")
}
