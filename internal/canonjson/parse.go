package canonjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// An ErrorKind is the reason why a text was rejected.
type ErrorKind uint8

// The kinds of errors.
const (
	ErrorKindSyntax            ErrorKind = iota // not JSON
	ErrorKindInvalidUTF8                        // not UTF-8
	ErrorKindUnpairedSurrogate                  // an unpaired surrogate in an escape
	ErrorKindDuplicateName                      // two names of an object are equal, or differ only in case
	ErrorKindTooDeep                            // nesting exceeds the limit
	ErrorKindNotObject                          // valid JSON, but not an object
)

// An Error is the reason and position of a rejected text.
type Error struct {
	Kind   ErrorKind
	Field  string // member names from the outermost object inwards, joined by dots; can be empty
	Offset int64  // byte offset in the text; the error is there or after it
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Member is one name and its value in an object.
type Member struct {
	Name  string
	Value any    // as returned by [ParseValue]
	Raw   []byte // the value's text, a part of the input
}

// ParseValue parses raw as one JSON value of at most maxDepth levels (the outermost is 1). It returns
// string, bool, nil, jsontext.Value (a number's text, part of raw), []any or map[string]any. Its
// errors are of type [*Error].
func ParseValue(raw []byte, maxDepth int) (any, error) {
	p, err := newParser(raw, maxDepth)
	if err != nil {
		return nil, err
	}
	defer p.releaseParser()
	v, err := p.parseValue(1)
	if err == nil {
		err = p.checkEnd()
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// ParseObjectMembers parses raw as one JSON object, by the rules of [ParseValue], and appends its
// members to dst in input order.
func ParseObjectMembers(dst []Member, raw []byte, maxDepth int) ([]Member, error) {
	p, err := newParser(raw, maxDepth)
	if err != nil {
		return dst, err
	}
	defer p.releaseParser()
	switch kind := p.dec.PeekKind(); kind {
	case '{':
	case '"', '0', 't', 'f', 'n', '[':
		return dst, &Error{Kind: ErrorKindNotObject, Err: fmt.Errorf("expected a JSON object, found %s; write one JSON object", kindName(kind))}
	default:
		_, err := p.dec.ReadToken()
		return dst, p.convertJSONTextError(err)
	}
	err = p.parseMembers(1, func(name string, value any, raw []byte) {
		dst = append(dst, Member{name, value, raw})
	})
	if err == nil {
		err = p.checkEnd()
	}
	return dst, err
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	default:
		return kind.String()
	}
}

type parser struct {
	dec              *jsontext.Decoder
	decoderInput     bytes.Buffer
	raw              []byte
	wholeInputString string // raw as a string; strings without escapes are slices of it
	maxDepth         int
	memberSortBuffer []byte // of append
}

var parsers = sync.Pool{New: func() any { return &parser{dec: new(jsontext.Decoder)} }}

// allowDuplicates disables jsontext's check of names, since [seenNames] is stricter.
var allowDuplicates = sync.OnceValue(func() jsontext.Options { return jsontext.AllowDuplicateNames(true) })

func newParser(raw []byte, maxDepth int) (*parser, error) {
	if !utf8.Valid(raw) {
		return nil, &Error{Kind: ErrorKindInvalidUTF8, Offset: int64(validUTF8PrefixLen(raw)), Err: errors.New("the text is not UTF-8; convert it")}
	}
	p := parsers.Get().(*parser)
	p.decoderInput = *bytes.NewBuffer(raw)
	p.raw, p.wholeInputString, p.maxDepth = raw, string(raw), maxDepth
	p.dec.Reset(&p.decoderInput, allowDuplicates())
	return p, nil
}

func (p *parser) releaseParser() {
	p.decoderInput, p.raw, p.wholeInputString = bytes.Buffer{}, nil, ""
	p.dec.Reset(&p.decoderInput)
	if cap(p.memberSortBuffer) > 64<<10 { // do not keep a large buffer
		p.memberSortBuffer = nil
	}
	parsers.Put(p)
}

func validUTF8PrefixLen(raw []byte) int {
	n := 0
	for n < len(raw) {
		r, size := utf8.DecodeRune(raw[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

func (p *parser) parseValue(depth int) (any, error) {
	switch p.dec.PeekKind() {
	case '"':
		return p.parseString()
	case '0':
		lit, err := p.dec.ReadValue()
		if err != nil {
			return nil, p.convertJSONTextError(err)
		}
		return lit, nil
	case '{':
		m := make(map[string]any)
		err := p.parseMembers(depth, func(name string, value any, _ []byte) { m[name] = value })
		return m, err
	case '[':
		return p.parseArray(depth)
	default:
		token, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.convertJSONTextError(err)
		}
		if token.Kind() == 'n' {
			return nil, nil
		}
		return token.Bool(), nil
	}
}

func (p *parser) parseString() (string, error) {
	lit, err := p.dec.ReadValue()
	if err != nil {
		return "", p.convertJSONTextError(err)
	}
	if bytes.IndexByte(lit, '\\') < 0 {
		end := int(p.dec.InputOffset()) - 1
		return p.wholeInputString[end-len(lit)+2 : end], nil
	}
	s, err := jsontext.AppendUnquote(nil, lit)
	if err != nil {
		return "", p.convertJSONTextError(err)
	}
	return string(s), nil
}

func (p *parser) parseArray(depth int) (any, error) {
	if depth > p.maxDepth {
		return nil, p.tooDeepError()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.convertJSONTextError(err)
	}
	list := []any{}
	for p.dec.PeekKind() != ']' {
		v, err := p.parseValue(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.convertJSONTextError(err)
	}
	return list, nil
}

// parseMembers reads an object and calls add for each member.
func (p *parser) parseMembers(depth int, add func(name string, value any, raw []byte)) error {
	if depth > p.maxDepth {
		return p.tooDeepError()
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return p.convertJSONTextError(err)
	}
	var seen seenNames
	for p.dec.PeekKind() != '}' {
		name, err := p.parseName(&seen)
		if err != nil {
			return err
		}
		start := p.dec.InputOffset()
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return prependToFieldPath(err, name)
		}
		raw := p.raw[start:p.dec.InputOffset()]
		for raw[0] == ':' || raw[0] <= ' ' { // the colon and white space
			raw = raw[1:]
		}
		add(name, value, raw)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return p.convertJSONTextError(err)
	}
	return nil
}

// parseName parses a member's name, which must not be in seen.
func (p *parser) parseName(seen *seenNames) (string, error) {
	if kind := p.dec.PeekKind(); kind != '"' {
		_, err := p.dec.ReadToken()
		if err == nil { // never true, since jsontext rejects member names that are not strings
			err = fmt.Errorf("a key must be a string, found %v; put it in quotes", kind)
		}
		return "", p.convertJSONTextError(err)
	}
	name, err := p.parseString()
	if err != nil {
		return "", err
	}
	if other, ok := seen.add(name); !ok {
		return "", &Error{Kind: ErrorKindDuplicateName, Field: Quote(name), Offset: p.dec.InputOffset(),
			Err: fmt.Errorf("the keys %q and %q are the same, or differ only in case; remove one", Quote(other), Quote(name))}
	}
	return name, nil
}

// checkEnd returns an error if anything follows.
func (p *parser) checkEnd() error {
	_, err := p.dec.ReadToken()
	if err == io.EOF {
		return nil
	}
	if err == nil {
		err = errors.New("there is more than one JSON value; keep one")
	}
	return p.convertJSONTextError(err)
}

func (p *parser) tooDeepError() error {
	return &Error{Kind: ErrorKindTooDeep, Offset: p.dec.InputOffset(), Err: fmt.Errorf("the JSON is nested deeper than %d levels; flatten it", p.maxDepth)}
}

// convertJSONTextError converts a jsontext error into an [*Error] that does not quote the text, which can be hostile
// or secret.
func (p *parser) convertJSONTextError(err error) error {
	e := &Error{Kind: ErrorKindSyntax, Offset: p.dec.InputOffset(), Err: errors.New("not JSON")}
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		e.Err = errors.New("not JSON: the text is truncated; send the whole value")
	case errors.As(err, &syntactic):
		e.Offset = syntactic.ByteOffset
		if at := e.Offset; at >= 0 && at <= int64(len(p.raw)) && isSurrogateEscape(p.raw[at:]) {
			e.Kind, e.Err = ErrorKindUnpairedSurrogate, errors.New("the text contains half of a surrogate pair; write the whole character")
			break
		}
		e.Err = fmt.Errorf("the text is not valid JSON at byte %d; correct it", e.Offset+1)
	}
	return e
}

// isSurrogateEscape reports whether b begins with \ud800 to \udfff.
func isSurrogateEscape(b []byte) bool {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || b[2]|0x20 != 'd' {
		return false
	}
	return strings.IndexByte("89abcdefABCDEF", b[3]) >= 0
}

// prependToFieldPath adds the name of a JSON object member to the start of the field path
// of an error that was found in the member's value.
func prependToFieldPath(err error, name string) error {
	var e *Error
	if errors.As(err, &e) {
		if e.Field == "" {
			e.Field = Quote(name)
		} else if len(e.Field) < maxErrorFieldPathBytes {
			e.Field = Quote(name) + "." + e.Field
		}
	}
	return err
}

const maxErrorFieldPathBytes = 256 // approximate maximum of an error's field, in bytes

// Quote makes a name from the input displayable: at most 80 characters, without controls, separators
// and invisible characters.
func Quote(s string) string {
	n, clean := 0, true
	for i, r := range s {
		if n++; n > 80 {
			s = s[:i] + "…"
			break
		}
		clean = clean && r != utf8.RuneError && (r == ' ' || unicode.IsPrint(r))
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// seenNames are the names of one object so far.
type seenNames struct {
	firstNames  [8]string
	count       int
	namesByFold map[string]string // case-folded name to original name; used when firstNames is full
}

// add adds a name. If the same name, or one that differs only in case, exists, it returns that name
// and false. encoding/json and others treat such names as the same key, so two parsers would see
// different actions.
func (ns *seenNames) add(name string) (conflictingName string, isNew bool) {
	if ns.namesByFold == nil {
		for _, other := range ns.firstNames[:ns.count] {
			if strings.EqualFold(other, name) {
				return other, false
			}
		}
		if ns.count < len(ns.firstNames) {
			ns.firstNames[ns.count] = name
			ns.count++
			return "", true
		}
		ns.namesByFold = make(map[string]string)
		for _, other := range ns.firstNames {
			ns.namesByFold[foldCase(other)] = other
		}
	}
	folded := foldCase(name)
	if other, found := ns.namesByFold[folded]; found {
		return other, false
	}
	ns.namesByFold[folded] = name
	return "", true
}

// foldCase returns the same text for all names that are equal under [strings.EqualFold].
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
