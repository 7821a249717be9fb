//go:build unix

package undo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"os"
)

// blockSize is the unit of copying: blocks of zeros are neither written nor hashed, so that a sparse
// file stays sparse.
const blockSize = 64 << 10

var zeros [blockSize]byte

// A blockDigest hashes the blocks of a file that are not zero, with their offsets.
type blockDigest struct{ hash.Hash }

func newDigest() blockDigest { return blockDigest{sha256.New()} }

func (d blockDigest) writeBlock(offset int64, b []byte) {
	var n [12]byte
	binary.BigEndian.PutUint64(n[:8], uint64(offset))
	binary.BigEndian.PutUint32(n[8:], uint32(len(b)))
	_, _ = d.Write(n[:]) // hash.Hash.Write never fails
	_, _ = d.Write(b)
}

func (d blockDigest) sum(size int64) string {
	d.writeBlock(size, nil)
	return "sha256:" + hex.EncodeToString(d.Sum(nil))
}

// eachBlock calls the function goOn for every block of a file outside of holes, and then the
// function use for the block if it is not all zero. It returns the size of the file.
func eachBlock(f *os.File, goOn func() error, use func(at int64, b []byte) error) (size int64, err error) {
	buf := make([]byte, blockSize)
	for at := int64(0); ; {
		next, err := nextDataOffset(f, at)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		at = next - next%blockSize
		n, err := f.ReadAt(buf, at)
		if n == 0 && err == io.EOF {
			break
		}
		if err != nil && err != io.EOF {
			return 0, err
		}
		if err := goOn(); err != nil {
			return 0, err
		}
		if !bytes.Equal(buf[:n], zeros[:n]) {
			if err := use(at, buf[:n]); err != nil {
				return 0, err
			}
		}
		at += int64(n)
		if n < blockSize {
			break
		}
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// copyFile copies a file's content into an empty file and returns its hash. It calls goOn between
// blocks and stops on its error.
func copyFile(to, from *os.File, goOn func() error) (string, error) {
	d := newDigest()
	size, err := eachBlock(from, goOn, func(at int64, b []byte) error {
		d.writeBlock(at, b)
		_, err := to.WriteAt(b, at)
		return err
	})
	if err == nil {
		err = to.Truncate(size)
	}
	return d.sum(size), err
}

func returnNilToKeepReading() error { return nil }

// hashFile returns the hash of a file's content.
func hashFile(f *os.File) (string, error) {
	d := newDigest()
	size, err := eachBlock(f, returnNilToKeepReading, func(at int64, b []byte) error { d.writeBlock(at, b); return nil })
	return d.sum(size), err
}
