package session

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/shieldcli/shield/pkg/grounding"
)

// Bounds of what is kept of names in texts that anybody may have written.
const (
	maxSeenNames = 32768   // names of a session
	maxNew       = 8192    // names of one text
	maxTexts     = 254     // that can be told apart
	maxScanned   = 1 << 20 // bytes of one text
	nameHashSize = 4
	seenNameSize = nameHashSize + 1 // a short keyed hash, and the number of the text
)

// The keys of the names in a group, which begin with a byte that says whether more were heard
// than are kept, of the texts that they are from, and of an earlier form.
var (
	namesKey    = []byte("heard names")
	textsKey    = []byte("heard texts")
	oldHeardKey = []byte("heard")
)

// A Heard says in which text a name came first.
type Heard struct {
	Name string    `json:"-"`              // "" if so many names came in that it is not known which
	In   string    `json:"in"`             // what the text is, for people
	Host string    `json:"host,omitempty"` // where it came from
	At   time.Time `json:"at"`
}

// nameHash returns a name as names are kept that are only compared.
func (s *Store) nameHash(name string) []byte { return s.sumOf("name " + name)[:nameHashSize] }

// Heard keeps the names in texts that anybody may have written, so that no user's word about
// one of them counts from then on. in says what the texts are.
func (s *Store) Heard(ctx context.Context, loaded *Session, in Heard, texts []string) error {
	in.At = s.opts.Clock()
	if err := s.Add(ctx, loaded, &Delta{Texts: true}); err != nil {
		return err
	}
	var names []string
	left, over := maxScanned, false
	for _, text := range texts {
		over = over || len(text) > left
		text = text[:min(len(text), left)]
		left -= len(text)
		found, all := grounding.Names(text, maxNew-len(names))
		names, over = append(names, found...), over || !all
	}
	if loaded.err != nil || len(names) == 0 && !over {
		return loaded.err
	}
	group := loaded.key.group()
	return s.shelf.change(ctx, func(sh shelf) error {
		all := slices.Clone(sh.Get(group, namesKey))
		if len(all) == 0 {
			all = []byte{0}
		}
		known := make(map[[nameHashSize]byte]bool, len(all)/seenNameSize)
		for i := 1; i+seenNameSize <= len(all); i += seenNameSize {
			known[[nameHashSize]byte(all[i:])] = true
		}
		var list []Heard
		_ = json.Unmarshal(sh.Get(group, textsKey), &list) // what cannot be read names no text
		number := min(len(list), maxTexts)
		for _, name := range names {
			sum := [nameHashSize]byte(s.nameHash(name))
			if known[sum] {
				continue
			}
			if over = over || len(known) == maxSeenNames; over {
				break
			}
			known[sum] = true
			all = append(append(all, sum[:]...), byte(number))
		}
		if over {
			all[0] = 1
		}
		if len(list) < maxTexts {
			in.In = shortenText(in.In)
			if text, err := json.Marshal(append(list, in)); err == nil {
				if err := sh.Put(group, textsKey, text); err != nil {
					return err
				}
			}
		}
		return sh.Put(group, namesKey, all)
	}, s.wants(loaded.key, loaded.lineage.Parent)...)
}

// HasHeard returns, for each of some lists of names, the first text that anybody may have written and that had one
// of them; nil if none had. more is set if such texts have had more names than are remembered.
func (s *Store) HasHeard(ctx context.Context, loaded *Session, lists ...[]string) (first []*Heard, more bool, err error) {
	if len(lists) == 0 {
		return nil, false, nil
	}
	group := loaded.key.group()
	type name struct {
		list int
		text string
	}
	of := map[string][]name{} // by hash
	for i, list := range lists {
		for _, text := range list {
			sum := string(s.nameHash(text))
			of[sum] = append(of[sum], name{i, text})
		}
	}
	err = s.shelf.look(ctx, func(sh shelf) error {
		all := sh.Get(group, namesKey)
		first = make([]*Heard, len(lists))
		more = len(all) > 0 && all[0] != 0 || len(sh.Get(group, oldHeardKey)) > 0
		texts := sync.OnceValue(func() (list []Heard) {
			if json.Unmarshal(sh.Get(group, textsKey), &list) != nil { // what cannot be read names no text
				return nil
			}
			return list
		})
		for i := 1; i+seenNameSize <= len(all); i += seenNameSize {
			for _, n := range of[string(all[i:i+nameHashSize])] {
				if first[n.list] != nil {
					continue
				}
				first[n.list] = &Heard{In: "source unknown"}
				if number := int(all[i+nameHashSize]); number < len(texts()) {
					*first[n.list] = texts()[number]
				}
				first[n.list].Name = n.text
			}
		}
		return nil
	}, s.wants(loaded.key, loaded.lineage.Parent)...)
	if err != nil {
		first = make([]*Heard, len(lists))
	}
	return first, more, err
}

// UserWrote reports whether the user has written one of some names.
func (s *Store) UserWrote(loaded *Session, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		sum := s.nameHash(name)
		for i := 0; i+nameHashSize <= len(loaded.rec.NameHashes); i += nameHashSize {
			if bytes.Equal(sum, loaded.rec.NameHashes[i:i+nameHashSize]) {
				return true
			}
		}
		return false
	})
}

// UntrustedTexts returns how many texts came in that anybody may have written.
func (s *Session) UntrustedTexts() int64 { return s.rec.Texts }

// Start returns when the session began.
func (s *Session) Start() time.Time { return time.Unix(s.rec.Began, 0) }
