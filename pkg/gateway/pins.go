package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/shieldcli/shield/internal/canonjson"
	"github.com/shieldcli/shield/internal/flock"
	"github.com/shieldcli/shield/internal/owner"
	"github.com/shieldcli/shield/internal/redact"
	"github.com/shieldcli/shield/internal/sorted"
)

// Limits of pin files.
const (
	maxPinFileBytes       = 64 << 20 // bytes
	maxPinFiles           = 500      // maximum number of pin files; their tools are compared with those of a server, to find imitations
	maxWaitForPinLock     = 10 * time.Second
	pinFileFormatVersion  = 1
	maxHashedProgramBytes = 1 << 30 // bytes of a program that is hashed
)

// A PinFile is the stored state of one server (one command line): its accepted tools, and the last
// listed tools that are not accepted.
type PinFile struct {
	Version                     int                                   `json:"version"`
	PinFileID                   string                                `json:"id"`
	ServerName                  string                                `json:"server"`
	Command                     []string                              `json:"command"` // secrets removed
	Program                     PinnedServerExecutable                `json:"program"`
	FirstToolListAccepted       bool                                  `json:"listed"` // the first list was accepted
	Tools                       map[string]ToolPin                    `json:"tools"`
	ToolsAwaitingUserAcceptance map[string]ToolAwaitingUserAcceptance `json:"waiting"`
	Checksum                    string                                `json:"sum"` // SHA-256 of the other fields, to detect damage
}

// A ToolPin is the stored definition of a tool that was accepted.
type ToolPin struct {
	DefinitionHash string         `json:"hash"`
	ActionType     string         `json:"type,omitempty"` // action type that a person chose for calls of the tool; "" if none
	Gone           bool           `json:"gone,omitempty"` // the server no longer lists the tool
	Definition     jsontext.Value `json:"definition"`
}

// ToolAwaitingUserAcceptance is a tool that the server listed and a person has not yet accepted.
type ToolAwaitingUserAcceptance struct {
	DefinitionHash string         `json:"hash"`
	WithholdReason string         `json:"why"`
	Definition     jsontext.Value `json:"definition"`
}

// A PinnedServerExecutable is the executable of a command line.
type PinnedServerExecutable struct {
	Path             string `json:"path"`
	Size             int64  `json:"size"`
	ModifiedUnixNano int64  `json:"modified"` // Unix nanoseconds
	SHA256           string `json:"sha256"`
}

// ToolPinStore gives access to the pin file of one server in the state folder. Several processes can use the
// file.
type ToolPinStore struct {
	stateDir    string
	pinDir      string
	pinFileID   string
	serverName  string
	command     []string
	programPath string

	content  PinFile     // content when last read
	fileInfo os.FileInfo // info of the file when last read; nil if there was none
}

// PinFolder returns the folder of the pin files below the state folder.
func PinFolder(stateDir string) string { return filepath.Join(stateDir, "mcp") }

// OpenPins returns the pins of the server that a command line starts. program is the path of the
// executable.
func OpenPins(stateDir string, s *Server, argv []string, program string) (*ToolPinStore, error) {
	dir := PinFolder(stateDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := owner.CheckFolderOwnerAndMode(dir); err != nil {
		return nil, err
	}
	parts := []any{}
	for _, arg := range argv {
		parts = append(parts, arg)
	}
	p := &ToolPinStore{stateDir: stateDir, pinDir: dir, pinFileID: hashParts(parts...)[:32], serverName: s.Name, command: (*redact.Redactor)(nil).RedactArgs(argv[0], argv), programPath: program}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// ProgramChanged reports whether the executable differs from the one that listed the tools last, and stores
// its current state.
func (p *ToolPinStore) ProgramChanged(ctx context.Context) (bool, error) {
	changed := false
	err := p.update(ctx, func(f *PinFile) error {
		now, err := readProgramState(p.programPath, f.Program)
		if err != nil {
			return err
		}
		changed = f.Program.SHA256 != "" && f.Program.SHA256 != now.SHA256
		f.Program = now
		return nil
	})
	return changed, err
}

// readProgramState returns the state of an executable. If path, size and modification time are
// those in previousState, it takes the SHA-256 from there and does not read the file again.
func readProgramState(path string, previousState PinnedServerExecutable) (PinnedServerExecutable, error) {
	info, err := os.Stat(path)
	if err != nil {
		return PinnedServerExecutable{}, err
	}
	if !info.Mode().IsRegular() {
		return PinnedServerExecutable{}, errors.New(path + " is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return PinnedServerExecutable{}, err
	}
	defer f.Close()
	now := PinnedServerExecutable{Path: path, Size: info.Size(), ModifiedUnixNano: info.ModTime().UnixNano(), SHA256: previousState.SHA256}
	if now == previousState {
		return now, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHashedProgramBytes)); err != nil {
		return PinnedServerExecutable{}, err
	}
	now.SHA256 = hex.EncodeToString(h.Sum(nil))
	return now, nil
}

// refresh reads the pin file again if it was replaced, since a person can have accepted a tool or set
// its type.
func (p *ToolPinStore) refresh() error {
	info, err := os.Stat(p.path())
	switch {
	case err != nil && p.fileInfo == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && p.fileInfo != nil && os.SameFile(info, p.fileInfo) && info.ModTime().Equal(p.fileInfo.ModTime()) && info.Size() == p.fileInfo.Size():
		return nil
	}
	return p.read()
}

// read reads the file again.
func (p *ToolPinStore) read() error {
	info, err := os.Stat(p.path())
	if err != nil { // the error is reported by read
		info = nil
	}
	f, err := readPins(p.path())
	if errors.Is(err, fs.ErrNotExist) {
		f, err = PinFile{Version: pinFileFormatVersion, PinFileID: p.pinFileID, ServerName: p.serverName, Command: p.command, Tools: map[string]ToolPin{}, ToolsAwaitingUserAcceptance: map[string]ToolAwaitingUserAcceptance{}}, nil
	}
	if err != nil {
		return err
	}
	if f.PinFileID != p.pinFileID {
		return &DamagedPinFileError{p.path(), errors.New("it contains the tools of another server")}
	}
	p.content, p.fileInfo = f, info
	return nil
}

func (p *ToolPinStore) path() string { return filepath.Join(p.pinDir, p.pinFileID+".json") }

// A DamagedPinFileError says that the pin file at Path cannot be used, because it cannot be read safely, is not
// valid, or belongs to another server. Err is the cause.
type DamagedPinFileError struct {
	Path string
	Err  error
}

func (e *DamagedPinFileError) Error() string {
	return fmt.Sprintf("the accepted tool definitions in %s are damaged: %v; delete the file, and accept the tools again", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *DamagedPinFileError) Unwrap() error { return e.Err }

func readPins(path string) (PinFile, error) {
	data, info, err := owner.ReadRegularFile(path, maxPinFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return PinFile{}, err
	}
	if err == nil {
		err = owner.CheckOwnerAndDeniedModeBits(info, owner.GroupOrOtherWriteBits)
	}
	var f PinFile
	if err == nil {
		err = json.Unmarshal(data, &f, json.RejectUnknownMembers(true))
	}
	if err == nil {
		sum := f.Checksum
		switch {
		case f.Version != pinFileFormatVersion:
			err = fmt.Errorf("this shield does not know its version %d", f.Version)
		case f.checksum() != sum:
			err = errors.New("its checksum is wrong")
		}
		f.Checksum = sum
	}
	if err != nil {
		return PinFile{}, &DamagedPinFileError{path, err}
	}
	return f, nil
}

// checksum returns the checksum of all fields except Checksum.
func (f *PinFile) checksum() string {
	f.Checksum = ""
	data, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return ""
	}
	if data, err = canonjson.Append(nil, data, 2*maxFrameJSONDepth); err != nil {
		return ""
	}
	return hashParts(data)
}

// update changes the pin file under a lock that all processes use.
func (p *ToolPinStore) update(ctx context.Context, change func(*PinFile) error) error {
	lock, err := flock.New(filepath.Join(p.pinDir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(ctx, maxWaitForPinLock); err != nil {
		return err
	}
	if err := p.read(); err != nil {
		return err
	}
	before, err := json.Marshal(&p.content, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := change(&p.content); err != nil {
		return err
	}
	p.content.Checksum = p.content.checksum()
	data, err := json.Marshal(&p.content, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		return err
	}
	if after, err := json.Marshal(&p.content, json.Deterministic(true)); err == nil && bytes.Equal(before, after) {
		return nil
	}
	return replaceFile(p.path(), data)
}

// replaceFile replaces a file atomically.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".pins-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// AllPins returns the pins of every server, sorted by name; damaged lists the files that cannot be
// read.
func AllPins(stateDir string) (all []PinFile, damaged []error, err error) {
	entries, err := os.ReadDir(PinFolder(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(all) == maxPinFiles {
			return nil, nil, fmt.Errorf("more than %d servers have accepted tools; in the folder mcp of the state folder, delete the files of servers that you no longer use", maxPinFiles)
		}
		f, err := readPins(filepath.Join(PinFolder(stateDir), e.Name()))
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		all = append(all, f)
	}
	sorted.SortStableBy(all, func(a, b PinFile) int {
		return cmp.Or(strings.Compare(a.ServerName, b.ServerName), strings.Compare(a.PinFileID, b.PinFileID))
	})
	return all, damaged, nil
}

// AcceptTools accepts tools of a server that wait for acceptance, and returns the names of the tools that it
// changed. Each element of toolNames is a tool name, or NAME@HASH for a definition whose hash begins with HASH;
// if toolNames is empty, all waiting tools are accepted. If actionTypeOfToolCalls is not "", it becomes the
// action type for calls of the tools, and toolNames can also name tools that are already accepted. If it is "",
// toolNames can also name accepted tools that the server no longer lists; these are forgotten.
func AcceptTools(ctx context.Context, stateDir string, f PinFile, toolNames []string, actionTypeOfToolCalls string) ([]string, error) {
	p := &ToolPinStore{stateDir: stateDir, pinDir: PinFolder(stateDir), pinFileID: f.PinFileID, serverName: f.ServerName, command: f.Command}
	var done []string
	err := p.update(ctx, func(f *PinFile) error {
		if len(toolNames) == 0 {
			toolNames = sorted.Keys(f.ToolsAwaitingUserAcceptance)
		}
		for _, name := range toolNames {
			name, hash, _ := strings.Cut(name, "@")
			w, waits := f.ToolsAwaitingUserAcceptance[name]
			pin, pinned := f.Tools[name]
			switch {
			case waits && !strings.HasPrefix(w.DefinitionHash, hash), !waits && pinned && !strings.HasPrefix(pin.DefinitionHash, hash):
				return fmt.Errorf("the definition of %s changed again; review it with: shield mcp tools diff %s", name, f.ServerName)
			case waits:
				pin.DefinitionHash, pin.Definition, pin.Gone = w.DefinitionHash, w.Definition, false
			case !pinned || actionTypeOfToolCalls == "" && !pin.Gone:
				return fmt.Errorf("the server %s has no new or changed tool %q to accept; 'shield mcp tools' lists its tools", f.ServerName, canonjson.Quote(name))
			case pin.Gone && actionTypeOfToolCalls == "":
				delete(f.Tools, name)
				done = append(done, name)
				continue
			}
			pin.ActionType = cmp.Or(actionTypeOfToolCalls, pin.ActionType)
			f.Tools[name] = pin
			delete(f.ToolsAwaitingUserAcceptance, name)
			done = append(done, name)
		}
		return nil
	})
	return done, err
}
