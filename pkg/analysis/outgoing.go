package analysis

import (
	"bytes"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An OutgoingText is the text that a case sends to other machines or people.
type OutgoingText struct {
	Hosts            []string // recipients; none if not known
	Texts            []string // texts to send, as written and decoded
	LoginCredentials []string // credentials for signing in
	Truncated        bool     // there is more text than was read
	IsSendUncertain  bool     // maybe not sent: typed into a page, put into a secret store, a program argument, or a URL in a file
}

// runsSecretStoreCommand reports whether the action runs a command that stores a secret in a secret store.
func (c *ActionCase) runsSecretStoreCommand() bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && slices.ContainsFunc(e.Args[:min(len(e.Args), 3)], func(arg string) bool { return command.SecretStores[arg] })
	})
}

// urlWithPathOrQueryPattern matches URLs in files: opening one sends the part after the host.
var urlWithPathOrQueryPattern = prefilter.LazyRegexp(`https?://([^\s/"'<>()?#@]+)([/?#][^\s"'<>()]*)`)

// maxURLs is the maximum number of URLs read in one text.
const maxURLs = 256

// joinURLPathsAndQueries returns the paths and queries of the URLs in a text, one per line, without the URLs
// whose host is this machine.
func joinURLPathsAndQueries(text string) string {
	if !strings.Contains(text, "://") {
		return ""
	}
	var b strings.Builder
	for _, m := range urlWithPathOrQueryPattern().FindAllStringSubmatch(text, maxURLs) {
		if host, _, _ := strings.Cut(m[1], ":"); !effect.IsLoopbackHost(host) {
			b.WriteString(m[2])
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// urlPartSeparators separates the parts of URLs, each of which may be encoded.
var urlPartSeparators = strings.NewReplacer("/", " ", "?", " ", "&", " ", "=", " ", ".", " ", ":", " ", "#", " ")

// maxOutgoingBytes is the maximum number of bytes of outgoing text that are read.
const maxOutgoingBytes = 64 << 10

// MayHaveOutgoingText reports, at little cost, whether [ActionCase.FindOutgoingText] may be other than nil.
func (c *ActionCase) MayHaveOutgoingText() bool {
	raw := c.Action.Raw
	if strings.HasPrefix(c.Action.Type, "browser_") || bytes.Contains(raw, []byte("://")) || bytes.IndexByte(raw, '\\') >= 0 { // JSON may write a slash as an escape
		return true
	}
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return slices.Contains(outgoingEffectKinds, e.Kind) || e.Kind == effect.Execute && e.Class == effect.Network
	})
}

// outgoingEffectKinds are the effects by which data leaves the machine.
var outgoingEffectKinds = []effect.Kind{effect.SendData, effect.SendMessage, effect.HTTPRequest, effect.Connect, effect.ChangeRemoteSystem, effect.RemoteShell}

// FindOutgoingText returns the text that a case sends to others, nil if nothing leaves the machine.
func (c *ActionCase) FindOutgoingText() *OutgoingText {
	o := &OutgoingText{}
	leaves, stays, stores := false, false, c.runsSecretStoreCommand()
	uses := strings.HasPrefix(c.Action.Type, "browser_")
	var text strings.Builder
	for i := range c.Effects {
		e := &c.Effects[i]
		uses = uses || e.Kind == effect.Execute && e.Class == effect.Network
		if !slices.Contains(outgoingEffectKinds, e.Kind) {
			continue
		}
		if effect.IsLoopbackHost(e.Host) {
			stays = true
			continue
		}
		leaves, stores = true, stores && e.Kind == effect.ChangeRemoteSystem
		if e.Host != "" && !slices.Contains(o.Hosts, e.Host) {
			o.Hosts = append(o.Hosts, e.Host)
		}
		if e.Kind == effect.SendData && e.Path != "" && !e.PathIsPattern && c.executionContext.ReadScript != nil {
			if data, err := c.executionContext.ReadScript(e.Path); err == nil {
				text.Write(data)
				text.WriteByte('\n')
			}
		}
	}
	if !leaves && !stays && uses {
		o.Hosts = c.loginTargetHosts()
		stays = len(o.Hosts) > 0 && !slices.ContainsFunc(o.Hosts, func(host string) bool { return !effect.IsLoopbackHost(host) })
	}
	o.IsSendUncertain = !leaves || stores
	rest, signing := splitLoginCredentials(c.resolvedCommandText)
	o.LoginCredentials = append(o.LoginCredentials, signing...)
	text.WriteString(rest)
	c.appendOutgoingTexts(o, &text, "", c.Action.Payload)
	said := text.String()
	if !leaves && (stays || !uses) {
		if said = joinURLPathsAndQueries(said); said == "" {
			return nil
		}
		o.LoginCredentials = nil
	}
	if len(said) > maxOutgoingBytes {
		said, o.Truncated = said[:maxOutgoingBytes], true
	}
	o.Texts = append([]string{said}, deobfuscatedTexts(said)...)
	for _, s := range slices.Clone(o.LoginCredentials) {
		o.LoginCredentials = append(o.LoginCredentials, deobfuscatedTexts(s)...)
	}
	return o
}

// PayloadAndCommandTexts returns the texts of a case, as written and decoded, whether they leave the machine or not.
func (c *ActionCase) PayloadAndCommandTexts() []string {
	var text strings.Builder
	text.WriteString(c.resolvedCommandText)
	appendTexts(&text, c.Action.Payload)
	said := text.String()
	said = said[:min(len(said), maxOutgoingBytes)]
	return append([]string{said}, deobfuscatedTexts(said)...)
}

// appendTexts appends all texts in a value of a payload.
func appendTexts(to *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		to.WriteByte('\n')
		to.WriteString(v)
	case []any:
		for _, item := range v {
			appendTexts(to, item)
		}
	case map[string]any:
		for _, name := range sorted.Keys(v) {
			appendTexts(to, v[name])
		}
	}
}

// appendOutgoingTexts appends the texts in a value of a payload.
func (c *ActionCase) appendOutgoingTexts(o *OutgoingText, to *strings.Builder, field string, v any) {
	switch v := v.(type) {
	case string:
		if (redact.IsSecretName(field) || strings.EqualFold(field, "cookie")) && !slices.Contains([]string{"body", "data", "json", "content"}, field) {
			o.LoginCredentials = append(o.LoginCredentials, v)
			return
		}
		rest, signing := v, []string(nil)
		if isCommandField(field) {
			rest, signing = splitLoginCredentials(v)
		}
		o.LoginCredentials = append(o.LoginCredentials, signing...)
		to.WriteByte('\n')
		to.WriteString(rest)
	case []any:
		for _, item := range v {
			c.appendOutgoingTexts(o, to, field, item)
		}
	case map[string]any:
		for _, name := range sorted.Keys(v) {
			under := name
			if field != "" && field != "headers" && field != "auth" {
				under = field // a credential inside a body is data, not a sign-in, whatever its field's name
			}
			c.appendOutgoingTexts(o, to, under, v[name])
		}
	}
}

// AddCredentialLeakEffect adds the effect of sending a credential that the session has read. isUncertainMatch
// means that it is not certain that a whole credential is sent: the text may have only a part of one, the match
// may be chance, or it may not be sent.
func (c *ActionCase) AddCredentialLeakEffect(isUncertainMatch bool) {
	e := effect.Effect{Kind: effect.SendData, Harms: []effect.Harm{effect.LeaksSecrets}, Cause: effect.CauseSecretReadEarlierInSession, Certainty: effect.CertainOrPossible(!isUncertainMatch), Reason: "sends a credential that was read in this session"}
	for i := range c.Effects {
		if h := c.Effects[i].Host; h != "" && !effect.IsLoopbackHost(h) {
			e.Host = h
			break
		}
	}
	if isUncertainMatch {
		e.Reason = "may send a part of a credential or of private data that was read in this session"
	}
	c.addEffect(e)
}

// AddRepositoryUpload adds the effect that program sends the content of a repository to a git remote whose
// address a session of the user has changed, this one or another. host is the host in this address; "" if it is
// not known.
func (c *ActionCase) AddRepositoryUpload(program, host string) {
	c.addEffect(effect.Effect{Kind: effect.SendData, Program: program, Host: host, PathIsPattern: host == "", Reason: "pushes to a git remote whose address this session changed"})
}

func (c *ActionCase) addEffect(e effect.Effect) {
	c.Effects = append(c.Effects, e)
	if c.MatchedRulesByEffectIndex != nil {
		c.MatchedRulesByEffectIndex = append(c.MatchedRulesByEffectIndex, nil)
	}
}
