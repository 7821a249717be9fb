package classify

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleaseFiles: what was read of a file is unmapped and can be read again; a changed page, a writable mapping and
// memory without a file keep what they hold.
func TestReleaseFiles(t *testing.T) {
	page := os.Getpagesize()
	content := bytes.Repeat([]byte("x"), 4*page)
	name := filepath.Join(t.TempDir(), "model.ort")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped := func(mode, flags int) []byte {
		fd := int(f.Fd())
		if flags&unix.MAP_ANONYMOUS != 0 {
			fd = -1
		}
		b, err := unix.Mmap(fd, 0, len(content), mode, flags)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		return b
	}
	const both = unix.PROT_READ | unix.PROT_WRITE
	constant := mapped(unix.PROT_READ, unix.MAP_PRIVATE)
	changed := mapped(both, unix.MAP_PRIVATE)
	changed[page] = 'y'
	if err := unix.Mprotect(changed, unix.PROT_READ); err != nil { // as the loader does after relocations
		t.Fatal(err)
	}
	writable := mapped(both, unix.MAP_PRIVATE)
	writable[0] = 'z'
	bare := mapped(both, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	bare[0] = 'a'
	if err := unix.Mprotect(bare, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, b := range constant {
		sum += int(b)
	}
	releaseResidentProgramFilePages()
	if !bytes.Equal(constant, content) || sum != 'x'*len(content) {
		t.Error("the content of a file has changed")
	}
	if changed[page] != 'y' || writable[0] != 'z' || bare[0] != 'a' {
		t.Errorf("changes are lost: %c %c %c", changed[page], writable[0], bare[0])
	}
}

func TestConstantFile(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][2]uintptr{
		"1000-3000 r-xp 00002000 fe:00 9978851    /lib/x.so":                        {0x1000, 0x2000},
		"1000-3000 r--p 00002000 fe:00 9978851    /lib/libonnxruntime.so (deleted)": {0x1000, 0x2000},
		"1000-3000 r--p 00002000 fe:00 9978851    /c/1-model.ort":                   {0x1000, 0x2000},
		"1000-3000 r-xp 00002000 fe:00 9978851    /lib/libm.so":                     {},
		"1000-3000 rw-p 00002000 fe:00 9978851    /lib/x.so":                        {},
		"1000-3000 r-xs 00002000 fe:00 9978851    /lib/x.so":                        {},
		"1000-3000 ---p 00002000 fe:00 9978851    /lib/x.so":                        {},
		"1000-3000 r-xp 00000000 00:00 0          [vdso]":                           {},
		"1000-3000 r-xp 00000000 00:00 0":                                           {},
		"3000-1000 r-xp 00002000 fe:00 9978851    /lib/x.so":                        {},
		"1000 r-xp 00002000 fe:00 9978851         /lib/x.so":                        {},
		"-1000-3000 r-xp 00002000 fe:00 9978851   /lib/x.so":                        {},
		"10000000000000000-3 r-xp 00002000 fe:00 9978851    /lib/x.so":              {},
	} {
		if start, size := readOnlyFileMapping(strings.Fields(line), "/lib/x.so"); start != want[0] || size != want[1] {
			t.Errorf("%s: %#x %#x", line, start, size)
		}
	}
}
