package action

// An objectScan is the state of scanning one JSON object. The scan follows nesting and strings and rejects a "{"
// in an invalid place; the parser checks the rest of the grammar.
type objectScan struct {
	depth            int
	arrayLevelBits   uint64 // bit i: the container at depth i+1 is an array; only for the outer 64 levels
	lastNonSpaceByte byte   // last byte that was not white space

	inString, escaped bool

	// The first line within the object that starts with "{": its offset from the start of the record, and its
	// line number; 0 if there is none. If the object turns out to be broken, the next record starts there.
	recoveryOffsetInRecord, recoveryLineNumber int
	tooDeep                                    bool // nested deeper than MaxJSONNestingDepth somewhere
}

// scanObject moves pos past the object that begins there. Errors other than errTooLarge and errFraming come from
// the source.
func (r *Reader) scanObject(o *objectScan) error {
	for {
		for r.scanPosInBuf < r.dataEndInBuf {
			if o.inString {
				if !r.scanString(o) {
					return errFraming
				}
				continue
			}
			c := r.buf[r.scanPosInBuf]
			switch c {
			case '\n':
				r.lineAtScanPos++
			case ' ', '\t', '\r':
			case '"':
				o.inString = true
			case '{', '[':
				if c == '{' && r.atLineStart() {
					if o.recoveryOffsetInRecord == 0 {
						o.recoveryOffsetInRecord, o.recoveryLineNumber = r.scanPosInBuf-r.recordStartInBuf, r.lineAtScanPos
					}
					if o.tooDeep {
						return errFraming // the record is broken: do not let it swallow more lines
					}
				}
				if !o.enterBracket(c) {
					return errFraming
				}
			case '}', ']':
				if !o.leaveBracket(c) {
					return errFraming
				}
			}
			if c > ' ' {
				o.lastNonSpaceByte = c
			}
			r.scanPosInBuf++
			if o.depth == 0 {
				if r.scanPosInBuf-r.recordStartInBuf > r.opts.MaxRecordBytes {
					return errTooLarge
				}
				return nil
			}
		}
		if err := r.readMore(); err != nil {
			return err
		}
	}
}

// scanString moves past the end of a string, or to the end of the available data. It returns false at a
// newline, which no string can contain, so that a truncated line ends there.
func (r *Reader) scanString(o *objectScan) bool {
	for i, c := range r.buf[r.scanPosInBuf:r.dataEndInBuf] {
		switch {
		case c == '\n':
			r.scanPosInBuf += i
			return false
		case o.escaped:
			o.escaped = false
		case c == '\\':
			o.escaped = true
		case c == '"':
			o.inString = false
			r.scanPosInBuf += i + 1
			return true
		}
	}
	r.scanPosInBuf = r.dataEndInBuf
	return true
}

// enterBracket enters an array or object. An object can only be the first token of the record, a member's value or an
// element of an array.
func (o *objectScan) enterBracket(c byte) bool {
	ok := o.depth == 0 || o.lastNonSpaceByte == ':' || o.depth > 64 ||
		o.arrayLevelBits>>(o.depth-1)&1 == 1 && (o.lastNonSpaceByte == '[' || o.lastNonSpaceByte == ',')
	if c == '{' && !ok {
		return false
	}
	if o.depth < 64 {
		o.arrayLevelBits &^= 1 << o.depth
		if c == '[' {
			o.arrayLevelBits |= 1 << o.depth
		}
	}
	o.depth++
	o.tooDeep = o.tooDeep || o.depth > MaxJSONNestingDepth
	return true
}

// leaveBracket leaves an array or object, whose bracket must match.
func (o *objectScan) leaveBracket(c byte) bool {
	if o.depth <= 64 && (o.arrayLevelBits>>(o.depth-1)&1 == 1) != (c == ']') {
		return false
	}
	o.depth--
	return true
}

func (r *Reader) atLineStart() bool {
	return r.scanPosInBuf > r.recordStartInBuf && r.buf[r.scanPosInBuf-1] == '\n'
}

// resumeAfterBrokenObject moves to the position where reading continues after a broken object: back to
// the first line in it that starts with "{", else past the line on which the scan failed.
//
// The scan of an object that exceeds the nesting limit stops at the next line that starts with "{".
// So each byte is scanned again at most once for each bracket level that was open at the byte.
func (r *Reader) resumeAfterBrokenObject(o *objectScan, failure error) error {
	switch {
	case o.recoveryOffsetInRecord > 0:
		r.scanPosInBuf = r.recordStartInBuf + o.recoveryOffsetInRecord
		r.lineAtScanPos = o.recoveryLineNumber
		return nil
	case failure != errFraming:
		return nil // the input ended
	default:
		return r.skipRestOfLine()
	}
}
