package session

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// A storage holds the data of a Store as keys and values, in a group for each session or user: in the state
// file, in memory, or in a layer above another storage.
type storage interface {
	runReadOnly(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error
	runWriting(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error
	namespaceRevisionID() (state.NamespaceRevisionID, bool) // see [state.Store.NamespaceRevisionID]
}

// A storageTx is valid for one transaction, see [state.NamespaceTx].
type storageTx interface {
	EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error
	Get(group, key []byte) []byte
	Each(group []byte, fn func(key, value []byte) error) error
	Put(group, key, value []byte) error
	DropGroup(group []byte) error
}

type stateFileStorage struct{ file *state.Store }

func (d stateFileStorage) runReadOnly(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	return d.file.ViewNamespace(ctx, stateNamespace, func(s *state.NamespaceTx) error { return fn(s) }, wants...)
}

func (d stateFileStorage) runWriting(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	return d.file.UpdateNamespace(ctx, stateNamespace, func(s *state.NamespaceTx) error { return fn(s) }, wants...)
}

func (d stateFileStorage) namespaceRevisionID() (state.NamespaceRevisionID, bool) {
	return d.file.NamespaceRevisionID(stateNamespace)
}

// memoryStorage keeps records in memory.
type memoryStorage struct {
	mu                  sync.Mutex
	valuesByGroupAndKey map[string]map[string][]byte
	changeCount         uint64
}

func (m *memoryStorage) namespaceRevisionID() (s state.NamespaceRevisionID, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	binary.NativeEndian.PutUint64(s[:], m.changeCount+1) // the zero stamp is reserved
	return s, true
}

func (m *memoryStorage) runReadOnly(ctx context.Context, fn func(storageTx) error, _ ...state.PrefetchKey) error {
	return m.runWriting(ctx, fn)
}

func (m *memoryStorage) runWriting(_ context.Context, fn func(storageTx) error, _ ...state.PrefetchKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(m)
}

func (m *memoryStorage) EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error {
	for name, group := range m.valuesByGroupAndKey {
		if err := fn([]byte(name), group[string(key)]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryStorage) Get(group, key []byte) []byte {
	return m.valuesByGroupAndKey[string(group)][string(key)]
}

func (m *memoryStorage) Each(group []byte, fn func(key, value []byte) error) error {
	for key, value := range m.valuesByGroupAndKey[string(group)] {
		if err := fn([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryStorage) Put(group, key, value []byte) error {
	m.changeCount++
	g := m.valuesByGroupAndKey[string(group)]
	if g == nil {
		g = map[string][]byte{}
		m.valuesByGroupAndKey[string(group)] = g
	}
	if value == nil {
		delete(g, string(key))
	} else {
		g[string(key)] = value
	}
	return nil
}

func (m *memoryStorage) DropGroup(group []byte) error {
	m.changeCount++
	delete(m.valuesByGroupAndKey, string(group))
	return nil
}
