package classify

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestFields holds that messages are read as the library for protocol buffers writes
// them, and that nothing is read of what is cut off at any byte.
func TestFields(t *testing.T) {
	t.Parallel()
	b := varint(nil, 1, 0)
	b = varint(b, 2, math.MaxUint64)
	b = message(b, 3, nil)
	b = message(b, 1<<29-1, []byte("text"))
	b = protowire.AppendFixed32(protowire.AppendTag(b, 4, protowire.Fixed32Type), 7)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 5, protowire.Fixed64Type), 7)
	read := func(data []byte) (got []string, err error) {
		err = eachProtoField(data, func(number, n uint64, value []byte) error {
			got = append(got, fmt.Sprintf("%d %d %q %v", number, n, value, value == nil))
			return nil
		})
		return got, err
	}
	want := []string{`1 0 "" true`, `2 18446744073709551615 "" true`, `3 0 "" false`, `536870911 0 "text" false`, `4 0 "" true`, `5 0 "" true`}
	got, err := read(b)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	whole := 0
	for end := range b {
		got, err := read(b[:end])
		if err == nil {
			whole++
		}
		if len(got) > len(want) || err != nil && !errors.Is(err, errMalformedONNX) {
			t.Errorf("%d bytes: %q, %v", end, got, err)
		}
	}
	if whole != len(want) { // the empty message, and each field's end but the last
		t.Errorf("%d beginnings are whole messages, want %d", whole, len(want))
	}
}

func TestFieldsRefuses(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"the number 0":          "\x00\x00",
		"a number too large":    "\x80\x80\x80\x80\x10\x00",
		"a group":               "\x0b\x0c",
		"the end of a group":    "\x0c",
		"an unknown type":       "\x0e\x00",
		"a tag without end":     "\x80",
		"a tag of 11 bytes":     "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00",
		"a varint too large":    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
		"longer than there is":  "\x0a\x02a",
		"longer than any file":  "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
		"a length without end":  "\x0a\x80",
		"half of 32 bits":       "\x0d\x00\x00",
		"half of 64 bits":       "\x09\x00\x00\x00\x00",
		"a field and then junk": "\x08\x01\xff",
	} {
		if err := eachProtoField([]byte(data), func(uint64, uint64, []byte) error { return nil }); !errors.Is(err, errMalformedONNX) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stop := errors.New("stop")
	if err := eachProtoField([]byte("\x08\x01"), func(uint64, uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error became %v", err)
	}
}
