// Package session remembers what the actions of a session did, across actions and processes: which
// kinds of data came in, the labels of files, what was sent where, and what was denied. [DeltaOfAction]
// returns what an action adds, a [Store] stores it, and a [Session] is what the next action is judged
// with.
//
// No record contains a credential, and an agent's claims can only make judgement stricter.
package session

import (
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/grounding"
)

// SessionLabelsInDisplayOrder are the labels of a session in display order: a credential was read; the user's private files
// or messages were read; untrusted text came in.
var SessionLabelsInDisplayOrder = []effect.TaintLabel{effect.LabelFromCredentialLocation, effect.LabelPersonalData, effect.LabelUntrusted}

// A Key identifies a session. An action outside a host's session belongs to the key without AgentHostName and
// ID: the user's default session.
type Key struct {
	AgentHostName string `json:"host,omitempty"` // the program that gave ID, see package host
	ID            string `json:"id,omitempty"`
	User          string `json:"user,omitempty"`
}

// IsDefault reports whether the key is that of the user's default session.
func (k Key) IsDefault() bool { return k.AgentHostName == "" && k.ID == "" }

// sharedRecordAgentHost is the host in the key of the record that all sessions of a user share.
const sharedRecordAgentHost = "*"

// IsSharedByUserSessions reports whether the key is that of the shared record of a user: labels of files, hashes of
// credentials, changed remotes of repositories.
func (k Key) IsSharedByUserSessions() bool { return k.AgentHostName == sharedRecordAgentHost }

// MemoryOnlySessionKey returns the key of a stream's session, which has no stored record.
func MemoryOnlySessionKey(user string) Key { return Key{AgentHostName: "-", User: user} }

// Bounds of a record; those of its files and denials are settings.
const (
	maxSessions                = 512
	maxRecipients              = 256  // hosts and recipients
	maxCreatedPaths            = 256  // files and folders
	maxEventTypesPerSession    = 64   // kinds of effects, each with its latest time
	maxNameTargetOrReasonBytes = 200  // bytes of a name, a target, or a reason
	maxPathBytes               = 1024 // bytes of a path; longer ones are hashed
)

// A Record is the stored record of a session, or of all sessions of a user, without files and values.
// Times are seconds since 1970.
type Record struct {
	Version int `json:"v"`
	Key
	ParentSessionID                    string                          `json:"parent,omitempty"`      // the ID of the parent session
	ParentAgentHostName                string                          `json:"parent_host,omitempty"` // the host of the parent session, if it is another one
	HostProcessName                    string                          `json:"process,omitempty"`     // process of the host, see [Lineage]
	BeganAt                            int64                           `json:"began"`
	LastActionAt                       int64                           `json:"seen"` // time of the last action, exact to 1/8 of the time for which a session is kept
	Labels                             []SessionTaintLabel             `json:"labels,omitempty"`
	Sent                               []SentData                      `json:"sent,omitempty"`
	Denials                            []Denial                        `json:"denials,omitempty"`      // the newest last
	LastOccurrenceByEffectOrActionType map[string]LastEffectOccurrence `json:"events,omitempty"`       // by kind of effect; only those that a policy refers to
	ActionCount                        int64                           `json:"count,omitempty"`        // number of actions, if a policy counts them
	RepositoryOwners                   []string                        `json:"owners,omitempty"`       // the host and account that own the workspace's repository
	CreatedPaths                       []CreatedPath                   `json:"made,omitempty"`         // what the session created, the newest last
	Prompts                            []Prompt                        `json:"prompts,omitempty"`      // prompts that the user may have written
	NamedObjects                       []grounding.PromptNamedObject   `json:"named,omitempty"`        // what the user has named, the newest last
	HasUserPrompt                      bool                            `json:"spoken,omitempty"`       // the user has written at least one prompt
	UserMentionedNameHashes            []byte                          `json:"words,omitempty"`        // short keyed hashes of the names in prompts that the user wrote
	UserPromptDeduplicationKeys        []byte                          `json:"heeded,omitempty"`       // keys of the prompts counted as the user's
	UntrustedTextCount                 int64                           `json:"texts,omitempty"`        // how many untrusted texts came in
	ChangedInstructionFiles            []ChangedInstructionFile        `json:"instructions,omitempty"` // instruction files of the project that the session changes
	IsStoppedAfterDenials              bool                            `json:"stopped,omitempty"`      // nothing is allowed until a person resumes the session

	// Fields of the shared record only.
	Remotes            []ChangedGitRemote `json:"remotes,omitempty"`      // remotes whose address a session changed
	GitOriginChangedAt int64              `json:"repointed_at,omitempty"` // when a command last may have changed the workspace's remote
	FileLimitReachedAt int64              `json:"full_at,omitempty"`      // when a file was last left out for lack of room: the origin of other files is unknown then

	// Fields of session records of an earlier version. In this version, GitOriginChangedAt and
	// FileLimitReachedAt of the shared record hold this data.
	GitOriginWasChanged bool `json:"repointed,omitempty"`
	WasFileLimitReached bool `json:"full,omitempty"`
}

// A SessionTaintLabel is when and why a session got a label.
type SessionTaintLabel struct {
	Label              effect.TaintLabel `json:"label"`
	FirstAddedAt       int64             `json:"at"`
	EffectOrActionType string            `json:"by"` // a kind of effect or an action type; "inherited" from the parent
}

// A SentData is what was sent to a host or a recipient.
type SentData struct {
	Recipient  string `json:"to"`
	SendCount  int    `json:"times"`
	Bytes      int64  `json:"bytes"` // lower bound: a file of unknown size counts as 0 bytes
	LastSentAt int64  `json:"at"`
}

// A CreatedPath is a file, or a folder with all its content, that the session created.
type CreatedPath struct {
	Path          string `json:"path"`
	CreatedAt     int64  `json:"from"`
	LastWrittenAt int64  `json:"last"` // time of the session's last recorded write to the path; later writes within minSecondsBetweenRecordedWrites are not recorded
}

// A LastEffectOccurrence is the last time that an action had an effect of some kind.
type LastEffectOccurrence struct {
	At                     int64 `json:"at"`
	SessionActionCountThen int64 `json:"count"` // value of Record.ActionCount when the effect occurred
}

const recordVersion = 1

// hasLabel reports whether a session has a label.
func (r *Record) hasLabel(l effect.TaintLabel) bool {
	return slices.ContainsFunc(r.Labels, func(have SessionTaintLabel) bool { return have.Label == l })
}

// addLabel gives a session a label and reports whether it is new.
func (r *Record) addLabel(l effect.TaintLabel, by string, now int64) bool {
	if r.hasLabel(l) {
		return false
	}
	r.Labels = append(r.Labels, SessionTaintLabel{Label: l, FirstAddedAt: now, EffectOrActionType: by})
	return true
}

// isActive reports whether a session has not expired.
func (r *Record) isActive(now int64, keep time.Duration) bool {
	span := int64(keep / time.Second)
	return now-r.LastActionAt <= span+span/8
}

// shortenText shortens a text from an action.
func shortenText(s string) string {
	if len(s) <= maxNameTargetOrReasonBytes {
		return s
	}
	return s[:maxNameTargetOrReasonBytes]
}
