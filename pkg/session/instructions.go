package session

import (
	"encoding/hex"
	"slices"
)

// An Instruction is a file of instructions for agents that the session has changed, and that was
// the project's own before: as the last commit has it.
type Instruction struct {
	Path          string `json:"path"`            // keyed hash
	Sum           string `json:"sum,omitempty"`   // of what the session left in it last; "" until its change has run
	Texts         int64  `json:"texts"`           // that anybody may have written had come in then
	OthersChanged bool   `json:"mixed,omitempty"` // others have changed it too
}

const maxInstructions = 32

// addInstruction notes what is known of a file of instructions.
func (r *Record) addInstruction(i Instruction) bool {
	if slices.Contains(r.Instructions, i) {
		return false
	}
	r.Instructions = slices.DeleteFunc(slices.Clone(r.Instructions), func(o Instruction) bool { return o.Path == i.Path })
	r.Instructions = append(r.Instructions, i)
	r.Instructions = r.Instructions[max(0, len(r.Instructions)-maxInstructions):]
	return true
}

// Instruction returns what is known of a file of instructions of the project's; nil for a session
// that has not begun to change it. now says what the file holds, "" if it cannot be read.
func (s *Session) Instruction(store *Store, path string) (i *Instruction, now string) {
	key := store.NameKey(path)
	if s.disk != nil {
		if id, ok := s.disk.Identify(path); ok {
			now = hex.EncodeToString(id.Sum[:])
		}
	}
	at := slices.IndexFunc(s.rec.Instructions, func(o Instruction) bool { return o.Path == key })
	if at < 0 {
		return nil, now
	}
	found := s.rec.Instructions[at]
	return &found, now
}

// NewInstruction returns what is kept of a file of instructions of the project's before the
// session changes it.
func (s *Store) NewInstruction(path string) Instruction { return Instruction{Path: s.NameKey(path)} }
