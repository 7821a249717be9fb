package state

import "time"

// A medium is where values lie: a file, or a store that machines share.
type medium interface {
	// acquire waits until no other process is at work, and holds them off until
	// release.
	acquire() error
	release() error

	// update runs fn on a view and keeps what fn put there, unless fn returns an
	// error; fn may run again, on another view, until it has seen nothing that
	// others changed meanwhile. look runs a fn that puts nothing. Where reading
	// the view failed, that is the error of both, whatever fn returned. wants are
	// the values that fn reads as a rule: where each has to be fetched they come
	// together.
	update(wants []want, fn func(view) error) error
	look(wants []want, fn func(view) error) error

	// stamp returns the stamp of a shelf without waiting for other processes.
	stamp(shelf string) (Stamp, bool)

	name() string // for messages
	close() error
}

// A view is what one transaction sees. What it returns is good until the
// transaction ends.
type view interface {
	now() instant
	get(at place, key []byte) []byte // nil if there is none
	each(at place, fn func(key, value []byte) error) error
	groups(shelf string, key []byte, fn func(name, value []byte) error) error // with the value of key in each
	put(at place, key, value []byte) error                                    // a nil value removes
	drop(at place) error
	restamp(shelf string) error
}

// A place is a set of values by key: a group on a shelf or, without a group, what
// this package itself keeps.
type place struct{ shelf, group string }

// A want is a value that a transaction reads as a rule.
type want struct {
	at  place
	key string
}

var (
	limitsPlace = place{shelf: "limits"}
	cachePlace  = place{shelf: "cache"}
	recordKey   = []byte("record")
)

// An instant is what the clocks of a medium say.
type instant struct {
	wall  time.Time
	boot  string        // of the machine that keeps the medium
	up    time.Duration // since boot
	known bool          // boot and up are
}
