package allocated

import "testing"

var kept []byte

func TestBytes(t *testing.T) {
	if got := Bytes(func() { kept = make([]byte, 1<<20) }); got < 1<<20 || got > 2<<20 {
		t.Errorf("a megabyte counts as %d bytes", got)
	}
	if got := Bytes(func() {}); got > 64<<10 {
		t.Errorf("nothing counts as %d bytes", got)
	}
}
