package session

import (
	"encoding/hex"
	"slices"
)

// An Instruction records that the session changed an agent instruction file of the project. If the
// file already differed from the last commit, ChangedByOthers is set.
type ChangedInstructionFile struct {
	PathHash           string `json:"path"`            // keyed hash
	ContentHash        string `json:"sum,omitempty"`   // keyed hash of its content after the session's last change; "" until the change has run
	UntrustedTextCount int64  `json:"texts"`           // untrusted texts that the session had received when it last changed the file
	ChangedByOthers    bool   `json:"mixed,omitempty"` // another program has changed it too
}

const maxInstructions = 32

// addInstruction adds or replaces the record of an instruction file.
func (r *Record) addInstruction(i ChangedInstructionFile) bool {
	if slices.Contains(r.Instructions, i) {
		return false
	}
	r.Instructions = slices.DeleteFunc(slices.Clone(r.Instructions), func(o ChangedInstructionFile) bool { return o.PathHash == i.PathHash })
	r.Instructions = append(r.Instructions, i)
	r.Instructions = r.Instructions[max(0, len(r.Instructions)-maxInstructions):]
	return true
}

// FindInstructionFile returns the record of a project's instruction file; nil if the session has not changed
// it. now is the hash of its content, "" if it cannot be read.
func (s *Session) FindInstructionFile(store *Store, path string) (i *ChangedInstructionFile, currentHash string) {
	key := store.NameKey(path)
	if s.fileChecker != nil {
		if id, ok := s.fileChecker.Identify(path); ok {
			currentHash = hex.EncodeToString(id.Sum[:])
		}
	}
	at := slices.IndexFunc(s.record.Instructions, func(o ChangedInstructionFile) bool { return o.PathHash == key })
	if at < 0 {
		return nil, currentHash
	}
	found := s.record.Instructions[at]
	return &found, currentHash
}

// NewInstruction returns the record of a project's instruction file before the session changes it.
func (s *Store) NewInstruction(path string) ChangedInstructionFile {
	return ChangedInstructionFile{PathHash: s.NameKey(path)}
}
