package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/shieldcli/shield/pkg/state"
)

// maxCachedStorageValues is how many values are cached.
const maxCachedStorageValues = 4096

// A cachedStorage reads a base storage and caches its values until any process changes them. It is
// read-only. Goroutines share it.
type cachedStorage struct {
	base storage

	mu               sync.Mutex
	stampAtRead      state.NamespaceRevisionID      // stamp of the base storage when the values were read
	values           map[string]map[string][]byte   // by group and key; nil for a missing value
	groupValuesByKey map[string][]storageGroupValue // by key
	valueCount       int
}

// A storageGroupValue is the value of one key in a group.
type storageGroupValue struct{ groupName, value []byte }

func (m *cachedStorage) namespaceRevisionID() (state.NamespaceRevisionID, bool) {
	return m.base.namespaceRevisionID()
}

// runReadOnly runs fn on the cached values. If fn reads a value that is not cached, runReadOnly
// runs fn again on the base storage.
func (m *cachedStorage) runReadOnly(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	stamp, ok := m.base.namespaceRevisionID() // taken before the values are read
	if !ok {
		return m.base.runReadOnly(ctx, fn, wants...)
	}
	if stamp != m.stampAtRead || m.valueCount > maxCachedStorageValues {
		m.stampAtRead, m.values, m.groupValuesByKey, m.valueCount = stamp, map[string]map[string][]byte{}, map[string][]storageGroupValue{}, 0
	}
	k := cachedTx{storage: m}
	if err := fn(&k); !k.hasCacheMiss {
		return err
	}
	return m.base.runReadOnly(ctx, func(sh storageTx) error { return fn(cacheFillingTx{sh, m}) }, wants...)
}

func (m *cachedStorage) runWriting(ctx context.Context, fn func(storageTx) error, wants ...state.PrefetchKey) error {
	return m.base.runWriting(ctx, fn, wants...)
}

// A cacheFillingTx records what is read through it.
type cacheFillingTx struct {
	storageTx
	storage *cachedStorage
}

func (n cacheFillingTx) Get(group, key []byte) []byte {
	value := slices.Clone(n.storageTx.Get(group, key))
	of := n.storage.values[string(group)]
	if of == nil {
		of = map[string][]byte{}
		n.storage.values[string(group)] = of
	}
	of[string(key)] = value
	n.storage.valueCount++
	return value
}

func (n cacheFillingTx) EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error {
	var all []storageGroupValue
	err := n.storageTx.EachGroupWithValueOfKey(key, func(name, v []byte) error {
		all = append(all, storageGroupValue{slices.Clone(name), slices.Clone(v)})
		return nil
	})
	if err != nil {
		return err
	}
	n.storage.groupValuesByKey[string(key)] = all
	n.storage.valueCount += len(all)
	return eachValue(all, fn)
}

func eachValue(all []storageGroupValue, fn func(name, value []byte) error) error {
	for _, v := range all {
		if err := fn(v.groupName, v.value); err != nil {
			return err
		}
	}
	return nil
}

// Errors of a transaction on cached values. After errNotCached, which callers do not see,
// [cachedStorage.runReadOnly] runs fn again on the base storage; errReadOnly means that fn tried to
// write.
var (
	errNotCached = errors.New("not known")
	errReadOnly  = errors.New("internal error: cached session data was changed; please report this")
)

// A cachedTx serves values from the cache, and records in the field missed whether a requested
// value was not cached.
type cachedTx struct {
	storage      *cachedStorage
	hasCacheMiss bool
}

func (k *cachedTx) Get(group, key []byte) []byte {
	value, ok := k.storage.values[string(group)][string(key)]
	k.hasCacheMiss = k.hasCacheMiss || !ok
	return value
}

func (k *cachedTx) EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error {
	all, ok := k.storage.groupValuesByKey[string(key)]
	if k.hasCacheMiss = k.hasCacheMiss || !ok; k.hasCacheMiss {
		return errNotCached
	}
	return eachValue(all, fn)
}

func (k *cachedTx) Each([]byte, func(key, value []byte) error) error {
	k.hasCacheMiss = true
	return errNotCached
}

func (k *cachedTx) Put(_, _, _ []byte) error { return errReadOnly }

func (k *cachedTx) DropGroup([]byte) error { return errReadOnly }
