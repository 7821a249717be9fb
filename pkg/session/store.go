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

// ErrDamaged says that a record cannot be read. Whoever needs it must not go on.
var ErrDamaged = errors.New("the memory of this session is damaged; run 'shield session clear --all'")

// ErrNewer says that a record is of a later version than this shield knows.
var ErrNewer = errors.New("the memory of this session was written by a newer shield; install that version again, or run 'shield session clear --all'")

// Options say how long and how much is kept.
type Options struct {
	Clock      func() time.Time // required
	Keep       time.Duration    // after the last action of a session
	MaxFiles   int              // of a session
	MaxDenials int              // within ten minutes, after which a session stops
	Key        [32]byte         // of the hashes of credentials
	Apart      bool             // a session that begins knows nothing of others
}

// A Store keeps sessions. Goroutines may share it.
type Store struct {
	opts  Options
	shelf shelves
	cache cache
	tally tally

	matchers matchers
	fileSets fileSets
}

// NewStore returns a store that keeps sessions in a state file, or in memory alone
// if that is nil.
func NewStore(file *state.Store, opts Options) *Store {
	if file == nil {
		return &Store{opts: opts, shelf: &inMemory{groups: map[string]map[string][]byte{}}}
	}
	return &Store{opts: opts, shelf: onDisk{file}}
}

// shelfName is the part of the state file that sessions lie in.
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

// wants returns what is read of a session whenever it is loaded or changed, and of
// the one that it began in.
func (k Key) wants(parent string) (out []state.Want) {
	of := func(k Key) {
		group := k.group()
		for _, key := range [...][]byte{recordKey, changeKey, sumKey} {
			out = append(out, state.Want{Group: group, Key: key})
		}
	}
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

// of returns the record of a session: its own or, if it has none, one that begins
// now, with what its parent knows or, where none is named, what any live session
// of its user knows. from are the groups that its files come from.
func (s *Store) of(sh shelf, k Key, parent string) (r *Record, from [][]byte, err error) {
	now := s.now()
	own := k.group()
	r, err = record(sh, own)
	if err != nil || r != nil && r.live(now, s.opts.Keep) {
		return r, [][]byte{own}, err
	}
	r = &Record{Key: k, Parent: parent, Began: now}
	if k.Default() || s.opts.Apart {
		return r, nil, nil
	}
	inherit := func(group []byte, o *Record) {
		for _, l := range o.Labels {
			r.add(l.Label, "inherited", now)
		}
		r.point(o.Remotes)
		r.Full, r.Repointed = r.Full || o.Full, r.Repointed || o.Repointed
		from = append(from, slices.Clone(group))
	}
	if parent != "" {
		above := Key{k.Host, parent, k.User}.group()
		p, err := record(sh, above)
		if err != nil {
			return nil, nil, err
		}
		if p != nil && p.live(now, s.opts.Keep) {
			inherit(above, p)
			return r, from, nil
		}
	}
	err = records(sh, func(group []byte, o *Record) error {
		if o.User == k.User && o.live(now, s.opts.Keep) {
			inherit(group, o)
		}
		return nil
	})
	sortLabels(r)
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
func (s *Store) Load(ctx context.Context, k Key, parent, alias string) *Session {
	stamp, ok := s.shelf.stamp()
	if !ok {
		return s.load(ctx, k, parent, alias)
	}
	place := loaded{k, parent, alias}
	out := s.cache.get(stamp, place, s.now())
	if out == nil {
		out = s.load(ctx, k, parent, alias)
		s.cache.put(stamp, place, out)
	}
	return out
}

func (s *Store) load(ctx context.Context, k Key, parent, alias string) *Session {
	out := &Session{key: k, parent: parent, opts: &s.opts}
	err := s.shelf.look(ctx, func(sh shelf) error {
		r, from, err := s.of(sh, k, parent)
		if err != nil {
			return err
		}
		out.rec, out.labels = *r, nil
		if alias != "" {
			err = records(sh, func(group []byte, o *Record) error {
				if o.ID == alias && o.User == k.User && o.live(s.now(), s.opts.Keep) {
					for _, l := range o.Labels {
						out.rec.add(l.Label, "inherited", s.now())
					}
					from = append(from, slices.Clone(group))
				}
				return nil
			})
			sortLabels(&out.rec)
		}
		if err == nil {
			out.from, out.sums = from, sumsOf(sh, from)
			out.fileSet, err = s.fileSets.of(sh, from)
		}
		return err
	}, k.wants(parent)...)
	out.now, out.err = s.now(), err
	return out
}

// Add keeps what an action adds to its session, in one transaction, or in none if
// it adds nothing that the loaded session does not know. How much goes where is
// shown to people and decides nothing: for hosts that are known it is written with
// what follows, or by [Store.Flush].
func (s *Store) Add(ctx context.Context, loaded *Session, d *Delta) error {
	if d.Moves {
		loaded.meet()
	}
	if !loaded.changes(d) {
		if s.tally.add(loaded.key, d.Sent, s.now()) {
			return s.Flush(ctx)
		}
		return nil
	}
	d.Sent = append(s.tally.take(loaded.key), d.Sent...)
	return s.shelf.change(ctx, func(sh shelf) error {
		group := loaded.key.group()
		r, from, err := s.of(sh, loaded.key, loaded.parent)
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
			all, err := s.copy(sh, from, group)
			if err != nil {
				return err
			}
			r.Full = r.Full || !all
		}
		if err := s.put(sh, group, r, d); err != nil {
			return err
		}
		return s.tellParents(sh, r, d)
	}, loaded.key.wants(loaded.parent)...)
}

// put writes what an action adds to a record.
func (s *Store) put(sh shelf, group []byte, r *Record, d *Delta) error {
	now := s.now()
	changed := r.apply(d, now, &s.opts)
	files, err := s.addFiles(sh, group, r, d)
	if err != nil {
		return err
	}
	values, err := addValues(sh, group, d.Values)
	if err != nil {
		return err
	}
	if !changed && !files && !values && now-r.Seen < int64(s.opts.Keep/time.Second)/8 {
		return nil
	}
	r.Seen = max(r.Seen, now)
	return sh.Put(group, recordKey, r.encode())
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

// copy gives a session the files and values of those that it begins in, and reports
// whether there was room for all the files.
func (s *Store) copy(sh shelf, from [][]byte, to []byte) (all bool, err error) {
	values, err := loadValues(sh, from)
	if err != nil {
		return false, err
	}
	if _, err := addValues(sh, to, values); err != nil {
		return false, err
	}
	return copyFiles(sh, from, to, s.opts.MaxFiles)
}

// Learn returns what an action adds to its session if it runs, with the
// credentials in the files that it reads: see [Learn].
func (s *Store) Learn(c *analysis.Case, events []string, counts bool) Delta {
	d := Learn(c, events, counts)
	if slices.ContainsFunc(d.Labels, func(l Labelled) bool { return l.Label == effect.LabelSecret }) {
		d.Values = newHasher(s.opts.Key).read(c)
	}
	return d
}

// Carries adds to a case the effect of carrying out a value that its session has
// read, if it does: a whole one for sure, a part of one or a short one perhaps.
func (s *Store) Carries(ctx context.Context, loaded *Session, c *analysis.Case) error {
	if loaded.err != nil || loaded.sums == "" {
		return loaded.err
	}
	m, err := s.matcherOf(ctx, loaded)
	if err != nil {
		return err
	}
	f := m.flows(s.opts.Key, c)
	if f == flowsNot && loaded.sends(c) {
		f = flowsPart
	}
	if f != flowsNot {
		c.CarriesValue(f == flowsPart)
	}
	return nil
}

// makeRoom removes sessions that have ended and, where all go on, the one that was
// seen first, whose labels go to the default session of its user.
func (s *Store) makeRoom(sh shelf, but Key) error {
	var ended [][]byte
	var oldest *Record
	n := 0
	err := records(sh, func(group []byte, r *Record) error {
		switch n++; {
		case !r.live(s.now(), s.opts.Keep):
			ended = append(ended, slices.Clone(group))
		case r.Key != but && !r.Default() && (oldest == nil || r.Seen < oldest.Seen):
			oldest = r
		}
		return nil
	})
	if err == nil && n-len(ended) >= maxSessions && oldest != nil {
		err = s.fold(sh, oldest)
		ended = append(ended, oldest.group())
	}
	for _, group := range ended {
		if err == nil {
			err = sh.Drop(group)
		}
	}
	return err
}

// fold adds the labels of a session to the default one of its user.
func (s *Store) fold(sh shelf, old *Record) error {
	k := Key{User: old.User}
	r, _, err := s.of(sh, k, "")
	if err != nil {
		return err
	}
	for _, l := range old.Labels {
		r.add(l.Label, l.By, l.At)
	}
	sortLabels(r)
	r.Full = r.Full || old.Full
	r.Seen = max(r.Seen, old.Seen)
	return sh.Put(k.group(), recordKey, r.encode())
}

// List returns the sessions that go on, the one seen last first. One that is
// damaged is an error.
func (s *Store) List(ctx context.Context) (out []Record, err error) {
	err = s.shelf.look(ctx, func(sh shelf) error {
		out = nil
		return records(sh, func(_ []byte, r *Record) error {
			if r.live(s.now(), s.opts.Keep) {
				out = append(out, *r)
			}
			return nil
		})
	})
	slices.SortStableFunc(out, func(a, b Record) int { return cmp.Compare(b.Seen, a.Seen) })
	return out, err
}

// Files returns the files of a session with their labels, by path.
func (s *Store) Files(ctx context.Context, k Key) (out []effect.File, err error) {
	err = s.shelf.look(ctx, func(sh shelf) error {
		one := &Session{}
		err := one.loadFiles(sh, k.group())
		out = one.list()
		return err
	})
	return out, err
}

// Clear forgets sessions: those that choose accepts. With a nil choose all are
// forgotten, damaged ones, too.
func (s *Store) Clear(ctx context.Context, choose func(*Record) bool) (cleared int, err error) {
	err = s.shelf.change(ctx, func(sh shelf) error {
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
			drop = append(drop, slices.Clone(group))
			return nil
		})
		cleared = len(drop)
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
