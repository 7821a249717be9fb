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

// A Prompt holds the names in a prompt of which it is not known yet whether the user wrote it.
type Prompt struct {
	ID         string            `json:"id,omitempty"` // given by the host
	Sum        string            `json:"sum"`          // keyed hash of the text
	Named      []grounding.Named `json:"named,omitempty"`
	NameHashes []byte            `json:"words,omitempty"` // short keyed hashes of the names in it
	PromptKey  []byte            `json:"heed,omitempty"`  // key that recognises the same prompt again
	At         int64             `json:"at"`
}

// Bounds of the stored prompts.
const (
	maxObjects     = 64
	maxPending     = 16
	maxPromptKeys  = 256
	promptKeySize  = 8
	maxWords       = 256  // names per prompt
	maxPromptNames = 2048 // names of all prompts
)

// NameKey returns the keyed hash under which a name is stored.
func (s *Store) NameKey(name string) string { return hex.EncodeToString(s.sumOf("name " + name)[:16]) }

func (s *Store) sumOf(text string) []byte {
	mac := hmac.New(sha256.New, s.opts.Key[:])
	_, _ = mac.Write([]byte(text)) // writing to a hash does not fail
	return mac.Sum(nil)
}

// Prompted stores the names in a prompt. If pending, they count only once [Store.Settle] says that the
// user wrote the prompt. clean removes credentials from the words.
func (s *Store) Prompted(ctx context.Context, loaded *Session, id, text string, pending bool, clean func(string) string) error {
	p := Prompt{ID: shortenText(id), Sum: s.promptSum(text), At: s.now()}
	if p.PromptKey = s.promptKey(id, p.Sum); loaded.rec.hasPrompt(p.PromptKey) {
		return nil // the host reported it twice
	}
	named, words := grounding.Extract(text, maxWords)
	p.Named = named
	for i := range p.Named {
		n := &p.Named[i]
		if n.Name != grounding.Everything {
			n.Name, n.Said = s.NameKey(n.Name), shortenText(clean(n.Said))
		}
	}
	for _, w := range words {
		p.NameHashes = append(p.NameHashes, s.nameHash(w)...)
	}
	d := &Delta{Prompt: &p}
	if !pending {
		d.UserPrompt, d.Prompt = &p, nil
	}
	return s.Add(ctx, loaded, d)
}

// promptKey returns the key that recognises a prompt with an ID; nil without an ID.
func (s *Store) promptKey(id, sum string) []byte {
	if id == "" {
		return nil
	}
	return s.sumOf("prompt " + sum + " " + id)[:promptKeySize]
}

// hasPrompt reports whether a prompt was counted as the user's before: later prompts take precedence.
func (r *Record) hasPrompt(sum []byte) bool {
	for i := 0; len(sum) > 0 && i+promptKeySize <= len(r.PromptKeys); i += promptKeySize {
		if bytes.Equal(r.PromptKeys[i:i+promptKeySize], sum) {
			return true
		}
	}
	return false
}

func (s *Store) promptSum(text string) string {
	return hex.EncodeToString(s.sumOf("prompt " + strings.TrimSpace(text))[:16])
}

// Settle records whether the user wrote a pending prompt, given its ID and, if the host reports it,
// its text.
func (s *Store) Settle(ctx context.Context, loaded *Session, id, text string, written bool) error {
	sum := s.promptSum(text)
	for _, p := range loaded.rec.Prompts {
		if p.ID == shortenText(id) && p.Sum == sum {
			d := &Delta{SettledPrompts: []string{p.Sum}}
			if written {
				d.UserPrompt = &p
			}
			return s.Add(ctx, loaded, d)
		}
	}
	return nil
}

// Pending returns the IDs of the prompts whose author is unknown.
func (s *Session) Pending() (ids []string) {
	for _, p := range s.rec.Prompts {
		ids = append(ids, p.ID)
	}
	return ids
}

// Named returns what the user has named in this session, newest last, and whether the user has written
// any prompt.
func (s *Session) Named() (list []grounding.Named, spoken bool) { return s.rec.Named, s.rec.HasPrompt }

// addPrompts adds prompts to a record and reports whether it changed.
func (r *Record) addPrompts(d *Delta) bool {
	if len(d.SettledPrompts) > 0 {
		r.Prompts = slices.DeleteFunc(slices.Clone(r.Prompts), func(p Prompt) bool { return slices.Contains(d.SettledPrompts, p.Sum) })
	}
	if d.Prompt != nil {
		r.Prompts = append(slices.Clone(r.Prompts), *d.Prompt)
		r.Prompts = r.Prompts[max(0, len(r.Prompts)-maxPending):]
	}
	if d.UserPrompt != nil {
		r.HasPrompt = true
		r.PromptKeys = append(slices.Clone(r.PromptKeys), d.UserPrompt.PromptKey...)
		r.PromptKeys = r.PromptKeys[max(0, len(r.PromptKeys)-maxPromptKeys*promptKeySize):]
		for _, n := range d.UserPrompt.Named {
			if n.Name == grounding.Everything {
				r.Named = slices.DeleteFunc(slices.Clone(r.Named), func(o grounding.Named) bool { return !o.Not })
				continue
			}
			// the latest mention of an object counts
			r.Named = slices.DeleteFunc(slices.Clone(r.Named), func(o grounding.Named) bool {
				return o.Name == n.Name && o.Not != n.Not && o.Does&n.Does != 0
			})
			r.Named = append(r.Named, n)
		}
		r.Named = r.Named[max(0, len(r.Named)-maxObjects):]
		r.NameHashes = append(slices.Clone(r.NameHashes), d.UserPrompt.NameHashes...)
		r.NameHashes = r.NameHashes[max(0, len(r.NameHashes)-maxPromptNames*nameHashSize):]
	}
	return len(d.SettledPrompts) > 0 || d.Prompt != nil || d.UserPrompt != nil
}
