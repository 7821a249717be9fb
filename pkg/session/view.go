package session

import (
	"maps"
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Session is what a session remembers at one moment. It implements
// analysis.Memory. One goroutine at a time uses it.
type Session struct {
	key     Key
	lineage Lineage
	opts    *Options
	now     int64

	rec       Record
	shared    Record         // what the sessions of the user share
	labels    []effect.Label // of rec
	ownLabels []Labelled     // of rec, without those of the session that the agent names
	fileSet
	groups    [][]byte // the groups that files and values come from
	err       error
	valueSums string // of the values of these groups; "" if there are none

	disk         Disk                       // nil if no file is looked at
	askedOrigins map[string]byte            // the answers of Origin
	askedBrought bool                       // Brought was asked
	made         map[string]bool            // the answers of Made
	identified   map[string]effect.Identity // of files whose identity was not known yet
}

// Labels returns what entered the session.
func (s *Session) Labels() []effect.Label {
	if s.labels == nil {
		s.labels = make([]effect.Label, 0, len(s.rec.Labels))
		for _, l := range s.rec.Labels {
			s.labels = append(s.labels, l.Label)
		}
	}
	return s.labels
}

// Err returns why nothing is known of the session.
func (s *Session) Err() error { return s.err }

// Since returns the time since an instant of the record.
func (s *Session) Since(at int64) time.Duration { return time.Duration(max(s.now-at, 0)) * time.Second }

// LabelledFiles returns the labels of the files that Origin was asked for and that have
// any; a folder that came as a whole is there with a final slash, too.
func (s *Session) LabelledFiles() map[string][]effect.Label {
	told := map[string][]effect.Label{}
	for path, b := range s.askedOrigins {
		if b != 0 {
			told[path] = labelsOf(b)
			if s.files[path].tree {
				told[path+"/"] = told[path]
			}
		}
	}
	return told
}

// Stopped reports whether nothing is allowed until a person has looked.
func (s *Session) Stopped() bool { return s.rec.Stopped }

// After reports whether an action of one of the kinds came before.
func (s *Session) After(kinds []string, within time.Duration, actions int) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool {
		e, ok := s.rec.Events[kind]
		return ok && (within == 0 || s.now-e.At <= int64(within/time.Second)) && (actions == 0 || s.rec.Count-e.Count < int64(actions))
	})
}

// maxMet is how many files whose identity is not known are looked at for one
// action.
const maxMet = 16

// A Disk looks at files, as [analysis.Identifier] does.
type Disk interface {
	Intact(path string, from, to time.Time) bool // it was changed last between two instants
	Identify(path string) (id effect.Identity, ok bool)
	Perhaps(paths []string) []string // without those of which it is known that they are not there
}

// Identify has files recognised under other names, by what they are. The disk is
// asked only where an answer may depend on it.
func (s *Session) Identify(disk Disk) {
	if s.err == nil {
		s.disk = disk
	}
}

// identifyFiles looks at the files whose identity is not known, so that they are recognised
// wherever they are later.
func (s *Session) identifyFiles() {
	if s.disk == nil {
		return
	}
	for _, path := range s.disk.Perhaps(s.unidentified) {
		if len(s.identified) == maxMet {
			return
		}
		if _, met := s.identified[path]; met {
			continue
		}
		if id, ok := s.disk.Identify(path); ok {
			if s.identified == nil {
				s.identified, s.files = map[string]effect.Identity{}, maps.Clone(s.files) // others may share them
			}
			e := s.files[path]
			e.id = id
			s.files[path], s.identified[path] = e, id
		}
	}
}

// Origin returns the labels of a file.
func (s *Session) Origin(path string) []effect.Label {
	b, asked := s.askedOrigins[path]
	if !asked {
		b = s.origin(path)
		if s.askedOrigins == nil {
			s.askedOrigins = map[string]byte{}
		}
		s.askedOrigins[path] = b
	}
	return labelsOf(b)
}

func (s *Session) origin(path string) byte {
	b, found := s.lookUp(keyOf(path))
	if !found && s.disk != nil && len(s.files) > 0 {
		if id, ok := s.disk.Identify(path); ok {
			s.identifyFiles()
			b = s.labelsOfSame(id)
			found = b != 0
		}
	}
	if !found && s.withinKeep(s.shared.FilesFullAt) {
		b = labelBits([]effect.Label{effect.LabelNetwork})
	}
	return b
}

// withinKeep reports whether an instant of the shared record is one, and still counts.
func (s *Session) withinKeep(at int64) bool {
	return at != 0 && s.now-at <= int64(s.opts.Keep/time.Second)
}

// originChanged reports whether the address of the workspace may have been changed, in this
// session or not long before it began.
func (s *Session) originChanged() bool {
	return s.shared.OriginChangedAt != 0 && s.rec.Began-s.shared.OriginChangedAt <= int64(s.opts.Keep/time.Second)
}

// Brought returns the paths of what came from elsewhere, in their order.
func (s *Session) Brought() *effect.Paths {
	s.askedBrought = true
	return s.downloaded
}

// SameAnswers reports whether another state of the session gives the same answers that
// this one gave to Origin and Brought.
func (s *Session) SameAnswers(other *Session) bool {
	if s.askedBrought && s.downloaded != other.Brought() && !slices.Equal(s.downloaded.All(), other.downloaded.All()) {
		return false
	}
	for path, b := range s.askedOrigins {
		if other.Origin(path); other.askedOrigins[path] != b {
			return false
		}
	}
	for path, made := range s.made {
		if other.Made(path) != made {
			return false
		}
	}
	return true
}

// IsNew reports whether there is anything in a delta that is not known yet.
func (s *Session) IsNew(d *Delta) bool { return s.hasNews(d) || s.isNewForShared(d) }

// hasNews reports whether there is anything in a delta that the session itself does
// not know.
func (s *Session) hasNews(d *Delta) bool {
	if d.CountsActions || d.Denial != nil || d.Prompt != nil || d.UserPrompt != nil || d.Texts || d.Instruction != nil || len(d.SettledPrompts) > 0 || len(d.Events)+len(d.sessionWords()) > 0 {
		return true
	}
	for _, sent := range d.Sent {
		if !slices.ContainsFunc(s.rec.Sent, func(have Sent) bool { return have.To == sent.To }) {
			return true
		}
	}
	for _, l := range d.Labels {
		if !slices.ContainsFunc(s.ownLabels, func(have Labelled) bool { return have.Label == l.Label }) {
			return true
		}
	}
	if len(d.Owners) > 0 && !slices.Equal(d.Owners, s.rec.Owners) || slices.ContainsFunc(d.Made, func(path string) bool { return s.rec.isNewlyMade(path, s.now) }) {
		return true
	}
	return s.rec.Seen != 0 && s.now-s.rec.Seen >= int64(s.opts.Keep/time.Second)/8
}

// isNewForShared reports whether there is anything in a delta that the sessions of its user do
// not know yet.
func (s *Session) isNewForShared(d *Delta) bool {
	if d.identified = s.identified; len(d.identified)+len(d.credentials()) > 0 {
		return true
	}
	if d.OriginChanged && !s.originChanged() || slices.ContainsFunc(d.Remotes, func(r Remote) bool { return !slices.Contains(s.shared.Remotes, r) }) {
		return true
	}
	return len(s.changedFiles(d, s.now)) > 0
}

// apply adds a delta to the record of a session and reports whether that changes
// anything.
func (r *Record) apply(d *Delta, now int64, opts *Options) (changed bool) {
	for _, l := range d.Labels {
		changed = r.add(l.Label, shortenText(l.By), now) || changed
	}
	sortLabels(r)
	for _, sent := range d.Sent {
		changed = true
		i := slices.IndexFunc(r.Sent, func(have Sent) bool { return have.To == sent.To })
		if i < 0 {
			if len(r.Sent) == maxSent {
				r.Sent = slices.Delete(r.Sent, 0, 1)
			}
			r.Sent = append(r.Sent, Sent{To: sent.To})
			i = len(r.Sent) - 1
		}
		r.Sent[i].Times += sent.Times
		r.Sent[i].Bytes += sent.Bytes
		r.Sent[i].At = now
	}
	if len(d.Owners) > 0 && !slices.Equal(d.Owners, r.Owners) {
		r.Owners, changed = d.Owners, true
	}
	for _, path := range d.Made {
		changed = r.noteMade(path, now) || changed
	}
	if d.CountsActions {
		r.Count++
		changed = true
	}
	for _, kind := range d.Events {
		if r.Events == nil {
			r.Events = map[string]Event{}
		}
		if _, known := r.Events[kind]; known || len(r.Events) < maxEvents {
			r.Events[kind] = Event{At: now, Count: r.Count}
			changed = true
		}
	}
	changed = r.addPrompts(d) || changed
	if d.Instruction != nil {
		changed = r.addInstruction(*d.Instruction) || changed
	}
	if d.Texts {
		r.Texts++
		changed = true
	}
	if d.Denial != nil {
		r.addDenial(*d.Denial, now, opts)
		changed = true
	}
	return changed
}
