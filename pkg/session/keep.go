package session

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Each sensitive value of a storage group is stored under a key of its own, and the XOR of the hashes of all
// values of the group under valueHashesXORKey. The XOR changes with each value that is added or removed, so it
// identifies the set of values.

const sensitiveValueKeyPrefix = "value:"

// valueHashesXORKey is the key, in each storage group, of the XOR of the hashes of the group's sensitive values.
var valueHashesXORKey = []byte("values")

func (v *HashedSensitiveValue) key() []byte {
	return append([]byte(sensitiveValueKeyPrefix), v.Hash...)
}

// sensitiveValueHeader is the fixed-size start of a stored HashedSensitiveValue. After it come ServiceHostNameWords,
// joined by newlines, and then NGramHashes. Hash is not stored there, because it is part of the key.
type sensitiveValueHeader struct {
	ValueByteLen, PrefixShortHash uint32
	IsPrivateFileWord             bool
	ServiceHostWordsByteCount     uint16
}

// encode returns all of a value but its hash, which is its key.
func (v *HashedSensitiveValue) encode() []byte {
	words := strings.Join(v.ServiceHostNameWords, "\n")
	words = words[:min(len(words), math.MaxUint16)]
	out, err := binary.Append(nil, binary.LittleEndian, sensitiveValueHeader{uint32(v.Length), v.PrefixShortHash, v.IsPrivateFileWord, uint16(len(words))})
	if err != nil {
		panic(err) // all fields have a fixed size
	}
	return append(append(out, words...), v.NGramHashes...)
}

func decodeValue(key, data []byte) (v HashedSensitiveValue, err error) {
	var head sensitiveValueHeader
	n, err := binary.Decode(data, binary.LittleEndian, &head)
	end := n + int(head.ServiceHostWordsByteCount)
	if err != nil || len(key) != len(sensitiveValueKeyPrefix)+valueHashBytes || head.ValueByteLen < minSensitiveValueBytes || end > len(data) || (len(data)-end)%storedNGramBytes != 0 {
		return v, ErrDamaged
	}
	v = HashedSensitiveValue{Length: int(head.ValueByteLen), PrefixShortHash: head.PrefixShortHash, IsPrivateFileWord: head.IsPrivateFileWord, Hash: slices.Clone(key[len(sensitiveValueKeyPrefix):]), NGramHashes: slices.Clone(data[end:])}
	if head.ServiceHostWordsByteCount > 0 {
		v.ServiceHostNameWords = strings.Split(string(data[n:end]), "\n")
	}
	return v, nil
}

// xorHashInto adds the hash of a value to the sum of a group.
func (v *HashedSensitiveValue) xorHashInto(xor []byte) []byte {
	if xor == nil {
		return slices.Clone(v.Hash)
	}
	out := slices.Clone(xor)
	for i := range min(len(out), len(v.Hash)) {
		out[i] ^= v.Hash[i]
	}
	return out
}

// readGroupValueHashXORs returns the XORs of the value hashes of some storage groups, concatenated; "" if the
// groups hold no values.
func readGroupValueHashXORs(sh storageTx, groups [][]byte) (sums string) {
	for _, group := range groups {
		sums += string(sh.Get(group, valueHashesXORKey))
	}
	return sums
}

func loadValues(sh storageTx, groups [][]byte) (out []HashedSensitiveValue, err error) {
	for _, group := range groups {
		var sum []byte
		err = sh.Each(group, func(key, data []byte) error {
			if !strings.HasPrefix(string(key), sensitiveValueKeyPrefix) {
				return nil
			}
			v, err := decodeValue(key, data)
			if err != nil {
				return err
			}
			sum = v.xorHashInto(sum)
			out = append(out, v)
			return nil
		})
		if err == nil && !slices.Equal(sum, sh.Get(group, valueHashesXORKey)) {
			err = ErrDamaged
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// valueStoredTimeKeyPrefix precedes the key of the time at which a shared value was stored.
const valueStoredTimeKeyPrefix = "kept:"

func valueStoredTimeKey(valueKey []byte) []byte {
	return append([]byte(valueStoredTimeKeyPrefix), valueKey[len(sensitiveValueKeyPrefix):]...)
}

// addValues stores values in a group while there is room, and reports whether any is new. If there is
// no room, it removes values stored longer ago than sessions are kept.
func (s *Store) addValues(sh storageTx, group []byte, values []HashedSensitiveValue) (changed bool, err error) {
	if len(values) == 0 {
		return false, nil
	}
	have, err := loadValues(sh, [][]byte{group})
	if err != nil {
		return false, err
	}
	room, sum := maxSensitiveValuesPerGroup-len(have), slices.Clone(sh.Get(group, valueHashesXORKey))
	at := binary.BigEndian.AppendUint64(nil, uint64(s.now()))
	for i := range values {
		key := values[i].key()
		if sh.Get(group, key) != nil {
			continue
		}
		if room == 0 {
			old, err := s.oldestValue(sh, group)
			if err != nil {
				return changed, err
			}
			if old == nil {
				break
			}
			for _, gone := range [...][]byte{old.key(), valueStoredTimeKey(old.key())} {
				if err := sh.Put(group, gone, nil); err != nil {
					return changed, err
				}
			}
			sum, room = old.xorHashInto(sum), 1
		}
		if err := sh.Put(group, key, values[i].encode()); err != nil {
			return changed, err
		}
		if err := sh.Put(group, valueStoredTimeKey(key), at); err != nil {
			return changed, err
		}
		sum, changed, room = values[i].xorHashInto(sum), true, room-1
	}
	if changed {
		err = sh.Put(group, valueHashesXORKey, sum)
	}
	return changed, err
}

// oldestValue returns the value of a group that was stored first, if that is longer ago than sessions are
// kept; nil for none.
func (s *Store) oldestValue(sh storageTx, group []byte) (old *HashedSensitiveValue, err error) {
	first := s.now() - int64(s.opts.SessionRetention/time.Second)
	err = sh.Each(group, func(key, data []byte) error {
		sum, ok := strings.CutPrefix(string(key), valueStoredTimeKeyPrefix)
		if !ok || len(data) != 8 || len(sum) != valueHashBytes {
			return nil
		}
		if at := int64(binary.BigEndian.Uint64(data)); at < first {
			first, old = at, &HashedSensitiveValue{Hash: []byte(sum)}
		}
		return nil
	})
	return old, err
}

// Bounds of the matchers that a process caches.
const (
	maxCachedValueMatchers = 16
	maxCachedNGrams        = 1 << 18 // maximum number of cached piece hashes of all matchers
)

// A matcherCache caches value matchers. The key of a matcher is Session.valueSetFingerprint, which identifies the
// sensitive values that the matcher finds. Goroutines share it.
type matcherCache struct {
	mu                    sync.Mutex
	matcherByValueHashXOR map[string]*valueMatcher
	ngramCount            int
}

// loadValueMatcher returns the matcher for the values of a session.
func (s *Store) loadValueMatcher(ctx context.Context, loaded *Session) (*valueMatcher, error) {
	s.matchers.mu.Lock()
	defer s.matchers.mu.Unlock()
	if m := s.matchers.matcherByValueHashXOR[loaded.valueSetFingerprint]; m != nil {
		return m, nil
	}
	var list []HashedSensitiveValue
	var sums string // like loaded.valueSetFingerprint, but of the values that are read now, which may differ
	err := s.storage.runReadOnly(ctx, func(sh storageTx) (err error) {
		sums = readGroupValueHashXORs(sh, loaded.storageGroupNames)
		list, err = loadValues(sh, loaded.storageGroupNames)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := newValueMatcher(list)
	s.matchers.put(sums, m)
	return m, nil
}

func (k *matcherCache) put(sums string, m *valueMatcher) {
	n := len(m.slots) / 2
	if k.matcherByValueHashXOR == nil || len(k.matcherByValueHashXOR) == maxCachedValueMatchers || k.ngramCount+n > maxCachedNGrams {
		k.matcherByValueHashXOR, k.ngramCount = map[string]*valueMatcher{}, 0
	}
	k.matcherByValueHashXOR[sums] = m
	k.ngramCount += n
}
