package committed

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the name of an object of git is its SHA-1
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// An objectID is an object ID, a SHA-1 hash. Repositories with other hashes are not supported.
type objectID [sha1.Size]byte

var errObjectLimit = errors.New("the git object is too large or too deep")

// isFileNotExistError reports whether an error proves that a file does not exist.
func isFileNotExistError(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// newObjectHash returns a SHA-1 hash into which the header of a git object (kind and size in bytes) is already
// written.
func newObjectHash(kind string, size int64) hash.Hash {
	h := sha1.New() //nolint:gosec // as git has it
	fmt.Fprintf(h, "%s %d\x00", kind, size)
	return h
}

// readObject returns an object whose content matches its ID.
func (repo *repository) readObject(want objectID) (kind string, data []byte, ok bool) {
	kind, data, err := repo.readLooseObject(want)
	if isFileNotExistError(err) {
		kind, data, err = repo.readPackedObject(want)
	}
	if err != nil || !repo.reader.trySpendByteBudget(int64(len(data))) {
		return "", nil, false
	}
	h := newObjectHash(kind, int64(len(data)))
	h.Write(data)
	return kind, data, objectID(h.Sum(nil)) == want
}

// blobEqualsText reports whether a blob exists and contains exactly a text.
func (repo *repository) blobEqualsText(blobID objectID, text string) bool {
	kind, data, ok := repo.readObject(blobID)
	return ok && kind == "blob" && string(data) == text
}

// readLooseObject reads an object that is stored in its own file.
func (repo *repository) readLooseObject(want objectID) (kind string, data []byte, err error) {
	if !repo.reader.trySpendFileAccessBudget() {
		return "", nil, errObjectLimit
	}
	name := hex.EncodeToString(want[:])
	f, err := repo.reader.fs.Open(repo.gitCommonDir + "/objects/" + name[:2] + "/" + name[2:])
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return "", nil, err
	}
	in := bufio.NewReaderSize(z, 64)
	head, err := in.ReadSlice(0)
	if err != nil {
		return "", nil, err
	}
	kind, digits, _ := strings.Cut(string(head[:len(head)-1]), " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return "", nil, err
	}
	data, err = repo.reader.readExactly(in, size)
	return kind, data, err
}

// inflate decompresses a zlib stream that must have the given size.
func (r *LastCommitReader) inflate(in io.Reader, size int64) ([]byte, error) {
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	return r.readExactly(z, size)
}

// readExactly reads a stream that must end after size bytes.
func (r *LastCommitReader) readExactly(in io.Reader, size int64) ([]byte, error) {
	if !r.trySpendByteBudget(size) {
		return nil, errObjectLimit
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, err
	}
	var more [1]byte
	if n, err := io.ReadFull(in, more[:]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errors.New("the git object is longer than its header says")
	}
	return data, nil
}

// A treeEntryKind says what a tree entry is, such as a file, a folder or a symbolic link.
type treeEntryKind uint8

const (
	otherEntry treeEntryKind = iota
	regularEntry
	symlinkEntry
	folderEntry
	submoduleEntry
)

// A treeEntry is an entry of a tree object.
type treeEntry struct {
	kind treeEntryKind
	id   objectID
}

var entryKindsByMode = map[string]treeEntryKind{"100644": regularEntry, "100755": regularEntry, "100664": regularEntry, "120000": symlinkEntry, "40000": folderEntry, "160000": submoduleEntry}

// readTree returns the entries of a tree object by name.
func (repo *repository) readTree(want objectID) (map[string]treeEntry, bool) {
	if t, ok := repo.trees[want]; ok {
		return t, true
	}
	kind, data, ok := repo.readObject(want)
	if !ok || kind != "tree" {
		return nil, false
	}
	out := map[string]treeEntry{}
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte{' '})
		if !ok {
			return nil, false
		}
		name, rest, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(rest) < len(objectID{}) {
			return nil, false
		}
		e := treeEntry{kind: entryKindsByMode[string(mode)], id: objectID(rest[:len(objectID{})])}
		if _, twice := out[string(name)]; twice {
			e.kind = otherEntry
		}
		out[string(name)], data = e, rest[len(objectID{}):]
	}
	repo.trees[want] = out
	return out, true
}

// findTreeEntry returns the entry of a path below the top of the working tree.
func (repo *repository) findTreeEntry(rel string) (treeEntry, bool) {
	e := treeEntry{kind: folderEntry, id: repo.rootTree}
	for name := range strings.SplitSeq(rel, "/") {
		if e.kind != folderEntry || isDotGitName(name) {
			return treeEntry{}, false
		}
		tree, ok := repo.readTree(e.id)
		if !ok {
			return treeEntry{}, false
		}
		if e, ok = tree[name]; !ok {
			return treeEntry{}, false
		}
	}
	return e, true
}
