package session

import (
	"cmp"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shieldcli/shield/internal/sorted"
	"github.com/shieldcli/shield/pkg/effect"
)

// A fileRecord is the record of a file. Without labels it says that a file in a labelled folder has
// none.
type fileRecord struct {
	taintLabelBits      byte // bits, in the order of fileLabels
	includesDescendants bool
	identity            effect.FileIdentity // identity of the file at its last check; zero if it was never checked
	storedUnixSeconds   uint32              // time at which this record was stored, in seconds since 1970; 0 if unknown
}

// equalsExceptStoredAt reports whether two entries are equal apart from the time.
func (e fileRecord) equalsExceptStoredAt(other fileRecord) bool {
	e.storedUnixSeconds, other.storedUnixSeconds = 0, 0
	return e == other
}

// fileLabels are the labels that files can have.
var fileLabels = [...]effect.TaintLabel{effect.LabelFromCredentialLocation, effect.LabelCredential, effect.LabelPersonalData, effect.LabelFromNetwork, effect.LabelDecoderOutput, effect.LabelUntrusted, effect.LabelDatabaseRows}

// downloadLabelBits are the labels of downloaded or decoded files, which count as reviewed once they were
// shown.
var downloadLabelBits = labelBits([]effect.TaintLabel{effect.LabelFromNetwork, effect.LabelDecoderOutput})

// untrustedLabelBits are the labels of downloaded, decoded and cloned files.
var untrustedLabelBits = downloadLabelBits | labelBits([]effect.TaintLabel{effect.LabelUntrusted})

// IsDownloaded reports whether the labels are those of a file that was downloaded, decoded or cloned.
func IsDownloaded(labels []effect.TaintLabel) bool { return labelBits(labels)&untrustedLabelBits != 0 }

func labelBits(labels []effect.TaintLabel) (b byte) {
	for _, l := range labels {
		if i := slices.Index(fileLabels[:], l); i >= 0 {
			b |= 1 << i
		}
	}
	return b
}

func labelsOf(b byte) (out []effect.TaintLabel) {
	for i, l := range fileLabels {
		if b&(1<<i) != 0 {
			out = append(out, l)
		}
	}
	return out
}

// encode returns two bytes, the labels and whether the entry is for a whole folder tree, then the
// time and the file's identity.
func (e fileRecord) encode() []byte {
	out := []byte{e.taintLabelBits, 0}
	if e.includesDescendants {
		out[1] = 1
	}
	out = binary.BigEndian.AppendUint32(out, e.storedUnixSeconds)
	if e.identity == (effect.FileIdentity{}) {
		return out
	}
	out = binary.BigEndian.AppendUint64(out, e.identity.Device)
	out = binary.BigEndian.AppendUint64(out, e.identity.Inode)
	return append(out, e.identity.ContentSHA256Prefix[:]...)
}

// decodeFileRecord decodes an entry; entries of earlier versions have no time.
func decodeFileRecord(data []byte) (e fileRecord, err error) {
	const head, instant, identity = 2, 4, 8 + 8 + len(e.identity.ContentSHA256Prefix)
	n := len(data)
	if n != head && n != head+identity && n != head+instant && n != head+instant+identity {
		return e, ErrDamaged
	}
	e.taintLabelBits, e.includesDescendants = data[0], data[1] == 1
	data = data[head:]
	if len(data) == instant || len(data) == instant+identity {
		e.storedUnixSeconds, data = binary.BigEndian.Uint32(data), data[instant:]
	}
	if len(data) > 0 {
		e.identity.Device = binary.BigEndian.Uint64(data)
		e.identity.Inode = binary.BigEndian.Uint64(data[8:])
		copy(e.identity.ContentSHA256Prefix[:], data[16:])
	}
	return e, nil
}

const fileRecordKeyPrefix = "file:"

// eachFile calls fn for each file of a group.
func eachFile(sh storageTx, group []byte, fn func(path string, e fileRecord) error) error {
	return sh.Each(group, func(key, value []byte) error {
		name, ok := strings.CutPrefix(string(key), fileRecordKeyPrefix)
		if !ok {
			return nil
		}
		e, err := decodeFileRecord(value)
		if err != nil {
			return err
		}
		return fn(name, e)
	})
}

// loadFiles adds the files of a group to those of a session, and merges entries of the same file.
func (s *Session) loadFiles(sh storageTx, group []byte) error {
	return eachFile(sh, group, func(path string, e fileRecord) error {
		if s.files == nil {
			s.files = map[string]fileRecord{}
		}
		if old, ok := s.files[path]; ok {
			e.taintLabelBits |= old.taintLabelBits
			e.includesDescendants = e.includesDescendants || old.includesDescendants
		}
		s.files[path] = e
		return nil
	})
}

// copyFileRecordsToGroup copies the files of session groups to the shared group, and reports whether there was room
// for all.
func copyFileRecordsToGroup(sh storageTx, sourceGroups [][]byte, targetGroup []byte, maxFiles int, now int64) (copiedAll bool, err error) {
	files := &Session{}
	for _, group := range sourceGroups {
		if err := files.loadFiles(sh, group); err != nil {
			return false, err
		}
	}
	for path, e := range files.files {
		if maxFiles--; maxFiles < 0 {
			return false, putNewFileRecordsRevision(sh, targetGroup)
		}
		e.storedUnixSeconds = uint32(now)
		if err := sh.Put(targetGroup, fileKey(path), e.encode()); err != nil {
			return false, err
		}
	}
	if len(files.files) > 0 {
		err = putNewFileRecordsRevision(sh, targetGroup)
	}
	return true, err
}

// addFiles stores what a delta says about files in the user's storage group, and reports whether
// anything changed. If the group is full, each new file replaces the oldest one that is older than
// the retention time of sessions. If no file is that old, the new file is left out and the record
// notes it.
func (s *Store) addFiles(sh storageTx, group []byte, r *Record, d *RecordDelta) (changed bool, err error) {
	if len(d.LabelledFiles)+len(d.PrintedFiles)+len(d.newFileIdentityByPath) == 0 {
		return false, nil
	}
	set, err := s.fileSets.load(sh, [][]byte{group})
	if err != nil {
		return false, err
	}
	have := &Session{fileSet: set}
	put := have.fileRecordsChangedByDelta(d, s.now())
	files := make(map[string]fileRecord, len(have.files)+len(put))
	maps.Copy(files, have.files)
	var old []string // to be forgotten if there is no room
	listed := false
	for _, path := range sorted.Keys(put) {
		if _, known := files[path]; !known && len(files) >= s.opts.MaxFileRecordsPerUser {
			if !listed {
				old, listed = s.evictableFilePathsOldestFirst(files, put), true
			}
			if len(old) == 0 {
				r.FileLimitReachedAt, changed = s.now(), true
				delete(put, path)
				continue
			}
			if err := sh.Put(group, fileKey(old[0]), nil); err != nil {
				return changed, err
			}
			delete(files, old[0])
			old = old[1:]
		}
		files[path] = put[path]
		if err := sh.Put(group, fileKey(path), put[path].encode()); err != nil {
			return changed, err
		}
	}
	if len(put) == 0 {
		return changed, nil
	}
	return true, s.fileSets.cacheChangedFiles(sh, group, set.withChanges(files))
}

// evictableFilePathsOldestFirst returns the files that may be forgotten, oldest first.
func (s *Store) evictableFilePathsOldestFirst(files, excludedFiles map[string]fileRecord) (out []string) {
	for path, e := range files {
		if _, used := excludedFiles[path]; !used && s.now()-int64(e.storedUnixSeconds) > int64(s.opts.SessionRetention/time.Second) {
			out = append(out, path)
		}
	}
	sorted.SortStableBy(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(files[a].storedUnixSeconds, files[b].storedUnixSeconds), cmp.Compare(a, b))
	})
	return out
}

// fileRecordsChangedByDelta returns the new entries of files that an action changes. An unchanged entry is stored
// again once a day.
func (s *Session) fileRecordsChangedByDelta(d *RecordDelta, now int64) map[string]fileRecord {
	const day = 24 * 60 * 60
	put := map[string]fileRecord{}
	at := func(path string) fileRecord {
		if e, ok := put[path]; ok {
			return e
		}
		return s.files[path]
	}
	set := func(path string, e fileRecord) {
		if old, known := s.files[path]; !known || !old.equalsExceptStoredAt(e) || now-int64(old.storedUnixSeconds) > day {
			e.storedUnixSeconds = uint32(now)
			put[path] = e
		}
	}
	for _, path := range d.PrintedFiles {
		path = fileKeySuffixOfPath(path)
		if b, found := s.lookUpFileLabels(path); found && b&downloadLabelBits != 0 {
			e := at(path)
			e.taintLabelBits = b &^ downloadLabelBits
			set(path, e)
		}
	}
	for _, f := range d.LabelledFiles {
		path := fileKeySuffixOfPath(f.Path)
		e := at(path)
		e.taintLabelBits |= labelBits(f.Labels)
		e.includesDescendants = e.includesDescendants || f.IncludesDescendants
		e.identity = effect.FileIdentity{} // the file has been replaced
		set(path, e)
	}
	for path, id := range d.newFileIdentityByPath {
		if e := at(path); e.identity == (effect.FileIdentity{}) {
			e.identity = id
			set(path, e)
		}
	}
	return put
}

// fileKeySuffixOfPath returns the storage key of a file without the prefix "file:". It is the
// path, or a hash of a path that is too long.
func fileKeySuffixOfPath(path string) string {
	return strings.TrimPrefix(string(fileKey(path)), fileRecordKeyPrefix)
}

// lookUpFileLabels returns the labels of a file by its path or by a parent folder.
func (s *Session) lookUpFileLabels(filePath string) (labelBitSet byte, found bool) {
	if e, ok := s.files[filePath]; ok {
		return e.taintLabelBits, true
	}
	if e, ok := s.files[strings.TrimSuffix(filePath, path.Ext(filePath))+effect.AnyFileSuffixPattern]; ok {
		return e.taintLabelBits, true
	}
	for dir := path.Dir(filePath); len(s.files) > 0; dir = path.Dir(dir) {
		if e, ok := s.files[dir]; ok && e.includesDescendants {
			return e.taintLabelBits, true
		}
		if dir == path.Dir(dir) {
			break
		}
	}
	return 0, false
}

// labelBitsOfIdenticalFiles returns the labels of files with the same content or the same inode.
func (s *Session) labelBitsOfIdenticalFiles(id effect.FileIdentity) (b byte) {
	for _, e := range s.files {
		if e.identity != (effect.FileIdentity{}) && (e.identity.ContentSHA256Prefix == id.ContentSHA256Prefix || e.identity.Inode != 0 && e.identity.Device == id.Device && e.identity.Inode == id.Inode) {
			b |= e.taintLabelBits
		}
	}
	return b
}

// labelledFiles returns the labelled files sorted by path.
func (s *Session) labelledFiles() (out []effect.LabelledFile) {
	for path, e := range s.files {
		if e.taintLabelBits != 0 {
			out = append(out, effect.LabelledFile{Path: path, IncludesDescendants: e.includesDescendants, Labels: labelsOf(e.taintLabelBits)})
		}
	}
	sorted.SortStableBy(out, func(a, b effect.LabelledFile) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
