package session

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// shelves is where records are stored.
type shelves interface {
	look(ctx context.Context, fn func(shelf) error, wants ...state.Want) error
	change(ctx context.Context, fn func(shelf) error, wants ...state.Want) error
	stamp() (state.Stamp, bool) // see [state.Store.Stamp]
}

// A shelf is valid for one transaction, see [state.Shelf].
type shelf interface {
	Groups(key []byte, fn func(name, value []byte) error) error
	Get(group, key []byte) []byte
	Each(group []byte, fn func(key, value []byte) error) error
	Put(group, key, value []byte) error
	Drop(group []byte) error
}

type fileShelves struct{ file *state.Store }

func (d fileShelves) look(ctx context.Context, fn func(shelf) error, wants ...state.Want) error {
	return d.file.LookShelf(ctx, shelfName, func(s *state.Shelf) error { return fn(s) }, wants...)
}

func (d fileShelves) change(ctx context.Context, fn func(shelf) error, wants ...state.Want) error {
	return d.file.Shelf(ctx, shelfName, func(s *state.Shelf) error { return fn(s) }, wants...)
}

func (d fileShelves) stamp() (state.Stamp, bool) { return d.file.Stamp(shelfName) }

// memoryShelves keeps records in memory.
type memoryShelves struct {
	mu      sync.Mutex
	groups  map[string]map[string][]byte
	changes uint64
}

func (m *memoryShelves) stamp() (s state.Stamp, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	binary.NativeEndian.PutUint64(s[:], m.changes+1) // the zero stamp is reserved
	return s, true
}

func (m *memoryShelves) look(ctx context.Context, fn func(shelf) error, _ ...state.Want) error {
	return m.change(ctx, fn)
}

func (m *memoryShelves) change(_ context.Context, fn func(shelf) error, _ ...state.Want) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(m)
}

func (m *memoryShelves) Groups(key []byte, fn func(name, value []byte) error) error {
	for name, group := range m.groups {
		if err := fn([]byte(name), group[string(key)]); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryShelves) Get(group, key []byte) []byte { return m.groups[string(group)][string(key)] }

func (m *memoryShelves) Each(group []byte, fn func(key, value []byte) error) error {
	for key, value := range m.groups[string(group)] {
		if err := fn([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryShelves) Put(group, key, value []byte) error {
	m.changes++
	g := m.groups[string(group)]
	if g == nil {
		g = map[string][]byte{}
		m.groups[string(group)] = g
	}
	if value == nil {
		delete(g, string(key))
	} else {
		g[string(key)] = value
	}
	return nil
}

func (m *memoryShelves) Drop(group []byte) error {
	m.changes++
	delete(m.groups, string(group))
	return nil
}
