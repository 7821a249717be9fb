package state

import (
	"context"
	"encoding/hex"
	"strings"
)

// A CachedEntry is a cached value that has not expired.
type CachedEntry struct {
	KeyHashHex string // SHA-256 of the cache key, in hex
	Value      []byte
}

// CachedEntries returns the cached values in no particular order.
func (s *Store) CachedEntries(ctx context.Context) ([]CachedEntry, error) {
	var list []CachedEntry
	err := s.limitsAndNamespacesQueue.runPossiblyWriting(ctx, func(t *tx) error {
		list = nil
		return t.each(cacheBucket, func(key, entry []byte) error {
			if !t.isExpired(entry) {
				list = append(list, CachedEntry{hex.EncodeToString(key), append([]byte{}, entry[expiryHeaderSize:]...)})
			}
			return nil
		})
	})
	return list, err
}

// DropCached removes the cached values whose keys begin with one of the prefixes.
func (s *Store) DropCached(ctx context.Context, hexKeyPrefixes []string) error {
	return s.limitsAndNamespacesQueue.runWriting(ctx, func(t *tx) error {
		var drop [][]byte
		err := t.each(cacheBucket, func(key, _ []byte) error {
			name := hex.EncodeToString(key)
			for _, prefix := range hexKeyPrefixes {
				if strings.HasPrefix(name, prefix) {
					drop = append(drop, append([]byte{}, key...))
					break
				}
			}
			return nil
		})
		for _, key := range drop {
			if err == nil {
				err = t.put(cacheBucket, key, nil)
				t.record.CachedEntryCount--
			}
		}
		return err
	})
}
