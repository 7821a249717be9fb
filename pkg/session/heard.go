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

// Bounds of the stored names of untrusted texts.
const (
	maxSeenNames = 32768   // names per session
	maxNew       = 8192    // names per text
	maxTexts     = 254     // texts that can be told apart
	maxScanned   = 1 << 20 // bytes per text
	nameHashSize = 4
	seenNameSize = nameHashSize + 1 // a short keyed hash, and the number of its text
)

// Keys in a group: of the names, whose value begins with a byte that says whether names were left out;
// of the texts they are from; and of the names in an older format.
var (
	namesKey    = []byte("heard names")
	textsKey    = []byte("heard texts")
	oldHeardKey = []byte("heard")
)

// A Heard is the untrusted text in which a name came first.
type Heard struct {
	Name string    `json:"-"`              // "" if too many names came in to tell which
	In   string    `json:"in"`             // description of the text, for people
	Host string    `json:"host,omitempty"` // host of the text
	At   time.Time `json:"at"`
}

// nameHash returns the short keyed hash under which a name is stored for comparison.
func (s *Store) nameHash(name string) []byte { return s.sumOf("name " + name)[:nameHashSize] }

// Heard stores the names in untrusted texts: from then on the user's mention of such a name no longer
// counts. in describes the texts.
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
		_ = json.Unmarshal(sh.Get(group, textsKey), &list) // an unreadable list names no text
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

// HasHeard returns, for each list of names, the first untrusted text with one of them; nil if there is
// none. more is set if such texts had more names than are stored.
func (s *Store) HasHeard(ctx context.Context, loaded *Session, lists ...[]string) (first []*Heard, more bool, err error) {
	if len(lists) == 0 {
		return nil, false, nil
	}
	group := loaded.key.group()
	type name struct {
		list int
		text string
	}
	of := map[string][]name{} // names by hash
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
			if json.Unmarshal(sh.Get(group, textsKey), &list) != nil { // an unreadable list names no text
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

// UntrustedTexts returns how many untrusted texts came in.
func (s *Session) UntrustedTexts() int64 { return s.rec.Texts }

// Start returns when the session began.
func (s *Session) Start() time.Time { return time.Unix(s.rec.Began, 0) }
