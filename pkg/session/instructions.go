package session

import (
	"encoding/hex"
	"slices"
)

// A ChangedInstructionFile records that the session changed an agent instruction file of the
// project. If the file already differed from the last commit, HasChangesOutsideSession is set.
type ChangedInstructionFile struct {
	PathHash                       string `json:"path"`            // keyed hash
	ContentHash                    string `json:"sum,omitempty"`   // first half of the SHA-256 of the file's content after the last change; "" until the change has run
	UntrustedTextCountAtLastChange int64  `json:"texts"`           // untrusted texts that the session had received when it last changed the file
	HasChangesOutsideSession       bool   `json:"mixed,omitempty"` // the file also has uncommitted changes that the session did not make
}

const maxInstructionFilesPerSession = 32

// addChangedInstructionFile adds or replaces the record of an instruction file.
func (r *Record) addChangedInstructionFile(i ChangedInstructionFile) bool {
	if slices.Contains(r.ChangedInstructionFiles, i) {
		return false
	}
	r.ChangedInstructionFiles = slices.DeleteFunc(slices.Clone(r.ChangedInstructionFiles), func(o ChangedInstructionFile) bool { return o.PathHash == i.PathHash })
	r.ChangedInstructionFiles = append(r.ChangedInstructionFiles, i)
	r.ChangedInstructionFiles = r.ChangedInstructionFiles[max(0, len(r.ChangedInstructionFiles)-maxInstructionFilesPerSession):]
	return true
}

// FindInstructionFile returns the record of a project's instruction file; nil if the session has
// not changed it. currentHash is the hash of its content, "" if it cannot be read.
func (s *Session) FindInstructionFile(store *Store, path string) (i *ChangedInstructionFile, currentHash string) {
	key := store.KeyedNameHashHex(path)
	if s.fileChecker != nil {
		if id, ok := s.fileChecker.Identify(path); ok {
			currentHash = hex.EncodeToString(id.ContentSHA256Prefix[:])
		}
	}
	at := slices.IndexFunc(s.record.ChangedInstructionFiles, func(o ChangedInstructionFile) bool { return o.PathHash == key })
	if at < 0 {
		return nil, currentHash
	}
	found := s.record.ChangedInstructionFiles[at]
	return &found, currentHash
}

// NewChangedInstructionFile returns the record of a project's instruction file before the session changes it.
func (s *Store) NewChangedInstructionFile(path string) ChangedInstructionFile {
	return ChangedInstructionFile{PathHash: s.KeyedNameHashHex(path)}
}
