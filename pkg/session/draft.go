package session

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/state"
)

// NewMemoryOverlay returns a store for one stream of actions. The new store reads from s, but
// writes only to memory. When an action is finally allowed, the caller adds its data to s.
func (s *Store) NewMemoryOverlay() *Store {
	return &Store{opts: s.opts, storage: &overlayStorage{base: &cachedStorage{base: s.storage}, writesByGroupAndKey: map[string]map[string][]byte{}}}
}

// An overlayStorage is a storage that keeps its own writes in memory and reads everything else from a base
// storage, which it never changes.
type overlayStorage struct {
	base             storage
	transactionMutex sync.Mutex // held during a transaction; base can call the transaction's function several times

	mu                  sync.Mutex
	writesByGroupAndKey map[string]map[string][]byte // nil values mark removed keys
	changeCount         uint64
}

func (o *overlayStorage) namespaceRevisionID() (s state.NamespaceRevisionID, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok = o.base.namespaceRevisionID()
	last := s[len(s)-8:]
	binary.NativeEndian.PutUint64(last, binary.NativeEndian.Uint64(last)+o.changeCount)
	return s, ok
}

func (o *overlayStorage) runReadOnly(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	o.transactionMutex.Lock()
	defer o.transactionMutex.Unlock()
	var j undoLog
	err := o.base.runReadOnly(ctx, func(sh storageTx) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		j.undo(o) // drop the writes of an earlier try
		return fn(overlayTx{o, sh, &j})
	}, wants...)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		j.undo(o)
	}
	return err
}

func (o *overlayStorage) runWriting(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	return o.runReadOnly(ctx, fn, wants...)
}

// An undoLog is what one try of a transaction has overwritten, with the old values.
type undoLog []overwrittenValue

type overwrittenValue struct {
	groupName, key string
	value          []byte
	existed        bool
}

// undo restores the values that a try of a transaction has overwritten. It does not reset the
// change count, so that data read during the try has a different stamp (version) than the restored
// data.
func (j *undoLog) undo(o *overlayStorage) {
	for _, w := range slices.Backward(*j) {
		if w.existed {
			o.writesByGroupAndKey[w.groupName][w.key] = w.value
		} else {
			delete(o.writesByGroupAndKey[w.groupName], w.key)
		}
	}
	*j = nil
}

// An overlayTx is a transaction of an overlay, inside a transaction of its base storage.
type overlayTx struct {
	storage *overlayStorage
	base    storageTx
	journal *undoLog
}

func (o overlayTx) Get(group, key []byte) []byte {
	own, below := o.storage.writesByGroupAndKey[string(group)], o.base.Get(group, key)
	switch string(key) {
	case string(valueHashesXORKey):
		return o.xorOverlayValueHashes(group, own, below)
	case string(fileRecordsRevisionKey): // another process may have changed files in the base storage in the meantime
		if change := own[string(key)]; change != nil {
			return slices.Concat(below, change)
		}
		return below
	}
	if value, ok := own[string(key)]; ok {
		return value
	}
	return below
}

// xorOverlayValueHashes returns the sum (XOR) of the hashes of a group's values: the sum in the base storage, which
// another process may have changed, with the overlay's added and removed values.
func (o overlayTx) xorOverlayValueHashes(group []byte, overlayValues map[string][]byte, xor []byte) []byte {
	for key, value := range overlayValues {
		rest, ok := strings.CutPrefix(key, sensitiveValueKeyPrefix)
		if ok && (value == nil) == (o.base.Get(group, []byte(key)) != nil) {
			xor = (&HashedSensitiveValue{Hash: []byte(rest)}).xorHashInto(xor)
		}
	}
	return xor
}

func (o overlayTx) Each(group []byte, fn func(key, value []byte) error) error {
	own := o.storage.writesByGroupAndKey[string(group)]
	err := o.base.Each(group, func(key, value []byte) error {
		if _, ok := own[string(key)]; ok {
			return nil
		}
		return fn(key, value)
	})
	for _, key := range sorted.Keys(own) {
		if own[key] != nil && err == nil {
			err = fn([]byte(key), own[key])
		}
	}
	return err
}

func (o overlayTx) EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error {
	seen := map[string]bool{}
	err := o.base.EachGroupWithValueOfKey(key, func(name, value []byte) error {
		seen[string(name)] = true
		if own, ok := o.storage.writesByGroupAndKey[string(name)][string(key)]; ok {
			value = own
		}
		return fn(name, value)
	})
	for _, name := range sorted.Keys(o.storage.writesByGroupAndKey) {
		if !seen[name] && err == nil {
			err = fn([]byte(name), o.storage.writesByGroupAndKey[name][string(key)])
		}
	}
	return err
}

func (o overlayTx) Put(group, key, value []byte) error {
	g := o.storage.writesByGroupAndKey[string(group)]
	if g == nil {
		g = map[string][]byte{}
		o.storage.writesByGroupAndKey[string(group)] = g
	}
	was, have := g[string(key)]
	*o.journal = append(*o.journal, overwrittenValue{string(group), string(key), was, have})
	if g[string(key)] = nil; value != nil {
		g[string(key)] = slices.Clone(value)
	}
	o.storage.changeCount++
	return nil
}

func (o overlayTx) DropGroup(group []byte) error {
	return o.Each(group, func(key, _ []byte) error { return o.Put(group, slices.Clone(key), nil) })
}
