package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
)

// ErrDamaged means that a record cannot be read. Callers that need it must stop.
var ErrDamaged = errors.New("the record of this session is damaged; run 'shield session clear --all'")

// ErrNewerRecordVersion means that a newer version of shield wrote a record.
var ErrNewerRecordVersion = errors.New("the record of this session was written by a newer shield; install that version again, or run 'shield session clear --all'")

// Options are the limits of a store.
type Options struct {
	Clock                        func() time.Time // required
	SessionRetention             time.Duration    // how long a session is kept after its last action
	MaxFileRecordsPerUser        int              // maximum number of files whose labels are stored for a user
	MaxDenials                   int              // denials within ten minutes after which a session stops
	CredentialHashKey            [32]byte         // key of the hashes of credentials
	IsolateSessionsFromEachOther bool             // sessions share nothing
}

// A Store stores sessions. Goroutines may share it.
type Store struct {
	opts          Options
	storage       storage
	cache         sessionCache
	sentDataTally sentDataTally

	recordCache sessionRecordCache
	matchers    matcherCache
	fileSets    fileSetCache
}

// NewStore returns a store that keeps sessions in a state file, or only in memory if that is nil.
func NewStore(file *state.Store, opts Options) *Store {
	if file == nil {
		return &Store{opts: opts, storage: &memoryStorage{valuesByGroupAndKey: map[string]map[string][]byte{}}}
	}
	return &Store{opts: opts, storage: stateFileStorage{file}}
}

// stateNamespace is the namespace of the state file that holds sessions.
const stateNamespace = "sessions"

// recordKey is the key of the record in a group; keys of files are longer.
var recordKey = []byte("record")

func fileKey(path string) []byte {
	if len(path) > maxPathBytes {
		sum := sha256.Sum256([]byte(path))
		path = "#" + hex.EncodeToString(sum[:])
	}
	return []byte(fileRecordKeyPrefix + path)
}

// groupName returns the name of a session's group.
func (k Key) groupName() []byte {
	h := sha256.New()
	for _, part := range [...]string{k.AgentHostName, k.ID, k.User} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // writing to a hash does not fail
	}
	return h.Sum(nil)[:16]
}

// sharedRecordKey returns the key of the record that the sessions of a user share.
func (s *Store) sharedRecordKey(k Key) Key {
	if s.opts.IsolateSessionsFromEachOther {
		return Key{AgentHostName: sharedRecordAgentHost, ID: k.AgentHostName + " " + k.ID, User: k.User}
	}
	return Key{AgentHostName: sharedRecordAgentHost, User: k.User}
}

// prefetchKeys returns the keys of the values that are read whenever the session k, or its parent, is loaded or
// changed. parent is the ID of the parent session; "" if there is none.
func (s *Store) prefetchKeys(k Key, parent string) (out []state.PrefetchKey) {
	of := func(k Key) {
		group := k.groupName()
		for _, key := range [...][]byte{recordKey, fileRecordsRevisionKey, valueHashesXORKey} {
			out = append(out, state.PrefetchKey{GroupName: group, Key: key})
		}
	}
	of(s.sharedRecordKey(k))
	if of(k); parent != "" && parent != k.ID {
		of(Key{k.AgentHostName, parent, k.User})
	}
	return out
}

// encode returns a record with a checksum before it.
func (r *Record) encode() []byte {
	r.Version = recordVersion
	body, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	out := make([]byte, 4, 4+len(body))
	for i, sum := 0, crc32.ChecksumIEEE(body); i < 4; i++ {
		out[i] = byte(sum >> (8 * i))
	}
	return append(out, body...)
}

// decodeRecord returns the record in data, nil if there is none.
func decodeRecord(data []byte) (*Record, error) {
	if data == nil {
		return nil, nil
	}
	if len(data) < 4 {
		return nil, ErrDamaged
	}
	sum := uint32(0)
	for i := range 4 {
		sum |= uint32(data[i]) << (8 * i)
	}
	r := new(Record)
	if crc32.ChecksumIEEE(data[4:]) != sum || json.Unmarshal(data[4:], r) != nil || r.Version < 1 {
		return nil, ErrDamaged
	}
	if r.Version > recordVersion {
		return nil, ErrNewerRecordVersion
	}
	return r, nil
}

// loadRecord returns a session's record, nil if there is none.
func loadRecord(sh storageTx, group []byte) (*Record, error) {
	return decodeRecord(sh.Get(group, recordKey))
}

// eachRecord calls fn with every record. A damaged record is an error.
func eachRecord(sh storageTx, fn func(group []byte, r *Record) error) error {
	return sh.EachGroupWithValueOfKey(recordKey, func(name, data []byte) error {
		r, err := decodeRecord(data)
		if err != nil || r == nil {
			return err
		}
		return fn(name, r)
	})
}

// now returns the time in seconds since 1970.
func (s *Store) now() int64 { return s.opts.Clock().Unix() }

// recordOf returns the record of a session: its own or, if it has none that is active, a new one with the labels
// of its parent and of sessions that were removed to save space. initialValuesGroup is the group of the values
// that the session starts with: its own or, for a new record, that of the parent; nil for none.
func (s *Store) recordOf(sh storageTx, k Key, lineage Lineage) (r *Record, initialValuesGroup []byte, err error) {
	own := k.groupName()
	r, err = s.recordCache.load(sh, own)
	if err != nil || r != nil && r.isActive(s.now(), s.opts.SessionRetention) {
		return r, own, err
	}
	r, parent, err := s.newRecord(sh, k, lineage)
	if err != nil {
		return nil, nil, err
	}
	if parent != nil {
		for _, l := range parent.Labels {
			r.addLabel(l.Label, "inherited", s.now())
		}
		initialValuesGroup = parent.groupName()
	}
	if all, err := s.recordCache.load(sh, s.sharedRecordKey(k).groupName()); err != nil {
		return nil, nil, err
	} else if all != nil && !k.IsDefault() {
		for _, l := range all.Labels { // labels of sessions that were removed to save space: this session may continue one of them
			if s.now()-l.FirstAddedAt <= int64(s.opts.SessionRetention/time.Second) {
				r.addLabel(l.Label, l.EffectOrActionType, s.now())
			}
		}
	}
	sortLabels(r)
	return r, initialValuesGroup, nil
}

// loadRecordSharedBySessions returns the record that the sessions of a user share, and the names of the storage groups that
// hold the files and values of these sessions. If no shared record is stored, it returns a new record and the
// groups of the user's active sessions, where earlier versions stored files and values; no groups if sessions
// are isolated.
func (s *Store) loadRecordSharedBySessions(sh storageTx, k Key) (r *Record, from [][]byte, err error) {
	k = s.sharedRecordKey(k)
	r, err = s.recordCache.load(sh, k.groupName())
	if err != nil || r != nil {
		return r, [][]byte{k.groupName()}, err
	}
	r = &Record{Key: k, BeganAt: s.now()}
	if s.opts.IsolateSessionsFromEachOther {
		return r, nil, nil
	}
	err = eachRecord(sh, func(group []byte, o *Record) error {
		if o.User == k.User && o.isActive(s.now(), s.opts.SessionRetention) {
			r.addRemotes(o.Remotes)
			if o.GitOriginWasChanged {
				r.GitOriginChangedAt = max(r.GitOriginChangedAt, o.LastActionAt)
			}
			if o.WasFileLimitReached {
				r.FileLimitReachedAt = max(r.FileLimitReachedAt, o.LastActionAt)
			}
			from = append(from, slices.Clone(group))
		}
		return nil
	})
	return r, from, err
}

func sortLabels(r *Record) {
	sorted.SortStableBy(r.Labels, func(a, b SessionTaintLabel) int {
		return cmp.Compare(slices.Index(SessionLabelsInDisplayOrder, a.Label), slices.Index(SessionLabelsInDisplayOrder, b.Label))
	})
}

// Load returns what a session remembers. agentNamedSessionID is the ID by which an agent names its
// session: the memory of sessions with that ID is added. An error of the state file or the record
// is returned by [Session.Err].
func (s *Store) Load(ctx context.Context, k Key, lineage Lineage, agentNamedSessionID string) *Session {
	stamp, ok := s.storage.namespaceRevisionID()
	if !ok {
		return s.loadFromStorage(ctx, k, lineage, agentNamedSessionID)
	}
	place := cacheKey{k, lineage.ParentSessionID, agentNamedSessionID}
	out := s.cache.get(stamp, place, s.now())
	if out == nil {
		out = s.loadFromStorage(ctx, k, lineage, agentNamedSessionID)
		s.cache.put(stamp, place, out)
	}
	return out
}

func (s *Store) loadFromStorage(ctx context.Context, k Key, lineage Lineage, agentNamedSessionID string) *Session {
	out := &Session{key: k, lineage: lineage, opts: &s.opts}
	err := s.storage.runReadOnly(ctx, func(sh storageTx) error {
		r, own, err := s.recordOf(sh, k, lineage)
		if err != nil {
			return err
		}
		all, from, err := s.loadRecordSharedBySessions(sh, k)
		if err != nil {
			return err
		}
		out.record, out.recordSharedBySessions, out.labels, out.ownRecordLabels = *r, *all, nil, slices.Clone(r.Labels)
		if out.fileSet, err = s.fileSets.load(sh, from); err != nil {
			return err
		}
		if own != nil && !slices.ContainsFunc(from, func(have []byte) bool { return slices.Equal(have, own) }) {
			from = append(from, own)
		}
		if agentNamedSessionID != "" {
			err = eachRecord(sh, func(group []byte, o *Record) error {
				if o.ID == agentNamedSessionID && o.User == k.User && !o.IsSharedByUserSessions() && o.isActive(s.now(), s.opts.SessionRetention) {
					for _, l := range o.Labels {
						out.record.addLabel(l.Label, l.EffectOrActionType, l.FirstAddedAt)
					}
					if !slices.Equal(group, own) {
						from = append(from, slices.Clone(group))
					}
				}
				return nil
			})
			sortLabels(&out.record)
		}
		out.storageGroupNames, out.valueSetFingerprint = from, readGroupValueHashXORs(sh, from)
		return err
	}, s.prefetchKeys(k, lineage.ParentSessionID)...)
	out.loadedAt, out.err = s.now(), err
	return out
}

// Add stores what an action adds to its session, in one transaction. If the loaded session already
// has all of it, nothing is stored. The amount of data sent is only shown to people: for known
// hosts it is written with the next change, or by [Store.FlushSentDataCounts].
func (s *Store) Add(ctx context.Context, loaded *Session, d *RecordDelta) error {
	if d.MayMoveFiles {
		loaded.fillMissingFileIdentities()
	}
	if d.GitOriginMayHaveChanged || loaded.gitOriginMayHaveChanged() {
		d.RepositoryOwners = nil
	}
	if !loaded.DeltaAddsNewData(d) {
		if s.sentDataTally.add(loaded.key, d.Sent, s.now()) {
			return s.FlushSentDataCounts(ctx)
		}
		return nil
	}
	d.Sent = append(s.sentDataTally.removeCounts(loaded.key), d.Sent...)
	return s.storage.runWriting(ctx, func(sh storageTx) error {
		if err := s.writeDeltaToSharedRecord(sh, loaded.key, d); err != nil {
			return err
		}
		group := loaded.key.groupName()
		r, from, err := s.recordOf(sh, loaded.key, loaded.lineage)
		if err != nil {
			return err
		}
		if r.LastActionAt == 0 { // the session is new
			if err := s.evictSessions(sh, loaded.key); err != nil {
				return err
			}
			if err := sh.DropGroup(group); err != nil { // remains of an expired session
				return err
			}
			if from != nil {
				values, err := loadValues(sh, [][]byte{from})
				if err != nil {
					return err
				}
				if _, err := s.addValues(sh, group, values); err != nil {
					return err
				}
			}
		}
		if err := s.writeRecord(sh, group, r, d); err != nil {
			return err
		}
		return s.addToParents(sh, r, d)
	}, s.prefetchKeys(loaded.key, loaded.lineage.ParentSessionID)...)
}

// AddDataSharedBySessions stores only the part of a delta that all sessions of its user share.
func (s *Store) AddDataSharedBySessions(ctx context.Context, loaded *Session, d *RecordDelta) error {
	if d.MayMoveFiles {
		loaded.fillMissingFileIdentities()
	}
	if !loaded.deltaChangesSharedRecord(d) {
		return nil
	}
	return s.storage.runWriting(ctx, func(sh storageTx) error { return s.writeDeltaToSharedRecord(sh, loaded.key, d) }, s.prefetchKeys(loaded.key, "")...)
}

// writeDeltaToSharedRecord writes the shared part of a delta.
func (s *Store) writeDeltaToSharedRecord(sh storageTx, k Key, d *RecordDelta) error {
	r, from, err := s.loadRecordSharedBySessions(sh, k)
	if err != nil {
		return err
	}
	now, group := s.now(), r.groupName()
	if r.LastActionAt == 0 {
		if err := s.copyFilesAndValuesToShared(sh, from, group, r); err != nil {
			return err
		}
	}
	changed := r.LastActionAt == 0 || now-r.LastActionAt >= int64(s.opts.SessionRetention/time.Second)/8
	changed = r.addRemotes(d.Remotes) || changed
	if d.GitOriginMayHaveChanged {
		r.GitOriginChangedAt, changed = now, true
	}
	files, err := s.addFiles(sh, group, r, d)
	if err != nil {
		return err
	}
	values, err := s.addValues(sh, group, d.credentials())
	if err != nil || !changed && !files && !values {
		return err
	}
	r.LastActionAt = max(r.LastActionAt, now)
	return s.recordCache.put(sh, group, r)
}

// writeRecord applies a delta to the record of a session, and stores the record and the delta's
// private values. It writes nothing if nothing changed and the stored time is recent.
func (s *Store) writeRecord(sh storageTx, group []byte, r *Record, d *RecordDelta) error {
	now := s.now()
	changed := r.applyDelta(d, now, &s.opts)
	values, err := s.addValues(sh, group, d.privateValues())
	if err != nil {
		return err
	}
	if !changed && !values && now-r.LastActionAt < int64(s.opts.SessionRetention/time.Second)/8 {
		return nil
	}
	r.LastActionAt = max(r.LastActionAt, now)
	return s.recordCache.put(sh, group, r)
}

// FlushSentDataCounts writes the counts of sent data that are still in memory.
func (s *Store) FlushSentDataCounts(ctx context.Context) error {
	all := s.sentDataTally.removeAllCounts()
	if len(all) == 0 {
		return nil
	}
	return s.storage.runWriting(ctx, func(sh storageTx) error {
		for k, sent := range all {
			r, err := loadRecord(sh, k.groupName())
			if err != nil {
				return err
			}
			if r == nil { // the session's record was removed meanwhile
				continue
			}
			r.applyDelta(&RecordDelta{Sent: sent}, s.now(), &s.opts)
			if err := sh.Put(k.groupName(), recordKey, r.encode()); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyFilesAndValuesToShared copies the files and values of sessions to the shared group.
func (s *Store) copyFilesAndValuesToShared(sh storageTx, from [][]byte, to []byte, r *Record) error {
	values, err := loadValues(sh, from)
	if err != nil {
		return err
	}
	values = slices.DeleteFunc(values, func(v HashedSensitiveValue) bool { return v.IsPrivateFileWord })
	if _, err := s.addValues(sh, to, values); err != nil {
		return err
	}
	all, err := copyFileRecordsToGroup(sh, from, to, s.opts.MaxFileRecordsPerUser, s.now())
	if !all {
		r.FileLimitReachedAt = s.now()
	}
	return err
}

// DeltaOfAction returns what an action adds to its session if it runs, as the function [DeltaOfAction] does. If
// the session gets LabelFromCredentialLocation, it adds the credentials in the credential files that the action
// reads.
func (s *Store) DeltaOfAction(c *analysis.ActionCase, eventTypes []string, policyCountsActions bool) RecordDelta {
	d := DeltaOfAction(c, eventTypes, policyCountsActions)
	if slices.ContainsFunc(d.Labels, func(l SessionTaintLabel) bool { return l.Label == effect.LabelFromCredentialLocation }) {
		d.SensitiveValues = newHasher(s.opts.CredentialHashKey).credentialsInReadFiles(c)
	}
	return d
}

// AddSensitiveValueSendEffect adds to a case the effect of sending a value that its session has read: certain for a whole
// value, possible for a part or a short value.
func (s *Store) AddSensitiveValueSendEffect(ctx context.Context, loaded *Session, c *analysis.ActionCase) error {
	if loaded.err != nil || loaded.valueSetFingerprint == "" {
		return loaded.err
	}
	m, err := s.loadValueMatcher(ctx, loaded)
	if err != nil {
		return err
	}
	f := m.largestSentValueExtent(s.opts.CredentialHashKey, c)
	if f == sentValueExtentNone && loaded.pushesSecretFile(c) {
		f = sentValueExtentPart
	}
	if f != sentValueExtentNone {
		c.AddCredentialLeakEffect(f == sentValueExtentPart)
	}
	return nil
}

// evictSessions removes expired sessions and, if maxSessions are active, the one that was active longest
// ago, but not a default session. New sessions inherit its labels for as long as it would have been
// kept.
func (s *Store) evictSessions(sh storageTx, but Key) error {
	var ended [][]byte
	var oldest *Record
	n := 0
	err := eachRecord(sh, func(group []byte, r *Record) error {
		if r.IsSharedByUserSessions() {
			return nil
		}
		switch n++; {
		case !r.isActive(s.now(), s.opts.SessionRetention):
			ended = append(ended, slices.Clone(group))
			if s.opts.IsolateSessionsFromEachOther {
				ended = append(ended, s.sharedRecordKey(r.Key).groupName())
			}
		case r.Key != but && !r.IsDefault() && (oldest == nil || r.LastActionAt < oldest.LastActionAt):
			oldest = r
		}
		return nil
	})
	if err == nil && n >= maxSessions && len(ended) == 0 && oldest != nil {
		err = s.addLabelsToSharedRecord(sh, oldest)
		ended = append(ended, oldest.groupName())
	}
	for _, group := range ended {
		if err == nil {
			err = sh.DropGroup(group)
		}
	}
	return err
}

// addLabelsToSharedRecord adds the labels of a session to the shared record of its user.
func (s *Store) addLabelsToSharedRecord(sh storageTx, old *Record) error {
	r, from, err := s.loadRecordSharedBySessions(sh, old.Key)
	if err != nil {
		return err
	}
	if r.LastActionAt == 0 {
		if err := s.copyFilesAndValuesToShared(sh, from, r.groupName(), r); err != nil {
			return err
		}
	}
	for _, l := range old.Labels {
		r.Labels = slices.DeleteFunc(r.Labels, func(have SessionTaintLabel) bool { return have.Label == l.Label })
		r.addLabel(l.Label, l.EffectOrActionType, s.now())
	}
	sortLabels(r)
	r.LastActionAt = max(r.LastActionAt, s.now())
	return sh.Put(r.groupName(), recordKey, r.encode())
}

// List returns the active sessions, the most recent first. A damaged record is an error.
func (s *Store) List(ctx context.Context) (out []Record, err error) {
	err = s.storage.runReadOnly(ctx, func(sh storageTx) error {
		out = nil
		return eachRecord(sh, func(_ []byte, r *Record) error {
			if !r.IsSharedByUserSessions() && r.isActive(s.now(), s.opts.SessionRetention) {
				out = append(out, *r)
			}
			return nil
		})
	})
	sorted.SortStableBy(out, func(a, b Record) int { return cmp.Compare(b.LastActionAt, a.LastActionAt) })
	return out, err
}

// RecordsSharedBySessions returns the shared record of each user, see [Key.IsSharedByUserSessions].
func (s *Store) RecordsSharedBySessions(ctx context.Context) (out []Record, err error) {
	err = s.storage.runReadOnly(ctx, func(sh storageTx) error {
		out = nil
		return eachRecord(sh, func(_ []byte, r *Record) error {
			if r.IsSharedByUserSessions() {
				out = append(out, *r)
			}
			return nil
		})
	})
	return out, err
}

// Files returns the files that the sessions of a user know, with their labels, sorted by path.
func (s *Store) Files(ctx context.Context, k Key) (out []effect.LabelledFile, err error) {
	err = s.storage.runReadOnly(ctx, func(sh storageTx) error {
		one := &Session{}
		err := one.loadFiles(sh, s.sharedRecordKey(k).groupName())
		out = one.labelledFiles()
		return err
	})
	return out, err
}

// Clear removes the sessions that choose accepts. A nil choose removes all, including damaged ones.
func (s *Store) Clear(ctx context.Context, choose func(*Record) bool) (cleared int, err error) {
	err = s.storage.runWriting(ctx, func(sh storageTx) error {
		cleared = 0
		var drop [][]byte
		err := sh.EachGroupWithValueOfKey(recordKey, func(group, data []byte) error {
			r, err := decodeRecord(data)
			switch {
			case choose == nil:
			case err != nil:
				return err
			case r == nil || !choose(r):
				return nil
			}
			if drop = append(drop, slices.Clone(group)); choose != nil || r == nil || !r.IsSharedByUserSessions() {
				cleared++
			}
			return nil
		})
		for _, group := range drop {
			if err == nil {
				err = sh.DropGroup(group)
			}
		}
		return err
	})
	return cleared, err
}

// ResumeStoppedSessions removes the denials of the sessions that isChosen accepts, and resumes the stopped
// sessions among them. Their labels stay. It returns how many sessions it changed.
func (s *Store) ResumeStoppedSessions(ctx context.Context, isChosen func(*Record) bool) (resumed int, err error) {
	err = s.storage.runWriting(ctx, func(sh storageTx) error {
		var change []*Record
		err := eachRecord(sh, func(_ []byte, r *Record) error {
			if isChosen(r) && (r.IsStoppedAfterDenials || len(r.Denials) > 0) {
				change = append(change, r)
			}
			return nil
		})
		resumed = len(change)
		for _, r := range change {
			r.IsStoppedAfterDenials, r.Denials = false, nil
			if err == nil {
				err = sh.Put(r.groupName(), recordKey, r.encode())
			}
		}
		return err
	})
	return resumed, err
}
