package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// segmentFormat is the format name and version of a segment, in its first line.
const segmentFormat = "shield audit segment v1"

// segmentHeader is the first line of a segment: the checkpoint of its last entry.
type segmentHeader struct {
	Format     string     `json:"form"`
	Checkpoint Checkpoint `json:"checkpoint"`
}

// ErrNoSegment is the error for a file that [WriteSegment] did not write.
var ErrNoSegment = errors.New("not a segment of an audit log; write one with 'shield audit export --format segment'")

// WriteSegment writes a checkpoint, and then the entries of a log from sequence number from (at least
// 1) to the checkpoint's head. With the public key, [VerifySegment] can verify these lines without the
// rest of the log: each contains the hash of the line before, and the checkpoint that of the last. It
// returns an error if the log does not contain these entries in order and unchanged.
func WriteSegment(w io.Writer, r io.Reader, from uint64, point Checkpoint) error {
	if from == 0 || from > point.Seq {
		return fmt.Errorf("export segment: there is no entry %d before the checkpoint, which is for entry %d; choose a lower --from", from, point.Seq)
	}
	header, err := json.Marshal(segmentHeader{segmentFormat, point})
	if err != nil {
		return err
	}
	if _, err := w.Write(append(header, '\n')); err != nil {
		return err
	}
	var head ChainHead // head of the entries written so far
	lines := newLineReader(r)
	for started := false; head.Seq < point.Seq; {
		line, err := lines.nextLine()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("export segment: the log ends before the entry %d of the checkpoint; run 'shield audit verify'", point.Seq)
		}
		if err != nil {
			return fmt.Errorf("export segment: %w", err)
		}
		seq, prev, err := parseChainFields(line)
		if err != nil {
			return fmt.Errorf("export segment: %w; run 'shield audit verify'", err)
		}
		if seq < from {
			continue
		}
		if !started {
			started, head = true, ChainHead{from - 1, prev}
		}
		if seq != head.Seq+1 || prev != head.Hash {
			return fmt.Errorf("export segment: entry %d does not follow entry %d; export from entry %d on, or run 'shield audit verify'", seq, head.Seq, seq)
		}
		head = ChainHead{seq, hashLine(line)}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if head != point.ChainHead {
		return fmt.Errorf("export segment: entry %d is not the one that the checkpoint signs; run 'shield audit verify'", head.Seq)
	}
	return nil
}

// A SegmentReport is the result of [VerifySegment].
type SegmentReport struct {
	VerificationReport
	Checkpoint Checkpoint `json:"checkpoint"` // checkpoint that the segment contains; its signature was verified
}

// VerifySegment verifies the output of [WriteSegment] in bounded memory, and reports the first line
// that differs from the log at the time of signing; lines after the signed one count as inserted. The
// error is [ErrNoSegment], [ErrBadSignature] or a read error.
func VerifySegment(r io.Reader, key ed25519.PublicKey) (SegmentReport, error) {
	lines := newLineReader(r)
	line, err := lines.nextLine()
	if errors.Is(err, io.EOF) || errors.Is(err, errLongLine) {
		return SegmentReport{}, ErrNoSegment
	}
	if err != nil {
		return SegmentReport{}, fmt.Errorf("read segment: %w", err)
	}
	var header segmentHeader
	if json.Unmarshal(line, &header) != nil || header.Format != segmentFormat {
		return SegmentReport{}, ErrNoSegment
	}
	point := header.Checkpoint
	// Reject duplicate keys, unknown keys and keys in a different case, so that other JSON parsers
	// read the same values.
	if same, err := json.Marshal(header); err != nil || !bytes.Equal(same, line) || point.Seq == 0 {
		return SegmentReport{}, ErrNoSegment
	}
	if err := point.VerifySignature(key); err != nil {
		return SegmentReport{}, err
	}
	v := &verifier{storedHead: &point.ChainHead, verifiesLogSegment: true, currentLineReader: lines, lastRead: linePlace{line: 1}, nextFile: func() (string, io.Reader, error) { return "", nil, io.EOF }}
	v.report.FileCount = 1
	if err := v.verifyChain(); err != nil {
		return SegmentReport{}, err
	}
	if v.report.OK() && (v.report.EntriesAfterStoredHead > 0 || v.report.LastLineIncomplete) {
		v.setDamage(linePlace{line: v.lastRead.line - int(v.report.EntriesAfterStoredHead)}, point.Seq+1, DamageKindInserted, fmt.Sprintf("the signature covers the entries up to %d only; do not trust the later ones", point.Seq))
	}
	return SegmentReport{v.report, point}, nil
}
