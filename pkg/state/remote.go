package state

import (
	"context"
	"crypto/sha1"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/shieldcli/shield/internal/resp"
)

// A SharedStoreServer is a Redis or Valkey server that machines share. Shared limits use the clock
// of the server; its operator can neither read nor forge the stored data.
type SharedStoreServer struct {
	URL                 string                        // redis://[USER@]HOST[:PORT][/DB], rediss://… for TLS, or unix://[USER@]PATH[?db=N]; never a password
	Password            string                        // "" for none
	EncryptionMasterKey [EncryptionMasterKeySize]byte // must be the same on all machines that share data; with another key, the data is invisible
	CAs                 *x509.CertPool                // trusted certificates; nil means the system's
}

// Bounds on a shared store.
const (
	remoteReplyTimeout             = time.Second     // maximum wait for one reply, or for connecting
	remoteTransactionTimeout       = 3 * time.Second // timeout of one transaction with all its tries
	remoteBackoffAfterTimeout      = time.Second     // how long the server is not asked after a timeout
	maxRemoteTransactionTries      = 200             // tries of a transaction that conflicts with others
	maxRemoteTransactionRetryPause = 5 * time.Millisecond
)

//go:embed commit.lua
var redisCommitLuaScript string

// commitScriptHash is the name (hash) by which a server runs a script it has loaded.
var commitScriptHash = sync.OnceValue(func() string {
	sum := sha1.Sum([]byte(redisCommitLuaScript))
	return hex.EncodeToString(sum[:])
})

// A redisServer runs a pipeline of commands and returns one answer for each.
type redisServer interface {
	Do(ctx context.Context, commands ...[]string) ([]any, error)
	Close() error
}

// A remoteBackend is the storage [storageBackend] that stores values on a shared Redis or Valkey server,
// see [SharedStoreServer].
type remoteBackend struct {
	address                  string // the server's address, for messages
	client                   redisServer
	sealer                   sealer
	lastSeenIDAndTxCountFile storeIDAndTxCountFile
	clock                    func() time.Time

	mu               sync.Mutex
	lastTimeout      time.Time // time of the last timeout
	lastTimeoutError error
}

func newRemoteBackend(dir string, r *SharedStoreServer, clock func() time.Time) (*remoteBackend, error) {
	opts, err := r.options()
	if err != nil {
		return nil, err
	}
	opts.Clock = clock
	seals := newSealer(r.EncryptionMasterKey)
	return &remoteBackend{
		address: r.URL, client: resp.NewClient(opts), sealer: seals, clock: clock,
		lastSeenIDAndTxCountFile: storeIDAndTxCountFile{filepath.Join(dir, "store-"+seals.redisNamePrefix()+".epoch")},
	}, nil
}

// options returns the options to connect to the server.
func (r *SharedStoreServer) options() (resp.Options, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return resp.Options{}, errors.New("store: the value is not a URL; write rediss://HOST:PORT/0") // err may contain a password
	}
	if _, has := u.User.Password(); has {
		return resp.Options{}, errors.New("store: the URL must not hold a password; use store_password_env or store_password_file")
	}
	for name := range u.Query() {
		if u.Scheme != "unix" || name != "db" {
			return resp.Options{}, fmt.Errorf("store: the URL must not contain the parameter %.40q; remove it", name)
		}
	}
	opts, err := resp.ParseURL(r.URL)
	if err != nil {
		return resp.Options{}, fmt.Errorf("store: %w", err)
	}
	if opts.TLS != nil {
		opts.TLS.RootCAs = r.CAs
	}
	opts.Password, opts.ConnectOrReplyTimeout = r.Password, remoteReplyTimeout
	return opts, nil
}

func (r *remoteBackend) name() string       { return r.address }
func (r *remoteBackend) acquireLock() error { return nil } // no lock: conflicts are detected at commit
func (r *remoteBackend) releaseLock() error { return nil }
func (r *remoteBackend) close() error       { return r.client.Close() }

func (r *remoteBackend) update(wants []prefetchKey, fn func(backendTransaction) error) error {
	return r.transact(wants, fn, true)
}
func (r *remoteBackend) runReadOnly(wants []prefetchKey, fn func(backendTransaction) error) error {
	return r.transact(wants, fn, false)
}

// transact runs fn until no other process changed the data meanwhile.
func (r *remoteBackend) transact(wants []prefetchKey, fn func(backendTransaction) error, writes bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), remoteTransactionTimeout)
	defer cancel()
	for try := range maxRemoteTransactionTries {
		done, err := r.tryTransact(ctx, wants, fn, writes)
		if done || err != nil {
			return err
		}
		pause := min(50*time.Microsecond<<min(try, 16), maxRemoteTransactionRetryPause)
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(pause)):
		}
		if ctx.Err() != nil {
			break
		}
	}
	return &Error{Kind: ErrSharedStoreUnreachable, Path: r.address, Err: errors.New("too many clients write to the store at once; try again")}
}

// tryTransact tries a transaction once; done is false after a conflict. It reads the transaction
// count that this machine saw last from a local file, before it reads the store, so that the count
// in the file cannot be newer than that of the store.
func (r *remoteBackend) tryTransact(ctx context.Context, wants []prefetchKey, fn func(backendTransaction) error, writes bool) (done bool, err error) {
	if err := r.backoffError(); err != nil {
		return false, err
	}
	old, seen, err := r.lastSeenIDAndTxCountFile.read()
	if err != nil {
		return false, err
	}
	v := &remoteTransaction{remote: r, ctx: ctx, cachedBucketByPath: map[bucketPath]*cachedBucket{}}
	if whole, err := v.readInitialValues(old, seen, wants); !whole || err != nil {
		return false, err
	}
	ferr := fn(v)
	if v.err != nil { // fn worked on values that could not be read
		return false, v.err
	}
	switch {
	case ferr != nil && !errors.Is(ferr, errUnchanged):
		return false, ferr
	case ferr != nil || !writes:
		if v.hasReadAfterTransactionBegan {
			if done, err := v.isUnchangedSinceTransactionBegan(); !done || err != nil {
				return false, err
			}
		}
		if v.storeIDAndTxCount != old && v.sealedLimitRecord != "" {
			_ = r.lastSeenIDAndTxCountFile.write(v.storeIDAndTxCount, !seen) // fails in a read-only folder
		}
		return true, nil
	}
	v.storeIDAndTxCount.transactionCount++
	if done, err := v.commitUnlessConflict(); !done || err != nil {
		return false, err
	}
	return true, r.lastSeenIDAndTxCountFile.write(v.storeIDAndTxCount, !seen)
}

// A SharedStoreInfo describes the store that machines share.
type SharedStoreInfo struct {
	Name               string // derived from the key: machines that share data have the same name
	LosesDataOnRestart bool   // the server loses its data when it is restarted
}

// SharedStoreInfo asks the shared store for its description, nil if there is none. It returns the same errors
// as a transaction.
func (s *Store) SharedStoreInfo(ctx context.Context) (*SharedStoreInfo, error) {
	r, ok := s.limitsAndNamespacesQueue.backend.(*remoteBackend)
	if !ok {
		return nil, nil
	}
	if err := s.limitsAndNamespacesQueue.runReadOnly(ctx, func(*tx) error { return nil }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, remoteReplyTimeout)
	defer cancel()
	info := "" // stays empty if the server's operator forbids the INFO command
	if got, err := r.client.Do(ctx, []string{"INFO", "persistence"}); err == nil {
		info, _ = got[0].(string)
	}
	return &SharedStoreInfo{Name: r.sealer.redisNamePrefix(), LosesDataOnRestart: strings.Contains(info, "aof_enabled:0")}, nil
}

func (r *remoteBackend) namespaceRevisionID(namespace string) (stamp NamespaceRevisionID, ok bool) {
	if r.backoffError() != nil {
		return stamp, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), remoteReplyTimeout)
	defer cancel()
	v := &remoteTransaction{remote: r, ctx: ctx, cachedBucketByPath: map[bucketPath]*cachedBucket{}}
	return stamp, copy(stamp[:], v.get(namespaceRevisionsBucket, []byte(namespace))) == len(stamp)
}

// backoffError returns the store's last error if it timed out a moment ago: dozens of actions must not each
// wait for it.
func (r *remoteBackend) backoffError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := r.clock().Sub(r.lastTimeout); r.lastTimeoutError != nil && since >= 0 && since < remoteBackoffAfterTimeout {
		return r.lastTimeoutError
	}
	return nil
}

// commandError returns the error for a failed command. If the store did not answer, it also starts
// the period in which the store is not asked (remoteBackoffAfterTimeout).
func (r *remoteBackend) commandError(err error) error {
	kind := ErrSharedStoreUnreachable
	if answer := resp.ServerError(""); errors.As(err, &answer) {
		kind = ErrSharedStoreRefusedCommand
		if text := answer.Error(); strings.HasPrefix(text, "LOADING") || strings.HasPrefix(text, "BUSY") || strings.HasPrefix(text, "CLUSTERDOWN") {
			kind = ErrSharedStoreUnreachable
		}
	}
	err = &Error{Kind: kind, Path: r.address, Err: err}
	if kind == ErrSharedStoreUnreachable {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lastTimeout, r.lastTimeoutError = r.clock(), err
	}
	return err
}
