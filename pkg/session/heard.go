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

// Bounds of the names that occur in untrusted texts and that a session stores.
const (
	maxNamesFromUntrustedTexts = 32768   // names per session
	maxNamesPerUntrustedText   = 8192    // names per text
	maxUntrustedTexts          = 254     // texts with a number and a description of their own; all later texts share a number without a description
	maxScannedBytesPerText     = 1 << 20 // bytes per text
	nameHashSize               = 4
	untrustedNameRecordBytes   = nameHashSize + 1 // keyed hash of a name, and the number of the text that it came from
)

// Keys in a group: namesInUntrustedTextsKey holds the names from untrusted texts, after a byte that says
// whether names were left out; untrustedTextsKey holds descriptions of these texts;
// oldUntrustedNamesKey holds names in an older format.
var (
	namesInUntrustedTextsKey = []byte("heard names")
	untrustedTextsKey        = []byte("heard texts")
	oldUntrustedNamesKey     = []byte("heard")
)

// An UntrustedText describes the untrusted text, such as a web page, that was the first to mention
// a name in the session.
type UntrustedText struct {
	MentionedName     string    `json:"-"`              // the mentioned name; "" if the text is unknown, because not all names were stored
	OriginDescription string    `json:"in"`             // description of the text, for people
	SourceWebHost     string    `json:"host,omitempty"` // web host that the text came from
	ReceivedAt        time.Time `json:"at"`
}

// nameHash returns the short keyed hash under which a name is stored for comparison.
func (s *Store) nameHash(name string) []byte { return s.keyedHash("name " + name)[:nameHashSize] }

// StoreUntrustedNames stores the names that occur in untrusted texts. If the user mentions such a
// name later, this no longer shows that the user chose it. in describes the texts.
func (s *Store) StoreUntrustedNames(ctx context.Context, loaded *Session, in UntrustedText, texts []string) error {
	in.ReceivedAt = s.opts.Clock()
	if err := s.Add(ctx, loaded, &RecordDelta{HasNewUntrustedText: true}); err != nil {
		return err
	}
	var names []string
	left, over := maxScannedBytesPerText, false
	for _, text := range texts {
		over = over || len(text) > left
		text = text[:min(len(text), left)]
		left -= len(text)
		found, all := grounding.NamesInText(text, maxNamesPerUntrustedText-len(names))
		names, over = append(names, found...), over || !all
	}
	if loaded.err != nil || len(names) == 0 && !over {
		return loaded.err
	}
	group := loaded.key.groupName()
	return s.storage.runWriting(ctx, func(sh storageTx) error {
		all := slices.Clone(sh.Get(group, namesInUntrustedTextsKey))
		if len(all) == 0 {
			all = []byte{0}
		}
		known := make(map[[nameHashSize]byte]bool, len(all)/untrustedNameRecordBytes)
		for i := 1; i+untrustedNameRecordBytes <= len(all); i += untrustedNameRecordBytes {
			known[[nameHashSize]byte(all[i:])] = true
		}
		var list []UntrustedText
		_ = json.Unmarshal(sh.Get(group, untrustedTextsKey), &list) // an unreadable list names no text
		number := min(len(list), maxUntrustedTexts)
		for _, name := range names {
			sum := [nameHashSize]byte(s.nameHash(name))
			if known[sum] {
				continue
			}
			if over = over || len(known) == maxNamesFromUntrustedTexts; over {
				break
			}
			known[sum] = true
			all = append(append(all, sum[:]...), byte(number))
		}
		if over {
			all[0] = 1
		}
		if len(list) < maxUntrustedTexts {
			in.OriginDescription = shortenText(in.OriginDescription)
			if text, err := json.Marshal(append(list, in)); err == nil {
				if err := sh.Put(group, untrustedTextsKey, text); err != nil {
					return err
				}
			}
		}
		return sh.Put(group, namesInUntrustedTextsKey, all)
	}, s.prefetchKeys(loaded.key, loaded.lineage.ParentSessionID)...)
}

// FirstUntrustedTextsMentioning returns, for each list of names, the first untrusted text with a name of the
// list; nil if there is none. hasUnstoredNames is true if the untrusted texts of the session may have had more
// names than are stored, or if names are stored in an older format.
func (s *Store) FirstUntrustedTextsMentioning(ctx context.Context, loaded *Session, nameLists ...[]string) (first []*UntrustedText, hasUnstoredNames bool, err error) {
	if len(nameLists) == 0 {
		return nil, false, nil
	}
	group := loaded.key.groupName()
	type name struct {
		list int
		text string
	}
	of := map[string][]name{} // names by hash
	for i, list := range nameLists {
		for _, text := range list {
			sum := string(s.nameHash(text))
			of[sum] = append(of[sum], name{i, text})
		}
	}
	err = s.storage.runReadOnly(ctx, func(sh storageTx) error {
		all := sh.Get(group, namesInUntrustedTextsKey)
		first = make([]*UntrustedText, len(nameLists))
		hasUnstoredNames = len(all) > 0 && all[0] != 0 || len(sh.Get(group, oldUntrustedNamesKey)) > 0
		texts := sync.OnceValue(func() (list []UntrustedText) {
			if json.Unmarshal(sh.Get(group, untrustedTextsKey), &list) != nil { // an unreadable list names no text
				return nil
			}
			return list
		})
		for i := 1; i+untrustedNameRecordBytes <= len(all); i += untrustedNameRecordBytes {
			for _, n := range of[string(all[i:i+nameHashSize])] {
				if first[n.list] != nil {
					continue
				}
				first[n.list] = &UntrustedText{OriginDescription: "source unknown"}
				if number := int(all[i+nameHashSize]); number < len(texts()) {
					*first[n.list] = texts()[number]
				}
				first[n.list].MentionedName = n.text
			}
		}
		return nil
	}, s.prefetchKeys(loaded.key, loaded.lineage.ParentSessionID)...)
	if err != nil {
		first = make([]*UntrustedText, len(nameLists))
	}
	return first, hasUnstoredNames, err
}

// UserPromptsMentionAnyName reports whether the user has written one of some names.
func (s *Store) UserPromptsMentionAnyName(loaded *Session, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		sum := s.nameHash(name)
		for i := 0; i+nameHashSize <= len(loaded.record.UserMentionedNameHashes); i += nameHashSize {
			if bytes.Equal(sum, loaded.record.UserMentionedNameHashes[i:i+nameHashSize]) {
				return true
			}
		}
		return false
	})
}

// UntrustedTextCount returns how many untrusted texts the session has received.
func (s *Session) UntrustedTextCount() int64 { return s.record.UntrustedTextCount }

// StartTime returns when the session began.
func (s *Session) StartTime() time.Time { return time.Unix(s.record.BeganAt, 0) }
