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

	"github.com/shieldcli/shield/pkg/analysis"
	"github.com/shieldcli/shield/pkg/effect"
	"github.com/shieldcli/shield/pkg/state"
)

// ErrDamaged says that a record cannot be read. Anyone who needs it must not go on.
var ErrDamaged = errors.New("the record of this session is damaged; run 'shield session clear --all'")

// ErrNewer says that a record is of a later version than this shield knows.
var ErrNewer = errors.New("the record of this session was written by a newer shield; install that version again, or run 'shield session clear --all'")

// Options say how long and how much is kept.
type Options struct {
	Clock      func() time.Time // required
	Keep       time.Duration    // after the last action of a session
	MaxFiles   int              // of a user
	MaxDenials int              // within ten minutes, after which a session stops
	Key        [32]byte         // of the hashes of credentials
	Apart      bool             // sessions share nothing
}

// A Store keeps sessions. Goroutines may share it.
type Store struct {
	opts  Options
	shelf shelves
	cache cache
	tally tally

	decoded  recordCache
	matchers matchers
	fileSets fileSets
}

// NewStore returns a store that keeps sessions in a state file, or in memory alone
// if that is nil.
func NewStore(file *state.Store, opts Options) *Store {
	if file == nil {
		return &Store{opts: opts, shelf: &memoryShelves{groups: map[string]map[string][]byte{}}}
	}
	return &Store{opts: opts, shelf: fileShelves{file}}
}

// shelfName is the part of the state file that sessions are in.
const shelfName = "sessions"

// recordKey is the key of the record in a group; those of files are longer.
var recordKey = []byte("record")

// fileKey returns the key of a file.
func fileKey(path string) []byte {
	if len(path) > maxPath {
		sum := sha256.Sum256([]byte(path))
		path = "#" + hex.EncodeToString(sum[:])
	}
	return []byte(filePrefix + path)
}

// group returns the name of a session's group.
func (k Key) group() []byte {
	h := sha256.New()
	for _, part := range [...]string{k.Host, k.ID, k.User} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // a hash does not fail
	}
	return h.Sum(nil)[:16]
}

// shared returns the key of what the sessions of a user share.
func (s *Store) shared(k Key) Key {
	if s.opts.Apart {
		return Key{Host: sharedHost, ID: k.Host + " " + k.ID, User: k.User}
	}
	return Key{Host: sharedHost, User: k.User}
}

// wants returns what is read of a session whenever it is loaded or changed, and of
// the one that it began in.
func (s *Store) wants(k Key, parent string) (out []state.Want) {
	of := func(k Key) {
		group := k.group()
		for _, key := range [...][]byte{recordKey, changeKey, sumKey} {
			out = append(out, state.Want{Group: group, Key: key})
		}
	}
	of(s.shared(k))
	if of(k); parent != "" && parent != k.ID {
		of(Key{k.Host, parent, k.User})
	}
	return out
}

// encode returns a record with a checksum before it.
func (r *Record) encode() []byte {
	r.Version = version
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

// decode returns the record in data, nil if there is none.
func decode(data []byte) (*Record, error) {
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
	if r.Version > version {
		return nil, ErrNewer
	}
	return r, nil
}

// record returns a session's record, nil if there is none.
func record(sh shelf, group []byte) (*Record, error) {
	return decode(sh.Get(group, recordKey))
}

// records calls fn with every record. One that is damaged is an error.
func records(sh shelf, fn func(group []byte, r *Record) error) error {
	return sh.Groups(recordKey, func(name, data []byte) error {
		r, err := decode(data)
		if err != nil || r == nil {
			return err
		}
		return fn(name, r)
	})
}

// now returns the time in seconds since 1970.
func (s *Store) now() int64 { return s.opts.Clock().Unix() }

// recordOf returns the record of a session: its own or, if it has none, one that begins
// now, with the labels of its parent. from is the group that the values come from
// which are the session's alone; nil for none.
func (s *Store) recordOf(sh shelf, k Key, lineage Lineage) (r *Record, from []byte, err error) {
	own := k.group()
	r, err = s.decoded.of(sh, own)
	if err != nil || r != nil && r.active(s.now(), s.opts.Keep) {
		return r, own, err
	}
	r, parent, err := s.begin(sh, k, lineage)
	if err != nil {
		return nil, nil, err
	}
	if parent != nil {
		for _, l := range parent.Labels {
			r.add(l.Label, "inherited", s.now())
		}
		from = parent.group()
	}
	if all, err := s.decoded.of(sh, s.shared(k).group()); err != nil {
		return nil, nil, err
	} else if all != nil && !k.Default() {
		for _, l := range all.Labels { // of sessions for which there was no more room: this may be one of them
			if s.now()-l.At <= int64(s.opts.Keep/time.Second) {
				r.add(l.Label, l.By, s.now())
			}
		}
	}
	sortLabels(r)
	return r, from, nil
}

// sharedRecord returns the record of what the sessions of a user share, and the groups that
// files and values come from. Before there is one, those are the groups of the sessions
// themselves: earlier versions kept files and values there.
func (s *Store) sharedRecord(sh shelf, k Key) (r *Record, from [][]byte, err error) {
	k = s.shared(k)
	r, err = s.decoded.of(sh, k.group())
	if err != nil || r != nil {
		return r, [][]byte{k.group()}, err
	}
	r = &Record{Key: k, Began: s.now()}
	if s.opts.Apart {
		return r, nil, nil
	}
	err = records(sh, func(group []byte, o *Record) error {
		if o.User == k.User && o.active(s.now(), s.opts.Keep) {
			r.addRemotes(o.Remotes)
			if o.OriginWasChanged {
				r.OriginChangedAt = max(r.OriginChangedAt, o.Seen)
			}
			if o.FilesWereFull {
				r.FilesFullAt = max(r.FilesFullAt, o.Seen)
			}
			from = append(from, slices.Clone(group))
		}
		return nil
	})
	return r, from, err
}

func sortLabels(r *Record) {
	slices.SortStableFunc(r.Labels, func(a, b Labelled) int {
		return cmp.Compare(slices.Index(Labels, a.Label), slices.Index(Labels, b.Label))
	})
}

// Load returns what a session remembers. alias is the ID by which an agent names
// its session: what sessions of that ID know is added. An error of the state file,
// or of the record, is the session's [Session.Err].
func (s *Store) Load(ctx context.Context, k Key, from Lineage, alias string) *Session {
	stamp, ok := s.shelf.stamp()
	if !ok {
		return s.load(ctx, k, from, alias)
	}
	place := cacheKey{k, from.Parent, alias}
	out := s.cache.get(stamp, place, s.now())
	if out == nil {
		out = s.load(ctx, k, from, alias)
		s.cache.put(stamp, place, out)
	}
	return out
}

func (s *Store) load(ctx context.Context, k Key, lineage Lineage, alias string) *Session {
	out := &Session{key: k, lineage: lineage, opts: &s.opts}
	err := s.shelf.look(ctx, func(sh shelf) error {
		r, own, err := s.recordOf(sh, k, lineage)
		if err != nil {
			return err
		}
		all, from, err := s.sharedRecord(sh, k)
		if err != nil {
			return err
		}
		out.rec, out.shared, out.labels, out.ownLabels = *r, *all, nil, slices.Clone(r.Labels)
		if out.fileSet, err = s.fileSets.load(sh, from); err != nil {
			return err
		}
		if own != nil && !slices.ContainsFunc(from, func(have []byte) bool { return slices.Equal(have, own) }) {
			from = append(from, own)
		}
		if alias != "" {
			err = records(sh, func(group []byte, o *Record) error {
				if o.ID == alias && o.User == k.User && !o.Shared() && o.active(s.now(), s.opts.Keep) {
					for _, l := range o.Labels {
						out.rec.add(l.Label, l.By, l.At)
					}
					if !slices.Equal(group, own) {
						from = append(from, slices.Clone(group))
					}
				}
				return nil
			})
			sortLabels(&out.rec)
		}
		out.groups, out.valueSums = from, sumsOf(sh, from)
		return err
	}, s.wants(k, lineage.Parent)...)
	out.now, out.err = s.now(), err
	return out
}

// Add keeps what an action adds to its session, in one transaction, or in none if
// it adds nothing that the loaded session does not know. How much goes where is
// shown to people and decides nothing: for hosts that are known it is written with
// what follows, or by [Store.Flush].
func (s *Store) Add(ctx context.Context, loaded *Session, d *Delta) error {
	if d.MovesFiles {
		loaded.identifyFiles()
	}
	if d.OriginChanged || loaded.originChanged() {
		d.Owners = nil
	}
	if !loaded.IsNew(d) {
		if s.tally.add(loaded.key, d.Sent, s.now()) {
			return s.Flush(ctx)
		}
		return nil
	}
	d.Sent = append(s.tally.take(loaded.key), d.Sent...)
	return s.shelf.change(ctx, func(sh shelf) error {
		if err := s.writeShared(sh, loaded.key, d); err != nil {
			return err
		}
		group := loaded.key.group()
		r, from, err := s.recordOf(sh, loaded.key, loaded.lineage)
		if err != nil {
			return err
		}
		if r.Seen == 0 { // it begins
			if err := s.makeRoom(sh, loaded.key); err != nil {
				return err
			}
			if err := sh.Drop(group); err != nil { // what an expired one has left
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
		if err := s.put(sh, group, r, d); err != nil {
			return err
		}
		return s.addToParents(sh, r, d)
	}, s.wants(loaded.key, loaded.lineage.Parent)...)
}

// AddShared keeps of what an action adds only what all sessions of its user share.
func (s *Store) AddShared(ctx context.Context, loaded *Session, d *Delta) error {
	if d.MovesFiles {
		loaded.identifyFiles()
	}
	if !loaded.isNewForShared(d) {
		return nil
	}
	return s.shelf.change(ctx, func(sh shelf) error { return s.writeShared(sh, loaded.key, d) }, s.wants(loaded.key, "")...)
}

// writeShared writes what an action adds to what the sessions of a user share.
func (s *Store) writeShared(sh shelf, k Key, d *Delta) error {
	r, from, err := s.sharedRecord(sh, k)
	if err != nil {
		return err
	}
	now, group := s.now(), r.group()
	if r.Seen == 0 {
		if err := s.copy(sh, from, group, r); err != nil {
			return err
		}
	}
	changed := r.Seen == 0 || now-r.Seen >= int64(s.opts.Keep/time.Second)/8
	changed = r.addRemotes(d.Remotes) || changed
	if d.OriginChanged {
		r.OriginChangedAt, changed = now, true
	}
	files, err := s.addFiles(sh, group, r, d)
	if err != nil {
		return err
	}
	values, err := s.addValues(sh, group, d.credentials())
	if err != nil || !changed && !files && !values {
		return err
	}
	r.Seen = max(r.Seen, now)
	return s.decoded.put(sh, group, r)
}

// put writes what an action adds to a record.
func (s *Store) put(sh shelf, group []byte, r *Record, d *Delta) error {
	now := s.now()
	changed := r.apply(d, now, &s.opts)
	values, err := s.addValues(sh, group, d.sessionWords())
	if err != nil {
		return err
	}
	if !changed && !values && now-r.Seen < int64(s.opts.Keep/time.Second)/8 {
		return nil
	}
	r.Seen = max(r.Seen, now)
	return s.decoded.put(sh, group, r)
}

// Flush writes what was only counted.
func (s *Store) Flush(ctx context.Context) error {
	all := s.tally.takeAll()
	if len(all) == 0 {
		return nil
	}
	return s.shelf.change(ctx, func(sh shelf) error {
		for k, sent := range all {
			r, err := record(sh, k.group())
			if err != nil {
				return err
			}
			if r == nil { // it was forgotten since
				continue
			}
			r.apply(&Delta{Sent: sent}, s.now(), &s.opts)
			if err := sh.Put(k.group(), recordKey, r.encode()); err != nil {
				return err
			}
		}
		return nil
	})
}

// copy gives what is shared the files and values of sessions.
func (s *Store) copy(sh shelf, from [][]byte, to []byte, r *Record) error {
	values, err := loadValues(sh, from)
	if err != nil {
		return err
	}
	values = slices.DeleteFunc(values, func(v Value) bool { return v.Private })
	if _, err := s.addValues(sh, to, values); err != nil {
		return err
	}
	all, err := copyFiles(sh, from, to, s.opts.MaxFiles, s.now())
	if !all {
		r.FilesFullAt = s.now()
	}
	return err
}

// Learn returns what an action adds to its session if it runs, with the
// credentials in the files that it reads: see [Learn].
func (s *Store) Learn(c *analysis.Case, events []string, counts bool) Delta {
	d := Learn(c, events, counts)
	if slices.ContainsFunc(d.Labels, func(l Labelled) bool { return l.Label == effect.LabelSecret }) {
		d.Values = newHasher(s.opts.Key).readValues(c)
	}
	return d
}

// Carries adds to a case the effect of carrying out a value that its session has
// read, if it does: a whole one for sure, a part of one or a short one perhaps.
func (s *Store) Carries(ctx context.Context, loaded *Session, c *analysis.Case) error {
	if loaded.err != nil || loaded.valueSums == "" {
		return loaded.err
	}
	m, err := s.matcherOf(ctx, loaded)
	if err != nil {
		return err
	}
	f := m.carriedParts(s.opts.Key, c)
	if f == carriesNone && loaded.pushesSecretFile(c) {
		f = carriesPart
	}
	if f != carriesNone {
		c.CarriesValue(f == carriesPart)
	}
	return nil
}

// makeRoom removes sessions that have ended and, where all go on, the one that was
// seen first: each session that begins has its labels for as long as it would have been
// kept.
func (s *Store) makeRoom(sh shelf, but Key) error {
	var ended [][]byte
	var oldest *Record
	n := 0
	err := records(sh, func(group []byte, r *Record) error {
		if r.Shared() {
			return nil
		}
		switch n++; {
		case !r.active(s.now(), s.opts.Keep):
			ended = append(ended, slices.Clone(group))
			if s.opts.Apart {
				ended = append(ended, s.shared(r.Key).group())
			}
		case r.Key != but && !r.Default() && (oldest == nil || r.Seen < oldest.Seen):
			oldest = r
		}
		return nil
	})
	if err == nil && n >= maxSessions && len(ended) == 0 && oldest != nil {
		err = s.addToShared(sh, oldest)
		ended = append(ended, oldest.group())
	}
	for _, group := range ended {
		if err == nil {
			err = sh.Drop(group)
		}
	}
	return err
}

// addToShared adds the labels of a session to what the sessions of its user share.
func (s *Store) addToShared(sh shelf, old *Record) error {
	r, from, err := s.sharedRecord(sh, old.Key)
	if err != nil {
		return err
	}
	if r.Seen == 0 {
		if err := s.copy(sh, from, r.group(), r); err != nil {
			return err
		}
	}
	for _, l := range old.Labels {
		r.Labels = slices.DeleteFunc(r.Labels, func(have Labelled) bool { return have.Label == l.Label })
		r.add(l.Label, l.By, s.now())
	}
	sortLabels(r)
	r.Seen = max(r.Seen, s.now())
	return sh.Put(r.group(), recordKey, r.encode())
}

// List returns the sessions that go on, the one seen last first. One that is damaged is
// an error.
func (s *Store) List(ctx context.Context) (out []Record, err error) {
	err = s.shelf.look(ctx, func(sh shelf) error {
		out = nil
		return records(sh, func(_ []byte, r *Record) error {
			if !r.Shared() && r.active(s.now(), s.opts.Keep) {
				out = append(out, *r)
			}
			return nil
		})
	})
	slices.SortStableFunc(out, func(a, b Record) int { return cmp.Compare(b.Seen, a.Seen) })
	return out, err
}

// Shared returns what the sessions of each user share, see [Key.Shared].
func (s *Store) Shared(ctx context.Context) (out []Record, err error) {
	err = s.shelf.look(ctx, func(sh shelf) error {
		out = nil
		return records(sh, func(_ []byte, r *Record) error {
			if r.Shared() {
				out = append(out, *r)
			}
			return nil
		})
	})
	return out, err
}

// Files returns the files that the sessions of a user know, with their labels, by path.
func (s *Store) Files(ctx context.Context, k Key) (out []effect.File, err error) {
	err = s.shelf.look(ctx, func(sh shelf) error {
		one := &Session{}
		err := one.loadFiles(sh, s.shared(k).group())
		out = one.list()
		return err
	})
	return out, err
}

// Clear forgets sessions: those that choose accepts. With a nil choose all are
// forgotten, damaged ones, too.
func (s *Store) Clear(ctx context.Context, choose func(*Record) bool) (cleared int, err error) {
	err = s.shelf.change(ctx, func(sh shelf) error {
		cleared = 0
		var drop [][]byte
		err := sh.Groups(recordKey, func(group, data []byte) error {
			r, err := decode(data)
			switch {
			case choose == nil:
			case err != nil:
				return err
			case r == nil || !choose(r):
				return nil
			}
			if drop = append(drop, slices.Clone(group)); choose != nil || r == nil || !r.Shared() {
				cleared++
			}
			return nil
		})
		for _, group := range drop {
			if err == nil {
				err = sh.Drop(group)
			}
		}
		return err
	})
	return cleared, err
}

// Resume lets stopped sessions go on: those that choose accepts. What was denied
// is forgotten, labels stay.
func (s *Store) Resume(ctx context.Context, choose func(*Record) bool) (resumed int, err error) {
	err = s.shelf.change(ctx, func(sh shelf) error {
		var change []*Record
		err := records(sh, func(_ []byte, r *Record) error {
			if choose(r) && (r.Stopped || len(r.Denials) > 0) {
				change = append(change, r)
			}
			return nil
		})
		resumed = len(change)
		for _, r := range change {
			r.Stopped, r.Denials = false, nil
			if err == nil {
				err = sh.Put(r.group(), recordKey, r.encode())
			}
		}
		return err
	})
	return resumed, err
}
