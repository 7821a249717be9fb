package state

import "context"

// A Shelf is a part of the state in which another package keeps records of its
// own: values by key, in groups by name. It is good for one transaction.
type Shelf struct {
	t    *tx
	name string

	changed bool // by Put or Drop
}

// Shelf runs fn on a part of the state, in one transaction; fn may run more than
// once, and the last time counts. What fn puts there is kept unless it returns an
// error, which it may return only before it has put anything. Where fn changes
// nothing, nothing is written. wants are the values that fn reads as a rule, which a
// store that machines share is then asked for at once.
func (s *Store) Shelf(ctx context.Context, name string, fn func(*Shelf) error, wants ...Want) error {
	return s.values.read(ctx, func(t *tx) error {
		sh := &Shelf{t: t, name: name}
		err := fn(sh)
		if err == nil && sh.changed {
			err = t.restamp(name)
		}
		return err
	}, wanted(name, wants)...)
}

// LookShelf is [Store.Shelf] for a fn that changes nothing. It works on a folder
// that cannot be written to.
func (s *Store) LookShelf(ctx context.Context, name string, fn func(*Shelf) error, wants ...Want) error {
	return s.values.look(ctx, func(t *tx) error { return fn(&Shelf{t: t, name: name}) }, wanted(name, wants)...)
}

// A Want names a value of a group.
type Want struct{ Group, Key []byte }

func wanted(shelf string, wants []Want) (out []want) {
	for _, w := range wants {
		out = append(out, want{place{shelf, string(w.Group)}, string(w.Key)})
	}
	return out
}

func (sh *Shelf) place(group []byte) place { return place{sh.name, string(group)} }

// Groups calls fn with the name of each group and its value of key, nil if it has
// none, until fn returns an error.
func (sh *Shelf) Groups(key []byte, fn func(name, value []byte) error) error {
	return sh.t.groups(sh.name, key, fn)
}

// Get returns a value, or nil if there is none. It is good until the
// transaction ends.
func (sh *Shelf) Get(group, key []byte) []byte { return sh.t.get(sh.place(group), key) }

// Each calls fn with the keys and values of a group, in the order of the keys.
// They are good until the transaction ends.
func (sh *Shelf) Each(group []byte, fn func(key, value []byte) error) error {
	return sh.t.each(sh.place(group), fn)
}

// Put keeps a value; nil removes what was there.
func (sh *Shelf) Put(group, key, value []byte) error {
	sh.t.changed, sh.changed = true, true
	return sh.t.put(sh.place(group), key, value)
}

// Drop removes a group, if there is one.
func (sh *Shelf) Drop(group []byte) error {
	sh.t.changed, sh.changed = true, true
	return sh.t.drop(sh.place(group))
}
