package analysis

import (
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
)

// addEffectsOfUnanalyzedFields adds effects for the payload fields that no analysis of this action
// type reads. It judges each text in such a field by the field's name and by the text's form.
func (c *ActionCase) addEffectsOfUnanalyzedFields(t *tool) {
	s := toolExaminer{ActionCase: c, textsLeft: maxPayloadTexts, isActionTypeKnown: true, runsCommands: c.Action.Type == "execute_command" || c.Action.Type == "execute_code", isToolReadOnly: t.readOnly, name: c.Action.Type, readsPathsRecursively: t.readOnly && slices.ContainsFunc(t.fieldUses, func(u payloadFieldUse) bool { return u.recursive })}
	for _, field := range sorted.Keys(c.Action.Payload) {
		v := c.Action.Payload[field]
		if v == nil || c.isFieldAnalyzedOrHarmless(t, field) {
			continue
		}
		s.examineTexts(field, v)
		if c.Action.Type == "http_request" && isNonEmptyPayloadValue(v) && !slices.ContainsFunc(t.fieldsSentToURLHost, func(f string) bool { return isNonEmptyPayloadValue(c.Action.Payload[f]) }) {
			if _, isFlag := v.(bool); !isFlag && looksLikeDataToSend(v) {
				c.Effects = append(c.Effects, effect.Effect{Kind: effect.SendData, Program: c.Action.Type, Host: c.firstHTTPRequestHost()})
			}
		}
	}
	if s.textsLeft < 0 {
		c.setUnexamined("the payload has more than 256 texts")
	}
	if len(s.messageRecipients) > 0 && t.unconditionalEffectKind == "" {
		c.addMessageEffects(s.messageRecipients)
	}
	if s.payloadOperationVerbCategory == "destroys" || s.payloadOperationVerbCategory == "pays" || s.payloadOperationVerbCategory == "grants" {
		s.addVerbEffects(s.payloadOperationVerb, s.payloadOperationVerbCategory)
	}
}

// addTextWithoutEffect records a word, an input or a field that no effect covers.
func (c *ActionCase) addTextWithoutEffect(text string) {
	if len(c.TextsCoveredByNoEffect) < maxPayloadTexts && !slices.Contains(c.TextsCoveredByNoEffect, text) {
		c.TextsCoveredByNoEffect = append(c.TextsCoveredByNoEffect, text)
	}
}

// firstHTTPRequestHost returns the host of the first request of a case.
func (c *ActionCase) firstHTTPRequestHost() string {
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Kind == effect.HTTPRequest {
			return e.Host
		}
	}
	return ""
}

// looksLikeDataToSend reports whether the value of an unknown field is data to send rather than a setting of the
// request.
func looksLikeDataToSend(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > 16 && !isURL(v)
	case []any, map[string]any:
		return true
	}
	return false
}

// proseFieldWords are the last words of names of fields that hold text for people or for the tool itself, not
// names of files or machines.
var proseFieldWords = map[string]bool{
	"action": false, "description": true, "explanation": true, "reason": true, "reasoning": true, "justification": true, "thought": true, "thoughts": true, "instruction": true,
	"instructions": true, "title": true, "summary": true, "subject": true, "note": true, "notes": true, "comment": true, "label": true, "intent": true, "query": true, "prompt": true,
	"message": true, "body": true, "selector": true, "xpath": true, "ref": true, "element": true, "locator": true, "timezone": true, "language": true, "timeout": true,
}

// fileFieldWords are the last words of names of fields that hold a file, unless they hold text, a place or a
// person.
var fileFieldWords = map[string]bool{"source": true, "src": true, "resource": true, "location": true, "to": true, "from": true}

// containsPathString reports whether a value, or one nested in it, can only be a path.
func containsPathString(v any) bool {
	switch v := v.(type) {
	case string:
		return looksLikePath(v)
	case []any:
		return slices.ContainsFunc(v, containsPathString)
	case map[string]any:
		for _, inner := range v {
			if containsPathString(inner) {
				return true
			}
		}
	}
	return false
}

// isTextWritingActionType reports whether actions of a type write text from their payload to a file or a memory.
func isTextWritingActionType(actionType string) bool {
	switch actionType {
	case "write_file", "append_file", "create_file", "edit_file", "memory_write", "apply_patch":
		return true
	}
	return false
}

// possibleCommandFieldWords are the proseFieldWords whose text a tool that runs commands may run or type.
var possibleCommandFieldWords = map[string]bool{"body": true, "message": true, "prompt": true, "query": true, "action": true, "instruction": true, "instructions": true}

// contentFieldWords are the last words of names of fields that hold content for a file, or the text it replaces.
var contentFieldWords = map[string]bool{
	"content": true, "contents": true, "text": true, "string": true, "str": true, "code": true, "line": true, "lines": true, "snippet": true, "search": true, "replace": true,
	"replacement": true, "value": true, "old": true, "new": true, "updated": true, "data": true, "insert": true, "edit": true, "edits": true, "changes": true, "diff": true,
	"patch": true, "before": true, "after": true, "source": true, "cell": true, "body": true, "query": true,
}

// isFieldAnalyzedOrHarmless reports whether a field of a known type has been read already, or holds text without effect.
func (c *ActionCase) isFieldAnalyzedOrHarmless(t *tool, field string) bool {
	words := knowledge.SplitNameWords(field)
	last := field
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	if (fileFieldWords[last] || (last == "edits" || last == "changes") && !isTextWritingActionType(c.Action.Type)) && containsPathString(c.Action.Payload[field]) && !slices.ContainsFunc(t.fieldUses, func(u payloadFieldUse) bool { return u.field == field }) {
		return false
	}
	runs := c.Action.Type == "execute_command" || c.Action.Type == "execute_code"
	if slices.ContainsFunc(t.fieldUses, func(u payloadFieldUse) bool { return u.field == field }) || slices.Contains(t.fieldsSentToURLHost, field) || proseFieldWords[last] && !(runs && possibleCommandFieldWords[last]) {
		return true
	}
	if v := c.Action.Payload[field]; runs {
		_, isText := v.(string)
		_, isObject := v.(map[string]any)
		if role := commandFieldRole(field); isObject && role == fieldRoleArguments || !isText && role == fieldRoleShell {
			return false
		}
	}
	switch c.Action.Type {
	case "execute_command":
		return commandFieldRole(field) != fieldRoleOther && !(field == "program" && c.Action.Payload["command"] != nil)
	case "execute_code":
		return field == "code" || commandFieldRole(field) != fieldRoleOther
	case "apply_patch":
		return field == "patch" || commandFieldRole(field) == fieldRoleWorkingFolder
	case "http_request", "web_fetch":
		return field == "method" || field == "headers"
	case "search_files":
		return field == "pattern"
	case "read_file":
		return field == "resource" // the resource of a tool server
	case "write_file", "append_file", "create_file", "edit_file":
		return contentFieldWords[last]
	case "memory_write", "memory_search", "agent_message":
		return contentFieldWords[last] || field == "key" || field == "to" || field == "from"
	}
	switch {
	case strings.HasPrefix(c.Action.Type, "send_"), strings.HasPrefix(c.Action.Type, "reply_"):
		return contentFieldWords[last] || slices.Contains([]string{"to", "cc", "bcc", "from", "channel", "html"}, field)
	case strings.HasSuffix(c.Action.Type, "_event"), strings.HasSuffix(c.Action.Type, "_schedule"):
		return field == "location" || fieldNameEndsWithAny(field, "attendees", "invitees", "guests", "participants")
	case strings.HasPrefix(c.Action.Type, "browser_"), strings.HasPrefix(c.Action.Type, "canvas_"):
		return contentFieldWords[last] || isBrowserCodeField(field)
	}
	return false
}
