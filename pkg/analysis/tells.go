package analysis

import (
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// maxRecipients is the maximum number of recipients of a message that get an effect each.
const maxRecipients = 64

// addMessageEffects adds a SendMessage effect for each recipient.
func (c *ActionCase) addMessageEffects(to []string) {
	if len(to) > maxRecipients {
		c.setUnexamined("the message has more than 64 recipients")
		to = to[:maxRecipients]
	}
	for _, person := range to {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.SendMessage, RemoteTargetName: strings.TrimSpace(person)})
	}
	if len(to) == 0 {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.SendMessage})
	}
}

// recipientsInFields returns the people and channels in some fields of the payload. A text is split at commas,
// semicolons and newlines, as mail programs do.
func (c *ActionCase) recipientsInFields(payloadFieldNames ...string) []string {
	var out []string
	for _, field := range payloadFieldNames {
		texts, _ := c.Action.Payload[field].([]any)
		if text, ok := c.Action.Payload[field].(string); ok {
			texts = []any{text}
		}
		for _, item := range texts {
			text, ok := item.(string)
			if !ok {
				text = joinPayloadTextsByNewline(item)
			}
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
				if part = strings.TrimSpace(part); part != "" {
					out = append(out, part)
				}
			}
		}
	}
	return out
}

// addCredentialAndURLEffects adds effects for credentials that the action's texts pass on, and for changes that its requests
// ask for.
func (c *ActionCase) addCredentialAndURLEffects() {
	name := c.Action.Type
	switch {
	case name == "memory_write", name == "agent_message", strings.HasSuffix(name, "_event"), strings.HasSuffix(name, "_schedule"),
		strings.HasPrefix(name, "send_"), strings.HasPrefix(name, "reply_"), strings.HasPrefix(name, "browser_"), strings.HasPrefix(name, "canvas_"):
		c.addPayloadCredentialSend(effect.Effect{RemoteTargetName: name})
	}
	for i, n := 0, min(len(c.Effects), maxPayloadTexts); i < n; i++ {
		if e := c.Effects[i]; e.Kind == effect.HTTPRequest {
			c.addURLEffects(e)
			if name == "http_request" || name == "web_fetch" {
				c.addPayloadCredentialSend(effect.Effect{Host: e.Host, URL: e.URL})
			}
		}
	}
}

// addPayloadCredentialSend adds an effect for the first text of the payload that holds a credential. A credential in a
// header or field for authentication does not count: it goes only to its own service.
func (c *ActionCase) addPayloadCredentialSend(destination effect.Effect) {
	if targetsThisMachine(destination) {
		return
	}
	leaves, complete := c.Action.Leaves(maxPayloadTexts)
	if !complete {
		c.setUnexamined("the payload has more than 256 texts")
	}
	for _, l := range leaves {
		if isLoginField(l) || l.Path == "url" || !c.holdsCredential(l.NearestFieldName, l.Text) {
			continue
		}
		c.addCredentialSend(destination, "the field "+l.Path)
		return
	}
}

// addCredentialSend adds an effect that sends a credential to the destination in e.
// credentialLocation tells where the credential was found. If the case already has an effect that
// sends data to this destination, that effect gets the credential label instead.
func (c *ActionCase) addCredentialSend(e effect.Effect, credentialLocation string) {
	e.Kind, e.DataLabels, e.Reason = effect.SendData, []effect.TaintLabel{effect.LabelCredential}, credentialLocation+" holds a credential"
	for i := range c.Effects {
		sent := &c.Effects[i]
		if sent.KindForPolicies() != effect.SendData || sent.Host != e.Host || sent.RemoteTargetName != e.RemoteTargetName || sent.Path != "" {
			continue
		}
		if !sent.HasLabel(effect.LabelCredential) {
			sent.DataLabels, sent.Reason = slices.Concat(sent.DataLabels, e.DataLabels), e.Reason
		}
		return
	}
	c.Effects = append(c.Effects, e)
}

// isLoginField reports whether a text is in a header or top-level field that is meant for a credential.
func isLoginField(l action.PayloadLeaf) bool {
	header, isHeader := strings.CutPrefix(l.Path, "headers.")
	return (isHeader || l.Path == l.NearestFieldName) && redact.IsSecretName(l.NearestFieldName) && header != "user-agent"
}

// variableAssignment matches the assignment of an environment variable.
var variableAssignment = prefilter.LazyRegexp(`(?:^|[^A-Z0-9_])([A-Z][A-Z0-9_]{2,})=\S`)

// holdsCredential reports whether a text, or its decoded form, holds a credential or assigns one to a
// variable.
func (c *ActionCase) holdsCredential(fieldOrParameterName, text string) bool {
	if redact.ContainsCredential(fieldOrParameterName, text) {
		return true
	}
	if setsCredentialVariable(text) {
		return true
	}
	for _, l := range c.decodedLayers(text) {
		if redact.ContainsCredential(fieldOrParameterName, l.Text) || setsCredentialVariable(l.Text) {
			return true
		}
	}
	return false
}

// setsCredentialVariable reports whether a text assigns a variable whose name says that it holds a
// credential.
func setsCredentialVariable(text string) bool {
	if !hasVariableAssignment(text) {
		return false
	}
	for _, m := range variableAssignment().FindAllStringSubmatch(text, 16) {
		if knowledge.IsSecretVariableName(m[1]) {
			return true
		}
	}
	return false
}

// hasVariableAssignment reports whether a text contains "=" after a character that can end a variable's
// name. It is a cheap test that is made before a regular expression is run on the text.
func hasVariableAssignment(text string) bool {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '=')
		if i < 0 {
			return false
		}
		if at += i + 1; at > 3 {
			if c := text[at-2]; 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' {
				return true
			}
		}
	}
}

// targetsThisMachine reports whether an effect stays on this machine.
func targetsThisMachine(e effect.Effect) bool {
	return e.Host != "" && (*trustMatcher)(nil).isTrustedHost(&e)
}

// addURLEffects adds effects of the URL of a request: a credential in it, and a verb that changes the server.
func (c *ActionCase) addURLEffects(e effect.Effect) {
	at, _, _ := strings.Cut(e.URL, "#")
	_, at, _ = strings.Cut(at, "://")
	host, at, _ := strings.Cut(at, "/")
	path, query, _ := strings.Cut(at, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = url.Values{"": {query}}
	}
	if path == "" && query == "" || host == "" {
		return
	}
	secret := redact.ContainsCredential("url", e.URL)
	for name, all := range values {
		for _, value := range all {
			secret = secret || c.holdsCredential(name, value)
		}
	}
	if out := (effect.Effect{Host: e.Host, URL: e.URL}); secret && !targetsThisMachine(e) {
		c.addCredentialSend(out, "the URL")
	} else if hasBase64OrHexText(values) {
		out.Kind, out.Reason = effect.SendData, "the URL contains encoded text, which can hide data"
		c.Effects = append(c.Effects, out)
	}
	c.addRemoteChangeFromURL(e, host, path, values)
}

// addRemoteChangesFromURLs adds the changes that the requests of a command ask for by a verb in the URL.
// Requests that clone a repository, and all requests to [command.CodeHosts], are skipped.
func (c *ActionCase) addRemoteChangesFromURLs(firstEffectIndex int) {
	for i, n := firstEffectIndex, min(len(c.Effects), firstEffectIndex+maxPayloadTexts); i < n; i++ {
		e := c.Effects[i]
		if e.Kind != effect.HTTPRequest || e.PathIsPattern || command.CodeHosts[e.Host] || strings.HasSuffix(e.URL, ".git") {
			continue
		}
		at, _, _ := strings.Cut(e.URL, "#")
		_, at, _ = strings.Cut(at, "://")
		host, at, _ := strings.Cut(at, "/")
		path, query, _ := strings.Cut(at, "?")
		if values, err := url.ParseQuery(query); err == nil {
			c.addRemoteChangeFromURL(e, host, path, values)
		}
	}
}

// addRemoteChangeFromURL adds a ChangeRemoteSystem effect if a URL contains a verb that changes the server.
func (c *ActionCase) addRemoteChangeFromURL(e effect.Effect, host, path string, values url.Values) {
	word, destroys := destructiveVerbInURLPath(host, path)
	for name, all := range values {
		for _, value := range all {
			if w, d := verbInQueryParameter(name, value); w != "" {
				word, destroys = w, d
			}
		}
	}
	if word == "" {
		return
	}
	change := effect.Effect{Kind: effect.ChangeRemoteSystem, Host: e.Host, URL: e.URL, RemoteOperationVerb: word, Reason: "the URL contains the verb " + word}
	if destroys {
		change.Harms = []effect.Harm{effect.DestroysResources}
	}
	c.Effects = append(c.Effects, change)
}

// hasBase64OrHexText reports whether a parameter of a URL holds readable text encoded as base64 or hex.
func hasBase64OrHexText(values url.Values) bool {
	for _, all := range values {
		for _, value := range all {
			for _, l := range decode.Layers(value) {
				if strings.HasPrefix(l.Name, "base") || strings.HasPrefix(l.Name, "hex") {
					return true
				}
			}
		}
	}
	return false
}

// destructiveVerbInURLPath returns a destructive verb, such as delete, that begins a segment of a URL's path. It
// returns none if the host or an earlier segment, such as docs, shows that the URL leads to
// documentation.
func destructiveVerbInURLPath(host, urlPath string) (verb string, destroys bool) {
	label, _, _ := strings.Cut(host, ".")
	if knowledge.VerbIn(label, "papers") {
		return "", false
	}
	for part := range strings.SplitSeq(urlPath, "/") {
		if knowledge.VerbIn(part, "papers") {
			return "", false
		}
		name, ending, _ := strings.Cut(part, ".")
		if strings.ContainsAny(name, "-%") || strings.HasPrefix(ending, "htm") || ending == "md" {
			continue // the segment is the title of a document, and not an operation
		}
		if words := knowledge.SplitNameWords(name); len(words) > 0 && len(words) < 5 && knowledge.VerbIn(words[0], "destroys") {
			return words[0], true
		}
	}
	return "", false
}

// verbInQueryParameter returns the verb that a parameter of a URL sends to the server.
func verbInQueryParameter(name, value string) (verb string, destroys bool) {
	switch strings.ToLower(name) {
	case "action", "act", "op", "operation", "cmd", "command", "do", "method", "_method", "mode", "task", "func":
		words := knowledge.SplitNameWords(value)
		if len(words) > 0 && len(words) < 5 && knowledge.VerbIn(words[0], "destroys") {
			return words[0], true
		}
	case "query":
		if rest, ok := strings.CutPrefix(strings.TrimLeft(value, " \t\n"), "mutation"); ok {
			for _, w := range knowledge.SplitNameWords(rest) {
				if knowledge.VerbIn(w, "destroys") || knowledge.VerbIn(w, "pays") {
					return w, true
				}
			}
			return "mutation", false
		}
	}
	return "", false
}

// isBrowserCodeField reports whether a field of a browser tool holds code.
func isBrowserCodeField(fieldName string) bool {
	return fieldName == "command" || fieldNameEndsWithAny(fieldName, "code", "function", "expression", "javascript", "js", "script")
}

// addBrowserPageCodeEffects adds the effects of code that runs in a browser page, and an unknown effect if the code does more than
// read the page and click.
func (c *ActionCase) addBrowserPageCodeEffects() {
	for _, field := range sorted.Keys(c.Action.Payload) {
		text, ok := c.Action.Payload[field].(string)
		if !ok || text == "" || !isBrowserCodeField(field) {
			continue
		}
		from := len(c.Effects)
		c.addShellEffects("node -e "+command.QuoteWordIfNeeded("("+text+"\n)()"), &c.executionContext, false)
		c.Effects = slices.Concat(c.Effects[:from], slices.DeleteFunc(slices.Clone(c.Effects[from:]), func(e effect.Effect) bool { return e.Kind == effect.Execute }))
		if !onlyReadsPage(text) {
			c.addUnknownEffect(effect.CauseUnanalysedCode, "the code in "+field+" does more than read the page")
		}
	}
}

// Patterns that find parts of JavaScript code for a page: string literals, calls and constructors,
// assignments, and names of the user's data.
var (
	jsStrings      = prefilter.LazyRegexp(`'[^'\\\n]*'|"[^"\\\n]*"`)
	jsCalls        = prefilter.LazyRegexp(`([A-Za-z_$][\w$]*)\s*\(|([\]\x60])\s*\(|\bnew\s+([\w$.]+)`)
	jsAssignments  = prefilter.LazyRegexp(`[.\]][\w$]*\s*[-+*/|&?]*=[^=>]|\blocation\b|\bimport\b`)
	jsSecretAccess = prefilter.LazyRegexp(`(?i)cookie|storage|indexedDB|\bcaches\b|credential|passw|token|secret|clipboard|\beval\b|\\u|\\x|\bconstructor\b`)
)

// readOnlyJSFunctions are the functions that code may call to read a page, process text and click.
const readOnlyJSFunctions = " querySelector querySelectorAll getElementById getElementsByClassName getElementsByTagName getElementsByName getAttribute hasAttribute getAttributeNames " +
	"closest matches contains getBoundingClientRect getClientRects getComputedStyle getPropertyValue elementFromPoint evaluate click focus blur scrollIntoView scrollTo scrollBy scroll " +
	"map filter forEach find findIndex some every reduce flat flatMap slice splice sort reverse join concat includes indexOf push pop from of keys values entries fromEntries assign isArray has get " +
	"trim split replace replaceAll substring substr slice match matchAll test toLowerCase toUpperCase startsWith endsWith padStart padEnd toString toFixed charAt normalize repeat " +
	"parseInt parseFloat Number String Boolean isNaN stringify parse log round floor ceil min max abs " +
	"if for while switch catch function return async await typeof of in and getEntriesByType now toISOString toLocaleString querySelectorAllDeep item $ $$ "

// onlyReadsPage reports whether code only reads the page in which it runs, or clicks in it.
func onlyReadsPage(code string) bool {
	if jsAssignments().MatchString(jsStrings().ReplaceAllString(code, "''")) || jsSecretAccess().MatchString(code) {
		return false
	}
	for _, m := range jsCalls().FindAllStringSubmatch(jsStrings().ReplaceAllString(code, "''"), -1) {
		switch {
		case m[2] != "":
			return false
		case m[3] != "" && !strings.Contains(" Set Map Date Array RegExp URL Object ", " "+m[3]+" "):
			return false
		case m[1] != "" && !strings.Contains(readOnlyJSFunctions, " "+m[1]+" ") && !strings.Contains(" Set Map Date Array RegExp URL Object ", " "+m[1]+" "):
			return false
		}
	}
	return true
}
