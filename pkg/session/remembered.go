package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// maxRemembered is how many values are cached.
const maxRemembered = 4096

// A cachedShelves reads another shelf and caches its values until any process changes it. It is
// read-only. Goroutines share it.
type cachedShelves struct {
	base shelves

	mu     sync.Mutex
	at     state.Stamp                  // stamp of the shelf when the values were read
	values map[string]map[string][]byte // by group and key; nil for a missing value
	groups map[string][]value           // by key
	size   int
}

// A value is the value of one key in a group.
type value struct{ group, value []byte }

func (m *cachedShelves) stamp() (state.Stamp, bool) { return m.base.stamp() }

// look runs fn on the cache and, if fn asks for more than is cached, again on the shelf.
func (m *cachedShelves) look(ctx context.Context, fn func(shelf) error, wants ...state.Want) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	stamp, ok := m.base.stamp() // taken before the values are read
	if !ok {
		return m.base.look(ctx, fn, wants...)
	}
	if stamp != m.at || m.size > maxRemembered {
		m.at, m.values, m.groups, m.size = stamp, map[string]map[string][]byte{}, map[string][]value{}, 0
	}
	k := cachedShelf{m: m}
	if err := fn(&k); !k.asked {
		return err
	}
	return m.base.look(ctx, func(sh shelf) error { return fn(recordingShelf{sh, m}) }, wants...)
}

func (m *cachedShelves) change(ctx context.Context, fn func(shelf) error, wants ...state.Want) error {
	return m.base.change(ctx, fn, wants...)
}

// A recordingShelf records what is read through it.
type recordingShelf struct {
	shelf
	m *cachedShelves
}

func (n recordingShelf) Get(group, key []byte) []byte {
	value := slices.Clone(n.shelf.Get(group, key))
	of := n.m.values[string(group)]
	if of == nil {
		of = map[string][]byte{}
		n.m.values[string(group)] = of
	}
	of[string(key)] = value
	n.m.size++
	return value
}

func (n recordingShelf) Groups(key []byte, fn func(name, value []byte) error) error {
	var all []value
	err := n.shelf.Groups(key, func(name, v []byte) error {
		all = append(all, value{slices.Clone(name), slices.Clone(v)})
		return nil
	})
	if err != nil {
		return err
	}
	n.m.groups[string(key)] = all
	n.m.size += len(all)
	return show(all, fn)
}

func show(all []value, fn func(name, value []byte) error) error {
	for _, v := range all {
		if err := fn(v.group, v.value); err != nil {
			return err
		}
	}
	return nil
}

// Errors of a cached shelf, which callers do not see: fn runs again.
var (
	errAsked    = errors.New("not known")
	errReadOnly = errors.New("internal error: a remembered shelf was written to; please report this")
)

// A cachedShelf serves cached values, and notes whether more was asked for.
type cachedShelf struct {
	m     *cachedShelves
	asked bool
}

func (k *cachedShelf) Get(group, key []byte) []byte {
	value, ok := k.m.values[string(group)][string(key)]
	k.asked = k.asked || !ok
	return value
}

func (k *cachedShelf) Groups(key []byte, fn func(name, value []byte) error) error {
	all, ok := k.m.groups[string(key)]
	if k.asked = k.asked || !ok; k.asked {
		return errAsked
	}
	return show(all, fn)
}

func (k *cachedShelf) Each([]byte, func(key, value []byte) error) error {
	k.asked = true
	return errAsked
}

func (k *cachedShelf) Put(_, _, _ []byte) error { return errReadOnly }

func (k *cachedShelf) Drop([]byte) error { return errReadOnly }
