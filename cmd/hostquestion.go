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

// A hostQuestion is a question that a host may be told to ask its user.
type hostQuestion struct {
	w       *World
	host    *host.Host
	key     string // key of the actions
	version string // version of the host, set by [hostQuestion.checkVersionAsks]
	dir     string // the state folder
}

func newHostQuestion(w *World, h *host.Host, event host.Event) *hostQuestion {
	return &hostQuestion{w: w, host: h, key: questionKey(event)}
}

// checkVersionAsks returns an error if this version of the host is known not to ask its user.
func (q *hostQuestion) checkVersionAsks(c *cli.Context, version string) error {
	set, err := settings(c, q.w)
	if err != nil {
		return err
	}
	q.version, q.dir = version, stateDir(&set.Settings, q.w)
	return asksNobody(q.dir, q.host, version)
}

// asksNobody returns an error if a version of a host is known not to ask its user.
func asksNobody(stateDir string, h *host.Host, version string) error {
	if approve.HostNotAsking(stateDir, h.Name, version) {
		return fmt.Errorf("%s %s ran a command without asking its user; shield asks on the approval page instead", h.Title(), version)
	}
	return nil
}

// recordAsked records that the host is told to ask.
func (q *hostQuestion) recordAsked() error {
	return approve.NoteHostQuestion(q.dir, q.key, approve.HostQuestion{Host: q.host.Name, Version: q.version, At: q.w.Now()})
}

// recordRanCall records that the actions of an event ran. If the host was told to ask its user, and no
// user can have answered, the host is not told to ask again.
func recordRanCall(w *World, set *config.Loaded, p *shield.Pipeline, h *host.Host, event host.Event) {
	dir := stateDir(&set.Settings, w)
	q, unasked := approve.HostRanUnasked(dir, questionKey(event), w.Now())
	if !unasked || q.Host != h.Name {
		return
	}
	text := fmt.Sprintf("%s %s ran a call without asking its user, although shield told it to ask. From now on shield asks on the approval page", h.Title(), q.Version)
	if err := approve.NoteHostNotAsking(dir, q); err != nil {
		text += "; this could not be saved: " + withoutSecrets(err)
	}
	p.Tell(audit.KindHost, text)
}

// questionKey returns the key of an event's actions, the same before and after they run.
func questionKey(event host.Event) string {
	h := sha256.New()
	for _, raw := range event.Actions {
		if a, err := action.Parse(raw); err == nil { // otherwise there is nothing to judge
			fmt.Fprintf(h, "%s %d:%s %d:%s\n", a.Hash, len(a.Session), a.Session, len(a.CWD), a.CWD)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
