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

// A Prompt is what a user has named in one prompt, of which it is not yet known whether the
// user has written it.
type Prompt struct {
	ID         string            `json:"id,omitempty"` // given by the host
	Sum        string            `json:"sum"`          // keyed hash of the text
	Named      []grounding.Named `json:"named,omitempty"`
	NameHashes []byte            `json:"words,omitempty"` // short keyed hashes of the names in it
	PromptKey  []byte            `json:"heed,omitempty"`  // what it is known by
	At         int64             `json:"at"`
}

// Bounds of what is kept of prompts.
const (
	maxObjects     = 64
	maxPending     = 16
	maxPromptKeys  = 256
	promptKeySize  = 8
	maxWords       = 256  // names of one prompt
	maxPromptNames = 2048 // names of all
)

// NameKey returns what a name is kept as.
func (s *Store) NameKey(name string) string { return hex.EncodeToString(s.sumOf("name " + name)[:16]) }

func (s *Store) sumOf(text string) []byte {
	mac := hmac.New(sha256.New, s.opts.Key[:])
	_, _ = mac.Write([]byte(text)) // a hash does not fail
	return mac.Sum(nil)
}

// Prompted keeps what a prompt names. With pending it counts only once [Store.Settle] says
// that the user has written the prompt. clean takes credentials out of the words.
func (s *Store) Prompted(ctx context.Context, loaded *Session, id, text string, pending bool, clean func(string) string) error {
	p := Prompt{ID: shortenText(id), Sum: s.promptSum(text), At: s.now()}
	if p.PromptKey = s.promptKey(id, p.Sum); loaded.rec.hasPrompt(p.PromptKey) {
		return nil // the host's event once more
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

// promptKey returns what a prompt with an ID is known by; nil for one without.
func (s *Store) promptKey(id, sum string) []byte {
	if id == "" {
		return nil
	}
	return s.sumOf("prompt " + sum + " " + id)[:promptKeySize]
}

// hasPrompt reports whether a prompt has been taken for the user's before: what the user has said
// since counts.
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

// Settle says about a prompt that waits whether the user has written it: one with the ID and, if
// the host tells it, the text.
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

// Pending returns the IDs of the prompts of which it is not known yet who has written them.
func (s *Session) Pending() (ids []string) {
	for _, p := range s.rec.Prompts {
		ids = append(ids, p.ID)
	}
	return ids
}

// Named returns what the user has named in this session, the newest last, and whether the
// user has written anything at all.
func (s *Session) Named() (list []grounding.Named, spoken bool) { return s.rec.Named, s.rec.HasPrompt }

// addPrompts adds prompts to a record and reports whether that changes it.
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
			// the last word on an object counts
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
