package state

import "time"

// A backend stores values: in a file, or in a store that machines share.
type backend interface {
	// acquire waits for the lock of all processes and holds it until release.
	acquire() error
	release() error

	// update runs fn on a view and stores its writes, unless fn returns an error. fn may run again, on
	// another view, until no other process changed what it read. look runs an fn that writes nothing.
	// If reading the view failed, both return that error, whatever fn returned. wants are the values
	// that fn usually reads: a remote medium fetches them together.
	update(wants []prefetchKey, fn func(transactionView) error) error
	runReadOnly(wants []prefetchKey, fn func(transactionView) error) error

	// stamp returns the stamp of a shelf without locking.
	stamp(shelf string) (Stamp, bool)

	name() string // the address or path, for messages
	close() error
}

// A transactionView is the data that one transaction sees. Results are valid until the transaction ends.
type transactionView interface {
	now() clockReading
	get(at place, key []byte) []byte // nil if there is none
	each(at place, fn func(key, value []byte) error) error
	eachGroup(shelf string, key []byte, fn func(name, value []byte) error) error // calls fn with each group and its value of key
	put(at place, key, value []byte) error                                       // a nil value removes the key
	drop(at place) error
	restamp(shelf string) error
}

// A place is a map of values by key: a group on a shelf or, without a group, data of this package.
type place struct{ namespace, group string }

// A prefetchKey names a value that a transaction usually reads.
type prefetchKey struct {
	place place
	key   string
}

var (
	limitsPlace = place{namespace: "limits"}
	cachePlace  = place{namespace: "cache"}
	recordKey   = []byte("record")
)

// A clockReading is the reading of a medium's clocks.
type clockReading struct {
	wallTime    time.Time
	bootID      string        // ID of the current boot of the medium's machine
	uptime      time.Duration // time since boot
	uptimeKnown bool          // boot and up are valid
}
