package analysis

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/apicall"
	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/decode"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
)

// addSendDataEffect adds what the action sends to another machine or person: the files that it reads, or else the content
// of the fields that its type sends.
func (c *ActionCase) addSendDataEffect(t *tool) {
	filled := false
	for _, field := range t.fieldsSentToURLHost {
		filled = filled || isNonEmptyPayloadValue(c.Action.Payload[field])
	}
	if !filled {
		return
	}
	out := effect.Effect{Kind: effect.SendData, Program: c.Action.Type}
	var files []effect.Effect
	var people []string
	for i := range c.Effects {
		switch e := &c.Effects[i]; e.Kind {
		case effect.HTTPRequest:
			out.Host = e.Host
		case effect.ReadFile:
			files = append(files, *e)
		case effect.SendMessage:
			people = append(people, e.RemoteTargetName)
		}
	}
	if len(people) == 0 {
		people = []string{""}
	}
	if len(files) == 0 {
		files = []effect.Effect{{}}
	}
	for _, out.RemoteTargetName = range people {
		for _, e := range files {
			if len(c.Effects) > maxEffects {
				return // more files than are judged
			}
			out.Path, out.PathIsPattern, out.Recursive = e.Path, e.PathIsPattern, e.Recursive
			c.Effects = append(c.Effects, out)
		}
	}
}

// isNonEmptyPayloadValue reports whether a field of a payload holds anything.
func isNonEmptyPayloadValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// addURLQueryCredentialEffects adds an effect for text in the query of a URL that has the form of a credential: proxies
// and servers log the query.
func (c *ActionCase) addURLQueryCredentialEffects() {
	for i, n := 0, min(len(c.Effects), maxEffects/2); i < n; i++ {
		e := c.Effects[i]
		_, query, ok := strings.Cut(e.URL, "?")
		if e.Kind != effect.HTTPRequest || !ok || e.PathIsPattern || targetsThisMachine(e) {
			continue
		}
		query = withoutPresignedURLParams(query)
		query = strings.ReplaceAll(decode.DecodePercentEscapes(query), "+", " ")
		if (*redact.Redactor)(nil).RedactText(query) != query {
			c.addCredentialSend(effect.Effect{Host: e.Host, Span: e.Span}, "the query of a URL")
		}
	}
}

// presignedURLParamPatterns maps the signature parameter of a presigned URL, in lower case, to a
// pattern of all parameters of that kind of signature. The parameters are no credentials: the URL holds a
// signature, not the signing key.
var presignedURLParamPatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"x-amz-signature":  regexp.MustCompile(`^x-amz-(?:algorithm|credential|date|expires|signedheaders|signature|security-token)$`),
		"x-goog-signature": regexp.MustCompile(`^x-goog-(?:algorithm|credential|date|expires|signedheaders|signature)$`),
		"signature":        regexp.MustCompile(`^(?:awsaccesskeyid|googleaccessid|signature|expires|policy|key-pair-id|hdnea)$`),
		"sig":              regexp.MustCompile(`^(?:sv|ss|srt|sp|se|st|spr|sig|sr|skoid|sktid|skt|ske|sks|skv)$`),
	}
})

// withoutPresignedURLParams returns a query without the parameters of a URL signature.
func withoutPresignedURLParams(query string) string {
	parts := strings.Split(query, "&")
	for _, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if own := presignedURLParamPatterns()[strings.ToLower(name)]; own != nil {
			return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool {
				n, _, _ := strings.Cut(p, "=")
				return own.MatchString(strings.ToLower(n))
			}), "&")
		}
	}
	return query
}

// addDeletionByRequestBody adds an effect if the body of a request tells another machine to delete something.
func (c *ActionCase) addDeletionByRequestBody() {
	if c.Action.Type != "http_request" {
		return
	}
	for i := range c.Effects {
		e := c.Effects[i]
		if e.Kind != effect.HTTPRequest || targetsThisMachine(e) {
			continue
		}
		for _, field := range [...]string{"body", "data", "json", "content", "payload", "form"} {
			v := c.Action.Payload[field]
			text, isText := v.(string)
			if v != nil && !isText {
				text = string(canonjson.AppendValue(nil, v))
			}
			if word := apicall.FindDestructiveWord(text); word != "" {
				c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemoteSystem, Host: e.Host, URL: e.URL, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, Reason: "the request body contains the verb " + word})
				return
			}
		}
		return
	}
}
