package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A span is a byte range of a document, from start up to but not including end.
type span struct{ start, end int }

// appendAt returns doc with a value appended to the array at a key path. Missing objects and arrays
// are created. All other bytes stay.
func appendAt(doc []byte, path []string, value any) ([]byte, error) {
	text, _ := toStrictJSON(doc)
	if len(bytes.TrimSpace(text)) == 0 && bytes.Equal(text, doc) {
		doc, text = []byte("{}\n"), []byte("{}\n")
	}
	at, err := topLevelObject(text)
	if err != nil {
		return nil, err
	}
	for i, key := range path {
		next, ok, err := memberValue(text, at, key)
		if err != nil {
			return nil, err
		}
		if !ok {
			for j := len(path) - 1; j > i; j-- {
				if j == len(path)-1 {
					value = []any{value}
				}
				value = map[string]any{path[j]: value}
			}
			if i == len(path)-1 {
				value = []any{value}
			}
			return insertValue(doc, text, at, i, quoteJSON(key)+": ", value)
		}
		at = next
	}
	if text[at.start] != '[' {
		return nil, fmt.Errorf("%s is not a list; correct it", strings.Join(path, "."))
	}
	return insertValue(doc, text, at, len(path), "", value)
}

// removeAt returns doc without the matching elements of the array at a key path, and the removed
// elements.
func removeAt(doc []byte, path []string, match func(element []byte) bool) ([]byte, [][]byte, error) {
	list, there, err := spanAtPath(doc, path)
	switch {
	case err != nil:
		return nil, nil, err
	case !there:
		return doc, nil, nil
	}
	text, _ := toStrictJSON(doc)
	parts, err := elementSpans(text, list)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	var gone [][]byte
	out := bytes.Clone(doc)
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		if !match(text[p.start:p.end]) {
			continue
		}
		gone = append(gone, text[p.start:p.end])
		rest := removeElement(out, list, parts, i)
		list.end -= len(out) - len(rest)
		out = rest
		parts = append(parts[:i], parts[i+1:]...)
	}
	if strict, _ := toStrictJSON(out); len(gone) > 0 && !jsontext.Value(strict).IsValid() {
		return nil, nil, errors.New("the hook cannot be separated from the text around it; remove it by hand")
	}
	return out, gone, nil
}

// removeElement returns doc without the i-th element of the array or object at a span, and without its
// comma. Comments next to a sole element are kept.
func removeElement(doc []byte, at span, parts []span, i int) []byte {
	from, to := parts[i].start, parts[i].end
	switch {
	case i > 0: // not the first element: remove the comma before the element, too
		from = parts[i-1].end
	case len(parts) > 1: // the first element: remove the comma after it
		to = parts[1].start
	case len(bytes.TrimSpace(doc[at.start+1:from])) == 0 && len(bytes.TrimSpace(doc[to:at.end-1])) == 0: // the only element
		from, to = at.start+1, at.end-1
	}
	return append(doc[:from:from], doc[to:]...)
}

// removeEmptyAddedContainers removes from doc the list at a key path and the objects around it, if
// they are empty and originalDoc, the document before shield changed it, does not contain them.
func removeEmptyAddedContainers(doc []byte, keyPath []string, originalDoc []byte) []byte {
	for n := len(keyPath); n > 0; n-- {
		_, known, err := spanAtPath(originalDoc, keyPath[:n])
		if known || err != nil && len(bytes.TrimSpace(originalDoc)) > 0 {
			return doc
		}
		value, there, err := spanAtPath(doc, keyPath[:n])
		if !there || err != nil || len(bytes.TrimSpace(doc[value.start+1:value.end-1])) > 0 {
			return doc
		}
		parent, _, err := spanAtPath(doc, keyPath[:n-1])
		if err != nil {
			return doc
		}
		text, _ := toStrictJSON(doc)
		all, err := members(text, parent)
		if err != nil {
			return doc
		}
		var parts []span
		for _, m := range all {
			parts = append(parts, span{m.nameOffset, m.end})
		}
		i := slices.IndexFunc(all, func(m jsonMemberValueSpan) bool { return m.span == value })
		rest := removeElement(doc, parent, parts, i)
		if strict, _ := toStrictJSON(rest); !jsontext.Value(strict).IsValid() {
			return doc // there are comments between the elements
		}
		doc = rest
	}
	return doc
}

// spanAtPath returns the span of the value at a key path.
func spanAtPath(doc []byte, path []string) (v span, there bool, err error) {
	text, _ := toStrictJSON(doc)
	if v, err = topLevelObject(text); err != nil {
		return v, false, err
	}
	for _, key := range path {
		if v, there, err = memberValue(text, v, key); !there || err != nil {
			return v, false, err
		}
	}
	return v, true, nil
}

// topLevelObject returns the span of a document's top-level object.
func topLevelObject(doc []byte) (span, error) {
	if err := checkDepth(doc); err != nil {
		return span{}, err
	}
	if !jsontext.Value(doc).IsValid() {
		return span{}, errors.New("the file is not valid JSON; correct it")
	}
	start := bytes.IndexByte(doc, '{')
	if start < 0 || len(bytes.TrimSpace(doc[:start])) > 0 {
		return span{}, errors.New("the file is not a JSON object; correct it")
	}
	return span{start, bytes.LastIndexByte(doc, '}') + 1}, nil
}

// memberValue returns the span of a key's value in an object.
func memberValue(doc []byte, at span, key string) (span, bool, error) {
	if doc[at.start] != '{' {
		return span{}, false, fmt.Errorf("cannot add %q: its parent is not a JSON object; correct the file", key)
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc[at.start:at.end]))
	if _, err := d.ReadToken(); err != nil {
		return span{}, false, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return span{}, false, err
		}
		found := name.String() == key
		v, err := d.ReadValue()
		if err != nil {
			return span{}, false, err
		}
		if found {
			end := at.start + int(d.InputOffset())
			return span{end - len(v), end}, true, nil
		}
	}
	return span{}, false, nil
}

// elementSpans returns the spans of an array's elements.
func elementSpans(doc []byte, at span) ([]span, error) {
	if doc[at.start] != '[' {
		return nil, errors.New("the value is not a list; write a list")
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc[at.start:at.end]))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var out []span
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := at.start + int(d.InputOffset())
		out = append(out, span{end - len(v), end})
	}
	return out, nil
}

// insertValue adds a value at the end of the object or array at a span, level levels deep. text is doc as
// strict JSON.
func insertValue(doc, text []byte, at span, level int, key string, value any) ([]byte, error) {
	unit, end := indentUnit(text), "\n"
	if bytes.Contains(doc, []byte("\r\n")) {
		end = "\r\n"
	}
	raw, err := encodeCompactJSON(value)
	if err != nil {
		return nil, err
	}
	inner := strings.Repeat(unit, level+1)
	if err := raw.Indent(jsontext.WithIndentPrefix(inner), jsontext.WithIndent(unit)); err != nil {
		return nil, err
	}
	more := "\n" + inner + key + string(raw)
	last := at.end - 1 // the closing bracket
	for last > at.start && isSpace(text[last-1]) {
		last--
	}
	rest := doc[last:]
	switch {
	case last-1 > at.start:
		more = "," + more
	case len(bytes.TrimSpace(doc[last:at.end-1])) == 0: // empty, without comments
		more += "\n" + strings.Repeat(unit, level)
		rest = doc[at.end-1:]
	}
	more = strings.ReplaceAll(more, "\n", end)
	return append(append(bytes.Clone(doc[:last]), more...), rest...), nil
}

// indentUnit returns the indentation of a document's first level.
func indentUnit(doc []byte) string {
	for line := range bytes.Lines(doc) {
		if n := len(line) - len(bytes.TrimLeft(line, " \t")); n > 0 && len(bytes.TrimSpace(line)) > 0 {
			return string(line[:n])
		}
	}
	return "  "
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func quoteJSON(key string) string {
	raw, err := jsontext.AppendQuote(nil, key)
	if err != nil {
		return `""`
	}
	return string(raw)
}
