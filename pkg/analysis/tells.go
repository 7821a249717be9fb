package analysis

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/knowledge"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// maxRecipients is how many recipients of a message have an effect each.
const maxRecipients = 64

// messages adds a message to each of some recipients.
func (c *Case) messages(to []string) {
	if len(to) > maxRecipients {
		c.unexamined("the message has more than 64 recipients")
		to = to[:maxRecipients]
	}
	for _, person := range to {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.SendMessage, Target: strings.TrimSpace(person)})
	}
	if len(to) == 0 {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.SendMessage})
	}
}

// recipients returns the people and channels that fields of the payload name. A text
// with several, as mail programs read it, is cut at its commas.
func (c *Case) recipients(fields ...string) []string {
	var out []string
	for _, field := range fields {
		texts, _ := c.Action.Payload[field].([]any)
		if text, ok := c.Action.Payload[field].(string); ok {
			texts = []any{text}
		}
		for _, item := range texts {
			text, ok := item.(string)
			if !ok {
				text = textOf(item)
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

// addMessages adds what the texts of an action forward, and what its requests change.
func (c *Case) addMessages() {
	name := c.Action.Type
	switch {
	case name == "memory_write", name == "agent_message", strings.HasSuffix(name, "_event"), strings.HasSuffix(name, "_schedule"),
		strings.HasPrefix(name, "send_"), strings.HasPrefix(name, "reply_"), strings.HasPrefix(name, "browser_"), strings.HasPrefix(name, "canvas_"):
		c.credentials(effect.Effect{Target: name})
	}
	for i, n := 0, min(len(c.Effects), maxLeaves); i < n; i++ {
		if e := c.Effects[i]; e.Kind == effect.HTTPRequest {
			c.addURLEffects(e)
			if name == "http_request" || name == "web_fetch" {
				c.credentials(effect.Effect{Host: e.Host, URL: e.URL})
			}
		}
	}
}

// credentials adds an effect for the first text of the payload that holds a
// credential. One that is given in a field or header of its own authenticates
// the request, and stays with the service that it is for.
func (c *Case) credentials(e effect.Effect) {
	if local(e) {
		return
	}
	leaves, complete := c.Action.Leaves(maxLeaves)
	if !complete {
		c.unexamined("the payload has more than 256 texts")
	}
	for _, l := range leaves {
		if authenticates(l) || l.Path == "url" || !c.holdsCredential(l.Name, l.Text) {
			continue
		}
		c.handOn(e, "the field "+l.Path)
		return
	}
}

// handOn adds that a credential goes where e says, as the form of a text tells.
// What is known to go there already is then labelled.
func (c *Case) handOn(e effect.Effect, where string) {
	e.Kind, e.Labels, e.Reason = effect.SendData, []effect.Label{effect.LabelCredential}, where+" holds a credential"
	for i := range c.Effects {
		sent := &c.Effects[i]
		if sent.Word() != effect.SendData || sent.Host != e.Host || sent.Target != e.Target || sent.Path != "" {
			continue
		}
		if !sent.Is(effect.LabelCredential) {
			sent.Labels, sent.Reason = slices.Concat(sent.Labels, e.Labels), e.Reason
		}
		return
	}
	c.Effects = append(c.Effects, e)
}

// authenticates reports whether a text is a credential that a header, or a field
// of the request itself, is there for.
func authenticates(l action.Leaf) bool {
	header, isHeader := strings.CutPrefix(l.Path, "headers.")
	return (isHeader || l.Path == l.Name) && redact.IsSecretName(l.Name) && header != "user-agent"
}

// environment is a variable of an environment with its value.
var environment = prefilter.Lazy(`(?:^|[^A-Z0-9_])([A-Z][A-Z0-9_]{2,})=\S`)

// holdsCredential reports whether a text holds a credential, also one that is
// encoded, or a variable that does with its value.
func (c *Case) holdsCredential(name, text string) bool {
	if redact.Holds(name, text) {
		return true
	}
	if setsCredentialVariable(text) {
		return true
	}
	for _, l := range c.layers(text) {
		if redact.Holds(name, l.Text) || setsCredentialVariable(l.Text) {
			return true
		}
	}
	return false
}

// setsCredentialVariable reports whether a text holds the setting of a variable for credentials.
func setsCredentialVariable(text string) bool {
	if !hasAssignment(text) {
		return false
	}
	for _, m := range environment().FindAllStringSubmatch(text, 16) {
		if knowledge.SecretVariable(m[1]) {
			return true
		}
	}
	return false
}

// hasAssignment reports whether "=" is behind what may end the name of a variable.
func hasAssignment(text string) bool {
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

// local reports whether an effect stays on this machine.
func local(e effect.Effect) bool { return e.Host != "" && (*trust)(nil).host(&e) }

// addURLEffects adds what a request says in its URL: a credential, and a verb that
// changes what the server holds.
func (c *Case) addURLEffects(e effect.Effect) {
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
	secret := redact.Holds("url", e.URL)
	for name, all := range values {
		for _, value := range all {
			secret = secret || c.holdsCredential(name, value)
		}
	}
	if out := (effect.Effect{Host: e.Host, URL: e.URL}); secret && !local(e) {
		c.handOn(out, "the URL")
	} else if hasEncodedText(values) {
		out.Kind, out.Reason = effect.SendData, "the URL contains encoded text, which can hide data"
		c.Effects = append(c.Effects, out)
	}
	c.urlVerb(e, host, path, values)
}

// requests adds what the requests of a command change by a verb in their URL. What is
// copied from a repository is no request of this kind.
func (c *Case) requests(from int) {
	for i, n := from, min(len(c.Effects), from+maxLeaves); i < n; i++ {
		e := c.Effects[i]
		if e.Kind != effect.HTTPRequest || e.Pattern || command.CodeHosts[e.Host] || strings.HasSuffix(e.URL, ".git") {
			continue
		}
		at, _, _ := strings.Cut(e.URL, "#")
		_, at, _ = strings.Cut(at, "://")
		host, at, _ := strings.Cut(at, "/")
		path, query, _ := strings.Cut(at, "?")
		if values, err := url.ParseQuery(query); err == nil {
			c.urlVerb(e, host, path, values)
		}
	}
}

// urlVerb adds that a URL tells a server to change something.
func (c *Case) urlVerb(e effect.Effect, host, path string, values url.Values) {
	word, destroys := verbOfPath(host, path)
	for name, all := range values {
		for _, value := range all {
			if w, d := verbOfQuery(name, value); w != "" {
				word, destroys = w, d
			}
		}
	}
	if word == "" {
		return
	}
	change := effect.Effect{Kind: effect.ChangeRemote, Host: e.Host, URL: e.URL, Verb: word, Reason: "the URL contains the verb " + word}
	if destroys {
		change.Harms = []effect.Harm{effect.Destroys}
	}
	c.Effects = append(c.Effects, change)
}

// hasEncodedText reports whether a parameter of a URL holds readable text that base64 or
// the like hides.
func hasEncodedText(values url.Values) bool {
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

// verbOfPath returns the destroying verb that a part of a URL's path is, unless
// the words before it show that it is a page about it.
func verbOfPath(host, path string) (verb string, destroys bool) {
	label, _, _ := strings.Cut(host, ".")
	if knowledge.VerbIn(label, "papers") {
		return "", false
	}
	for part := range strings.SplitSeq(path, "/") {
		if knowledge.VerbIn(part, "papers") {
			return "", false
		}
		name, ending, _ := strings.Cut(part, ".")
		if strings.ContainsAny(name, "-%") || strings.HasPrefix(ending, "htm") || ending == "md" {
			continue // the title of a page
		}
		if words := knowledge.Words(name); len(words) > 0 && len(words) < 5 && knowledge.VerbIn(words[0], "destroys") {
			return words[0], true
		}
	}
	return "", false
}

// verbOfQuery returns the verb that a parameter of a URL gives to the server.
func verbOfQuery(name, value string) (verb string, destroys bool) {
	switch strings.ToLower(name) {
	case "action", "act", "op", "operation", "cmd", "command", "do", "method", "_method", "mode", "task", "func":
		words := knowledge.Words(value)
		if len(words) > 0 && len(words) < 5 && knowledge.VerbIn(words[0], "destroys") {
			return words[0], true
		}
	case "query":
		if rest, ok := strings.CutPrefix(strings.TrimLeft(value, " \t\n"), "mutation"); ok {
			for _, w := range knowledge.Words(rest) {
				if knowledge.VerbIn(w, "destroys") || knowledge.VerbIn(w, "pays") {
					return w, true
				}
			}
			return "mutation", false
		}
	}
	return "", false
}

// isPageCode reports whether a field of a tool for pages holds code.
func isPageCode(field string) bool {
	return field == "command" || fieldNamed(field, "code", "function", "expression", "javascript", "js", "script")
}

// page adds what code that runs in a browser's page does elsewhere, and, if it does more than to read the
// page and to press its buttons, that no one knows what it does there.
func (c *Case) page() {
	for _, field := range slices.Sorted(maps.Keys(c.Action.Payload)) {
		text, ok := c.Action.Payload[field].(string)
		if !ok || text == "" || !isPageCode(field) {
			continue
		}
		from := len(c.Effects)
		c.run("node -e "+command.QuoteWord("("+text+"\n)()"), &c.place, false)
		c.Effects = slices.Concat(c.Effects[:from], slices.DeleteFunc(slices.Clone(c.Effects[from:]), func(e effect.Effect) bool { return e.Kind == effect.Execute }))
		if !readsPage(text) {
			c.dynamic(effect.CauseCode, "the code in "+field+" does more than read the page")
		}
	}
}

// What code in a page calls, makes, and sets, and the names of what it holds for its user.
var (
	pageTexts  = prefilter.Lazy(`'[^'\\\n]*'|"[^"\\\n]*"`)
	pageCalls  = prefilter.Lazy(`([A-Za-z_$][\w$]*)\s*\(|([\]\x60])\s*\(|\bnew\s+([\w$.]+)`)
	pageSets   = prefilter.Lazy(`[.\]][\w$]*\s*[-+*/|&?]*=[^=>]|\blocation\b|\bimport\b`)
	pageSecret = prefilter.Lazy(`(?i)cookie|storage|indexedDB|\bcaches\b|credential|passw|token|secret|clipboard|\beval\b|\\u|\\x|\bconstructor\b`)
)

// pageReads are the calls by which code looks at a page, works on what it finds, and presses buttons.
const pageReads = " querySelector querySelectorAll getElementById getElementsByClassName getElementsByTagName getElementsByName getAttribute hasAttribute getAttributeNames " +
	"closest matches contains getBoundingClientRect getClientRects getComputedStyle getPropertyValue elementFromPoint evaluate click focus blur scrollIntoView scrollTo scrollBy scroll " +
	"map filter forEach find findIndex some every reduce flat flatMap slice splice sort reverse join concat includes indexOf push pop from of keys values entries fromEntries assign isArray has get " +
	"trim split replace replaceAll substring substr slice match matchAll test toLowerCase toUpperCase startsWith endsWith padStart padEnd toString toFixed charAt normalize repeat " +
	"parseInt parseFloat Number String Boolean isNaN stringify parse log round floor ceil min max abs " +
	"if for while switch catch function return async await typeof of in and getEntriesByType now toISOString toLocaleString querySelectorAllDeep item $ $$ "

// readsPage reports whether code only looks at the page that it runs in, and presses its buttons.
func readsPage(code string) bool {
	if pageSets().MatchString(pageTexts().ReplaceAllString(code, "''")) || pageSecret().MatchString(code) {
		return false
	}
	for _, m := range pageCalls().FindAllStringSubmatch(pageTexts().ReplaceAllString(code, "''"), -1) {
		switch {
		case m[2] != "":
			return false
		case m[3] != "" && !strings.Contains(" Set Map Date Array RegExp URL Object ", " "+m[3]+" "):
			return false
		case m[1] != "" && !strings.Contains(pageReads, " "+m[1]+" ") && !strings.Contains(" Set Map Date Array RegExp URL Object ", " "+m[1]+" "):
			return false
		}
	}
	return true
}
