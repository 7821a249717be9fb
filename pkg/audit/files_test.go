package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const small = 4 << 10 // bytes of a file: about eight entries

// filled returns a log of n entries in several files, and its head.
func filled(t *testing.T, n int) (path string, heads *memory) {
	t.Helper()
	path, heads = filepath.Join(t.TempDir(), "audit.jsonl"), new(memory)
	l := openSmall(t, path, heads)
	appendAll(t, l, n)
	return path, heads
}

func openSmall(t *testing.T, path string, heads HeadStore) *Log {
	t.Helper()
	l, err := Open(path, Options{Clock: clock, HeadStore: heads, MaxFileBytes: small})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func full(t *testing.T, path string) []string {
	t.Helper()
	files, err := listRotatedFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func verifyFile(t *testing.T, path string, kept *ChainHead) VerificationReport {
	t.Helper()
	r, err := VerifyFile(path, kept, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A log goes on in a new file when one is full, and all readers see one log.
func TestRotates(t *testing.T) {
	const n = 60
	path, heads := filled(t, n)
	files := append(full(t, path), path)
	if len(files) < 4 {
		t.Fatalf("%d files", len(files))
	}
	var whole []byte
	for _, name := range files {
		b := read(t, name)
		if len(b) > small || len(b) == 0 {
			t.Errorf("%s has %d bytes", name, len(b))
		}
		whole = append(whole, b...)
	}
	r := verifyFile(t, path, &heads.ChainHead)
	if !r.OK() || r.CompleteLineCount != n || r.Head != heads.ChainHead || r.FileCount != len(files) || r.FirstSeq != 1 {
		t.Errorf("%+v %v", r, r.Damage)
	}
	if h, err := ReadChainHead(path); h != heads.ChainHead || err != nil {
		t.Error(h, err)
	}
	all, err := OpenAllLogFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if got, err := io.ReadAll(all); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("read %d bytes, want %d: %v", len(got), len(whole), err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	for _, last := range []int{0, 1, 9, 25, n, n + 1} {
		var out bytes.Buffer
		if err := Tail(t.Context(), &out, path, last, false, 0); err != nil {
			t.Fatal(err)
		}
		if want := lines[max(n-last, 0):]; strings.TrimSpace(out.String()) != string(bytes.TrimSpace(bytes.Join(want, nil))) {
			t.Errorf("tail %d: %d lines", last, strings.Count(out.String(), "\n"))
		}
	}
}

// Several processes write one log, and each notices when another has begun a
// new file.
func TestRotatesBetweenLogs(t *testing.T) {
	path, heads := filepath.Join(t.TempDir(), "audit.jsonl"), new(memory)
	const each, logs = 40, 4
	var wg sync.WaitGroup
	for range logs {
		l := openSmall(t, path, heads)
		wg.Go(func() {
			for i := range each {
				if err := l.Append(t.Context(), entry(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r := verifyFile(t, path, &heads.ChainHead); !r.OK() || r.CompleteLineCount != each*logs {
		t.Errorf("%+v %v", r, r.Damage)
	}
}

// A process that dies between giving the full file its name and making the
// next leaves a log that goes on.
func TestRotationCutShort(t *testing.T) {
	path, heads := filled(t, 20)
	if err := os.Rename(path, rotatedFilePath(path, heads.Seq)); err != nil {
		t.Fatal(err)
	}
	if has, err := HasEntries(path); !has || err != nil {
		t.Error(has, err)
	}
	if r := verifyFile(t, path, &heads.ChainHead); !r.OK() || r.CompleteLineCount != 20 {
		t.Errorf("%+v %v", r, r.Damage)
	}
	if h, err := ReadChainHead(path); h != heads.ChainHead || err != nil {
		t.Error(h, err)
	}
	appendAll(t, openSmall(t, path, heads), 3)
	if r := verifyFile(t, path, &heads.ChainHead); !r.OK() || r.CompleteLineCount != 23 {
		t.Errorf("%+v %v", r, r.Damage)
	}
}

// Whatever is done to one of the files, verify finds it and names the file.
func TestVerifyFindsInFullFiles(t *testing.T) {
	edit := func(f func([]byte) []byte) func(*testing.T, []string) {
		return func(t *testing.T, files []string) { write(t, files[1], f(read(t, files[1]))) }
	}
	rename := func(t *testing.T, from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	cutLine := func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }
	for _, tt := range []struct {
		name  string
		spoil func(*testing.T, []string)
		how   []string
		file  int // whose name is told
	}{
		{"first removed", func(t *testing.T, f []string) { os.Remove(f[0]) }, []string{DamageKindRemoved}, 1},
		{"middle removed", func(t *testing.T, f []string) { os.Remove(f[1]) }, []string{DamageKindRemoved}, 2},
		{"newest full removed", func(t *testing.T, f []string) { os.Remove(f[len(f)-2]) }, []string{DamageKindRemoved}, -1},
		{"current removed", func(t *testing.T, f []string) { os.Remove(f[len(f)-1]) }, []string{DamageKindCutOff}, -2},
		{"line changed", edit(func(b []byte) []byte { return bytes.Replace(b, []byte("echo"), []byte("ecHo"), 1) }), []string{DamageKindChanged}, 1},
		{"last line changed", edit(func(b []byte) []byte {
			i := bytes.LastIndex(b, []byte("echo"))
			b[i] = 'E'
			return b
		}), []string{DamageKindChanged}, 1},
		{"last line cut", edit(cutLine), []string{DamageKindRemoved}, 2},
		{"end torn", edit(func(b []byte) []byte { return b[:len(b)-9] }), []string{DamageKindChanged, DamageKindInserted}, 1},
		{"line feed cut", edit(func(b []byte) []byte { return b[:len(b)-1] }), []string{DamageKindChanged, DamageKindInserted}, 1},
		{"emptied", edit(func([]byte) []byte { return nil }), []string{DamageKindRemoved}, 2},
		{"line added", edit(func(b []byte) []byte { return append(b, "{}\n"...) }), []string{DamageKindInserted}, 1},
		{"swapped", func(t *testing.T, f []string) {
			rename(t, f[0], f[0]+"x")
			rename(t, f[1], f[0])
			rename(t, f[0]+"x", f[1])
		}, []string{DamageKindReordered, DamageKindRemoved}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, heads := filled(t, 60)
			files := append(full(t, path), path)
			tt.spoil(t, files)
			r := verifyFile(t, path, &heads.ChainHead)
			if r.OK() || !slices.Contains(tt.how, r.Damage.Kind) {
				t.Fatalf("%+v %v, want %v", r, r.Damage, tt.how)
			}
			if want := files[(tt.file+len(files))%len(files)]; r.Damage.File != want {
				t.Errorf("in %s, want %s", r.Damage.File, want)
			}
			// No verdict is given on top of a log that lost its end.
			if err := openSmall(t, path, heads).Append(t.Context(), entry(1)); tt.how[0] == DamageKindCutOff && !errors.Is(err, ErrLogTruncated) {
				t.Errorf("appended: %v", err)
			}
		})
	}
}

// A file that is where a full one is to go is not written over.
func TestRotationOverwritesNothing(t *testing.T) {
	path, heads := filepath.Join(t.TempDir(), "audit.jsonl"), new(memory)
	l := openSmall(t, path, heads)
	for n := uint64(1); n < 20; n++ {
		write(t, rotatedFilePath(path, n), []byte("mine"))
	}
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		err = l.Append(t.Context(), entry(i))
	}
	if err == nil {
		t.Error("20 entries fit into one file")
	}
	for _, name := range full(t, path) {
		if string(read(t, name)) != "mine" {
			t.Errorf("%s was written over", name)
		}
	}
}

// A log that was damaged and put aside goes on in the middle of its files.
func TestRepairAmongFullFiles(t *testing.T) {
	path, heads := filled(t, 60)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(t.Context(), path, Options{Clock: clock, HeadStore: heads, MaxFileBytes: small}); err != nil {
		t.Fatal(err)
	}
	appendAll(t, openSmall(t, path, heads), 30)
	if r := verifyGaps(t, path, &heads.ChainHead, heads.gaps); !r.OK() || r.LogRecoveryEntryCount != 1 {
		t.Errorf("%+v %v", r, r.Damage)
	}
}

// Without a head the report says what cannot be known, and a log that is not
// there is no whole one.
func TestVerifyCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	lines, head := chained(5)
	for cut := 1; cut <= len(lines); cut++ {
		write(t, path, []byte(strings.Join(lines[:cut], "")))
		r := verifyFile(t, path, nil)
		if !r.OK() || !strings.Contains(r.UnverifiableEntriesNote, fmt.Sprintf("entry %d, the last one here", cut)) {
			t.Errorf("%d lines: %+v", cut, r)
		}
	}
	if r := verifyFile(t, path, &head); !r.OK() || r.UnverifiableEntriesNote != "" {
		t.Errorf("with the head: %+v", r)
	}
	for _, kept := range []*ChainHead{nil, {}} {
		if _, err := VerifyFile(path+"x", kept, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path+"x") {
			t.Errorf("an absent log verifies: %v", err)
		}
	}
}

// A log that others could have written, or that is not a file, is refused.
func TestRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"all write": 0o666, "group writes": 0o620, "all read": 0o604} {
		path := filepath.Join(dir, name)
		write(t, path, nil)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := open(t, path, nil).Append(t.Context(), entry(1)); !errors.Is(err, ErrLogExposed) || !strings.Contains(err.Error(), "chmod 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(dir, "group reads")
	write(t, path, nil)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path, nil).Append(t.Context(), entry(1)); err != nil {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path, nil).Append(t.Context(), entry(1)); !errors.Is(err, ErrLogExposed) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("of another user: %v", err)
	}
}

// A lock that another process keeps ends in an error that names it.
func TestHeldLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	holder := open(t, path, nil)
	appendAll(t, holder, 1)
	if err := holder.lock.Lock(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, Options{Clock: clock, LockWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if err := l.Append(t.Context(), entry(2)); !errors.Is(err, ErrLogBusy) || !strings.Contains(err.Error(), path+".lock") {
			t.Errorf("%v", err)
		}
	}
	if err := holder.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for err = ErrLogBusy; errors.Is(err, ErrLogBusy); { // a busy machine may need more than the wait
		err = l.Append(t.Context(), entry(3))
	}
	if err != nil {
		t.Error(err)
	}
}

// Following a log loses nothing when it goes on in new files.
func TestTailFollowsNewFiles(t *testing.T) {
	path, heads := filepath.Join(t.TempDir(), "audit.jsonl"), new(memory)
	l := openSmall(t, path, heads)
	appendAll(t, l, 1)
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(Tail(t.Context(), w, path, 1000, true, time.Millisecond)) }()
	const n = 100
	var appending sync.WaitGroup
	defer appending.Wait()
	appending.Go(func() {
		for i := range n - 1 {
			if err := l.Append(t.Context(), entry(i)); err != nil {
				t.Error(err)
			}
		}
	})
	lines := newLineReader(r)
	for i := range n {
		line, err := lines.nextLine()
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if seq, _, err := parseChainFields(line); err != nil || seq != uint64(i+1) {
			t.Fatalf("line %d is entry %d: %v", i+1, seq, err)
		}
	}
	if len(full(t, path)) < 4 {
		t.Error("the log did not go on in new files")
	}
}
