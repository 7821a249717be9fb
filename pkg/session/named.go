package session

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/shieldcli/shield/pkg/grounding"
)

// A Prompt records the names that occur in a prompt. While the prompt is pending, it is unknown whether the user
// wrote it.
type Prompt struct {
	ID                  string                        `json:"id,omitempty"` // given by the host
	TextHash            string                        `json:"sum"`          // keyed hash of the text
	NamedObjects        []grounding.PromptNamedObject `json:"named,omitempty"`
	MentionedNameHashes []byte                        `json:"words,omitempty"` // short keyed hashes of the names that occur in the prompt
	DeduplicationKey    []byte                        `json:"heed,omitempty"`  // key that recognises the same prompt again
	ReceivedAt          int64                         `json:"at"`
}

// Bounds of the stored prompts.
const (
	maxNamedObjectsPerSession   = 64
	maxPromptsOfUnknownAuthor   = 16
	maxPromptDeduplicationKeys  = 256
	promptDeduplicationKeyBytes = 8
	maxNamesPerPrompt           = 256  // names per prompt
	maxUserMentionedNames       = 2048 // names that a session stores from all prompts that the user wrote; the oldest are dropped
)

// KeyedNameHashHex returns the keyed hash under which a name is stored.
func (s *Store) KeyedNameHashHex(name string) string {
	return hex.EncodeToString(s.keyedHash("name " + name)[:16])
}

func (s *Store) keyedHash(text string) []byte {
	mac := hmac.New(sha256.New, s.opts.CredentialHashKey[:])
	_, _ = mac.Write([]byte(text)) // writing to a hash does not fail
	return mac.Sum(nil)
}

// StorePrompt stores the names in a prompt. If pending is true, they have no effect until
// [Store.ResolvePromptAuthor] reports that the user wrote the prompt. The function clean removes
// credentials from the quotes of the prompt that are stored with the names.
func (s *Store) StorePrompt(ctx context.Context, loaded *Session, id, text string, pending bool, clean func(string) string) error {
	p := Prompt{ID: shortenText(id), TextHash: s.keyedPromptTextHash(text), ReceivedAt: s.now()}
	if p.DeduplicationKey = s.promptDeduplicationKey(id, p.TextHash); loaded.record.hasPrompt(p.DeduplicationKey) {
		return nil // the host reported the same prompt twice
	}
	named, words := grounding.ExtractObjectsAndNames(text, maxNamesPerPrompt)
	p.NamedObjects = named
	for i := range p.NamedObjects {
		n := &p.NamedObjects[i]
		if n.Name != grounding.AllObjects {
			n.Name, n.Quote = s.KeyedNameHashHex(n.Name), shortenText(clean(n.Quote))
		}
	}
	for _, w := range words {
		p.MentionedNameHashes = append(p.MentionedNameHashes, s.nameHash(w)...)
	}
	d := &RecordDelta{PendingPrompt: &p}
	if !pending {
		d.UserPrompt, d.PendingPrompt = &p, nil
	}
	return s.Add(ctx, loaded, d)
}

// promptDeduplicationKey returns the key that recognises a prompt with an ID; nil without an ID.
func (s *Store) promptDeduplicationKey(promptID, textHash string) []byte {
	if promptID == "" {
		return nil
	}
	return s.keyedHash("prompt " + textHash + " " + promptID)[:promptDeduplicationKeyBytes]
}

// hasPrompt reports whether a prompt with this key was already recorded as written by the user. If
// a host reports a prompt twice, recording it again would give it precedence over later prompts.
func (r *Record) hasPrompt(sum []byte) bool {
	for i := 0; len(sum) > 0 && i+promptDeduplicationKeyBytes <= len(r.UserPromptDeduplicationKeys); i += promptDeduplicationKeyBytes {
		if bytes.Equal(r.UserPromptDeduplicationKeys[i:i+promptDeduplicationKeyBytes], sum) {
			return true
		}
	}
	return false
}

func (s *Store) keyedPromptTextHash(text string) string {
	return hex.EncodeToString(s.keyedHash("prompt " + strings.TrimSpace(text))[:16])
}

// ResolvePromptAuthor records whether the user wrote a pending prompt, given its ID and, if the host reports it,
// its text.
func (s *Store) ResolvePromptAuthor(ctx context.Context, loaded *Session, promptID, text string, writtenByUser bool) error {
	sum := s.keyedPromptTextHash(text)
	for _, p := range loaded.record.Prompts {
		if p.ID == shortenText(promptID) && p.TextHash == sum {
			d := &RecordDelta{AuthorResolvedPromptHashes: []string{p.TextHash}}
			if writtenByUser {
				d.UserPrompt = &p
			}
			return s.Add(ctx, loaded, d)
		}
	}
	return nil
}

// PendingPromptIDs returns the IDs of the prompts whose author is unknown.
func (s *Session) PendingPromptIDs() (ids []string) {
	for _, p := range s.record.Prompts {
		ids = append(ids, p.ID)
	}
	return ids
}

// NamedObjects returns what the user has named in this session, newest last, and whether the user has written
// any prompt.
func (s *Session) NamedObjects() (list []grounding.PromptNamedObject, hasUserPrompt bool) {
	return s.record.NamedObjects, s.record.HasUserPrompt
}

// addPrompts adds prompts to a record and reports whether it changed.
func (r *Record) addPrompts(d *RecordDelta) bool {
	if len(d.AuthorResolvedPromptHashes) > 0 {
		r.Prompts = slices.DeleteFunc(slices.Clone(r.Prompts), func(p Prompt) bool { return slices.Contains(d.AuthorResolvedPromptHashes, p.TextHash) })
	}
	if d.PendingPrompt != nil {
		r.Prompts = append(slices.Clone(r.Prompts), *d.PendingPrompt)
		r.Prompts = r.Prompts[max(0, len(r.Prompts)-maxPromptsOfUnknownAuthor):]
	}
	if d.UserPrompt != nil {
		r.HasUserPrompt = true
		r.UserPromptDeduplicationKeys = append(slices.Clone(r.UserPromptDeduplicationKeys), d.UserPrompt.DeduplicationKey...)
		r.UserPromptDeduplicationKeys = r.UserPromptDeduplicationKeys[max(0, len(r.UserPromptDeduplicationKeys)-maxPromptDeduplicationKeys*promptDeduplicationKeyBytes):]
		for _, n := range d.UserPrompt.NamedObjects {
			if n.Name == grounding.AllObjects {
				r.NamedObjects = slices.DeleteFunc(slices.Clone(r.NamedObjects), func(o grounding.PromptNamedObject) bool { return !o.AreOperationsForbidden })
				continue
			}
			// the latest mention of an object counts
			r.NamedObjects = slices.DeleteFunc(slices.Clone(r.NamedObjects), func(o grounding.PromptNamedObject) bool {
				return o.Name == n.Name && o.AreOperationsForbidden != n.AreOperationsForbidden && o.WantedOrForbiddenOperations&n.WantedOrForbiddenOperations != 0
			})
			r.NamedObjects = append(r.NamedObjects, n)
		}
		r.NamedObjects = r.NamedObjects[max(0, len(r.NamedObjects)-maxNamedObjectsPerSession):]
		r.UserMentionedNameHashes = append(slices.Clone(r.UserMentionedNameHashes), d.UserPrompt.MentionedNameHashes...)
		r.UserMentionedNameHashes = r.UserMentionedNameHashes[max(0, len(r.UserMentionedNameHashes)-maxUserMentionedNames*nameHashSize):]
	}
	return len(d.AuthorResolvedPromptHashes) > 0 || d.PendingPrompt != nil || d.UserPrompt != nil
}
