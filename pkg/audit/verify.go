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
	DamageKindChanged   = "changed"
	DamageKindRemoved   = "removed"
	DamageKindInserted  = "inserted"
	DamageKindReordered = "reordered"
	DamageKindCutOff    = "cut off"
)

// A Damage is the first place at which a log differs from what was written.
type Damage struct {
	Line        int    `json:"line"` // counted from 1 in its file; for a removed line, the line now in its place
	Seq         uint64 `json:"seq"`  // sequence number of the entry that should be there
	Kind        string `json:"how"`  // DamageKindChanged, DamageKindRemoved, DamageKindInserted, DamageKindReordered or DamageKindCutOff
	Explanation string `json:"note"`
	File        string `json:"file,omitempty"` // path of the damaged file
}

// String returns a description of the damage for people, without the file name.
func (b *Damage) String() string {
	return fmt.Sprintf("line %d: %s: %s", b.Line, b.Kind, b.Explanation)
}

// A VerificationReport is the result of [Verify] or [VerifyFile].
type VerificationReport struct {
	CompleteLineCount      int       `json:"lines"` // complete lines that were read
	FileCount              int       `json:"files"` // number of files of the log
	FirstSeq               uint64    `json:"first"` // sequence number of the first entry; more than 1 if the log continues another
	Head                   ChainHead `json:"head"`  // the last entry of the intact chain
	LogRecoveryEntryCount  int       `json:"recovered"`
	LastLineIncomplete     bool      `json:"torn"`             // the last line is incomplete; appending the next entry repairs that
	EntriesAfterStoredHead uint64    `json:"beyond,omitempty"` // entries after the given head
	Damage                 *Damage   `json:"break,omitempty"`

	MissingFiles []string `json:"missing,omitempty"` // damaged files that were moved aside and no longer exist

	// UnverifiableEntriesNote says what cannot be verified without a stored head; empty if one was given.
	UnverifiableEntriesNote string `json:"unknown,omitempty"`
}

// OK reports whether the log is intact.
func (r *VerificationReport) OK() bool { return r.Damage == nil }

// VerifyFile is [Verify] for a log with all its files. A missing log is an error, unless storedHead has a
// sequence number over 0: then the log counts as cut off.
//
// A damaged log that was moved aside continues in a new file with a recovery entry. The recovery entry is
// accepted only if recoveryEntryHashBySeq contains its sequence number and hash, if storedHead is the entry
// before it, or if the file that it names exists and continues from the entry before the gap.
func VerifyFile(path string, storedHead *ChainHead, recoveryEntryHashBySeq map[uint64]string) (VerificationReport, error) {
	s, err := openLogFiles(path)
	if errors.Is(err, fs.ErrNotExist) && storedHead != nil && storedHead.Seq > 0 {
		return Verify(bytes.NewReader(nil), storedHead)
	}
	if err != nil {
		return VerificationReport{}, fmt.Errorf("verify audit log: %w", err)
	}
	defer s.closeFiles()
	v := &verifier{nextFile: s.nextFile, logPath: path, storedHead: storedHead, recoveryEntryHashBySeq: recoveryEntryHashBySeq}
	err = v.verifyChain()
	return v.report, err
}

// Verify reads a log and reports the first line that differs from what was written. kept is a head
// from outside the log: the state file or a [Checkpoint]. If it is nil, a change or removal of the
// last lines is not detected. The log may continue after kept. Damage is not an error; the error is a
// read error.
func Verify(r io.Reader, kept *ChainHead) (VerificationReport, error) {
	given := false
	v := &verifier{storedHead: kept, nextFile: func() (string, io.Reader, error) {
		if given {
			return "", nil, io.EOF
		}
		given = true
		return "", r, nil
	}}
	err := v.verifyChain()
	return v.report, err
}

// A chainLine is one line with its sequence number and hashes.
type chainLine struct {
	isValid          bool // the line is a valid entry
	seq              uint64
	previousLineHash string
	hash             string
	isEndOfLogMarker bool        // end of the log
	isRecovery       bool        // the line contains the kind of a recovery entry, even if it is no valid entry
	recovery         LogRecovery // content of a recovery entry; zero for other entries
	linePlace
}

// A linePlace is the position of a line.
type linePlace struct {
	file string
	line int // counted from 1
}

// follows reports whether l is the next log entry after the entry h.
func (l chainLine) follows(h ChainHead) bool {
	prev := h.Hash
	if h.Seq == 0 {
		prev = genesisHash
	}
	return l.isValid && l.seq == h.Seq+1 && l.previousLineHash == prev
}

type verifier struct {
	nextFile               func() (string, io.Reader, error) // returns the next file of the log, io.EOF at the end
	currentLineReader      *lineReader                       // lines of the file that is being read; nil before the first file
	lastRead               linePlace                         // position of the last line read
	logPath                string
	storedHead             *ChainHead
	recoveryEntryHashBySeq map[uint64]string
	report                 VerificationReport
	previousHead           ChainHead // the head before report.Head
	lastIntactEntryPlace   linePlace // position of the entry that is report.Head
	foundStoredHead        bool      // the log contains the entry of storedHead

	verifiesLogSegment bool // the first entry continues one that is not in the segment
}

// openNextFile opens the next file and reports whether there is one.
func (v *verifier) openNextFile() (bool, error) {
	name, r, err := v.nextFile()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("verify audit log: %w", err)
	}
	v.report.FileCount++
	v.currentLineReader, v.lastRead = newLineReader(r), linePlace{file: name}
	return true, nil
}

func (v *verifier) nextLine() (chainLine, error) {
	if v.currentLineReader == nil {
		if more, err := v.openNextFile(); !more {
			return chainLine{isEndOfLogMarker: true}, err
		}
	}
	line, err := v.currentLineReader.nextLine()
	for errors.Is(err, io.EOF) {
		torn, at := v.currentLineReader.lastIncomplete, v.lastRead
		if more, err := v.openNextFile(); !more {
			v.lastRead.line++
			return chainLine{isEndOfLogMarker: true, linePlace: v.lastRead}, err
		}
		if torn { // only the last line of a log can be incomplete
			at.line++
			return chainLine{linePlace: at}, nil
		}
		line, err = v.currentLineReader.nextLine()
	}
	v.lastRead.line++
	switch {
	case errors.Is(err, errLongLine):
		return chainLine{linePlace: v.lastRead}, nil
	case err != nil:
		return chainLine{}, fmt.Errorf("verify audit log: %w", err)
	}
	l := chainLine{linePlace: v.lastRead, hash: hashLine(line), isRecovery: bytes.Contains(line, []byte(`,"kind":"`+EntryKindLogRecovery+`",`))}
	seq, prev, err := parseChainFields(line)
	if err == nil {
		l.isValid, l.seq, l.previousLineHash = true, seq, prev
	}
	if l.isValid && l.isRecovery {
		var e struct{ Recovery LogRecovery }
		if json.Unmarshal(line, &e) == nil {
			l.recovery = e.Recovery
		}
	}
	return l, nil
}

func (v *verifier) verifyChain() error {
	cur, err := v.nextLine()
	for ; err == nil && !cur.isEndOfLogMarker; cur, err = v.nextLine() {
		v.report.CompleteLineCount++
		if v.verifiesLogSegment && v.report.FirstSeq == 0 && cur.isValid {
			v.report.Head = ChainHead{cur.seq - 1, cur.previousLineHash}
		}
		if cur.line == 1 && cur.follows(v.report.Head) && v.isFileMisnamed() {
			return nil
		}
		if cur.line == 1 && cur.isValid && cur.isRecovery && cur.seq > v.report.Head.Seq+1 && v.hasEvidenceOfDamagedLogMove(cur) {
			// A damaged log that was moved aside continues in a new file.
			if v.isFileMisnamed() || v.isMovedDamagedLogChanged(cur) {
				return nil
			}
			v.report.Head = ChainHead{cur.seq - 1, cur.previousLineHash}
			v.foundStoredHead = v.storedHead != nil && *v.storedHead == v.report.Head
		}
		if !cur.follows(v.report.Head) {
			return v.classifyDamage(cur)
		}
		if v.report.FirstSeq == 0 {
			v.report.FirstSeq = cur.seq
		}
		if cur.isRecovery {
			v.report.LogRecoveryEntryCount++
		}
		v.previousHead, v.report.Head, v.lastIntactEntryPlace = v.report.Head, ChainHead{cur.seq, cur.hash}, cur.linePlace
		if v.storedHead != nil && cur.seq == v.storedHead.Seq {
			if cur.hash != v.storedHead.Hash {
				// All lines up to here are consistent, so the change is at this line or before.
				v.setDamage(cur.linePlace, cur.seq, DamageKindChanged, "this entry was replaced: its hash is not the one in the state file")
				return nil
			}
			v.foundStoredHead = true
		}
	}
	if err != nil {
		return err
	}
	if v.isFileMisnamed() {
		return nil
	}
	if v.storedHead != nil && v.storedHead.Seq > 0 && v.report.Head.Seq > v.storedHead.Seq {
		v.report.EntriesAfterStoredHead = v.report.Head.Seq - v.storedHead.Seq
	}
	v.report.LastLineIncomplete = v.currentLineReader != nil && v.currentLineReader.lastIncomplete
	if v.storedHead == nil {
		v.report.UnverifiableEntriesNote = v.describeUnverifiableEntries()
	}
	if v.storedHead != nil && v.storedHead.Seq > 0 && !v.foundStoredHead {
		if v.storedHead.Seq > v.report.Head.Seq {
			v.setDamage(linePlace{cur.file, max(cur.line, 1)}, v.report.Head.Seq+1, DamageKindCutOff, fmt.Sprintf("the log ends with entry %d, and at least %d were written", v.report.Head.Seq, v.storedHead.Seq))
		} else {
			v.setDamage(linePlace{line: 1}, v.storedHead.Seq, DamageKindRemoved, fmt.Sprintf("the log begins after entry %d, so that entry and all before it are missing", v.storedHead.Seq))
		}
	}
	return nil
}

// hasEvidenceOfDamagedLogMove reports whether evidence besides the recovery entry itself shows that the entries before it
// were moved aside.
func (v *verifier) hasEvidenceOfDamagedLogMove(cur chainLine) bool {
	switch {
	case cur.recovery.MovedLogPath == "", cur.recovery.LastIntactSeq != nil && *cur.recovery.LastIntactSeq != v.report.Head.Seq:
		return false
	case v.recoveryEntryHashBySeq[cur.seq] == cur.hash, v.storedHead != nil && *v.storedHead == ChainHead{cur.seq - 1, cur.previousLineHash}:
		return true
	case v.logPath == "" || filepath.Dir(cur.recovery.MovedLogPath) != filepath.Dir(v.logPath) || !strings.HasPrefix(filepath.Base(cur.recovery.MovedLogPath), filepath.Base(v.logPath)+damagedSuffix):
		return false
	}
	f, err := openRead(cur.recovery.MovedLogPath)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := newLineReader(f).nextLine()
	if err != nil {
		return false
	}
	seq, prev, err := parseChainFields(line)
	return err == nil && chainLine{isValid: true, seq: seq, previousLineHash: prev}.follows(v.report.Head)
}

// isMovedDamagedLogChanged reports whether the damaged log that a recovery entry names was changed after it was moved
// aside. A missing file is recorded in the report.
func (v *verifier) isMovedDamagedLogChanged(cur chainLine) bool {
	if v.logPath == "" || cur.recovery.DamagedDataSHA256 == "" {
		return false
	}
	aside := filepath.Join(filepath.Dir(v.logPath), filepath.Base(cur.recovery.MovedLogPath))
	switch sum, err := hashFile(aside); {
	case errors.Is(err, fs.ErrNotExist):
		v.report.MissingFiles = append(v.report.MissingFiles, aside)
	case err != nil || sum != cur.recovery.DamagedDataSHA256:
		v.setDamage(linePlace{file: aside, line: 1}, v.report.Head.Seq+1, DamageKindChanged, "the file was changed after shield moved it aside")
		return true
	}
	return false
}

// isFileMisnamed reports whether the name of the file just read does not match its last entry.
func (v *verifier) isFileMisnamed() bool {
	number, full := strings.CutPrefix(v.lastIntactEntryPlace.file, v.logPath+".")
	if last, err := strconv.ParseUint(number, 10, 64); !full || err == nil && last == v.report.Head.Seq {
		return false
	}
	v.setDamage(v.lastIntactEntryPlace, v.report.Head.Seq, DamageKindChanged, fmt.Sprintf("the name of the file does not end with %d, the number of the last entry in the file; rename the file back", v.report.Head.Seq))
	return true
}

// describeUnverifiableEntries returns what cannot be verified from the log alone.
func (v *verifier) describeUnverifiableEntries() string {
	if v.report.Head.Seq == 0 {
		return "whether there were entries"
	}
	return fmt.Sprintf("whether entry %d, the last one here, is unchanged, and whether others followed it", v.report.Head.Seq)
}

func (v *verifier) setDamage(at linePlace, seq uint64, damageKind, explanation string) {
	v.report.Damage = &Damage{Line: at.line, Seq: seq, Kind: damageKind, Explanation: explanation, File: at.file}
}

// classifyDamage determines the damage to a log in which cur, the last line read, does not follow the line
// before.
func (v *verifier) classifyDamage(cur chainLine) error {
	head, n := v.report.Head, cur.linePlace
	want := head.Seq + 1
	after, err := v.nextLine()
	if err != nil {
		return err
	}
	follows := after.follows(head)
	switch {
	case cur.isValid && cur.seq > want:
		return v.reportTooHighSequenceNumber(cur, after, want)
	case follows:
		v.setDamage(n, want, DamageKindInserted, "this line was inserted: the line after it has the hash of the line before it")
	case head.Seq > 0 && cur.follows(v.previousHead):
		v.setDamage(v.lastIntactEntryPlace, head.Seq, DamageKindInserted, "this line was inserted: the line after it has the hash of the line before it")
	case cur.isValid && cur.seq == want && v.isLineHashConfirmed(cur, after):
		// The line after the replaced line is intact and contains the hash of the original line.
		v.setDamage(v.lastIntactEntryPlace, head.Seq, DamageKindChanged, "this line was replaced: the line after it has the hash of another line")
	case !cur.isValid, cur.seq == want, after.isValid && after.seq == want+1, cur.previousLineHash == head.Hash:
		v.setDamage(n, want, DamageKindChanged, "the line was changed after it was written")
	default:
		v.setDamage(n, want, DamageKindInserted, fmt.Sprintf("entry %d is repeated", cur.seq))
	}
	return nil
}

// isLineHashConfirmed reports whether line, whose previous hash does not match the line before it, is itself
// unchanged; then the line before it was changed. nextLine is the line after it. If there is none, line counts
// as unchanged unless the stored head has another hash for it. The result is false if there is no line before
// it, or if that line is known to be unchanged.
func (v *verifier) isLineHashConfirmed(line, nextLine chainLine) bool {
	head := v.report.Head
	switch {
	case head.Seq == 0, v.foundStoredHead && v.storedHead.Seq == head.Seq: // the line before is known to be unchanged
		return false
	case nextLine.isEndOfLogMarker:
		return v.storedHead == nil || v.storedHead.Seq != line.seq || v.storedHead.Hash == line.hash
	}
	return nextLine.follows(ChainHead{line.seq, line.hash})
}

// reportTooHighSequenceNumber determines why an entry has a higher sequence number than its position: moved, inserted,
// changed, or after removed lines. It reads the rest of the log to decide.
func (v *verifier) reportTooHighSequenceNumber(cur, nextLine chainLine, expectedSeq uint64) error {
	line, follows := cur.linePlace, nextLine.follows(v.report.Head)
	var here, itself, next bool // whether a later line is entry expectedSeq (here), entry cur.seq (itself) or entry cur.seq+1 (next)
	for l := nextLine; !l.isEndOfLogMarker; {
		here = here || l.isValid && l.seq == expectedSeq
		itself = itself || l.isValid && l.seq == cur.seq
		next = next || l.isValid && l.seq == cur.seq+1
		var err error
		if l, err = v.nextLine(); err != nil {
			return err
		}
	}
	moved := here && !itself && (next || v.storedHead == nil || v.storedHead.Seq >= cur.seq)
	switch {
	case moved:
		v.setDamage(line, expectedSeq, DamageKindReordered, fmt.Sprintf("entries were moved: entry %d is here, and entry %d is further down", cur.seq, expectedSeq))
	case follows:
		v.setDamage(line, expectedSeq, DamageKindInserted, "this line was inserted: the line after it has the hash of the line before it")
	case here:
		v.setDamage(line, expectedSeq, DamageKindReordered, fmt.Sprintf("entries were moved: entry %d is here, and entry %d is further down", cur.seq, expectedSeq))
	case nextLine.isValid && nextLine.seq == expectedSeq+1:
		v.setDamage(line, expectedSeq, DamageKindChanged, "the line was changed after it was written")
	case cur.seq-1 == expectedSeq:
		v.setDamage(line, expectedSeq, DamageKindRemoved, fmt.Sprintf("entry %d is missing", expectedSeq))
	default:
		v.setDamage(line, expectedSeq, DamageKindRemoved, fmt.Sprintf("entries %d to %d are missing", expectedSeq, cur.seq-1))
	}
	return nil
}

// errLongLine is the error for a line longer than maxLineBytes, which shield does not write.
var errLongLine = errors.New("a line of the audit log is longer than shield writes; run 'shield audit verify'")

// lineReader splits a log into lines, in constant memory.
type lineReader struct {
	r              *bufio.Reader
	lastIncomplete bool // the last line has no line feed
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, maxLineBytes+1)}
}

// nextLine returns the next line without its line feed; it is valid until the next call. It returns
// errLongLine for a line that is too long and [io.EOF] at the end, also after an incomplete last line.
func (l *lineReader) nextLine() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF):
		l.lastIncomplete = l.lastIncomplete || len(line) > 0
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
