package session

import (
	"maps"
	"slices"
	"time"

	"github.com/shieldcli/shield/pkg/effect"
)

// A Session is the memory of a session at one moment. It implements analysis.Memory. Only one
// goroutine at a time may use it.
type Session struct {
	key      Key
	lineage  Lineage
	opts     *Options
	loadedAt int64

	record                 Record
	recordSharedBySessions Record              // the record that the sessions of the user share
	labels                 []effect.TaintLabel // labels of record; nil until Labels is called
	ownRecordLabels        []SessionTaintLabel // labels of record, without those copied from the session that the agent names
	fileSet
	storageGroupNames   [][]byte // storage groups that hold the session's files and values
	err                 error
	valueSetFingerprint string // XORs of the value hashes in each storage group, concatenated; "" if the groups hold no values

	fileChecker                       FileIdentityChecker            // nil to check no files
	originLabelBitsByPath             map[string]byte                // labels that FileOriginLabels returned, as bits, by path
	wasDownloadedOrDecodedPathsCalled bool                           // DownloadedOrDecodedPaths was called
	hasCreatedByPath                  map[string]bool                // results of HasCreated, by path
	newFileIdentityByPath             map[string]effect.FileIdentity // files whose identity was unknown when the session was loaded
}

// Labels returns the labels of the session.
func (s *Session) Labels() []effect.TaintLabel {
	if s.labels == nil {
		s.labels = make([]effect.TaintLabel, 0, len(s.record.Labels))
		for _, l := range s.record.Labels {
			s.labels = append(s.labels, l.Label)
		}
	}
	return s.labels
}

// Err returns why the session could not be loaded, or nil.
func (s *Session) Err() error { return s.err }

// Since returns the time between a time in the session's record, in Unix seconds, and the loading
// of the session.
func (s *Session) Since(at int64) time.Duration {
	return time.Duration(max(s.loadedAt-at, 0)) * time.Second
}

// LabelledFiles returns the labels of the files that FileOriginLabels was called for, if they have
// any; a folder labelled as a whole is also listed, with a final slash.
func (s *Session) LabelledFiles() map[string][]effect.TaintLabel {
	told := map[string][]effect.TaintLabel{}
	for path, b := range s.originLabelBitsByPath {
		if b != 0 {
			told[path] = labelsOf(b)
			if s.files[path].includesDescendants {
				told[path+"/"] = told[path]
			}
		}
	}
	return told
}

// IsStoppedAfterDenials reports whether the session is stopped until a person resumes it.
func (s *Session) IsStoppedAfterDenials() bool { return s.record.IsStoppedAfterDenials }

// HasRecentAction reports whether an action of one of the kinds, or with an effect of one of them, ran within a
// time and a number of actions before now. kinds are kinds of effects and action types. A limit of 0 means no
// limit.
func (s *Session) HasRecentAction(kinds []string, within time.Duration, actions int) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool {
		e, ok := s.record.LastOccurrenceByEffectOrActionType[kind]
		return ok && (within == 0 || s.loadedAt-e.At <= int64(within/time.Second)) && (actions == 0 || s.record.ActionCount-e.SessionActionCountThen < int64(actions))
	})
}

// maxIdentityChecks is how many files with unknown identity are checked per action.
const maxIdentityChecks = 16

// A FileIdentityChecker looks at files on the disk: their identity, existence and time of change. It is
// implemented by [analysis.FileIdentityResolver].
type FileIdentityChecker interface {
	AllFilesChangedBetween(path string, from, to time.Time) bool // the last change of each file at or below path is between from and to
	Identify(path string) (id effect.FileIdentity, ok bool)
	PossiblyPresent(paths []string) []string // returns paths without those known not to exist
}

// EnableFileIdentification recognises renamed or copied files by their identity. It reads the disk only if the result
// may depend on it.
func (s *Session) EnableFileIdentification(disk FileIdentityChecker) {
	if s.err == nil {
		s.fileChecker = disk
	}
}

// fillMissingFileIdentities looks up the identity of files that have none yet, so that they are recognised at
// other paths later.
func (s *Session) fillMissingFileIdentities() {
	if s.fileChecker == nil {
		return
	}
	for _, path := range s.fileChecker.PossiblyPresent(s.labelledPathsWithoutIdentity) {
		if len(s.newFileIdentityByPath) == maxIdentityChecks {
			return
		}
		if _, met := s.newFileIdentityByPath[path]; met {
			continue
		}
		if id, ok := s.fileChecker.Identify(path); ok {
			if s.newFileIdentityByPath == nil {
				s.newFileIdentityByPath, s.files = map[string]effect.FileIdentity{}, maps.Clone(s.files) // other sessions may share the map
			}
			e := s.files[path]
			e.identity = id
			s.files[path], s.newFileIdentityByPath[path] = e, id
		}
	}
}

// FileOriginLabels returns the labels of a file.
func (s *Session) FileOriginLabels(path string) []effect.TaintLabel {
	b, asked := s.originLabelBitsByPath[path]
	if !asked {
		b = s.lookUpOriginLabelBits(path)
		if s.originLabelBitsByPath == nil {
			s.originLabelBitsByPath = map[string]byte{}
		}
		s.originLabelBitsByPath[path] = b
	}
	return labelsOf(b)
}

func (s *Session) lookUpOriginLabelBits(path string) byte {
	b, found := s.lookUpFileLabels(fileKeySuffixOfPath(path))
	if !found && s.fileChecker != nil && len(s.files) > 0 {
		if id, ok := s.fileChecker.Identify(path); ok {
			s.fillMissingFileIdentities()
			b = s.labelBitsOfIdenticalFiles(id)
			found = b != 0
		}
	}
	if !found && s.isTimeWithinRetention(s.recordSharedBySessions.FileLimitReachedAt) {
		b = labelBits([]effect.TaintLabel{effect.LabelFromNetwork})
	}
	return b
}

// isTimeWithinRetention reports whether a time of the shared record is set and has not expired.
func (s *Session) isTimeWithinRetention(unixTime int64) bool {
	return unixTime != 0 && s.loadedAt-unixTime <= int64(s.opts.SessionRetention/time.Second)
}

// gitOriginMayHaveChanged reports whether the remote of the workspace may have changed, in this session or
// shortly before.
func (s *Session) gitOriginMayHaveChanged() bool {
	return s.recordSharedBySessions.GitOriginChangedAt != 0 && s.record.BeganAt-s.recordSharedBySessions.GitOriginChangedAt <= int64(s.opts.SessionRetention/time.Second)
}

// DownloadedOrDecodedPaths returns the paths of downloaded, decoded or cloned files, sorted.
func (s *Session) DownloadedOrDecodedPaths() *effect.PathList {
	s.wasDownloadedOrDecodedPathsCalled = true
	return s.downloaded
}

// HasSameQueriedFileState reports whether another state of the session gives the same results
// as those that FileOriginLabels, DownloadedOrDecodedPaths and HasCreated have returned for this
// state.
func (s *Session) HasSameQueriedFileState(other *Session) bool {
	if s.wasDownloadedOrDecodedPathsCalled && s.downloaded != other.DownloadedOrDecodedPaths() && !slices.Equal(s.downloaded.All(), other.downloaded.All()) {
		return false
	}
	for path, b := range s.originLabelBitsByPath {
		if other.FileOriginLabels(path); other.originLabelBitsByPath[path] != b {
			return false
		}
	}
	for path, made := range s.hasCreatedByPath {
		if other.HasCreated(path) != made {
			return false
		}
	}
	return true
}

// DeltaAddsNewData reports whether a delta contains anything that is not stored yet.
func (s *Session) DeltaAddsNewData(d *RecordDelta) bool {
	return s.deltaChangesSessionRecord(d) || s.deltaChangesSharedRecord(d)
}

// deltaChangesSessionRecord reports whether a delta contains anything new for the session's own record.
func (s *Session) deltaChangesSessionRecord(d *RecordDelta) bool {
	if d.MustIncrementActionCount || d.Denial != nil || d.PendingPrompt != nil || d.UserPrompt != nil || d.HasNewUntrustedText || d.ChangedInstructionFile != nil || len(d.AuthorResolvedPromptHashes) > 0 || len(d.OccurredEffectOrActionTypes)+len(d.privateValues()) > 0 {
		return true
	}
	for _, sent := range d.Sent {
		if !slices.ContainsFunc(s.record.Sent, func(have SentData) bool { return have.Recipient == sent.Recipient }) {
			return true
		}
	}
	for _, l := range d.Labels {
		if !slices.ContainsFunc(s.ownRecordLabels, func(have SessionTaintLabel) bool { return have.Label == l.Label }) {
			return true
		}
	}
	if len(d.RepositoryOwners) > 0 && !slices.Equal(d.RepositoryOwners, s.record.RepositoryOwners) || slices.ContainsFunc(d.CreatedPaths, func(path string) bool { return s.record.needsCreatedPathEntry(path, s.loadedAt) }) {
		return true
	}
	return s.record.LastActionAt != 0 && s.loadedAt-s.record.LastActionAt >= int64(s.opts.SessionRetention/time.Second)/8
}

// deltaChangesSharedRecord reports whether a delta contains anything new for the shared record of the user.
func (s *Session) deltaChangesSharedRecord(d *RecordDelta) bool {
	if d.newFileIdentityByPath = s.newFileIdentityByPath; len(d.newFileIdentityByPath)+len(d.credentials()) > 0 {
		return true
	}
	if d.GitOriginMayHaveChanged && !s.gitOriginMayHaveChanged() || slices.ContainsFunc(d.Remotes, func(r ChangedGitRemote) bool { return !slices.Contains(s.recordSharedBySessions.Remotes, r) }) {
		return true
	}
	return len(s.fileRecordsChangedByDelta(d, s.loadedAt)) > 0
}

// applyDelta adds a delta to the record of a session and reports whether it changed.
func (r *Record) applyDelta(d *RecordDelta, now int64, opts *Options) (changed bool) {
	for _, l := range d.Labels {
		changed = r.addLabel(l.Label, shortenText(l.EffectOrActionType), now) || changed
	}
	sortLabels(r)
	for _, sent := range d.Sent {
		changed = true
		i := slices.IndexFunc(r.Sent, func(have SentData) bool { return have.Recipient == sent.Recipient })
		if i < 0 {
			if len(r.Sent) == maxRecipients {
				r.Sent = slices.Delete(r.Sent, 0, 1)
			}
			r.Sent = append(r.Sent, SentData{Recipient: sent.Recipient})
			i = len(r.Sent) - 1
		}
		r.Sent[i].SendCount += sent.SendCount
		r.Sent[i].Bytes += sent.Bytes
		r.Sent[i].LastSentAt = now
	}
	if len(d.RepositoryOwners) > 0 && !slices.Equal(d.RepositoryOwners, r.RepositoryOwners) {
		r.RepositoryOwners, changed = d.RepositoryOwners, true
	}
	for _, path := range d.CreatedPaths {
		changed = r.recordCreated(path, now) || changed
	}
	if d.MustIncrementActionCount {
		r.ActionCount++
		changed = true
	}
	for _, kind := range d.OccurredEffectOrActionTypes {
		if r.LastOccurrenceByEffectOrActionType == nil {
			r.LastOccurrenceByEffectOrActionType = map[string]LastEffectOccurrence{}
		}
		if _, known := r.LastOccurrenceByEffectOrActionType[kind]; known || len(r.LastOccurrenceByEffectOrActionType) < maxEventTypesPerSession {
			r.LastOccurrenceByEffectOrActionType[kind] = LastEffectOccurrence{At: now, SessionActionCountThen: r.ActionCount}
			changed = true
		}
	}
	changed = r.addPrompts(d) || changed
	if d.ChangedInstructionFile != nil {
		changed = r.addChangedInstructionFile(*d.ChangedInstructionFile) || changed
	}
	if d.HasNewUntrustedText {
		r.UntrustedTextCount++
		changed = true
	}
	if d.Denial != nil {
		r.addDenial(*d.Denial, now, opts)
		changed = true
	}
	return changed
}
