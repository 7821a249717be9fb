package state

import "context"

// A NamespaceTx is a part of the state in which another package stores records: values by key, in named
// groups. It is valid for one transaction.
type NamespaceTx struct {
	tx        *tx
	namespace string

	hasWrites bool // Put or Drop was called
}

// UpdateNamespace runs fn on a part of the state, in one transaction; fn may run several times, and the last run
// counts. Its writes are stored unless it returns an error, which it may do only before it writes. If
// fn writes nothing, nothing is stored. wants are the values that fn usually reads, which a shared
// store then fetches at once.
func (s *Store) UpdateNamespace(ctx context.Context, name string, fn func(*NamespaceTx) error, wants ...PrefetchKey) error {
	return s.limitsAndNamespacesQueue.runPossiblyWriting(ctx, func(t *tx) error {
		sh := &NamespaceTx{tx: t, namespace: name}
		err := fn(sh)
		if err == nil && sh.hasWrites {
			err = t.renewNamespaceRevision(name)
		}
		return err
	}, toPrefetchKeys(name, wants)...)
}

// ViewNamespace is [Store.UpdateNamespace] for an fn that writes nothing. It works on a read-only folder.
func (s *Store) ViewNamespace(ctx context.Context, name string, fn func(*NamespaceTx) error, wants ...PrefetchKey) error {
	return s.limitsAndNamespacesQueue.runReadOnly(ctx, func(t *tx) error { return fn(&NamespaceTx{tx: t, namespace: name}) }, toPrefetchKeys(name, wants)...)
}

// A PrefetchKey names a value of a group.
type PrefetchKey struct{ GroupName, Key []byte }

func toPrefetchKeys(namespace string, wants []PrefetchKey) (out []prefetchKey) {
	for _, w := range wants {
		out = append(out, prefetchKey{bucketPath{namespace, string(w.GroupName)}, string(w.Key)})
	}
	return out
}

func (sh *NamespaceTx) bucketPath(group []byte) bucketPath {
	return bucketPath{sh.namespace, string(group)}
}

// EachGroupWithValueOfKey calls fn with the name of each group and its value of key, nil if it has none. It stops at an
// error of fn.
func (sh *NamespaceTx) EachGroupWithValueOfKey(key []byte, fn func(name, value []byte) error) error {
	return sh.tx.eachGroupValue(sh.namespace, key, fn)
}

// Get returns a value, or nil if there is none. It is valid until the transaction ends.
func (sh *NamespaceTx) Get(group, key []byte) []byte { return sh.tx.get(sh.bucketPath(group), key) }

// Each calls fn with the keys and values of a group, in key order. They are valid until the
// transaction ends.
func (sh *NamespaceTx) Each(group []byte, fn func(key, value []byte) error) error {
	return sh.tx.each(sh.bucketPath(group), fn)
}

// Put stores a value; nil removes the key.
func (sh *NamespaceTx) Put(group, key, value []byte) error {
	sh.tx.hasWrites, sh.hasWrites = true, true
	return sh.tx.put(sh.bucketPath(group), key, value)
}

// DropGroup removes a group, if there is one.
func (sh *NamespaceTx) DropGroup(group []byte) error {
	sh.tx.hasWrites, sh.hasWrites = true, true
	return sh.tx.dropBucket(sh.bucketPath(group))
}
