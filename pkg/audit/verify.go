package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// Kinds of damage to a log.
const (
	Changed   = "changed"
	Removed   = "removed"
	Inserted  = "inserted"
	Reordered = "reordered"
	CutOff    = "cut off"
)

// A Break is the first place at which a log differs from what was written.
type Break struct {
	Line int    `json:"line"` // counted from 1 in its file; for a removed line, the line now in its place
	Seq  uint64 `json:"seq"`  // sequence number of the entry that should be there
	How  string `json:"how"`  // Changed, Removed, Inserted, Reordered or CutOff
	Note string `json:"note"`
	File string `json:"file,omitempty"` // path of the damaged file
}

// String returns the break as text for people, without the file.
func (b *Break) String() string { return fmt.Sprintf("line %d: %s: %s", b.Line, b.How, b.Note) }

// A Report is what [Verify] found.
type Report struct {
	Lines     int    `json:"lines"` // complete lines that were read
	Files     int    `json:"files"` // number of files of the log
	First     uint64 `json:"first"` // sequence number of the first entry; more than 1 if the log continues another
	Head      Head   `json:"head"`  // the last entry of the intact chain
	Recovered int    `json:"recovered"`
	Torn      bool   `json:"torn"`             // the last line is incomplete; appending the next entry repairs that
	Beyond    uint64 `json:"beyond,omitempty"` // entries after the given head
	Break     *Break `json:"break,omitempty"`

	Missing []string `json:"missing,omitempty"` // damaged files that were moved aside and no longer exist

	// Unknown says what cannot be verified without a stored head; empty if one was given.
	Unknown string `json:"unknown,omitempty"`
}

// OK reports whether the log is intact.
func (r *Report) OK() bool { return r.Break == nil }

// VerifyFile is [Verify] for a log with all its files. A missing log is an error, unless kept has
// entries: then they count as cut off.
//
// A damaged log that was moved aside continues in a new file with a recovery entry. The recovery entry
// is accepted only if gaps contains its sequence number and hash, if kept is the entry before it, or
// if the file that it names exists and continues from the entry before the gap.
func VerifyFile(path string, kept *Head, gaps map[uint64]string) (Report, error) {
	s, err := openSeries(path)
	if errors.Is(err, fs.ErrNotExist) && kept != nil && kept.Seq > 0 {
		return Verify(bytes.NewReader(nil), kept)
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify audit log: %w", err)
	}
	defer s.close()
	v := &verifier{files: s.next, path: path, kept: kept, gaps: gaps}
	err = v.run()
	return v.report, err
}

// Verify reads a log and reports the first line that differs from what was written. kept is a head
// from outside the log: the state file or a [Checkpoint]. If it is nil, a change or removal of the
// last lines is not detected. The log may continue after kept. Damage is not an error; the error is a
// read error.
func Verify(r io.Reader, kept *Head) (Report, error) {
	given := false
	v := &verifier{kept: kept, files: func() (string, io.Reader, error) {
		if given {
			return "", nil, io.EOF
		}
		given = true
		return "", r, nil
	}}
	err := v.run()
	return v.report, err
}

// A link is one line with its sequence number and hashes.
type link struct {
	ok   bool // the line is a valid entry
	seq  uint64
	prev string
	hash string
	end  bool     // end of the log
	kind bool     // it is a recovery entry
	from Recovery // of a recovery entry
	place
}

// A place is the position of a line.
type place struct {
	file string
	line int // counted from 1
}

// follows reports whether l is the next entry after head.
func (l link) follows(h Head) bool {
	prev := h.Hash
	if h.Seq == 0 {
		prev = genesis
	}
	return l.ok && l.seq == h.Seq+1 && l.prev == prev
}

type verifier struct {
	files  func() (string, io.Reader, error) // returns the next file of the log, io.EOF at the end
	lines  *lines                            // of the current file; nil before the first
	at     place                             // position of the last line read
	path   string
	kept   *Head
	gaps   map[uint64]string
	report Report
	before Head  // the head before report.Head
	last   place // position of the entry that is report.Head
	met    bool  // the entry of kept was found

	segment bool // the first entry continues one that is not in the segment
}

// open opens the next file and reports whether there is one.
func (v *verifier) open() (bool, error) {
	name, r, err := v.files()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("verify audit log: %w", err)
	}
	v.report.Files++
	v.lines, v.at = newLines(r), place{file: name}
	return true, nil
}

func (v *verifier) next() (link, error) {
	if v.lines == nil {
		if more, err := v.open(); !more {
			return link{end: true}, err
		}
	}
	line, err := v.lines.next()
	for errors.Is(err, io.EOF) {
		torn, at := v.lines.torn, v.at
		if more, err := v.open(); !more {
			v.at.line++
			return link{end: true, place: v.at}, err
		}
		if torn { // only the last line of a log can be incomplete
			at.line++
			return link{place: at}, nil
		}
		line, err = v.lines.next()
	}
	v.at.line++
	switch {
	case errors.Is(err, errLongLine):
		return link{place: v.at}, nil
	case err != nil:
		return link{}, fmt.Errorf("verify audit log: %w", err)
	}
	l := link{place: v.at, hash: hashLine(line), kind: bytes.Contains(line, []byte(`,"kind":"`+KindRecovery+`",`))}
	seq, prev, err := links(line)
	if err == nil {
		l.ok, l.seq, l.prev = true, seq, prev
	}
	if l.ok && l.kind {
		var e struct{ Recovery Recovery }
		if json.Unmarshal(line, &e) == nil {
			l.from = e.Recovery
		}
	}
	return l, nil
}

func (v *verifier) run() error {
	cur, err := v.next()
	for ; err == nil && !cur.end; cur, err = v.next() {
		v.report.Lines++
		if v.segment && v.report.First == 0 && cur.ok {
			v.report.Head = Head{cur.seq - 1, cur.prev}
		}
		if cur.line == 1 && cur.follows(v.report.Head) && v.misnamed() {
			return nil
		}
		if cur.line == 1 && cur.ok && cur.kind && cur.seq > v.report.Head.Seq+1 && v.vouched(cur) {
			// A damaged log that was moved aside continues in a new file.
			if v.misnamed() || v.spoiled(cur) {
				return nil
			}
			v.report.Head = Head{cur.seq - 1, cur.prev}
			v.met = v.kept != nil && *v.kept == v.report.Head
		}
		if !cur.follows(v.report.Head) {
			return v.classify(cur)
		}
		if v.report.First == 0 {
			v.report.First = cur.seq
		}
		if cur.kind {
			v.report.Recovered++
		}
		v.before, v.report.Head, v.last = v.report.Head, Head{cur.seq, cur.hash}, cur.place
		if v.kept != nil && cur.seq == v.kept.Seq {
			if cur.hash != v.kept.Hash {
				// All lines up to here are consistent, so the change is at this line or before.
				v.broken(cur.place, cur.seq, Changed, "this entry was replaced: its hash is not the one in the state file")
				return nil
			}
			v.met = true
		}
	}
	if err != nil {
		return err
	}
	if v.misnamed() {
		return nil
	}
	if v.kept != nil && v.kept.Seq > 0 && v.report.Head.Seq > v.kept.Seq {
		v.report.Beyond = v.report.Head.Seq - v.kept.Seq
	}
	v.report.Torn = v.lines != nil && v.lines.torn
	if v.kept == nil {
		v.report.Unknown = v.unknown()
	}
	if v.kept != nil && v.kept.Seq > 0 && !v.met {
		if v.kept.Seq > v.report.Head.Seq {
			v.broken(place{cur.file, max(cur.line, 1)}, v.report.Head.Seq+1, CutOff, fmt.Sprintf("the log ends with entry %d, and at least %d were written", v.report.Head.Seq, v.kept.Seq))
		} else {
			v.broken(place{line: 1}, v.kept.Seq, Removed, fmt.Sprintf("the log begins after entry %d", v.kept.Seq))
		}
	}
	return nil
}

// vouched reports whether evidence besides the recovery entry itself shows that the entries before it
// were moved aside.
func (v *verifier) vouched(cur link) bool {
	switch {
	case cur.from.File == "", cur.from.After != nil && *cur.from.After != v.report.Head.Seq:
		return false
	case v.gaps[cur.seq] == cur.hash, v.kept != nil && *v.kept == Head{cur.seq - 1, cur.prev}:
		return true
	case v.path == "" || filepath.Dir(cur.from.File) != filepath.Dir(v.path) || !strings.HasPrefix(filepath.Base(cur.from.File), filepath.Base(v.path)+damagedSuffix):
		return false
	}
	f, err := openRead(cur.from.File)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := newLines(f).next()
	if err != nil {
		return false
	}
	seq, prev, err := links(line)
	return err == nil && link{ok: true, seq: seq, prev: prev}.follows(v.report.Head)
}

// spoiled reports whether the damaged log that a recovery entry names was changed after it was moved
// aside. A missing file is recorded in the report.
func (v *verifier) spoiled(cur link) bool {
	if v.path == "" || cur.from.SHA256 == "" {
		return false
	}
	aside := filepath.Join(filepath.Dir(v.path), filepath.Base(cur.from.File))
	switch sum, err := hashFile(aside); {
	case errors.Is(err, fs.ErrNotExist):
		v.report.Missing = append(v.report.Missing, aside)
	case err != nil || sum != cur.from.SHA256:
		v.broken(place{file: aside, line: 1}, v.report.Head.Seq+1, Changed, "the file was changed after shield moved it aside")
		return true
	}
	return false
}

// misnamed reports whether the name of the file just read does not match its last entry.
func (v *verifier) misnamed() bool {
	number, full := strings.CutPrefix(v.last.file, v.path+".")
	if last, err := strconv.ParseUint(number, 10, 64); !full || err == nil && last == v.report.Head.Seq {
		return false
	}
	v.broken(v.last, v.report.Head.Seq, Changed, fmt.Sprintf("the file was renamed: its last entry is %d", v.report.Head.Seq))
	return true
}

// unknown returns what cannot be verified from the log alone.
func (v *verifier) unknown() string {
	if v.report.Head.Seq == 0 {
		return "whether there were entries"
	}
	return fmt.Sprintf("whether entry %d, the last one here, is unchanged, and whether others followed it", v.report.Head.Seq)
}

func (v *verifier) broken(at place, seq uint64, how, note string) {
	v.report.Break = &Break{Line: at.line, Seq: seq, How: how, Note: note, File: at.file}
}

// classify determines the damage to a log in which cur, the last line read, does not follow the line
// before.
func (v *verifier) classify(cur link) error {
	head, n := v.report.Head, cur.place
	want := head.Seq + 1
	after, err := v.next()
	if err != nil {
		return err
	}
	follows := after.follows(head)
	switch {
	case cur.ok && cur.seq > want:
		return v.ahead(cur, after, want)
	case follows:
		v.broken(n, want, Inserted, "this line was inserted: the line after it has the hash of the line before it")
	case head.Seq > 0 && cur.follows(v.before):
		v.broken(v.last, head.Seq, Inserted, "this line was inserted: the line after it has the hash of the line before it")
	case cur.ok && cur.seq == want && v.whole(cur, after):
		// It contains the hash of the original line.
		v.broken(v.last, head.Seq, Changed, "this line was replaced: the line after it has the hash of another line")
	case !cur.ok, cur.seq == want, after.ok && after.seq == want+1, cur.prev == head.Hash:
		v.broken(n, want, Changed, "the line was changed after it was written")
	default:
		v.broken(n, want, Inserted, fmt.Sprintf("entry %d is repeated", cur.seq))
	}
	return nil
}

// whole reports whether cur, whose previous hash does not match the line before, is itself unchanged;
// then the line before was changed.
func (v *verifier) whole(cur, after link) bool {
	head := v.report.Head
	switch {
	case head.Seq == 0, v.met && v.kept.Seq == head.Seq: // the line before is known to be unchanged
		return false
	case after.end:
		return v.kept == nil || v.kept.Seq != cur.seq || v.kept.Hash == cur.hash
	}
	return after.follows(Head{cur.seq, cur.hash})
}

// ahead determines why an entry has a higher sequence number than its position: moved, inserted,
// changed, or after removed lines. It reads the rest of the log to decide.
func (v *verifier) ahead(cur, after link, want uint64) error {
	line, follows := cur.place, after.follows(v.report.Head)
	var here, itself, next bool // found: the expected entry, another one with cur's number, and the one after cur
	for l := after; !l.end; {
		here = here || l.ok && l.seq == want
		itself = itself || l.ok && l.seq == cur.seq
		next = next || l.ok && l.seq == cur.seq+1
		var err error
		if l, err = v.next(); err != nil {
			return err
		}
	}
	moved := here && !itself && (next || v.kept == nil || v.kept.Seq >= cur.seq)
	switch {
	case moved:
		v.broken(line, want, Reordered, fmt.Sprintf("entries were moved: entry %d is here, and entry %d is further down", cur.seq, want))
	case follows:
		v.broken(line, want, Inserted, "this line was inserted: the line after it has the hash of the line before it")
	case here:
		v.broken(line, want, Reordered, fmt.Sprintf("entries were moved: entry %d is here, and entry %d is further down", cur.seq, want))
	case after.ok && after.seq == want+1:
		v.broken(line, want, Changed, "the line was changed after it was written")
	case cur.seq-1 == want:
		v.broken(line, want, Removed, fmt.Sprintf("entry %d is missing", want))
	default:
		v.broken(line, want, Removed, fmt.Sprintf("entries %d to %d are missing", want, cur.seq-1))
	}
	return nil
}

// errLongLine is the error for a line longer than maxLine, which shield does not write.
var errLongLine = errors.New("line is too long")

// lines splits a log into lines, in constant memory.
type lines struct {
	r    *bufio.Reader
	torn bool // the last line has no line feed
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine+1)} }

// next returns the next line without its line feed; it is valid until the next call. It returns
// errLongLine for a line that is too long and [io.EOF] at the end, also after an incomplete last line.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF):
		l.torn = l.torn || len(line) > 0
		return nil, io.EOF
	case !errors.Is(err, bufio.ErrBufferFull):
		return nil, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, errLongLine
}
