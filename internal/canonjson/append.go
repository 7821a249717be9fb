package canonjson

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Append appends the canonical form of raw, one JSON value of any kind and at
// most maxDepth levels, to dst. Its errors are of type [*Error].
func Append(dst, raw []byte, maxDepth int) ([]byte, error) {
	p, err := newParser(raw, maxDepth)
	if err != nil {
		return dst, err
	}
	defer p.releaseParser()
	out, err := p.appendValue(dst, 1)
	if err == nil {
		err = p.checkEnd()
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

// appendValue reads a value and appends its canonical form.
func (p *parser) appendValue(dst []byte, depth int) ([]byte, error) {
	switch p.dec.PeekKind() {
	case '"':
		lit, err := p.dec.ReadValue()
		if err != nil {
			return dst, p.convertJSONTextError(err)
		}
		if bytes.IndexByte(lit, '\\') < 0 {
			return append(dst, lit...), nil
		}
		s, err := jsontext.AppendUnquote(nil, lit)
		if err != nil {
			return dst, p.convertJSONTextError(err)
		}
		return AppendString(dst, string(s)), nil
	case '{':
		return p.appendObject(dst, depth)
	case '[':
		return p.appendArray(dst, depth)
	default:
		lit, err := p.dec.ReadValue()
		if err != nil {
			return dst, p.convertJSONTextError(err)
		}
		if lit.Kind() == '0' {
			return appendNumber(dst, lit), nil
		}
		return append(dst, lit...), nil
	}
}

func (p *parser) appendArray(dst []byte, depth int) ([]byte, error) {
	if depth > p.maxDepth {
		return dst, p.tooDeepError()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return dst, p.convertJSONTextError(err)
	}
	dst = append(dst, '[')
	for first := true; p.dec.PeekKind() != ']'; first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = p.appendValue(dst, depth+1); err != nil {
			return dst, err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return dst, p.convertJSONTextError(err)
	}
	return append(dst, ']'), nil
}

// A writtenMember is an object member that was written to dst: dst[start:end] contains its name and
// value.
type writtenMember struct {
	name       string
	start, end int
}

func (p *parser) appendObject(dst []byte, depth int) ([]byte, error) {
	if depth > p.maxDepth {
		return dst, p.tooDeepError()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return dst, p.convertJSONTextError(err)
	}
	dst = append(dst, '{')
	begin := len(dst)
	var few [8]writtenMember
	members := few[:0]
	var seen seenNames
	sorted := true
	for p.dec.PeekKind() != '}' {
		name, err := p.parseName(&seen)
		if err != nil {
			return dst, err
		}
		if n := len(members); n > 0 {
			dst = append(dst, ',')
			sorted = sorted && compareUTF16(members[n-1].name, name) < 0
		}
		start := len(dst)
		dst = append(AppendString(dst, name), ':')
		if dst, err = p.appendValue(dst, depth+1); err != nil {
			return dst, prependToFieldPath(err, name)
		}
		members = append(members, writtenMember{name, start, len(dst)})
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return dst, p.convertJSONTextError(err)
	}
	if !sorted {
		slices.SortFunc(members, func(a, b writtenMember) int { return compareUTF16(a.name, b.name) })
		p.memberSortBuffer = append(p.memberSortBuffer[:0], dst[begin:]...)
		dst = dst[:begin]
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, p.memberSortBuffer[m.start-begin:m.end-begin]...)
		}
	}
	return append(dst, '}'), nil
}
