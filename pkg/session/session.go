// Package session remembers what the actions of a session did, across actions and
// processes: which kinds of data entered, what is known of files, what went where,
// and what was denied. [Learn] says what an action adds, a [Store] keeps it, and
// [Session] is what the judgement of the next action sees.
//
// Nothing in a record is a credential, and what an agent says about itself can only
// add to it.
package session

import (
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
)

// Labels are those of a session, in the order in which they are shown: a
// credential was read; files or messages of the user's were; text that anybody
// may have written came in.
var Labels = []effect.Label{effect.LabelSecret, effect.LabelPrivate, effect.LabelUntrusted}

// A Key names a session. An action without a session of a host's belongs to the
// one without Host and ID: the user's default session.
type Key struct {
	Host string `json:"host,omitempty"` // the program that gave ID, see package host
	ID   string `json:"id,omitempty"`
	User string `json:"user,omitempty"`
}

// Default reports whether the key is that of the user's default session.
func (k Key) Default() bool { return k.Host == "" && k.ID == "" }

// sharedHost is the host in the key of what all sessions of a user share.
const sharedHost = "*"

// Shared reports whether the key is that of what all sessions of a user share: the
// labels of files, the hashes of credentials, the changed remotes of repositories.
func (k Key) Shared() bool { return k.Host == sharedHost }

// Stream returns the key of the session of one stream, which no record is kept of.
func Stream(user string) Key { return Key{Host: "-", User: user} }

// The bounds of a record; those of its files and denials are settings.
const (
	maxSessions = 512
	maxSent     = 256  // hosts and recipients
	maxMade     = 256  // files and folders
	maxEvents   = 64   // kinds of effects, each with when it was last
	maxText     = 200  // bytes of a name, a target, or a reason
	maxPath     = 1024 // bytes of a path; longer ones are known by their hash
)

// A Record is what is kept of a session, or of what all sessions of a user share,
// beside files and values. Instants are seconds since 1970.
type Record struct {
	Version int `json:"v"`
	Key
	Parent       string            `json:"parent,omitempty"`      // the ID of the session that this one began in
	ParentHost   string            `json:"parent_host,omitempty"` // the host of that session, if it is another one
	Process      string            `json:"process,omitempty"`     // of the host, see [Lineage]
	Began        int64             `json:"began"`
	Seen         int64             `json:"seen"` // the last action, to an eighth of how long a session is kept
	Labels       []Labelled        `json:"labels,omitempty"`
	Sent         []Sent            `json:"sent,omitempty"`
	Denials      []Denial          `json:"denials,omitempty"`      // the newest last
	Events       map[string]Event  `json:"events,omitempty"`       // by kind of effect; those alone that a policy asks for
	Count        int64             `json:"count,omitempty"`        // actions, if a policy counts them
	Owners       []string          `json:"owners,omitempty"`       // the host and account that the workspace comes from
	Made         []Made            `json:"made,omitempty"`         // what the session created, the newest last
	Prompts      []Prompt          `json:"prompts,omitempty"`      // that may be the user's
	Named        []grounding.Named `json:"named,omitempty"`        // what the user has named, the newest last
	HasPrompt    bool              `json:"spoken,omitempty"`       // the user has written a prompt
	NameHashes   []byte            `json:"words,omitempty"`        // short keyed hashes of the names in these
	PromptKeys   []byte            `json:"heeded,omitempty"`       // short keyed hashes of these
	Texts        int64             `json:"texts,omitempty"`        // how many texts came in that anybody may have written
	Instructions []Instruction     `json:"instructions,omitempty"` // files of the project's that the session changes
	Stopped      bool              `json:"stopped,omitempty"`      // nothing is allowed until a person has looked

	// Of the shared record alone.
	Remotes         []Remote `json:"remotes,omitempty"`      // that have another address since
	OriginChangedAt int64    `json:"repointed_at,omitempty"` // when the address of a workspace may have been changed last
	FilesFullAt     int64    `json:"full_at,omitempty"`      // when there was no room for a file last: of others it is not known where they come from

	// Of a session that an earlier version kept: it did not share them.
	OriginWasChanged bool `json:"repointed,omitempty"`
	FilesWereFull    bool `json:"full,omitempty"`
}

// Labelled says when a label came, and by what.
type Labelled struct {
	Label effect.Label `json:"label"`
	At    int64        `json:"at"`
	By    string       `json:"by"` // a kind of effect or an action type; "inherited" from the parent
}

// Sent is what went to a host or a recipient.
type Sent struct {
	To    string `json:"to"`
	Times int    `json:"times"`
	Bytes int64  `json:"bytes"` // at least: files that are not looked at count nothing
	At    int64  `json:"at"`
}

// Made is a file, or a folder with all that is in it, that was not there before the session
// wrote it.
type Made struct {
	Path string `json:"path"`
	From int64  `json:"from"`
	Last int64  `json:"last"` // the session wrote to it
}

// An Event is when an action had an effect of some kind last.
type Event struct {
	At    int64 `json:"at"`
	Count int64 `json:"count"` // of the record, then
}

const version = 1

// has reports whether a session has a label.
func (r *Record) has(l effect.Label) bool {
	return slices.ContainsFunc(r.Labels, func(have Labelled) bool { return have.Label == l })
}

// add gives a session a label and reports whether it is new.
func (r *Record) add(l effect.Label, by string, now int64) bool {
	if r.has(l) {
		return false
	}
	r.Labels = append(r.Labels, Labelled{Label: l, At: now, By: by})
	return true
}

// active reports whether a session counts as going on.
func (r *Record) active(now int64, keep time.Duration) bool {
	span := int64(keep / time.Second)
	return now-r.Seen <= span+span/8
}

// shortenText shortens a text that comes from an action.
func shortenText(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText]
}
