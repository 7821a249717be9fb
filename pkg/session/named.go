package session

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/shieldcli/shield/internal/prefilter"
	"github.com/shieldcli/shield/pkg/grounding"
)

// A Prompt is what a user has named in one prompt, of which it is not yet known whether the
// user has written it.
type Prompt struct {
	ID    string            `json:"id,omitempty"` // by the host
	Sum   string            `json:"sum"`          // keyed hash of the text
	Named []grounding.Named `json:"named,omitempty"`
	At    int64             `json:"at"`
}

// Bounds of what is kept of prompts, and of names in results that anybody may have written.
const (
	maxObjects = 64
	maxPending = 16
	maxHeard   = 8192
	heardSize  = 8
	maxScanned = 1 << 20 // bytes of one result
)

// heardAll is in the list of names for all names: texts had more than are kept.
var heardAll = bytes.Repeat([]byte{0xff}, heardSize)

// heardKey is the key of the names in a group, each as a short keyed hash.
var heardKey = []byte("heard")

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
	p := Prompt{ID: cut(id), Sum: s.promptSum(text), Named: grounding.Extract(text), At: s.now()}
	for i := range p.Named {
		n := &p.Named[i]
		n.Name, n.Said = s.NameKey(n.Name), cut(clean(n.Said))
	}
	d := &Delta{Prompt: &p}
	if !pending {
		d.Spoken, d.Prompt = &p, nil
	}
	return s.Add(ctx, loaded, d)
}

func (s *Store) promptSum(text string) string {
	return hex.EncodeToString(s.sumOf("prompt " + strings.TrimSpace(text))[:16])
}

// Settle says about a prompt that waits whether the user has written it: one with the ID and, if
// the host tells it, the text.
func (s *Store) Settle(ctx context.Context, loaded *Session, id, text string, written bool) error {
	sum := s.promptSum(text)
	for _, p := range loaded.rec.Prompts {
		if p.ID == cut(id) && p.Sum == sum {
			d := &Delta{Settled: []string{p.Sum}}
			if written {
				d.Spoken = &p
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
func (s *Session) Named() (list []grounding.Named, spoken bool) { return s.rec.Named, s.rec.Spoken }

// speak adds prompts to a record and reports whether that changes it.
func (r *Record) speak(d *Delta) bool {
	if len(d.Settled) > 0 {
		r.Prompts = slices.DeleteFunc(slices.Clone(r.Prompts), func(p Prompt) bool { return slices.Contains(d.Settled, p.Sum) })
	}
	if d.Prompt != nil {
		r.Prompts = append(slices.Clone(r.Prompts), *d.Prompt)
		r.Prompts = r.Prompts[max(0, len(r.Prompts)-maxPending):]
	}
	if d.Spoken != nil {
		r.Spoken = true
		for _, n := range d.Spoken.Named {
			// the update of the message on an object counts
			r.Named = slices.DeleteFunc(slices.Clone(r.Named), func(o grounding.Named) bool {
				return o.Name == n.Name && o.Not != n.Not && o.Does&n.Does != 0
			})
			r.Named = append(r.Named, n)
		}
		r.Named = r.Named[max(0, len(r.Named)-maxObjects):]
	}
	return len(d.Settled) > 0 || d.Prompt != nil || d.Spoken != nil
}

var heardName = prefilter.Lazy(`[A-Za-z0-9~./_@][A-Za-z0-9~./_@:+=-]{2,199}`)

// Heard keeps the names in texts that anybody may have written, so that no user's word about
// one of them counts from then on.
func (s *Store) Heard(ctx context.Context, loaded *Session, texts []string) error {
	var fresh []byte
	seen, left := map[uint64]bool{}, maxScanned
	add := func(name string) {
		if name = grounding.Canonical(strings.Trim(name, ".,:;")); len(name) < 3 {
			return
		}
		sum := s.sumOf("name " + name)[:heardSize]
		if n := binary.LittleEndian.Uint64(sum); !seen[n] && len(seen) < maxHeard {
			seen[n] = true
			fresh = append(fresh, sum...)
		}
	}
	over := false
	for _, text := range texts {
		over = over || len(text) > left
		if text = text[:min(len(text), left)]; text == "" {
			continue
		}
		left -= len(text)
		list := heardName().FindAllString(text, maxHeard)
		over = over || len(list) == maxHeard
		for _, w := range list {
			add(w)
			if _, rest, ok := strings.Cut(w, "://"); ok {
				w = rest
			}
			for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("/@:=+", r) }) {
				add(part)
			}
		}
	}
	over = over || len(seen) == maxHeard
	if len(fresh) == 0 && !over || loaded.err != nil {
		return loaded.err
	}
	group := loaded.key.group()
	return s.shelf.change(ctx, func(sh shelf) error {
		all := append(slices.Clone(fresh), sh.Get(group, heardKey)...)
		over = over || bytes.HasSuffix(all, heardAll)
		for i := len(fresh); i+heardSize <= len(all); {
			if seen[binary.LittleEndian.Uint64(all[i:])] {
				all = slices.Delete(all, i, i+heardSize)
			} else {
				i += heardSize
			}
		}
		if over || len(all) > maxHeard*heardSize {
			all = heardAll // from now on the user's words lift nothing in this session
		}
		return sh.Put(group, heardKey, all)
	}, s.wants(loaded.key, loaded.lineage.Parent)...)
}

// HasHeard reports whether a text that anybody may have written had one of some names.
func (s *Store) HasHeard(ctx context.Context, loaded *Session, names []string) (heard bool, err error) {
	group := loaded.key.group()
	err = s.shelf.look(ctx, func(sh shelf) error {
		all := sh.Get(group, heardKey)
		heard = bytes.HasPrefix(all, heardAll)
		for _, name := range names {
			sum := s.sumOf("name " + name)[:heardSize]
			for i := 0; i+heardSize <= len(all); i += heardSize {
				heard = heard || string(all[i:i+heardSize]) == string(sum)
			}
		}
		return nil
	}, s.wants(loaded.key, loaded.lineage.Parent)...)
	return heard, err
}
