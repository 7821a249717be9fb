package committed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// A packFile is a file of objects, with its index.
type packFile struct {
	index, data   *os.File
	dataFileBytes int64 // size of the pack file in bytes
	fanout        [256]uint32
}

var errPack = errors.New("the git pack file is damaged")

const (
	fanoutOffset    = 8                    // offset in the index of the counts by first byte (fanout table)
	objectIDsOffset = fanoutOffset + 256*4 // offset of the object IDs
	objectIDBytes   = int64(len(objectID{}))
	// A pack index has an ID, a 4-byte CRC and a 4-byte offset for each object. Then come the 8-byte offsets,
	// and the hashes of the pack and of the index.
	indexBytesPerObject = objectIDBytes + 4 + 4
)

func (repo *repository) closePacks() {
	if repo == nil {
		return
	}
	for _, p := range repo.packs {
		p.index.Close()
		p.data.Close()
	}
}

// openPacks opens the packs. Packs that cannot be read are skipped.
func (repo *repository) openPacks() {
	if repo.packsOpened {
		return
	}
	repo.packsOpened = true
	dir := repo.gitCommonDir + "/objects/pack"
	names, err := repo.reader.fs.ReadDir(dir, 8*maxPacks)
	if err != nil {
		return
	}
	for _, n := range names {
		base, ok := strings.CutSuffix(n.Name(), ".idx")
		if !ok || len(repo.packs) == maxPacks || !repo.reader.trySpendFileAccessBudget() {
			continue
		}
		if p := openPack(repo.reader.fs, dir+"/"+base); p != nil {
			repo.packs = append(repo.packs, p)
		}
	}
}

// openPack opens a pack and its index; it returns nil if they are invalid.
func openPack(files FS, base string) *packFile {
	index, err := files.Open(base + ".idx")
	if err != nil {
		return nil
	}
	data, err := files.Open(base + ".pack")
	if err != nil {
		index.Close()
		return nil
	}
	p := &packFile{index: index, data: data}
	if !p.checkHeaders() {
		index.Close()
		data.Close()
		return nil
	}
	return p
}

// checkHeaders reads and validates the headers of the pack file and of its index file.
func (p *packFile) checkHeaders() bool {
	var head [objectIDsOffset]byte
	infos := [2]fs.FileInfo{}
	for i, f := range [...]*os.File{p.index, p.data} {
		info, err := f.Stat()
		if err != nil {
			return false
		}
		infos[i] = info
	}
	if _, err := p.index.ReadAt(head[:], 0); err != nil || !bytes.HasPrefix(head[:], []byte("\xfftOc\x00\x00\x00\x02")) {
		return false
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[fanoutOffset+4*i:])
		if i > 0 && p.fanout[i] < p.fanout[i-1] {
			return false
		}
	}
	if infos[0].Size() < objectIDsOffset+int64(p.fanout[255])*indexBytesPerObject+2*objectIDBytes {
		return false
	}
	p.dataFileBytes = infos[1].Size()
	var kind [8]byte
	_, err := p.data.ReadAt(kind[:], 0)
	return err == nil && bytes.HasPrefix(kind[:], []byte("PACK\x00\x00\x00")) && (kind[7] == 2 || kind[7] == 3)
}

// findObject returns the offset of an object in the pack; ok is false if it is not there.
func (p *packFile) findObject(r *LastCommitReader, want objectID) (at int64, ok bool) {
	low, high := uint32(0), p.fanout[want[0]]
	if want[0] > 0 {
		low = p.fanout[want[0]-1]
	}
	for low < high {
		mid := low + (high-low)/2
		var name objectID
		if !r.trySpendFileAccessBudget() {
			return 0, false
		}
		if _, err := p.index.ReadAt(name[:], objectIDsOffset+int64(mid)*objectIDBytes); err != nil {
			return 0, false
		}
		switch bytes.Compare(name[:], want[:]) {
		case 0:
			return p.objectOffset(mid)
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return 0, false
}

// objectOffset returns the offset of the object with an index number.
func (p *packFile) objectOffset(number uint32) (int64, bool) {
	count := int64(p.fanout[255])
	var b [8]byte
	if _, err := p.index.ReadAt(b[:4], objectIDsOffset+count*(objectIDBytes+4)+int64(number)*4); err != nil {
		return 0, false
	}
	short := binary.BigEndian.Uint32(b[:4])
	if short&(1<<31) == 0 {
		return int64(short), true
	}
	if _, err := p.index.ReadAt(b[:], objectIDsOffset+count*indexBytesPerObject+int64(short&^(1<<31))*8); err != nil {
		return 0, false
	}
	long := binary.BigEndian.Uint64(b[:])
	return int64(long), long < 1<<62
}

// readPackedObject reads an object from the packs.
func (repo *repository) readPackedObject(want objectID) (kind string, data []byte, err error) {
	repo.openPacks()
	for _, p := range repo.packs {
		if at, ok := p.findObject(repo.reader, want); ok {
			return p.readObject(repo.reader, at)
		}
	}
	return "", nil, fs.ErrNotExist
}

var packKinds = [...]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// Types of delta objects.
const (
	packObjectTypeOffsetDelta = 6 // relative to an earlier object in the pack
	packObjectTypeRefDelta    = 7 // relative to an object ID
)

// readObject reads the object at an offset, and resolves its delta chain.
func (p *packFile) readObject(r *LastCommitReader, at int64) (kind string, data []byte, err error) {
	var deltas [][]byte
	for len(deltas) <= maxDeltaChain {
		if at < 0 || at >= p.dataFileBytes || !r.trySpendFileAccessBudget() {
			return "", nil, errPack
		}
		in := bufio.NewReader(io.NewSectionReader(p.data, at, p.dataFileBytes-at))
		number, size, err := readObjectHead(in)
		if err != nil {
			return "", nil, err
		}
		next := at
		switch number {
		case packObjectTypeOffsetDelta:
			back, err := readDeltaBaseDistance(in)
			if err != nil || back <= 0 || back > at {
				return "", nil, errPack
			}
			next = at - back
		case packObjectTypeRefDelta:
			var base objectID
			if _, err := io.ReadFull(in, base[:]); err != nil {
				return "", nil, err
			}
			var ok bool
			if next, ok = p.findObject(r, base); !ok {
				return "", nil, errPack
			}
		case 1, 2, 3, 4:
		default:
			return "", nil, errPack
		}
		if data, err = r.inflate(in, size); err != nil {
			return "", nil, err
		}
		if next == at && number < packObjectTypeOffsetDelta {
			for i := len(deltas) - 1; i >= 0; i-- {
				if data, err = r.applyDelta(data, deltas[i]); err != nil {
					return "", nil, err
				}
			}
			return packKinds[number], data, nil
		}
		deltas, at = append(deltas, data), next
	}
	return "", nil, errObjectLimit
}

// readObjectHead reads the type and size of an object in a pack.
func readObjectHead(in io.ByteReader) (kind byte, size int64, err error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size = b>>4&7, int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = in.ReadByte(); err != nil || shift > 32 {
			return 0, 0, errPack
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// readDeltaBaseDistance reads how many bytes before a delta its base starts.
func readDeltaBaseDistance(in io.ByteReader) (int64, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	n := int64(b & 0x7f)
	for i := 0; b&0x80 != 0; i++ {
		if b, err = in.ReadByte(); err != nil || i > 6 {
			return 0, errPack
		}
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, nil
}

// applyDelta returns the result of applying a delta to its base.
func (r *LastCommitReader) applyDelta(base, delta []byte) ([]byte, error) {
	was, delta, ok1 := parseDeltaSize(delta)
	size, delta, ok2 := parseDeltaSize(delta)
	if !ok1 || !ok2 || was != int64(len(base)) || !r.trySpendByteBudget(size) {
		return nil, errPack
	}
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var piece []byte
		if op&0x80 == 0 {
			n := int(op)
			if n == 0 || n > len(delta) {
				return nil, errPack
			}
			piece, delta = delta[:n], delta[n:]
		} else {
			var from, n int64
			for i := range 7 {
				if op&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, errPack
				}
				if i < 4 {
					from |= int64(delta[0]) << (8 * i)
				} else {
					n |= int64(delta[0]) << (8 * (i - 4))
				}
				delta = delta[1:]
			}
			if n == 0 {
				n = 1 << 16
			}
			if from+n > int64(len(base)) {
				return nil, errPack
			}
			piece = base[from : from+n]
		}
		if int64(len(out)+len(piece)) > size {
			return nil, errPack
		}
		out = append(out, piece...)
	}
	if int64(len(out)) != size {
		return nil, errPack
	}
	return out, nil
}

// parseDeltaSize reads a size at the start of a delta.
func parseDeltaSize(b []byte) (n int64, rest []byte, ok bool) {
	for i := range min(len(b), 6) {
		n |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
