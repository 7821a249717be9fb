package committed

import (
	"encoding/binary"
	"io"
	"path"
	"strings"
)

// A WorkTree is the working tree of a git repository.
type WorkTree struct {
	Top          string // the folder that contains .git
	GitDir       string // the folder with HEAD and the index of this working tree
	GitCommonDir string // folder of objects and branches
	Files        []TrackedFile
}

// A TrackedFile is a file in the index of a repository.
type TrackedFile struct {
	Path  string // absolute
	Size  uint32 // the lower 32 bits of the size
	MTime int64  // ns
	Racy  bool   // size and time cannot prove that the file is unchanged (modified at the time of indexing)
}

const maxIndexBytes = 32 << 20 // bytes

// ReadWorkTree returns the working tree of a folder, and its index. ok is false if there is none that can be
// read.
func (r *LastCommitReader) ReadWorkTree(dir string) (t *WorkTree, ok bool) {
	repo := r.findRepository(dir)
	if repo == nil {
		return nil, false
	}
	t = &WorkTree{Top: repo.workingTreeFolder, GitDir: repo.gitDir, GitCommonDir: repo.gitCommonDir}
	f, err := r.fs.Open(repo.gitDir + "/index")
	if isFileNotExistError(err) {
		return t, true
	}
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > maxIndexBytes {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIndexBytes))
	if err != nil {
		return nil, false
	}
	t.Files, ok = parseGitIndex(string(data), repo.workingTreeFolder, info.ModTime().UnixNano())
	return t, ok
}

// parseGitIndex parses a git index file, in the format that gitformat-index(5) describes.
// writtenUnixNano is the time when the file was written.
func parseGitIndex(data, top string, writtenUnixNano int64) (out []TrackedFile, ok bool) {
	const head, fixed = 12, 62 // bytes of the file header, and of an entry before its name
	if len(data) < head+len(objectID{}) || data[:4] != "DIRC" {
		return nil, false
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32([]byte(data[at : at+4])) }
	version, count := number(4), number(8)
	if version < 2 || version > 4 || int64(count)*fixed > int64(len(data)) {
		return nil, false
	}
	body, last := len(data)-len(objectID{}), ""
	at := head
	for range count {
		if at+fixed > body {
			return nil, false
		}
		e := TrackedFile{Size: number(at + 36), MTime: int64(number(at+8))*1e9 + int64(number(at+12))}
		flags := uint16(number(at+58) & 0xffff) // after the object ID
		e.Racy = e.MTime >= writtenUnixNano
		name := at + fixed
		if version >= 3 && flags&0x4000 != 0 {
			name += 2
		}
		if version == 4 { // version 4 stores only the changed end of the previous name
			drop, n := parsePackVarint(data[min(name, body):body])
			end := -1
			if n > 0 {
				end = strings.IndexByte(data[name+n:body], 0)
			}
			if end < 0 || drop > uint64(len(last)) {
				return nil, false
			}
			last = last[:uint64(len(last))-drop] + data[name+n:name+n+end]
			at = name + n + end + 1
		} else {
			end := strings.IndexByte(data[min(name, body):body], 0)
			if end < 0 {
				return nil, false
			}
			last = data[name : name+end]
			at += (name + end - at + 8) &^ 7
		}
		if last == "" || last[0] == '/' || path.Clean(last) != last || strings.HasPrefix(last, "../") {
			return nil, false
		}
		e.Path = strings.TrimSuffix(top, "/") + "/" + last
		out = append(out, e)
	}
	return out, true
}

// parsePackVarint parses a variable-length number as in packs, and returns its length; 0 if invalid.
func parsePackVarint(data string) (v uint64, n int) {
	for n < len(data) && n < 9 {
		b := data[n]
		n++
		v |= uint64(b & 0x7f)
		if b&0x80 == 0 {
			return v, n
		}
		v = (v + 1) << 7
	}
	return 0, 0
}
