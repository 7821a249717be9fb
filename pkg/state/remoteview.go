package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shieldcli/shield/internal/resp"
	"github.com/shieldcli/shield/internal/sorted"
)

// A remoteTransaction is one transaction on a [remoteBackend]. It caches what it reads and writes
// everything at the end.
type remoteTransaction struct {
	remote             *remoteBackend
	ctx                context.Context
	clock              clockReading
	sealedLimitRecord  string // the record as read; "" if there is none yet
	storeIDAndTxCount  storeIDAndTxCount
	cachedBucketByPath map[bucketPath]*cachedBucket

	hasReadAfterTransactionBegan bool  // the transaction has read more values than [remoteTransaction.readInitialValues] did
	err                          error // the error of a failed read
}

// A cachedBucket holds the values that a transaction has read from, or wants to write to, one
// [bucketPath], a map of values by key.
type cachedBucket struct {
	values           map[string][]byte // by key; nil for missing values
	hasAllValues     bool              // values is complete
	changedKeys      map[string]bool   // keys to write
	mustDropOnCommit bool
}

var namespaceRevisionsBucket = bucketPath{namespaceName: "stamps"}

// namespaceGroupsBucket returns the [bucketPath], a map of values by key, that lists the names of all groups in a
// namespace.
func namespaceGroupsBucket(namespace string) bucketPath { return bucketPath{namespaceName: namespace} }

// readInitialValues reads the record, the wanted values and then the clock, which is therefore
// never behind another process's write. isConsistent is false if another process wrote meanwhile.
func (v *remoteTransaction) readInitialValues(lastSeen storeIDAndTxCount, hasLastSeen bool, wants []prefetchKey) (isConsistent bool, err error) {
	r := v.remote
	hash, field := r.sealer.hashName(limitsBucket), r.sealer.fieldName(limitsBucket, limitRecordKey)
	record := []string{"HGET", hash, field}
	commands, at := [][]string{record}, map[prefetchKey]int{}
	for _, w := range wants {
		if _, asked := at[w]; !asked {
			at[w] = len(commands)
			commands = append(commands, []string{"HGET", r.sealer.hashName(w.bucketPath), r.sealer.fieldName(w.bucketPath, []byte(w.key))})
		}
	}
	commands = append(commands, record, []string{"TIME"})
	got, err := r.client.Do(v.ctx, commands...)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		got, err = r.client.Do(v.ctx, commands...) // a restarted server has closed old connections; repeating a read is safe
	}
	if err != nil {
		return false, r.commandError(err)
	}
	after, clock := got[len(got)-2], got[len(got)-1]
	if v.sealedLimitRecord, err = replyText(got[0]); err != nil {
		return false, r.commandError(err)
	}
	if v.clock.wallTime, err = replyTime(clock); err != nil {
		return false, r.commandError(err)
	}
	last, err := replyText(after)
	if err != nil {
		return false, r.commandError(err)
	}
	if err := v.decryptLimitRecord(lastSeen, hasLastSeen); err != nil || last != v.sealedLimitRecord {
		return false, err
	}
	for w, i := range at {
		v.cacheHGETReply(w.bucketPath, []byte(w.key), got[i])
	}
	return v.err == nil, v.err
}

// decryptLimitRecord decrypts and checks the record that was read.
func (v *remoteTransaction) decryptLimitRecord(lastSeen storeIDAndTxCount, hasLastSeen bool) error {
	record := (&limitRecord{}).encode()
	switch {
	case v.sealedLimitRecord == "" && hasLastSeen:
		return v.newStoreResetError(errors.New("the store is empty, but held data before"))
	case v.sealedLimitRecord == "":
		v.storeIDAndTxCount = newStoreIDAndTxCount()
	default:
		_, value, err := v.remote.sealer.open(limitsBucket, v.remote.sealer.fieldName(limitsBucket, limitRecordKey), v.sealedLimitRecord)
		if err != nil {
			return v.damagedError(limitsBucket, err)
		}
		if v.storeIDAndTxCount, err = decodeStoreIDAndTxCount(value); err != nil {
			return v.damagedError(limitsBucket, err)
		}
		record = value[storeIDAndTxCountBytes:]
	}
	if hasLastSeen {
		if err := v.storeIDAndTxCount.checkFollows(lastSeen); err != nil {
			return v.newStoreResetError(err)
		}
	}
	v.cachedBucketByPath[limitsBucket] = &cachedBucket{values: map[string][]byte{string(limitRecordKey): record}, changedKeys: map[string]bool{}}
	return nil
}

func (v *remoteTransaction) newStoreResetError(err error) error {
	return &Error{Kind: ErrStoreReset, Path: v.remote.address, Err: err}
}

func (v *remoteTransaction) damagedError(at bucketPath, err error) error {
	return &Error{Kind: ErrSharedStoreValueAltered, Path: v.remote.address, Err: fmt.Errorf("%s: %w", v.remote.sealer.hashName(at), err)}
}

// isUnchangedSinceTransactionBegan reports whether no process changed anything since the view began.
func (v *remoteTransaction) isUnchangedSinceTransactionBegan() (bool, error) {
	r := v.remote
	got, err := r.client.Do(v.ctx, []string{"HGET", r.sealer.hashName(limitsBucket), r.sealer.fieldName(limitsBucket, limitRecordKey)})
	if err != nil {
		return false, r.commandError(err)
	}
	now, err := replyText(got[0])
	if err != nil {
		return false, r.commandError(err)
	}
	return now == v.sealedLimitRecord, nil
}

// commitUnlessConflict writes the changes, and reports whether it did: false after a conflict. After an error it is
// unknown whether the changes were written.
func (v *remoteTransaction) commitUnlessConflict() (bool, error) {
	r := v.remote
	keys := []string{r.sealer.hashName(limitsBucket)}
	args := []string{r.sealer.fieldName(limitsBucket, limitRecordKey), v.sealedLimitRecord}
	add := func(at bucketPath, what, field, value string) {
		keys, args = append(keys, r.sealer.hashName(at)), append(args, what, field, value)
	}
	for at, h := range v.cachedBucketByPath {
		if h.mustDropOnCommit {
			add(at, "drop", "", "")
		}
		for key := range h.changedKeys {
			value := h.values[key]
			if value == nil {
				add(at, "remove", r.sealer.fieldName(at, []byte(key)), "")
				continue
			}
			if at == limitsBucket && key == string(limitRecordKey) {
				value = append(v.storeIDAndTxCount.encode(), value...)
			}
			field, sealed := r.sealer.seal(at, []byte(key), value)
			add(at, "set", field, sealed)
		}
	}
	words := slices.Concat([]string{"EVALSHA", commitScriptHash(), strconv.Itoa(len(keys))}, keys, args)
	got, err := r.client.Do(v.ctx, words)
	if err == nil {
		if unknown, ok := got[0].(resp.ServerError); ok && strings.HasPrefix(string(unknown), "NOSCRIPT") {
			words[0], words[1] = "EVAL", redisCommitLuaScript
			got, err = r.client.Do(v.ctx, words)
		}
	}
	if err != nil {
		return false, r.commandError(err)
	}
	n, ok := got[0].(int64)
	if !ok {
		return false, r.commandError(replyTypeError(got[0]))
	}
	return n == 1, nil
}

func (v *remoteTransaction) now() clockReading { return v.clock }

// cachedBucket returns the cached values of a bucket.
func (v *remoteTransaction) cachedBucket(at bucketPath) *cachedBucket {
	h := v.cachedBucketByPath[at]
	if h == nil {
		h = &cachedBucket{values: map[string][]byte{}, changedKeys: map[string]bool{}}
		v.cachedBucketByPath[at] = h
	}
	return h
}

func (v *remoteTransaction) get(at bucketPath, key []byte) []byte {
	v.fetchKeyIntoCache([]bucketPath{at}, key)
	return v.cachedBucket(at).values[string(key)]
}

// fetchKeyIntoCache reads the value of a key from those buckets in which the key is not cached yet.
func (v *remoteTransaction) fetchKeyIntoCache(buckets []bucketPath, key []byte) {
	if v.err != nil {
		return
	}
	r := v.remote
	var asked []bucketPath
	var commands [][]string
	for _, at := range buckets {
		h := v.cachedBucket(at)
		if _, known := h.values[string(key)]; !known && !h.hasAllValues {
			asked = append(asked, at)
			commands = append(commands, []string{"HGET", r.sealer.hashName(at), r.sealer.fieldName(at, key)})
		}
	}
	if len(asked) == 0 {
		return
	}
	v.hasReadAfterTransactionBegan = true
	got, err := r.client.Do(v.ctx, commands...)
	if err != nil {
		v.err = r.commandError(err)
		return
	}
	for i, at := range asked {
		if v.cacheHGETReply(at, key, got[i]); v.err != nil {
			return
		}
	}
}

// cacheHGETReply caches the store's answer for a value.
func (v *remoteTransaction) cacheHGETReply(at bucketPath, key []byte, hgetReply any) {
	v.cachedBucket(at).values[string(key)] = nil
	switch sealed, err := replyText(hgetReply); {
	case err != nil:
		v.err = v.remote.commandError(err)
	case hgetReply != nil:
		v.decryptAndCache(at, v.remote.sealer.fieldName(at, key), sealed)
	}
}

// replyText returns a text answer, or "" for none.
func replyText(answer any) (string, error) {
	text, ok := answer.(string)
	if !ok && answer != nil {
		return "", replyTypeError(answer)
	}
	return text, nil
}

// replyTime converts the answer of TIME: seconds and microseconds.
func replyTime(answer any) (time.Time, error) {
	if parts, ok := answer.([]any); ok && len(parts) == 2 {
		seconds, _ := parts[0].(string)
		micros, _ := parts[1].(string)
		s, serr := strconv.ParseInt(seconds, 10, 64)
		us, uerr := strconv.ParseInt(micros, 10, 64)
		if serr == nil && uerr == nil {
			return time.Unix(s, us*1000), nil
		}
	}
	return time.Time{}, replyTypeError(answer)
}

// replyTypeError returns the error for an answer of the wrong form: the server's own error, if it is one.
func replyTypeError(answer any) error {
	if refused, ok := answer.(resp.ServerError); ok {
		return refused
	}
	return fmt.Errorf("the store sent a reply of the unexpected type %T", answer)
}

// decryptAndCache decrypts and caches a value.
func (v *remoteTransaction) decryptAndCache(at bucketPath, field, sealed string) {
	key, value, err := v.remote.sealer.open(at, field, sealed)
	if err != nil {
		v.err = v.damagedError(at, err)
		return
	}
	h := v.cachedBucket(at)
	if !h.changedKeys[string(key)] {
		h.values[string(key)] = value
	}
}

// fetchAll reads all values of a bucket.
func (v *remoteTransaction) fetchAll(at bucketPath) *cachedBucket {
	h := v.cachedBucket(at)
	if h.hasAllValues || v.err != nil {
		return h
	}
	v.hasReadAfterTransactionBegan = true
	got, err := v.remote.client.Do(v.ctx, []string{"HGETALL", v.remote.sealer.hashName(at)})
	if err != nil {
		v.err = v.remote.commandError(err)
		return h
	}
	all, ok := got[0].([]any)
	if !ok && got[0] != nil || len(all)%2 != 0 {
		v.err = v.remote.commandError(replyTypeError(got[0]))
		return h
	}
	for i := 0; i < len(all); i += 2 {
		field, ferr := replyText(all[i])
		sealed, serr := replyText(all[i+1])
		if err := cmp.Or(ferr, serr); err != nil {
			v.err = v.remote.commandError(err)
			return h
		}
		v.decryptAndCache(at, field, sealed)
	}
	h.hasAllValues = true
	return h
}

func (v *remoteTransaction) each(at bucketPath, fn func(key, value []byte) error) error {
	h := v.fetchAll(at)
	for _, key := range sorted.Keys(h.values) {
		if value := h.values[key]; value != nil && v.err == nil {
			if err := fn([]byte(key), value); err != nil {
				return err
			}
		}
	}
	return v.err
}

func (v *remoteTransaction) eachGroupValue(namespace string, key []byte, fn func(name, value []byte) error) error {
	var names [][]byte
	var places []bucketPath
	err := v.each(namespaceGroupsBucket(namespace), func(name, _ []byte) error {
		names, places = append(names, bytes.Clone(name)), append(places, bucketPath{namespace, string(name)})
		return nil
	})
	if v.fetchKeyIntoCache(places, key); v.err != nil {
		return v.err
	}
	for i, at := range places {
		if err == nil {
			err = fn(names[i], v.cachedBucket(at).values[string(key)])
		}
	}
	return err
}

func (v *remoteTransaction) put(at bucketPath, key, value []byte) error {
	h := v.cachedBucket(at)
	if at.groupName != "" && len(h.changedKeys) == 0 {
		if err := v.put(namespaceGroupsBucket(at.namespaceName), []byte(at.groupName), []byte{}); err != nil {
			return err
		}
	}
	h.values[string(key)], h.changedKeys[string(key)] = bytes.Clone(value), true
	return nil
}

func (v *remoteTransaction) dropBucket(at bucketPath) error {
	if at == limitsBucket {
		return errors.New("the record of rate limit and budget cannot be deleted")
	}
	v.cachedBucketByPath[at] = &cachedBucket{values: map[string][]byte{}, hasAllValues: true, changedKeys: map[string]bool{}, mustDropOnCommit: true}
	if at.groupName == "" {
		return nil
	}
	return v.put(namespaceGroupsBucket(at.namespaceName), []byte(at.groupName), nil)
}

func (v *remoteTransaction) renewNamespaceRevision(namespace string) error {
	var stamp NamespaceRevisionID
	_, _ = rand.Read(stamp[:]) // never fails
	return v.put(namespaceRevisionsBucket, []byte(namespace), stamp[:])
}
