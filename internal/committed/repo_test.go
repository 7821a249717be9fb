//go:build unix

package committed

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A disk is the file system without links, as analysis gives it to a Reader.
type disk struct{}

func (disk) seen(name string) error {
	real, err := filepath.EvalSymlinks(name)
	if err == nil && real != name {
		return fs.ErrInvalid
	}
	return err
}

func (d disk) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

func (d disk) Open(name string) (*os.File, error) {
	if err := d.seen(name); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return os.Open(name)
}

func (d disk) Readlink(name string) (string, error) { return os.Readlink(name) }

func (d disk) ReadDir(name string, most int) ([]fs.DirEntry, error) {
	if err := d.seen(name); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(name)
	return entries[:min(len(entries), most)], err
}

// A fixture is a repository that a test writes by hand.
type fixture struct {
	t   *testing.T
	top string
}

// workspace returns a folder for repositories, without links in its path.
func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(dir)
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{t, workspace(t) + "/app"}
	f.write(".git/HEAD", "ref: refs/heads/main\n")
	return f
}

// committedFixture has a commit of a.txt, src/b.txt and src/sub/c.txt, all of
// which lie there.
func committedFixture(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	f.commit(map[string]string{"a.txt": "one\n", "src/b.txt": "two\n", "src/sub/c.txt": "three\n"})
	return f
}

func (f fixture) path(name string) string { return f.top + "/" + name }

func (f fixture) write(name, text string) {
	f.t.Helper()
	name = f.path(name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	_ = os.Remove(name) // objects are written once
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func nameOf(kind, text string) objectID {
	return sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(text), text))
}

func deflate(text string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func (f fixture) objectFile(name objectID) string {
	h := hex.EncodeToString(name[:])
	return ".git/objects/" + h[:2] + "/" + h[2:]
}

// object writes a loose object.
func (f fixture) object(kind, text string) objectID {
	f.t.Helper()
	name := nameOf(kind, text)
	f.write(f.objectFile(name), deflate(fmt.Sprintf("%s %d\x00%s", kind, len(text), text)))
	return name
}

// An item is an entry of a tree.
type item struct {
	mode, name string
	id         objectID
}

func treeText(items ...item) string {
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, it := range items {
		b.WriteString(it.mode + " " + it.name + "\x00" + string(it.id[:]))
	}
	return b.String()
}

// commitTree makes a tree the last commit.
func (f fixture) commitTree(tree objectID) {
	f.t.Helper()
	commit := f.object("commit", fmt.Sprintf("tree %x\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n", tree))
	f.write(".git/refs/heads/main", hex.EncodeToString(commit[:])+"\n")
}

// commit writes files and a commit that holds them.
func (f fixture) commit(files map[string]string) {
	f.t.Helper()
	for name, text := range files {
		f.write(name, text)
	}
	f.commitTree(f.tree(files))
}

func (f fixture) tree(files map[string]string) objectID {
	f.t.Helper()
	below := map[string]map[string]string{}
	var items []item
	for name, text := range files {
		if dir, rest, ok := strings.Cut(name, "/"); ok {
			if below[dir] == nil {
				below[dir] = map[string]string{}
			}
			below[dir][rest] = text
			continue
		}
		items = append(items, item{"100644", name, f.object("blob", text)})
	}
	for dir, files := range below {
		items = append(items, item{"40000", dir, f.tree(files)})
	}
	return f.object("tree", treeText(items...))
}

// keeps asks a new Reader.
func (f fixture) keeps(name string) bool {
	f.t.Helper()
	root := f.top
	inside := func(p string) bool { return p == root || strings.HasPrefix(p, root+"/") }
	r := New(disk{}, inside, inside)
	defer r.Close()
	return r.IsCommittedUnchanged(f.path(name))
}

// A packed is an object of a pack: its kind as a pack has it, what is before
// the compressed content, and the content.
type packed struct {
	name   objectID
	kind   byte
	before []byte
	text   string
	size   int // that it says; 0 means the right one
}

// pack writes objects into a pack with an index.
func (f fixture) pack(objects ...packed) {
	f.t.Helper()
	data := []byte("PACK\x00\x00\x00\x02")
	data = binary.BigEndian.AppendUint32(data, uint32(len(objects)))
	at := map[objectID]uint32{}
	for _, o := range objects {
		at[o.name] = uint32(len(data))
		size := len(o.text)
		if o.size != 0 {
			size = o.size
		}
		b := o.kind<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			data = append(data, b|0x80)
			b = byte(size & 0x7f)
		}
		data = append(data, b)
		data = append(data, o.before...)
		data = append(data, deflate(o.text)...)
	}
	data = append(data, make([]byte, 20)...)
	slices.SortFunc(objects, func(a, b packed) int { return bytes.Compare(a.name[:], b.name[:]) })
	index := []byte("\xfftOc\x00\x00\x00\x02")
	for first := range 256 {
		n := 0
		for _, o := range objects {
			if int(o.name[0]) <= first {
				n++
			}
		}
		index = binary.BigEndian.AppendUint32(index, uint32(n))
	}
	for _, o := range objects {
		index = append(index, o.name[:]...)
	}
	index = append(index, make([]byte, 4*len(objects))...)
	for _, o := range objects {
		index = binary.BigEndian.AppendUint32(index, at[o.name])
	}
	index = append(index, make([]byte, 40)...)
	f.write(".git/objects/pack/pack-1.pack", string(data))
	f.write(".git/objects/pack/pack-1.idx", string(index))
}

// delta returns a difference that copies all of its base and adds a text.
func delta(base, add string) string {
	size := func(n int) (b []byte) {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	b := append(size(len(base)), size(len(base)+len(add))...)
	b = append(b, 0x80|0x30, byte(len(base)), byte(len(base)>>8))
	return string(append(append(b, byte(len(add))), add...))
}
