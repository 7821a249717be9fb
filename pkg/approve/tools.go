package approve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/state"
)

// An UnknownTool is a tool whose type shield does not know, with the data that identifies it.
type UnknownTool struct {
	IdentityHash           string // hash of the tool, its server and the known part of its definition; "" if it cannot be verified
	Server                 string // how the server is started or reached, for people; "" if unknown
	Description            string // the server's description of the tool; "" if unknown
	RemoteHost             string // the host of a server on another machine; "" for a local one
	ShieldShippedToolClass analysis.ToolClass
}

// A ToolClassAnswer is a person's answer about what a tool does.
type ToolClassAnswer struct {
	ID      string             `json:"id"`   // ID of the answer
	Tool    string             `json:"tool"` // name of the tool, which is the type of its actions
	Server  string             `json:"server,omitempty"`
	Class   analysis.ToolClass `json:"class"`
	By      string             `json:"by"`
	At      time.Time          `json:"at"`
	Until   time.Time          `json:"until,omitzero"`    // time at which a class for one session expires; zero for a class that holds in every session
	Session string             `json:"session,omitempty"` // ID of the session in which the class holds; "" if it holds in every session
}

// Limits of the stored classes that persons give to unknown tools.
const (
	toolClassStoreNamespace = "tools"
	maxToolClasses          = 4096
	maxToolClassAnswerBytes = 4096 // bytes of a stored answer about a tool, with its HMAC
)

// SetToolClass stores the class that a person has chosen for a tool. toolKey identifies the tool and, for a
// class that ends with the session, the session. Several processes may call it at once.
func (s *DecisionStore) SetToolClass(ctx context.Context, toolKey string, t ToolClassAnswer) error {
	if !slices.Contains(analysis.ToolClasses, t.Class) {
		return fmt.Errorf("%q is not a class of tools; use reads, workspace, elsewhere or never", t.Class)
	}
	t.ID, t.At = ToolClassAnswerID(toolKey), s.Clock()
	if t.Session != "" {
		t.Until = t.At.Add(advanceApprovalLifetime)
	}
	value, err := s.sealRecord(t)
	if err != nil {
		return err
	}
	if len(value) > maxToolClassAnswerBytes {
		return ErrActionTooLarge
	}
	return s.Store.UpdateNamespace(ctx, toolClassStoreNamespace, func(sh *state.NamespaceTx) error {
		count := 0
		var old [][]byte
		err := sh.Each(toolClassStoreGroupName, func(key, value []byte) error {
			var o ToolClassAnswer
			if s.unsealRecord(value, &o) != nil || o.isExpired(s.Clock()) {
				old = append(old, slices.Clone(key))
			} else {
				count++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if count >= maxToolClasses {
			return fmt.Errorf("%d tools already have a class; remove one with 'shield tools forget'", count)
		}
		for _, key := range old {
			if err := sh.Put(toolClassStoreGroupName, key, nil); err != nil {
				return err
			}
		}
		return sh.Put(toolClassStoreGroupName, sha256HexBytes(toolKey), value)
	})
}

var toolClassStoreGroupName = []byte("classes")

// ToolClassAnswerID returns the ID of the answer about a tool.
func ToolClassAnswerID(answerKey string) string {
	return string(sha256HexBytes(answerKey)[:approvalIDLength])
}

// isExpired reports whether the tool class that the person chose has expired.
func (t *ToolClassAnswer) isExpired(now time.Time) bool {
	return !t.Until.IsZero() && !now.Before(t.Until)
}

// FindToolClass returns the class that a person gave a tool; ok is false if there is none.
func (s *DecisionStore) FindToolClass(ctx context.Context, toolKey string) (t ToolClassAnswer, ok bool, err error) {
	value, err := s.toolClasses.lookUp(ctx, s.Store, sha256HexBytes(toolKey))
	ok = value != nil && s.unsealRecord(value, &t) == nil && t.ID == ToolClassAnswerID(toolKey) && !t.isExpired(s.Clock())
	return t, ok, err
}

// maxCachedToolClasses is how many classes are cached.
const maxCachedToolClasses = 256

// A toolClassCache caches classes until any process changes one. Goroutines share it.
type toolClassCache struct {
	mu                 sync.Mutex
	storeRevisionID    state.NamespaceRevisionID
	sealedAnswersByKey map[string][]byte // answers about tools, each with its HMAC, by the hash of the tool key; nil for a tool without a class
}

func (r *toolClassCache) lookUp(ctx context.Context, store *state.Store, key []byte) (value []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp, ok := store.NamespaceRevisionID(toolClassStoreNamespace) // taken before the values are read
	if value, known := r.sealedAnswersByKey[string(key)]; known && ok && stamp == r.storeRevisionID {
		return value, nil
	}
	err = store.ViewNamespace(ctx, toolClassStoreNamespace, func(sh *state.NamespaceTx) error {
		value = slices.Clone(sh.Get(toolClassStoreGroupName, key))
		return nil
	})
	if err != nil || !ok {
		return value, err
	}
	if stamp != r.storeRevisionID || len(r.sealedAnswersByKey) >= maxCachedToolClasses {
		r.storeRevisionID, r.sealedAnswersByKey = stamp, map[string][]byte{}
	}
	r.sealedAnswersByKey[string(key)] = value
	return value, nil
}

// ToolClassAnswers returns all stored classes of tools.
func (s *DecisionStore) ToolClassAnswers(ctx context.Context) (list []ToolClassAnswer, err error) {
	err = s.Store.ViewNamespace(ctx, toolClassStoreNamespace, func(sh *state.NamespaceTx) error {
		list = nil
		return sh.Each(toolClassStoreGroupName, func(_, value []byte) error {
			var t ToolClassAnswer
			if s.unsealRecord(value, &t) == nil && !t.isExpired(s.Clock()) {
				list = append(list, t)
			}
			return nil
		})
	})
	sorted.SortStableBy(list, func(a, b ToolClassAnswer) int {
		return cmp.Or(strings.Compare(a.Tool, b.Tool), strings.Compare(a.ID, b.ID))
	})
	return list, err
}

// ChangeToolClass changes the class of a tool that has one, or removes it for "".
func (s *DecisionStore) ChangeToolClass(ctx context.Context, answerID string, class analysis.ToolClass, by string) (t ToolClassAnswer, err error) {
	err = s.Store.UpdateNamespace(ctx, toolClassStoreNamespace, func(sh *state.NamespaceTx) error {
		var at []byte
		err := sh.Each(toolClassStoreGroupName, func(key, value []byte) error {
			var o ToolClassAnswer
			if s.unsealRecord(value, &o) == nil && o.ID == answerID && !o.isExpired(s.Clock()) {
				t, at = o, slices.Clone(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if at == nil {
			return fmt.Errorf("no tool has the ID %.40q; see 'shield tools list'", answerID)
		}
		if class == "" {
			return sh.Put(toolClassStoreGroupName, at, nil)
		}
		t.Class, t.By, t.At = class, by, s.Clock()
		value, err := s.sealRecord(t)
		if err != nil {
			return err
		}
		return sh.Put(toolClassStoreGroupName, at, value)
	})
	return t, err
}
