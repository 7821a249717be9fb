package state

import (
	"context"
	"crypto/sha256"
	"time"
)

// Bounds of the cache. When it is full, the entry that would expire first is removed.
const (
	MaxCachedValueBytes = 16 << 10 // bytes
	maxCachedEntries    = 1000
	maxCacheLifetime    = 24 * time.Hour
)

// expiryHeaderSize is how many bytes precede the value of an entry: its expiry on the store's clock and on
// the wall clock.
const expiryHeaderSize = 16

// Put stores value under cacheKey until expires, for at most a day. It returns
// [ErrCachedValueLarge] for values over [MaxCachedValueBytes] bytes.
func (s *Store) Put(ctx context.Context, cacheKey string, value []byte, expires time.Time) error {
	if len(value) > MaxCachedValueBytes {
		return ErrCachedValueLarge
	}
	key := sha256.Sum256([]byte(cacheKey))
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error {
		left := min(expires.Sub(s.opts.Clock()), maxCacheLifetime)
		if left <= 0 {
			return nil
		}
		entry := byteOrder.AppendUint64(make([]byte, 0, expiryHeaderSize+len(value)), uint64(t.record.StoreClockUnixNano+int64(left)))
		entry = byteOrder.AppendUint64(entry, uint64(clampedUnixNano(t.wallTime.Add(left))))
		if t.get(cacheBucket, key[:]) == nil {
			if t.record.CachedEntryCount >= maxCachedEntries {
				if err := t.evictEntries(); err != nil {
					return err
				}
			}
			t.record.CachedEntryCount++
		}
		return t.put(cacheBucket, key[:], append(entry, value...))
	}, prefetchKey{cacheBucket, string(key[:])})
}

// Get returns the value stored under cacheKey, if it has not expired.
func (s *Store) Get(ctx context.Context, cacheKey string) (value []byte, ok bool, err error) {
	return s.lookUp(ctx, cacheKey, false)
}

// GetAndRemove is [Store.Get] for one-time answers: only the first caller gets the value.
func (s *Store) GetAndRemove(ctx context.Context, cacheKey string) (value []byte, ok bool, err error) {
	return s.lookUp(ctx, cacheKey, true)
}

func (s *Store) lookUp(ctx context.Context, cacheKey string, removeIfFound bool) (value []byte, ok bool, err error) {
	key := sha256.Sum256([]byte(cacheKey))
	err = s.limitsAndNamespacesQueue.runPossiblyWriting(ctx, func(t *tx) error {
		value, ok = nil, false
		entry := t.get(cacheBucket, key[:])
		if entry == nil {
			return nil
		}
		if ok = !t.isExpired(entry); ok {
			value = append([]byte{}, entry[expiryHeaderSize:]...)
			if !removeIfFound {
				return nil
			}
		}
		t.record.CachedEntryCount--
		t.hasWrites = true
		return t.put(cacheBucket, key[:], nil)
	}, prefetchKey{cacheBucket, string(key[:])})
	if err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

// ClearCache empties the cache.
func (s *Store) ClearCache(ctx context.Context) error {
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error {
		t.record.CachedEntryCount = 0
		return t.dropBucket(cacheBucket)
	})
}

// isExpired checks both clocks: setting a clock back must not extend an entry beyond its lifetime or
// beyond the time that its verdict states.
func (t *tx) isExpired(entry []byte) bool {
	return len(entry) < expiryHeaderSize ||
		uint64(t.record.StoreClockUnixNano) >= byteOrder.Uint64(entry) ||
		uint64(clampedUnixNano(t.wallTime)) >= byteOrder.Uint64(entry[8:])
}

// evictEntries removes expired entries or, if there are none, the one that expires first.
func (t *tx) evictEntries() error {
	var drop [][]byte
	var first []byte
	var soonest uint64
	kept := 0
	err := t.each(cacheBucket, func(k, v []byte) error {
		if t.isExpired(v) {
			drop = append(drop, append([]byte{}, k...))
			return nil
		}
		kept++
		if at := byteOrder.Uint64(v); first == nil || at < soonest {
			first, soonest = append(first[:0], k...), at
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(drop) == 0 && first != nil {
		drop = append(drop, first)
		kept--
	}
	for _, k := range drop {
		if err := t.put(cacheBucket, k, nil); err != nil {
			return err
		}
	}
	t.record.CachedEntryCount = kept
	return nil
}
