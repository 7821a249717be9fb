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

// Ways in which a log can be broken.
const (
	Changed   = "changed"
	Removed   = "removed"
	Inserted  = "inserted"
	Reordered = "reordered"
	CutOff    = "cut off"
)

// A Break is the first place at which a log is not what was written.
type Break struct {
	Line int    `json:"line"` // counted from 1 in its file; of what is removed, the line that is there instead
	Seq  uint64 `json:"seq"`  // of the entry that should be there
	How  string `json:"how"`  // Changed, Removed, Inserted, Reordered or CutOff
	Note string `json:"note"`
	File string `json:"file,omitempty"` // which of the log's files
}

// String says it for people, without the file.
func (b *Break) String() string { return fmt.Sprintf("line %d: %s: %s", b.Line, b.How, b.Note) }

// A Report is what [Verify] found.
type Report struct {
	Lines     int    `json:"lines"` // whole lines that were read
	Files     int    `json:"files"` // that the log consists of
	First     uint64 `json:"first"` // sequence number of the first entry; more than 1 if the log goes on from another
	Head      Head   `json:"head"`  // the last entry that is in order
	Recovered int    `json:"recovered"`
	Torn      bool   `json:"torn"`             // the last line is incomplete; the next entry repairs that
	Beyond    uint64 `json:"beyond,omitempty"` // entries after the head that is known from elsewhere
	Break     *Break `json:"break,omitempty"`

	Missing []string `json:"missing,omitempty"` // files that were put aside damaged, and are not there

	// Unknown says what cannot be told without a head; empty if one was given.
	Unknown string `json:"unknown,omitempty"`
}

// OK says whether the log is whole.
func (r *Report) OK() bool { return r.Break == nil }

// VerifyFile is [Verify] of a log with all its files. A log that is not there
// is an error, unless kept knows of entries: then they are cut off.
//
// A log that was put aside damaged goes on in a new file, with a recovery entry. That
// counts only if gaps has its sequence number with its hash, kept is the entry before it,
// or the file that it names is there and goes on from the entry before the gap.
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

// Verify reads a log and reports the first line that is not what was written.
// kept is the head that is known from elsewhere, the state file or a
// [Checkpoint]; without it (nil) it is unknown whether the last lines were
// changed or cut off. The log may go on after kept. The error is that of
// reading only.
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

// A link is one line with its place in the chain.
type link struct {
	ok   bool // the line is an entry
	seq  uint64
	prev string
	hash string
	end  bool     // there is no such line
	kind bool     // it is a recovery entry
	from Recovery // of a recovery entry
	place
}

// A place is that of a line.
type place struct {
	file string
	line int // counted from 1
}

// follows says whether l is what was written after head.
func (l link) follows(h Head) bool {
	prev := h.Hash
	if h.Seq == 0 {
		prev = genesis
	}
	return l.ok && l.seq == h.Seq+1 && l.prev == prev
}

type verifier struct {
	files  func() (string, io.Reader, error) // the log's, until io.EOF
	lines  *lines                            // of the current one; nil before the first
	at     place                             // of the line that was read last
	path   string
	kept   *Head
	gaps   map[uint64]string
	report Report
	before Head  // the head before report.Head
	last   place // of the entry that is report.Head
	met    bool  // kept was there

	segment bool // the first entry goes on from one that is not here
}

// open goes on with the next file and says whether there is one.
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
		if torn { // but only a log's last line may be
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
			// A log that was put aside damaged goes on in a new file.
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
				// All lines up to here fit one another, so what was written
				// differs from here on, or from before.
				v.broken(cur.place, cur.seq, Changed, "this entry follows the ones before, but its hash is not the one in the state file: the entry was replaced")
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

// vouched reports whether something besides a recovery entry says that the entries before
// it were put aside.
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

// spoiled reports that the log which was put aside before a recovery entry was changed since,
// and notes it if it is not there.
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

// misnamed reports that the file that has ended is not named after its last entry.
func (v *verifier) misnamed() bool {
	number, full := strings.CutPrefix(v.last.file, v.path+".")
	if last, err := strconv.ParseUint(number, 10, 64); !full || err == nil && last == v.report.Head.Seq {
		return false
	}
	v.broken(v.last, v.report.Head.Seq, Changed, fmt.Sprintf("the file was renamed: its last entry is %d", v.report.Head.Seq))
	return true
}

// unknown says what a log alone does not show.
func (v *verifier) unknown() string {
	if v.report.Head.Seq == 0 {
		return "whether there were entries"
	}
	return fmt.Sprintf("whether entry %d, the last one here, is unchanged, and whether others followed it", v.report.Head.Seq)
}

func (v *verifier) broken(at place, seq uint64, how, note string) {
	v.report.Break = &Break{Line: at.line, Seq: seq, How: how, Note: note, File: at.file}
}

// classify says what was done to a log in which cur, the last line read, does
// not follow the line before.
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
		v.broken(n, want, Inserted, "this line was inserted: the next line continues the line before")
	case head.Seq > 0 && cur.follows(v.before):
		v.broken(v.last, head.Seq, Inserted, "this line was inserted: the next line continues the line before")
	case cur.ok && cur.seq == want && v.whole(cur, after):
		// It names the hash that the line before had.
		v.broken(v.last, head.Seq, Changed, "this line was replaced: the next line continues a different one")
	case !cur.ok, cur.seq == want, after.ok && after.seq == want+1, cur.prev == head.Hash:
		v.broken(n, want, Changed, "the line was changed after it was written")
	default:
		v.broken(n, want, Inserted, fmt.Sprintf("entry %d is repeated", cur.seq))
	}
	return nil
}

// whole says whether cur, which names another line before it than there is, is
// as it was written: then the line before is not.
func (v *verifier) whole(cur, after link) bool {
	head := v.report.Head
	switch {
	case head.Seq == 0, v.met && v.kept.Seq == head.Seq: // the line before is known to be right
		return false
	case after.end:
		return v.kept == nil || v.kept.Seq != cur.seq || v.kept.Hash == cur.hash
	}
	return after.follows(Head{cur.seq, cur.hash})
}

// ahead says how an entry came to a place that is earlier than its own, or
// claims to be one; the lines further down decide.
func (v *verifier) ahead(cur, after link, want uint64) error {
	line, follows := cur.place, after.follows(v.report.Head)
	var here, itself, next bool // the entry that should be here, cur's, and the one after cur's
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
		v.broken(line, want, Inserted, "this line was inserted: the next line continues the line before")
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

// errLongLine is the error for a line that shield did not write.
var errLongLine = errors.New("line is too long")

// lines cuts a log into lines, in constant memory.
type lines struct {
	r    *bufio.Reader
	torn bool // the last line had no end
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine+1)} }

// next returns the next line without its line feed, valid until the next call.
// It returns errLongLine for a line that is too long and [io.EOF] at the end, an
// incomplete last line included.
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
