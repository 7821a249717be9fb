package analysis

import (
	"slices"

	"github.com/shieldcli/shield/pkg/effect"
)

// A ToolClass is what the user has declared that a tool of unknown type does.
type ToolClass string

// The classes of tools.
const (
	ToolClassReadOnly                ToolClass = "reads"     // changes nothing
	ToolClassChangesWorkspace        ToolClass = "workspace" // changes only files of the workspace
	ToolClassChangesOutsideWorkspace ToolClass = "elsewhere" // changes something outside the workspace, or sends data there
	ToolClassForbidden               ToolClass = "never"     // must not be used
)

// ToolClasses are the classes of tools, from the least to the most dangerous.
var ToolClasses = []ToolClass{ToolClassReadOnly, ToolClassChangesWorkspace, ToolClassChangesOutsideWorkspace, ToolClassForbidden}

// CallsUnknownTool reports whether a case is a call of a tool whose type shield does not know.
func (c *ActionCase) CallsUnknownTool() bool {
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool { return c.IsUnknownToolEffect(&e) })
}

// ApplyToolClass replaces the unknown effect of a tool by the effects of a class. Effects from its
// payload stay: files, addresses, commands, credentials, and verbs that destroy, pay or grant. If
// remoteHost, the host of the tool's server, is not "", the arguments are sent there.
func (c *ActionCase) ApplyToolClass(class ToolClass, serverName, remoteHost string) {
	if !c.CallsUnknownTool() || class == ToolClassForbidden || class == "" {
		return
	}
	changes, before := false, len(c.Effects)
	c.Effects = slices.DeleteFunc(slices.Clone(c.Effects), func(e effect.Effect) bool {
		byName := e.Kind == effect.ChangeRemoteSystem && e.RemoteTargetName == c.Action.Type && !e.DestroysRemoteResource() && !e.HasHarm(effect.GrantsCredentialsOrRoles)
		changes = changes || byName
		return c.IsUnknownToolEffect(&e) || byName && class != ToolClassChangesOutsideWorkspace
	})
	c.directEffectCount -= before - len(c.Effects)
	if slices.Contains([]string{"destroys", "pays", "grants"}, c.unknownToolOperationCategory) {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "delete", Harms: []effect.Harm{effect.DestroysResources}, RemoteServiceName: serverName, RemoteTargetName: c.Action.Type, Reason: "the arguments delete, pay or grant access, which the approval of this tool does not include"})
	}
	if class == ToolClassChangesOutsideWorkspace && !changes {
		c.Effects = append(c.Effects, effect.Effect{Kind: effect.ChangeRemoteSystem, RemoteOperationVerb: "change", RemoteServiceName: serverName, RemoteTargetName: c.Action.Type, Reason: "this tool is classified as changing remote resources"})
	}
	if remoteHost != "" && len(c.Action.Payload) > 0 {
		c.Effects = append(c.Effects, effect.Effect{
			Kind: effect.SendData, Program: c.Action.Type, Host: remoteHost, IsTargetTrusted: !c.mayPayloadContainPrivateData(), Reason: "the tool's server receives the arguments",
		})
	}
	c.class = class
}

// UserDeclaredToolClass returns the class that the user has given to the case's tool; "" if none.
func (c *ActionCase) UserDeclaredToolClass() ToolClass { return c.class }

// mayPayloadContainPrivateData reports whether a payload may contain data that the user has not allowed to leave the machine: it
// holds a credential, or the session has read secret or private data, whatever the payload holds.
func (c *ActionCase) mayPayloadContainPrivateData() bool {
	if c.SessionState != nil && slices.ContainsFunc(c.SessionState.Labels(), func(l effect.TaintLabel) bool {
		return l == effect.LabelFromCredentialLocation || l == effect.LabelCredential || l == effect.LabelPersonalData
	}) {
		return true
	}
	return slices.ContainsFunc(c.Effects, func(e effect.Effect) bool {
		return e.HasLabel(effect.LabelFromCredentialLocation) || e.HasLabel(effect.LabelCredential) || e.HasLabel(effect.LabelPersonalData) || e.Kind == effect.ReadSecret || e.KindForPolicies() == effect.SendSecret
	})
}
