package analysis

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// addUnknownToolEffects adds the effects that the name of an unknown tool and the texts in its
// payload suggest, and always an effect with [effect.Unknown] certainty. The cause of that effect
// is [effect.CauseUnknownReadOnlyTool] if everything suggests that the tool only reads.
func (c *ActionCase) addUnknownToolEffects() {
	if name := action.CanonicalType(c.Action.Type); name != "" {
		c.addUnknownEffect(effect.CauseInvalidActionField, "a field that "+name+" needs is missing; instead: add the field")
	}
	name := withoutServerName(c.Action.Type)
	word, list := knowledge.ToolNameVerb(name)
	s := toolExaminer{ActionCase: c, textsLeft: maxPayloadTexts, isToolReadOnly: list == "reads", name: name}
	s.examineTexts("", c.Action.Payload)
	if s.textsLeft < 0 {
		c.setUnexamined("the payload has more than 256 texts")
	}
	if s.payloadOperationVerb != "" && list == "reads" {
		word, list, s.isToolReadOnly = s.payloadOperationVerb, s.payloadOperationVerbCategory, false
	}
	if list == "" {
		c.unknownToolOperationCategory = s.payloadOperationVerbCategory
	}
	s.addVerbEffects(word, list)
	c.addCredentialAndURLEffects()
	if s.isToolReadOnly && c.UnexaminedReason == "" && !slices.ContainsFunc(c.Effects, doesMoreThanRead) {
		c.addUnknownEffect(effect.CauseUnknownReadOnlyTool, unknownReadOnlyToolReason)
		return
	}
	c.addUnknownEffect(effect.CauseUnknownTool, unknownToolReason)
}

const (
	unknownReadOnlyToolReason = "first use of a tool that shield does not know, though its name and fields say that it only reads"
	unknownToolReason         = "first use of a tool that shield does not know"
)

// IsUnknownToolEffect reports whether an effect says only that the action's type is unknown. A rule that names the
// type, or the user's class for the tool, replaces it.
func (c *ActionCase) IsUnknownToolEffect(e *effect.Effect) bool {
	return e.Certainty == effect.Unknown && (e.Cause == effect.CauseUnknownTool && e.Reason == unknownToolReason || e.Cause == effect.CauseUnknownReadOnlyTool && e.Reason == unknownReadOnlyToolReason) && !IsKnownActionType(c.Action.Type)
}

// withoutServerName returns a tool's own name, without the name of its server.
func withoutServerName(name string) string {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if _, tool, ok := strings.Cut(rest, "__"); ok && tool != "" {
			return tool
		}
	}
	return name
}

// doesMoreThanRead reports whether an effect is more than reading. Which files must not be read is decided by
// rules.
func doesMoreThanRead(e effect.Effect) bool {
	switch e.Kind {
	case effect.ReadFile, effect.ListDirectory, effect.HTTPRequest:
		return false
	case effect.Execute:
		return e.Class != effect.ReadOnly && (e.Program != databaseClientProgram || e.Class != effect.Network)
	}
	return true
}

// A toolExaminer is the state of examining the payload of an unknown tool.
type toolExaminer struct {
	*ActionCase
	name                  string
	textsLeft             int  // texts that may still be examined
	isToolReadOnly        bool // the name says that the tool only reads
	messageRecipients     []string
	hasMoneyAmount        bool // the payload has an amount of money
	setsPermissions       bool // the payload has roles, members or visibility
	hasDatabaseQuery      bool // the payload has a database query
	hasCode               bool // the payload has commands or code
	declaredCodeLanguage  string
	readsPathsRecursively bool // paths are read recursively
	runsCommands          bool // the action's type runs commands
	isActionTypeKnown     bool // the action's type is known; only the fields it does not use are examined

	payloadOperationVerb, payloadOperationVerbCategory string // a verb in the payload, and the list of verbs that has it
}

// examineTexts examines each text of a payload, in the order of field names.
func (s *toolExaminer) examineTexts(field string, v any) {
	if s.textsLeft < 0 {
		return
	}
	switch v := v.(type) {
	case string:
		if s.textsLeft--; s.textsLeft >= 0 && v != "" {
			s.examineText(field, v)
		}
	case bool:
		s.setsPermissions = s.setsPermissions || v && fieldNameEndsWithAny(field, "public")
		if words := knowledge.SplitNameWords(field); v && len(words) > 0 && (len(words) == 1 || knowledge.VerbIn(words[0], "destroys") && words[0] != "format") {
			s.setPayloadOperationVerb(words[0])
		}
	case []any:
		if isCommandField(field) && len(v) > 0 && !slices.ContainsFunc(v, func(x any) bool { _, isText := x.(string); return !isText }) {
			s.textsLeft--
			s.hasCode = true
			s.addShellEffects(quoteArgs(v), &s.executionContext, false)
			return
		}
		for _, item := range v {
			s.examineTexts(field, item)
		}
	case map[string]any:
		outer := s.declaredCodeLanguage
		if text := payloadCodeLanguage(v); text != "" {
			s.declaredCodeLanguage = text
		}
		for _, name := range sorted.Keys(v) {
			if words := knowledge.SplitNameWords(name); s.isActionTypeKnown && len(words) > 0 && proseFieldWords[words[len(words)-1]] {
				continue
			}
			s.examineTexts(name, v[name])
		}
		s.declaredCodeLanguage = outer
	default:
		s.hasMoneyAmount = s.hasMoneyAmount || v != nil && fieldNameEndsWithAny(field, "amount")
	}
}

// examineText adds the effects that a text suggests by its field's name and its content.
func (s *toolExaminer) examineText(field, text string) {
	if !s.isActionTypeKnown && s.holdsCredential(field, text) {
		s.addCredentialSend(effect.Effect{RemoteTargetName: s.Action.Type}, "the field "+field)
	}
	if fieldNameEndsWithAny(field, "action", "operation", "op", "method", "mode", "verb") && len(text) <= 64 {
		s.setPayloadOperationVerb(text)
	}
	if s.isToolReadOnly && (text == strings.ToUpper(text) && len(text) <= 64 && isSingleWord(text) && knowledge.IsSecretVariableName(text) || fieldNameEndsWithAny(field, "resource", "resource_type", "resourcetype", "kind") && knowledge.VerbIn(strings.TrimSuffix(strings.ToLower(text), "s"), "secrets")) {
		s.Effects = append(s.Effects, effect.Effect{Kind: effect.ReadSecret, RemoteTargetName: s.Action.Type, Reason: "the field " + field + " names a secret"})
	}
	if appendedSQLStatementPattern().MatchString(text) {
		s.payloadOperationVerb, s.payloadOperationVerbCategory = "drop", "destroys"
	}
	switch {
	case fieldNameEndsWithAny(field, "sql", "query", "statement") && isSQL(text):
		s.hasDatabaseQuery = true
		s.addShellEffects(databaseClientProgram+" -c "+command.QuoteWordIfNeeded(text), &s.executionContext, false)
	case isCodeField(field):
		s.hasCode = true
		if s.addCodeEffects(text, s.codeLanguage()); s.isActionTypeKnown && s.runsCommands {
			s.addEffectsIfKnownCommand(text)
		}
	case isCommandField(field):
		s.hasCode = true
		s.addShellEffects(text, &s.executionContext, false)
	case isURL(text) || fieldNameEndsWithAny(field, "url", "uri", "endpoint", "webhook", "href"):
		s.addHTTPRequestEffect(text)
	case fieldNameEndsWithAny(field, "host", "hostname", "server", "domain"):
		s.Effects = append(s.Effects, effect.Effect{Kind: effect.Connect, Host: effect.CanonicalHost(text)})
	case s.isActionTypeKnown && looksLikePath(text):
		s.addFileEffects(text)
	case fieldNameEndsWithAny(field, "recipient", "attendee", "invitee", "mailto") || slices.Contains([]string{"to", "cc", "bcc"}, strings.ToLower(field)):
		s.messageRecipients = append(s.messageRecipients, text)
	case looksLikePath(text) || len(text) <= 4096 && strings.IndexByte(text, '\n') < 0 &&
		fieldNameEndsWithAny(field, "path", "file", "dir", "folder", "directory", "filename", "source", "destination", "src", "dst", "dest", "target", "output", "cwd", "root"):
		s.addFileEffects(text)
	case s.isActionTypeKnown && s.runsCommands && s.addEffectsIfKnownCommand(text):
	default:
		s.addTextWithoutEffect("field " + redact.TruncateBytes(field, 40))
		s.hasMoneyAmount = s.hasMoneyAmount || fieldNameEndsWithAny(field, "amount", "iban")
		s.setsPermissions = s.setsPermissions || fieldNameEndsWithAny(field, "role", "permission", "member", "collaborator", "visibility", "privilege")
	}
}

// addEffectsIfKnownCommand reports whether a text has the form of a command of a known program; if so, it adds the command's
// effects.
func (s *toolExaminer) addEffectsIfKnownCommand(text string) bool {
	if len(text) > maxCommandBytes || !strings.ContainsAny(text, "|;&$<>`") && !strings.Contains(text, " -") && !strings.Contains(text, "/") {
		return false
	}
	one := &ActionCase{Action: s.Action, shellAnalyzer: s.shellAnalyzer, executionContext: s.executionContext}
	one.addShellEffects(text, &one.executionContext, false)
	if !slices.ContainsFunc(one.Effects, func(e effect.Effect) bool { return e.Kind == effect.Execute && e.Class != effect.UnknownClass }) {
		return false
	}
	s.Effects = append(s.Effects, one.Effects...)
	return true
}

// addFileEffects adds the effects of a tool on the file, or on the files of a glob pattern, that a payload field
// names: reading and, unless the tool only reads, writing.
func (s *toolExaminer) addFileEffects(text string) {
	kinds := []effect.Kind{effect.ReadFile, effect.WriteFile}
	if s.isToolReadOnly {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		if strings.ContainsAny(text, "*?[") {
			path, isPattern := s.executionContext.CanonicalPath(text, true)
			s.Effects = append(s.Effects, effect.Effect{Kind: kind, Path: path, PathIsPattern: isPattern, Recursive: s.readsPathsRecursively})
			continue
		}
		s.addPathEffects(kind, text, s.readsPathsRecursively)
	}
}

// appendedSQLStatementPattern matches an SQL statement appended to a value.
var appendedSQLStatementPattern = prefilter.LazyRegexp(`(?i);\s*(?:drop|delete|truncate|alter|update|insert|grant|create)\s+(?:table|from|database|schema|user|into|on|all|\w+\s+set)\b`)

// setPayloadOperationVerb records a verb in a value or in the name of a flag that is true: the tool then does more than its
// name says.
func (s *toolExaminer) setPayloadOperationVerb(text string) {
	word, list := knowledge.ToolNameVerb(text)
	switch list {
	case "destroys", "pays", "grants", "runs", "changes", "sends":
		s.payloadOperationVerb, s.payloadOperationVerbCategory = word, list
	}
}

// addVerbEffects adds the effects suggested by the verb in the tool's name, and by fields such as amounts and
// recipients.
func (s *toolExaminer) addVerbEffects(verb, verbListName string) {
	change := effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: verb, RemoteTargetName: s.Action.Type}
	switch verbListName {
	case "reads":
		if knowledge.ToolReturnsSecret(s.Action.Type) {
			s.Effects = append(s.Effects, effect.Effect{Kind: effect.ReadSecret, RemoteTargetName: s.Action.Type, Reason: "the tool's name says that it returns a secret"})
		}
		return
	case "destroys", "pays":
		change.RemoteOperationVerb, change.Harms = "delete", []effect.Harm{effect.DestroysResources}
		change.Reason = "the tool's name contains " + strconv.Quote(verb)
	case "grants":
		change.RemoteOperationVerb = "grant"
	case "runs":
		if s.hasDatabaseQuery && !s.hasMoneyAmount && !s.setsPermissions && len(s.messageRecipients) == 0 && !slices.ContainsFunc(s.Effects, doesMoreThanRead) {
			s.isToolReadOnly = true // the tool runs a query that only reads
			return
		}
		if change.RemoteOperationVerb = "run"; s.hasCode && !slices.ContainsFunc(s.Effects, func(e effect.Effect) bool { return e.Kind == effect.Connect }) {
			verbListName = "" // the tool runs analysed code and names no other machine
		}
	}
	if s.hasMoneyAmount && !change.DestroysRemoteResource() {
		change.RemoteOperationVerb, change.Harms, change.Reason = "pay", []effect.Harm{effect.DestroysResources}, "the arguments contain an amount of money"
	}
	if s.setsPermissions && !change.DestroysRemoteResource() {
		change.RemoteOperationVerb, change.Reason = "grant", "the arguments set roles, members or visibility"
	}
	if verbListName == "sends" || len(s.messageRecipients) > 0 {
		s.addMessageEffects(s.messageRecipients)
	}
	if verbListName != "" && verbListName != "sends" || s.hasMoneyAmount || s.setsPermissions {
		if !change.DestroysRemoteResource() {
			change.Harms = effect.HarmsOfRemoteOperation(change.RemoteOperationVerb)
		}
		s.Effects = append(s.Effects, change)
	}
}

// databaseClientProgram is the database client assumed for queries to any database, so that they can be
// analysed.
const databaseClientProgram = "psql"

// isSQL reports whether a text may be an SQL query or a command of a database shell, rather than search
// words.
func isSQL(text string) bool {
	first, rest, more := strings.Cut(strings.ToLower(strings.TrimLeft(text, " \t\r\n(;")), " ")
	if first == "" {
		return false
	}
	switch {
	case strings.HasPrefix(first, "--"), strings.HasPrefix(first, "/*"), first[0] == '\\':
		return true
	case strings.ContainsAny(text, ";\n"):
		return true
	}
	return more && rest != "" && knowledge.VerbIn(strings.TrimSpace(first), "queries")
}

// isCodeField reports whether a field of an unknown tool contains code.
func isCodeField(fieldName string) bool {
	return fieldNameEndsWithAny(fieldName, "script", "code", "cell", "python", "javascript", "expression")
}

// codeLanguage returns the language of the code that a tool runs, as given in the payload or else in the
// tool's name.
func (s *toolExaminer) codeLanguage() string {
	if s.declaredCodeLanguage != "" {
		return s.declaredCodeLanguage
	}
	for _, w := range knowledge.SplitNameWords(s.name) {
		if _, known := interpreterCommandByLanguage[w]; known {
			return w
		}
	}
	return ""
}

// payloadCodeLanguage returns the language that a payload names for its code.
func payloadCodeLanguage(payload map[string]any) (language string) {
	for _, name := range [...]string{"language", "lang", "kernel", "runtime"} {
		if text, ok := payload[name].(string); ok {
			language = text
		}
	}
	return language
}

// interpreterCommandByLanguage maps languages to the command that runs code in them. Python code may contain shell lines as
// in notebooks, hence ipython.
var interpreterCommandByLanguage = map[string]string{
	"bash": "bash -c", "shell": "sh -c", "sh": "sh -c", "zsh": "zsh -c", "powershell": "powershell -Command", "pwsh": "pwsh -Command",
	"python": "ipython -c", "ipython": "ipython -c", "py": "ipython -c",
	"javascript": "node -e", "js": "node -e", "node": "node -e", "nodejs": "node -e", "typescript": "node -e", "ts": "node -e",
	"ruby": "ruby -e", "perl": "perl -e", "php": "php -r", "lua": "lua -e", "r": "Rscript -e", "julia": "julia -e", "sql": databaseClientProgram + " -c",
}

// InterpreterCommandLine returns the command that is equivalent to an action that runs code; ok is false if the language is
// unknown, the code is empty or the action is of another type.
func InterpreterCommandLine(a *action.Action) (line string, ok bool) {
	text := a.Text("code")
	if a.Type != "execute_code" || text == "" {
		return "", false
	}
	starts, known := interpreterCommandPrefix(payloadCodeLanguage(a.Payload))
	return strings.Replace(starts, "ipython", "python3", 1) + " " + command.QuoteWordIfNeeded(text), known
}

// interpreterCommandPrefix returns the command that runs code of a language. Version numbers are ignored: python3.12 is
// python.
func interpreterCommandPrefix(language string) (commandPrefix string, known bool) {
	name := strings.TrimRight(strings.ToLower(language), "0123456789.x- ")
	if name == "" {
		name = "python"
	}
	commandPrefix, known = interpreterCommandByLanguage[name]
	return commandPrefix, known
}

// addCodeEffects adds the effects of code in a language; "" is Python.
func (c *ActionCase) addCodeEffects(text, language string) {
	starts, known := interpreterCommandPrefix(language)
	switch {
	case !known:
		c.addUnknownEffect(effect.CauseUnknownTool, "the code is in a language that shield does not read: "+strconv.Quote(redact.TruncateBytes(language, 40))+"; instead: ask the user to approve this code")
	case !strings.HasPrefix(starts, "ipython") || !isSingleWord(text):
		c.addShellEffects(starts+" "+command.QuoteWordIfNeeded(text), &c.executionContext, false)
	}
}

// isSingleWord reports whether a text is a single word or number, as in the fields "currency_code" and "zip_code":
// as Python code it has no effect.
func isSingleWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' })
}

// isCommandField reports whether a field of an unknown tool contains a command.
func isCommandField(fieldName string) bool {
	return fieldNameEndsWithAny(fieldName, "command", "cmd", "commands", "shell", "argv", "exec", "run", "bash", "powershell", "program", "entrypoint", "runner", "bin")
}

// fieldNameEndsWithAny reports whether a field has one of some names, or ends in one, as "outputPath" and "log_file"
// do.
func fieldNameEndsWithAny(field string, names ...string) bool {
	field = strings.ToLower(field)
	for _, name := range names {
		if strings.HasSuffix(strings.TrimSuffix(field, "s"), strings.TrimSuffix(name, "s")) && (len(name) > 3 || field == name || strings.HasSuffix(field, "_"+name) || strings.HasSuffix(field, "-"+name) || name == "url" || name == "uri" || name == "dir") {
			return true
		}
	}
	return false
}

func isURL(text string) bool {
	i := strings.Index(text, "://")
	return i > 0 && i < 16 && strings.IndexByte(text, ' ') < 0
}

// looksLikePath reports whether a text can only be a path.
func looksLikePath(text string) bool {
	if len(text) > 4096 || strings.IndexByte(text, '\n') >= 0 {
		return false
	}
	for _, head := range [...]string{"/", "~/", "./", "../", `\\`, `.\`, `..\`, `~\`, "$HOME", "${HOME}", "%USERPROFILE%", "$env:", "file:"} {
		if len(text) >= len(head) && strings.EqualFold(text[:len(head)], head) {
			return true
		}
	}
	return text == "~" || len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') && 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z'
}
