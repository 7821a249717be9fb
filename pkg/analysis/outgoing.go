package analysis

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/shell/command"
)

// An Outgoing is what a case would tell another machine or person.
type Outgoing struct {
	Hosts   []string // that it goes to; none if they are not known
	Said    []string // what it tells, decoded, too
	Signing []string // what it signs in with
	Cut     bool     // there is more than was read
	Perhaps bool     // it may stay here: it is typed into a page, put into a store of secrets, an argument of a program that uses the network, or an address in a file
}

// storesSecret reports whether a program is asked to keep a secret, as a service of
// the user's own does for those that run there.
func (c *Case) storesSecret() bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Kind == effect.Execute && slices.ContainsFunc(e.Args[:min(len(e.Args), 3)], func(arg string) bool { return command.SecretStores[arg] })
	})
}

// addresses are those of pages, as they are in files: who opens one sends what is
// behind the host.
var addresses = prefilter.Lazy(`https?://([^\s/"'<>()?#@]+)([/?#][^\s"'<>()]*)`)

// maxAddresses is how many addresses of a text are read.
const maxAddresses = 256

// addressesIn returns what the addresses in a text tell other machines.
func addressesIn(text string) string {
	if !strings.Contains(text, "://") {
		return ""
	}
	var b strings.Builder
	for _, m := range addresses().FindAllStringSubmatch(text, maxAddresses) {
		if host, _, _ := strings.Cut(m[1], ":"); !effect.Loopback(host) {
			b.WriteString(m[2])
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// addressSeparators sets the parts of addresses apart, each of which may be encoded.
var addressSeparators = strings.NewReplacer("/", " ", "?", " ", "&", " ", "=", " ", ".", " ", ":", " ", "#", " ")

// maxOutgoing is how many bytes of what goes out are read.
const maxOutgoing = 64 << 10

// MayTell reports whether [Case.Outgoing] may be more than nil, at little cost.
func (c *Case) MayTell() bool {
	raw := c.Action.Raw
	if strings.HasPrefix(c.Action.Type, "browser_") || bytes.Contains(raw, []byte("://")) || bytes.IndexByte(raw, '\\') >= 0 { // JSON may write a slash so
		return true
	}
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return slices.Contains(outgoingKinds, e.Kind) || e.Kind == effect.Execute && e.Class == effect.Network
	})
}

// outgoingKinds are the effects by which something leaves the machine.
var outgoingKinds = []effect.Kind{effect.SendData, effect.SendMessage, effect.HTTPRequest, effect.Connect, effect.ChangeRemote, effect.RemoteShell}

// Outgoing returns what a case would tell others, nil if nothing leaves the
// machine.
func (c *Case) Outgoing() *Outgoing {
	o := &Outgoing{}
	leaves, stays, stores := false, false, c.storesSecret()
	uses := strings.HasPrefix(c.Action.Type, "browser_")
	var text strings.Builder
	for i := range c.Effects {
		e := &c.Effects[i]
		uses = uses || e.Kind == effect.Execute && e.Class == effect.Network
		if !slices.Contains(outgoingKinds, e.Kind) {
			continue
		}
		if effect.Loopback(e.Host) {
			stays = true
			continue
		}
		leaves, stores = true, stores && e.Kind == effect.ChangeRemote
		if e.Host != "" && !slices.Contains(o.Hosts, e.Host) {
			o.Hosts = append(o.Hosts, e.Host)
		}
		if e.Kind == effect.SendData && e.Path != "" && !e.Pattern && c.place.Script != nil {
			if data, err := c.place.Script(e.Path); err == nil {
				text.Write(data)
				text.WriteByte('\n')
			}
		}
	}
	if !leaves && !stays && uses {
		o.Hosts = c.signsInAt()
		stays = len(o.Hosts) > 0 && !slices.ContainsFunc(o.Hosts, func(host string) bool { return !effect.Loopback(host) })
	}
	o.Perhaps = !leaves || stores
	rest, signing := splitSigning(c.words)
	o.Signing = append(o.Signing, signing...)
	text.WriteString(rest)
	c.leavesOf(o, &text, "", c.Action.Payload)
	said := text.String()
	if !leaves && (stays || !uses) {
		if said = addressesIn(said); said == "" {
			return nil
		}
		o.Signing = nil
	}
	if len(said) > maxOutgoing {
		said, o.Cut = said[:maxOutgoing], true
	}
	o.Said = append([]string{said}, spellings(said)...)
	for _, s := range slices.Clone(o.Signing) {
		o.Signing = append(o.Signing, spellings(s)...)
	}
	return o
}

// Texts returns what a case says, as it is and decoded, whether it leaves or not.
func (c *Case) Texts() []string {
	var text strings.Builder
	text.WriteString(c.words)
	everyText(&text, c.Action.Payload)
	said := text.String()
	said = said[:min(len(said), maxOutgoing)]
	return append([]string{said}, spellings(said)...)
}

// everyText adds all texts in a payload's value.
func everyText(to *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		to.WriteByte('\n')
		to.WriteString(v)
	case []any:
		for _, item := range v {
			everyText(to, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			everyText(to, v[name])
		}
	}
}

// leavesOf adds the texts of a payload's value.
func (c *Case) leavesOf(o *Outgoing, to *strings.Builder, field string, v any) {
	switch v := v.(type) {
	case string:
		if (redact.IsSecretName(field) || strings.EqualFold(field, "cookie")) && !slices.Contains([]string{"body", "data", "json", "content"}, field) {
			o.Signing = append(o.Signing, v)
			return
		}
		rest, signing := v, []string(nil)
		if isCommand(field) {
			rest, signing = splitSigning(v)
		}
		o.Signing = append(o.Signing, signing...)
		to.WriteByte('\n')
		to.WriteString(rest)
	case []any:
		for _, item := range v {
			c.leavesOf(o, to, field, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			under := name
			if field != "" && field != "headers" && field != "auth" {
				under = field // a credential in a body is no sign-in, whatever its name there
			}
			c.leavesOf(o, to, under, v[name])
		}
	}
}

// CarriesValue adds the effect of carrying out a credential that the session has
// read: perhaps, if it is a part of one, or so short that it may be chance.
func (c *Case) CarriesValue(perhaps bool) {
	e := effect.Effect{Kind: effect.SendData, Harms: []effect.Harm{effect.Leaks}, Cause: effect.CauseValue, Sure: effect.If(!perhaps), Reason: "sends a credential that was read in this session"}
	for i := range c.Effects {
		if h := c.Effects[i].Host; h != "" && !effect.Loopback(h) {
			e.Host = h
			break
		}
	}
	if perhaps {
		e.Reason = "may send a part of a credential or of private data that was read in this session"
	}
	c.addEffect(e)
}

// Uploads adds the effect of sending what a repository holds to a host, "" if no one
// knows which: this session has pointed it there.
func (c *Case) Uploads(program, host string) {
	c.addEffect(effect.Effect{Kind: effect.SendData, Program: program, Host: host, Pattern: host == "", Reason: "pushes to a git remote whose address this session changed"})
}

func (c *Case) addEffect(e effect.Effect) {
	c.Effects = append(c.Effects, e)
	if c.Met != nil {
		c.Met = append(c.Met, nil)
	}
}
