package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/shieldcli/shield/pkg/action"
	"github.com/shieldcli/shield/pkg/approve"
	"github.com/shieldcli/shield/pkg/audit"
	"github.com/shieldcli/shield/pkg/config"
	"github.com/shieldcli/shield/pkg/host"
	"github.com/shieldcli/shield/pkg/shield"
)

// A hostApprovalPrompt is a question that a host may be told to ask its user.
type hostApprovalPrompt struct {
	environment   *Environment
	host          *host.Host
	actionsDigest string // digest of the event's actions, the key under which the question is stored
	hostVersion   string // version of the host, set by [hostApprovalPrompt.checkHostVersionAsksUser]
	stateFolder   string // the state folder
}

func newHostApprovalPrompt(w *Environment, h *host.Host, event host.Event) *hostApprovalPrompt {
	return &hostApprovalPrompt{environment: w, host: h, actionsDigest: eventActionsDigest(event)}
}

// checkHostVersionAsksUser returns an error if this version of the host is known not to ask its user.
func (q *hostApprovalPrompt) checkHostVersionAsksUser(c *cli.Context, version string) error {
	set, err := loadSettings(c, q.environment)
	if err != nil {
		return err
	}
	q.hostVersion, q.stateFolder = version, stateDir(&set.Settings, q.environment)
	return checkHostVersionAsksUserApproval(q.stateFolder, q.host, version)
}

// checkHostVersionAsksUserApproval returns an error if a version of a host is known not to ask its user.
func checkHostVersionAsksUserApproval(stateDir string, h *host.Host, hostVersion string) error {
	if approve.IsHostSkippingApproval(stateDir, h.Name, hostVersion) {
		return fmt.Errorf("%s %s ran a command without asking its user; shield asks on the approval page instead", h.Title(), hostVersion)
	}
	return nil
}

// recordHostToldToAsk records that the host is told to ask.
func (q *hostApprovalPrompt) recordHostToldToAsk() error {
	return approve.RecordHostQuestion(q.stateFolder, q.actionsDigest, approve.HostQuestion{Host: q.host.Name, HostVersion: q.hostVersion, AskedAt: q.environment.Now()})
}

// recordExecutedActions records that the actions of an event ran. If the host was told to ask its user, and no
// user can have answered, the host is not told to ask again.
func recordExecutedActions(w *Environment, set *config.LoadedSettings, p *shield.Pipeline, h *host.Host, event host.Event) {
	dir := stateDir(&set.Settings, w)
	q, unasked := approve.TakeHostQuestion(dir, eventActionsDigest(event), w.Now())
	if !unasked || q.Host != h.Name {
		return
	}
	text := fmt.Sprintf("%s %s ran a call without asking its user, although shield told it to ask. From now on shield asks on the approval page", h.Title(), q.HostVersion)
	if err := approve.RecordHostSkippingApproval(dir, q); err != nil {
		text += "; this could not be saved: " + redactedErrorText(err)
	}
	p.LogAndNotify(audit.EntryKindHostDidNotAsk, text)
}

// eventActionsDigest returns the key of an event's actions, the same before and after they run.
func eventActionsDigest(event host.Event) string {
	h := sha256.New()
	for _, raw := range event.Actions {
		if a, err := action.Parse(raw); err == nil { // otherwise there is nothing to judge
			fmt.Fprintf(h, "%s %d:%s %d:%s\n", a.TypeAndPayloadHash, len(a.Session), a.Session, len(a.CWD), a.CWD)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
