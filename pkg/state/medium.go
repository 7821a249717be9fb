package state

import "time"

// A storageBackend stores values: in a file, or in a store that machines share.
type storageBackend interface {
	// acquireLock waits for the lock that all processes with this storage share, and holds it until releaseLock.
	// A storage that detects conflicting writes at the commit has no lock and returns at once.
	acquireLock() error
	releaseLock() error

	// update runs fn on a view and stores its writes, unless fn returns an error. If another
	// process changed what fn read, fn runs again on another view. runReadOnly runs an fn that
	// writes nothing. If reading the view failed, both return that error, whatever fn returned.
	// wants are the values that fn usually reads: a remote backend fetches them together.
	update(wants []prefetchKey, fn func(backendTransaction) error) error
	runReadOnly(wants []prefetchKey, fn func(backendTransaction) error) error

	// namespaceRevisionID returns the stamp of a namespace, a random value that changes whenever the namespace's
	// content changes. It does not lock.
	namespaceRevisionID(shelf string) (NamespaceRevisionID, bool)

	name() string // the address or path, for messages
	close() error
}

// A backendTransaction is the data that one transaction sees. Results are valid until the transaction ends.
type backendTransaction interface {
	now() clockReading
	get(at bucketPath, key []byte) []byte // nil if there is none
	each(at bucketPath, fn func(key, value []byte) error) error
	eachGroupValue(shelf string, key []byte, fn func(name, value []byte) error) error // calls fn with each group and its value of key
	put(at bucketPath, key, value []byte) error                                       // a nil value removes the key
	dropBucket(at bucketPath) error
	renewNamespaceRevision(shelf string) error
}

// A bucketPath identifies a map of values by key: a group in a namespace or, without a group, data
// of this package.
type bucketPath struct{ namespaceName, groupName string }

// A prefetchKey names a value that a transaction usually reads.
type prefetchKey struct {
	bucketPath bucketPath
	key        string
}

var (
	limitsBucket   = bucketPath{namespaceName: "limits"}
	cacheBucket    = bucketPath{namespaceName: "cache"}
	limitRecordKey = []byte("record")
)

// A clockReading holds what the clocks of a [storageBackend] show: the time of day and, if known, the time since
// boot.
type clockReading struct {
	wallTime    time.Time
	bootID      string        // ID of the current boot of the machine that holds the storage
	uptime      time.Duration // time since boot
	uptimeKnown bool          // bootID and uptime are valid
}
