//go:build unix

package cmd

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A stateFolder is one with an audit log of several files, of which one was put aside.
type stateFolder struct {
	t        *testing.T
	w        Environment
	dir, log string
	full     []string // the log's full files
	aside    string   // the one that was put aside
	now      folderCopy
	earlier  folderCopy // twelve entries ago
	before   folderCopy // before one was put aside
}

// A folderCopy is the content of the files of a folder, by name.
type folderCopy map[string][]byte

func (s *stateFolder) copied() folderCopy {
	out := folderCopy{}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		out[e.Name()] = s.read(filepath.Join(s.dir, e.Name()))
	}
	return out
}

func (s *stateFolder) put(c folderCopy) {
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for name, data := range c {
		s.write(filepath.Join(s.dir, name), data)
	}
}

func (s *stateFolder) read(file string) []byte {
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func (s *stateFolder) write(file string, data []byte) {
	if err := os.WriteFile(file, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stateFolder) path(name string) string { return filepath.Join(s.dir, name) }

// judge judges n actions, and reports whether all are allowed.
func (s *stateFolder) judge(n int) bool {
	line := `{"type":"read_file","payload":{"path":"` + strings.Repeat("a/", 900) + `b"}}` + "\n"
	_, out, _ := run(s.t, s.w, strings.Repeat(line, n), "run", "--until", "classify", "--policy", "offline")
	return strings.Count(out, `"decision":"ALLOW"`) == n
}

// noticed reports whether audit verify says that something is wrong, or the next verdict
// blocks.
func (s *stateFolder) noticed() bool {
	status, out, _ := run(s.t, s.w, "", "audit", "verify")
	return status != 0 || strings.Contains(out, "does not know") || strings.Contains(out, "missing") || !s.judge(1)
}

func newStateFolder(t *testing.T) *stateFolder {
	t.Helper()
	w := newWorld(t)
	w.Getenv = withSettings(t, "classifier: {model: none}\naudit: {max_bytes: 65536}\n")
	s := &stateFolder{t: t, w: w, dir: filepath.Join(w.Home, ".local", "state", "shield")}
	s.log = s.path("audit.jsonl")
	if !s.judge(230) {
		t.Fatal("not allowed")
	}
	s.before = s.copied()
	s.write(s.log, bytes.Replace(s.read(s.log), []byte("ALLOW"), []byte("BLOCK"), 1))
	whole := s.read(s.log)
	s.write(s.log, whole[:len(whole)-40])
	if status, out, errs := run(t, w, "", "doctor", "--repair-audit"); !strings.Contains(out+errs, ".damaged-") {
		t.Fatal(status, out, errs)
	}
	if !s.judge(4) {
		t.Fatal("not allowed after the repair")
	}
	s.earlier = s.copied()
	if !s.judge(12) {
		t.Fatal("not allowed after the repair")
	}
	s.now = s.copied()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range s.now {
			if !yield(name) {
				return
			}
		}
	}) {
		switch {
		case regexp.MustCompile(`^audit\.jsonl\.\d+$`).MatchString(name):
			s.full = append(s.full, s.path(name))
		case strings.Contains(name, ".damaged-"):
			s.aside = s.path(name)
		}
	}
	if len(s.full) < 3 || s.aside == "" {
		t.Fatalf("full files %q, put aside %q", s.full, s.aside)
	}
	return s
}

// edit changes a file.
func (s *stateFolder) edit(file string, change func([]byte) []byte) {
	s.write(file, change(slices.Clone(s.read(file))))
}

// lines changes the lines of a file.
func (s *stateFolder) lines(file string, change func([]string) []string) {
	s.edit(file, func(b []byte) []byte {
		return []byte(strings.Join(change(strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")), ""))
	})
}

func (s *stateFolder) ok(err error) {
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stateFolder) rename(from, to string) { s.ok(os.Rename(from, to)) }

// linked puts a symbolic link in the place of a file.
func (s *stateFolder) linked(file string) {
	s.rename(file, file+"x")
	s.ok(os.Symlink(file+"x", file))
}

// twice gives a file a second name outside the folder.
func (s *stateFolder) twice(file string) {
	s.ok(os.Link(file, filepath.Join(s.t.TempDir(), "x")))
}

func (s *stateFolder) folder(file string) {
	s.ok(os.Remove(file))
	s.ok(os.Mkdir(file, 0o700))
}

var prevHash = regexp.MustCompile(`"prev":"[0-9a-f]*"`)

// chained gives lines the hashes that fit, from the second on.
func chained(lines []string) []string {
	for i := 1; i < len(lines); i++ {
		sum := sha256.Sum256([]byte(strings.TrimSuffix(lines[i-1], "\n")))
		lines[i] = prevHash.ReplaceAllString(lines[i], `"prev":"`+hex.EncodeToString(sum[:])+`"`)
	}
	return lines
}

// headFile returns the content of log.head for the last line of the log, with the
// authentication of a key, nil for none.
func (s *stateFolder) headFile(key []byte) []byte {
	lines := strings.Split(strings.TrimSpace(string(s.read(s.log))), "\n")
	last := lines[len(lines)-1]
	var seq uint64
	if _, err := fmt.Sscanf(last, `{"seq":%d,`, &seq); err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(last))
	order := binary.ByteOrder(binary.LittleEndian)
	if now := s.now["log.head"]; order.Uint64(now[4:]) > 1<<32 {
		order = binary.BigEndian
	}
	b := make([]byte, 128)
	order.PutUint64(b[4:], seq)
	copy(b[12:96], hex.EncodeToString(sum[:]))
	if key != nil {
		mac := hmac.New(sha256.New, key)
		mac.Write(b[4:96])
		copy(b[96:], mac.Sum(nil))
	}
	order.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

// TestTampering holds that what is done to the log, its head, the state file, the seal key or
// what was put aside is noticed by audit verify, or the next verdict blocks. What is known not
// to be noticed is in SECURITY.md.
func TestTampering(t *testing.T) {
	s := newStateFolder(t)
	log, head, db, key := s.log, s.path("log.head"), s.path("state.db"), s.path("seal.key")
	file := s.full[1]
	line := func(i int, old, repl string) func([]string) []string {
		return func(l []string) []string {
			i := (i + len(l)) % len(l)
			l[i] = strings.Replace(l[i], old, repl, 1)
			return l
		}
	}
	remove := func(from, n int) func([]string) []string {
		return func(l []string) []string {
			from := (from + len(l)) % len(l)
			return slices.Delete(l, from, min(from+n, len(l)))
		}
	}
	cut := func(n int) { s.lines(log, func(l []string) []string { return l[:len(l)-n] }) }
	kinds := []struct {
		name string
		do   func()
	}{
		// the current file of the log
		{"first entry changed", func() { s.lines(log, line(0, "recovery", "verdict")) }},
		{"entry changed", func() { s.lines(log, line(3, "ALLOW", "BLOCK")) }},
		{"last entry changed", func() { s.lines(log, line(-1, "ALLOW", "BLOCK")) }},
		{"number of an entry changed", func() { s.lines(log, line(3, `{"seq":`, `{"seq":1`)) }},
		{"hash in an entry changed", func() { s.lines(log, line(3, `"prev":"`, `"prev":"0`)) }},
		{"time of an entry changed", func() { s.lines(log, line(3, "2026-01-02", "2026-01-03")) }},
		{"key added to an entry", func() { s.lines(log, line(3, `"tier":0`, `"tier":0,"tier":0`)) }},
		{"entry emptied", func() { s.lines(log, func(l []string) []string { l[3] = "\n"; return l }) }},
		{"space before an entry", func() { s.lines(log, func(l []string) []string { l[3] = " " + l[3]; return l }) }},
		{"carriage return", func() { s.lines(log, line(3, "\n", "\r\n")) }},
		{"first entry removed", func() { s.lines(log, remove(0, 1)) }},
		{"entry removed", func() { s.lines(log, remove(3, 1)) }},
		{"five entries removed", func() { s.lines(log, remove(3, 5)) }},
		{"last entry removed", func() { s.lines(log, remove(-1, 1)) }},
		{"last five entries removed", func() { s.lines(log, remove(-5, 5)) }},
		{"emptied", func() { s.write(log, nil) }},
		{"removed", func() { s.ok(os.Remove(log)) }},
		{"entry inserted", func() {
			s.lines(log, func(l []string) []string { return slices.Insert(l, 3, chained([]string{l[2], l[5]})[1]) })
		}},
		{"entry inserted twice", func() { s.lines(log, func(l []string) []string { return slices.Insert(l, 3, l[3]) }) }},
		{"empty line inserted", func() { s.lines(log, func(l []string) []string { return slices.Insert(l, 3, "\n") }) }},
		{"long line inserted", func() {
			s.lines(log, func(l []string) []string { return slices.Insert(l, 3, strings.Repeat("x", 8<<20)+"\n") })
		}},
		{"entry of another number added", func() { s.lines(log, func(l []string) []string { return append(l, l[3]) }) }},
		{"entry that fits added", func() {
			s.lines(log, func(l []string) []string {
				seq := 0
				fmt.Sscanf(l[len(l)-1], `{"seq":%d,`, &seq)
				next := strings.Replace(l[len(l)-1], fmt.Sprintf(`{"seq":%d,`, seq), fmt.Sprintf(`{"seq":%d,`, seq+1), 1)
				return append(l, chained([]string{l[len(l)-1], next})[1]+"\n")
			})
		}},
		{"line added", func() { s.edit(log, func(b []byte) []byte { return append(b, "{}\n"...) }) }},
		{"entries swapped", func() { s.lines(log, func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }) }},
		{"entry moved to the front", func() {
			s.lines(log, func(l []string) []string { x := l[5]; return slices.Insert(slices.Delete(l, 5, 6), 0, x) })
		}},
		{"last entry torn", func() { s.edit(log, func(b []byte) []byte { return b[:len(b)-20] }) }},
		{"line feed at the end removed", func() { s.edit(log, func(b []byte) []byte { return b[:len(b)-1] }) }},
		{"end overwritten with zeros", func() { s.edit(log, func(b []byte) []byte { clear(b[len(b)-3000:]); return b }) }},
		{"hashes computed again", func() {
			s.lines(log, func(l []string) []string { return chained(line(3, "ALLOW", "BLOCK")(l)) })
		}},
		{"an older copy", func() { s.write(log, s.earlier["audit.jsonl"]) }},
		{"a copy of another file", func() { s.write(log, s.now[filepath.Base(file)]) }},
		{"a symbolic link", func() { s.linked(log) }},
		{"a hard link", func() { s.twice(log) }},
		{"a folder", func() { s.folder(log) }},
		{"writable by others", func() { s.ok(os.Chmod(log, 0o666)) }},
		{"entry removed, hashes computed again", func() {
			s.lines(log, func(l []string) []string { return chained(remove(3, 1)(l)) })
		}},

		// its full files
		{"first file removed", func() { s.ok(os.Remove(s.full[0])) }},
		{"file removed", func() { s.ok(os.Remove(file)) }},
		{"last full file removed", func() { s.ok(os.Remove(s.full[len(s.full)-1])) }},
		{"all full files removed", func() {
			for _, f := range s.full {
				s.ok(os.Remove(f))
			}
		}},
		{"entry of a full file changed", func() { s.lines(file, line(3, "ALLOW", "BLOCK")) }},
		{"last entry of a full file changed", func() { s.lines(file, line(-1, "ALLOW", "BLOCK")) }},
		{"first entry of a full file removed", func() { s.lines(file, remove(0, 1)) }},
		{"last entry of a full file removed", func() { s.lines(file, remove(-1, 1)) }},
		{"last entry of the last full file removed", func() { s.lines(s.full[len(s.full)-1], remove(-1, 1)) }},
		{"line added to a full file", func() { s.edit(file, func(b []byte) []byte { return append(b, "{}\n"...) }) }},
		{"full file emptied", func() { s.write(file, nil) }},
		{"full file torn", func() { s.edit(file, func(b []byte) []byte { return b[:len(b)-20] }) }},
		{"full file renamed", func() { s.rename(file, file[:len(file)-1]+"x") }},
		{"full file with another number", func() { s.rename(file, strings.TrimSuffix(file, file[len(file)-12:])+"000000000001") }},
		{"last full file with another number", func() {
			last := s.full[len(s.full)-1]
			s.rename(last, strings.TrimSuffix(last, last[len(last)-12:])+"000000999999")
		}},
		{"full files swapped", func() {
			s.rename(s.full[0], s.full[0]+"x")
			s.rename(file, s.full[0])
			s.rename(s.full[0]+"x", file)
		}},
		{"full file copied", func() { s.write(file[:len(file)-12]+"000000999999", s.read(file)) }},
		{"full file, hashes computed again", func() {
			s.lines(file, func(l []string) []string { return chained(line(3, "ALLOW", "BLOCK")(l)) })
		}},
		{"all files, hashes computed again", func() {
			var all []string
			var counts []int
			files := append(slices.Clone(s.full), log)
			for _, f := range files {
				s.lines(f, func(l []string) []string {
					l[len(l)-1] = strings.TrimSuffix(l[len(l)-1], "\n") + "\n"
					all, counts = append(all, l...), append(counts, len(l))
					return l
				})
			}
			all = chained(line(3, "ALLOW", "BLOCK")(all))
			for i, f := range files {
				s.write(f, []byte(strings.Join(all[:counts[i]], "")))
				all = all[counts[i]:]
			}
		}},
		{"full file, a symbolic link", func() { s.linked(file) }},
		{"full file, a hard link", func() { s.twice(file) }},

		// what was put aside
		{"put aside, removed", func() { s.ok(os.Remove(s.aside)) }},
		{"put aside, changed", func() { s.lines(s.aside, line(1, "ALLOW", "BLOCK")) }},
		{"put aside, cut", func() { s.lines(s.aside, func(l []string) []string { return l[:1] }) }},
		{"put aside, emptied", func() { s.write(s.aside, nil) }},
		{"put aside, renamed", func() { s.rename(s.aside, s.aside+"x") }},
		{"put aside, another file", func() { s.write(s.aside, s.now[filepath.Base(file)]) }},

		// the head
		{"head removed", func() { s.ok(os.Remove(head)) }},
		{"head emptied", func() { s.write(head, nil) }},
		{"head all zero", func() { s.write(head, make([]byte, 128)) }},
		{"head changed", func() { s.edit(head, func(b []byte) []byte { b[5]++; return b }) }},
		{"head without authentication, entries cut", func() { cut(5); s.write(head, s.headFile(nil)) }},
		{"head of an all-zero key, entries cut", func() { cut(5); s.write(head, s.headFile(make([]byte, 32))) }},
		{"head of the seal key, entries cut", func() { cut(5); s.write(head, s.headFile(s.read(key))) }},
		{"older head, entries cut to it", func() { s.write(head, s.earlier["log.head"]); s.write(log, s.earlier["audit.jsonl"]) }},
		{"head and log of before the gap", func() {
			s.write(head, s.before["log.head"])
			s.write(log, s.before["audit.jsonl"])
			s.ok(os.Remove(s.aside))
		}},
		{"head a hard link", func() { s.twice(head) }},
		{"head a symbolic link", func() { s.linked(head) }},
		{"head a folder", func() { s.folder(head) }},
		{"head writable by others", func() { s.ok(os.Chmod(head, 0o666)) }},

		// the state file
		{"state removed", func() { s.ok(os.Remove(db)) }},
		{"state emptied", func() { s.write(db, nil) }},
		{"state overwritten", func() { s.edit(db, func(b []byte) []byte { clear(b); return b }) }},
		{"state cut to a few pages", func() { s.edit(db, func(b []byte) []byte { return b[:3*os.Getpagesize()] }) }},
		{"state a hard link", func() { s.twice(db) }},
		{"state a symbolic link", func() { s.linked(db) }},
		{"state a folder", func() { s.folder(db) }},
		{"state writable by others", func() { s.ok(os.Chmod(db, 0o666)) }},
		{"state and head removed", func() { s.ok(os.Remove(db)); s.ok(os.Remove(head)) }},
		{"state and log removed", func() { s.ok(os.Remove(db)); s.ok(os.Remove(log)) }},
		{"all but the seal key removed", func() { s.put(folderCopy{"seal.key": s.now["seal.key"]}) }},
		{"state folder writable by others", func() { s.ok(os.Chmod(s.dir, 0o777)) }},

		// the seal key
		{"seal key emptied", func() { s.write(key, nil) }},
		{"seal key all zero", func() { s.edit(key, func(b []byte) []byte { clear(b); return b }) }},
		{"seal key cut", func() { s.edit(key, func(b []byte) []byte { return b[:7] }) }},
		{"seal key too long", func() { s.edit(key, func(b []byte) []byte { return append(b, b...) }) }},
		{"seal key readable by others", func() { s.ok(os.Chmod(key, 0o644)) }},
		{"seal key a hard link", func() { s.twice(key) }},
		{"seal key a symbolic link", func() { s.linked(key) }},
		{"seal key a folder", func() { s.folder(key) }},
	}
	seen := 0
	for _, k := range kinds {
		s.put(s.now)
		k.do()
		if s.noticed() {
			seen++
		} else {
			t.Errorf("%s: not noticed", k.name)
		}
	}
	t.Logf("%d kinds, %d noticed", len(kinds), seen)

	// What is not noticed, which SECURITY.md says.
	for name, do := range map[string]func(){
		"nothing":                              func() {},
		"a part of a line added":               func() { s.edit(log, func(b []byte) []byte { return append(b, '{') }) }, // a write that was cut short
		"an older head, which the state knows": func() { s.write(head, s.earlier["log.head"]) },
		"an older copy of all":                 func() { s.put(s.earlier) },
		"an older state file":                  func() { s.write(db, s.earlier["state.db"]) },
		"another seal key":                     func() { s.edit(key, func(b []byte) []byte { b[0]++; return b }) },
		"seal key removed":                     func() { s.ok(os.Remove(key)) },
		"all removed":                          func() { s.put(nil); s.judge(1) },
	} {
		s.put(s.now)
		do()
		if s.noticed() {
			t.Errorf("%s: noticed", name)
		}
	}
}
