package x86

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPack(t *testing.T) {
	t.Parallel()
	code := slices.Repeat([]byte{0x90}, 64)
	for _, at := range []int{3, 20, 40} { // three calls of what stands at 10
		code[at] = 0xe8
		binary.LittleEndian.PutUint32(code[at+1:], uint32(10-at-1))
	}
	copy(code[50:], []byte{0x4c, 0x8d, 0x3d})
	binary.LittleEndian.PutUint32(code[53:], 0xffffffff) // of 52
	packed := bytes.Clone(code)
	ToAbsoluteOperands(packed)
	for at, want := range map[int]uint32{4: 10, 21: 10, 41: 10, 53: 52} {
		if got := binary.LittleEndian.Uint32(packed[at:]); got != want {
			t.Errorf("operand at %d: %d, want %d", at, got, want)
		}
	}
	ToRelativeOperands(packed)
	if !bytes.Equal(packed, code) {
		t.Errorf("%x, want %x", packed, code)
	}
}

// TestExact: any bytes are restored, also where operands overlap or lie at the limits.
func TestExact(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte{0xe8, 0x48, 0x4c, 0x8d, 0x8b, 0x05, 0x3d, 0, 1, 0xff, 0xfe}
	for range 20_000 {
		code := make([]byte, random.IntN(40))
		for i := range code {
			code[i] = alphabet[random.IntN(len(alphabet))]
		}
		got := bytes.Clone(code)
		ToAbsoluteOperands(got)
		ToRelativeOperands(got)
		if !bytes.Equal(got, code) {
			t.Fatalf("%x becomes %x", code, got)
		}
	}
}

func FuzzExact(f *testing.F) {
	f.Add([]byte{0xe8, 0, 0, 0, 0, 0xe8, 0xff, 0xff, 0xff, 0xff, 0x48, 0x8d, 5, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, code []byte) {
		got := bytes.Clone(code)
		ToAbsoluteOperands(got)
		ToRelativeOperands(got)
		if !bytes.Equal(got, code) {
			t.Fatalf("%x becomes %x", code, got)
		}
	})
}
