package analysis

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Class is what a person has said that a tool does whose type shield does not know.
type Class string

// The classes of tools.
const (
	ClassReads     Class = "reads"     // it changes nothing
	ClassWorkspace Class = "workspace" // it changes files of the workspace alone
	ClassElsewhere Class = "elsewhere" // it changes something elsewhere, or sends it there
	ClassNever     Class = "never"     // it is not to be used
)

// Classes are the classes of tools, from the least to the gravest.
var Classes = []Class{ClassReads, ClassWorkspace, ClassElsewhere, ClassNever}

// Stranger reports whether a case is one of a tool whose type shield does not know.
func (c *Case) Stranger() bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return c.UnknownTool(&e) })
}

// Classify has the case of an unknown tool be one of a tool of a class. What its payload says
// stays as it is: files, addresses, commands, credentials, and names that destroy, pay or
// grant. With remote, the host of its server, the arguments are sent there.
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

// Class returns what a person has said that the tool of a case does; "" if no one has.
func (c *Case) Class() Class { return c.class }

// private reports whether a payload may hold what no one has said that it may leave: a
// credential, or a part of what the session has read of secret or private things.
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
