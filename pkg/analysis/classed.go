package analysis

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Class is what the user has declared that a tool of unknown type does.
type Class string

// The classes of tools.
const (
	ClassReads     Class = "reads"     // changes nothing
	ClassWorkspace Class = "workspace" // changes only files of the workspace
	ClassElsewhere Class = "elsewhere" // changes something outside the workspace, or sends data there
	ClassNever     Class = "never"     // must not be used
)

// Classes are the classes of tools, from the least to the most dangerous.
var Classes = []Class{ClassReads, ClassWorkspace, ClassElsewhere, ClassNever}

// Stranger reports whether a case is a call of a tool whose type shield does not know.
func (c *Case) Stranger() bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return c.UnknownTool(&e) })
}

// Classify replaces the unknown effect of a tool by the effects of a class. Effects from its payload stay:
// files, addresses, commands, credentials, and verbs that destroy, pay or grant. If remote, the host of the
// tool's server, is not "", the arguments are sent there.
func (c *Case) Classify(class Class, server, remote string) {
	if !c.Stranger() || class == ClassNever || class == "" {
		return
	}
	changes, before := false, len(c.Effects)
	c.Effects = slices.DeleteFunc(slices.Clone(c.Effects), func(e effect.Effect) bool {
		byName := e.Kind == effect.ChangeRemote && e.Target == c.Action.Type && !e.Destroys() && !e.Does(effect.Grants)
		changes = changes || byName
		return c.UnknownTool(&e) || byName && class != ClassElsewhere
	})
	c.stated -= before - len(c.Effects)
	if slices.Contains([]string{"destroys", "pays", "grants"}, c.asked) {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemote, Verb: "delete", Harms: []effect.Harm{effect.Destroys}, Service: server, Target: c.Action.Type, Reason: "the arguments delete, pay or grant, which the tool's class does not cover"})
	}
	if class == ClassElsewhere && !changes {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemote, Verb: "change", Service: server, Target: c.Action.Type, Reason: "the tool's class: changes a remote resource"})
	}
	if remote != "" && len(c.Action.Payload) > 0 {
		c.Effects = append(c.Effects, effect.Effect{
			Kind: effect.SendData, Program: c.Action.Type, Host: remote, Trusted: !c.private(), Reason: "the tool's server receives the arguments",
		})
	}
	c.class = class
}

// Class returns the class that the user has given to the case's tool; "" if none.
func (c *Case) Class() Class { return c.class }

// private reports whether a payload may contain data that the user has not allowed to leave the machine: it
// holds a credential, or the session has read secret or private data, whatever the payload holds.
func (c *Case) private() bool {
	if c.Memory != nil && slices.ContainsFunc(c.Memory.Labels(), func(l effect.Label) bool {
		return l == effect.LabelSecret || l == effect.LabelCredential || l == effect.LabelPrivate
	}) {
		return true
	}
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.Is(effect.LabelSecret) || e.Is(effect.LabelCredential) || e.Is(effect.LabelPrivate) || e.Kind == effect.ReadSecret || e.Word() == effect.SendSecret
	})
}
