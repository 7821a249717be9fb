package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A packed tokenizer begins with this line, in JSON; the slots of its [words]
// follow, and their texts.
type packed struct {
	Size       int            `json:"size"`
	Pad        int64          `json:"pad"`
	Before     []int64        `json:"before"`
	After      []int64        `json:"after"`
	Normalizer jsontext.Value `json:"normalizer"`
	Splitter   jsontext.Value `json:"splitter"`
	Unknown    int64          `json:"unknown"`
	Prefix     string         `json:"prefix"`
	Longest    int            `json:"longest"`
	MaxChars   int            `json:"max_chars"`
	Slots      int            `json:"slots"` // bytes
}

// Pack returns a tokenizer.json in the form that [OpenPacked] opens. Only WordPiece
// has one.
func Pack(data []byte) ([]byte, error) {
	t, err := Open(data)
	if err != nil {
		return nil, err
	}
	m, ok := t.model.(*wordPiece)
	f, err := parseFile(data)
	if !ok || err != nil {
		return nil, errors.Join(err, errors.New("tokenizer.json: only a WordPiece tokenizer can be packed"))
	}
	p := packed{t.size, t.pad, t.prefix, t.suffix, f.Normalizer, f.PreTokenizer, m.unk, m.prefix, m.longest, m.maxChars, len(m.words.slots)}
	line, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{line, []byte("\n"), []byte(m.words.slots), []byte(m.words.texts)}, nil), nil
}

// OpenPacked opens what [Pack] has written, of which nothing is copied: a process
// that tokenizes one text reads what that text needs.
func OpenPacked(data string) (*Tokenizer, error) {
	line, rest, _ := strings.Cut(data, "\n")
	var p packed
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		return nil, fmt.Errorf("packed tokenizer: %w", decodeError(err))
	}
	if p.Slots <= 0 || p.Slots > len(rest) || p.Slots&(p.Slots-1) != 0 {
		return nil, errors.New("packed tokenizer: the file is truncated")
	}
	t := &Tokenizer{size: p.Size, pad: p.Pad, prefix: p.Before, suffix: p.After}
	var err, also error
	t.normalize, err = parseNormalizer(p.Normalizer)
	t.split, also = parseSplitter(p.Splitter)
	if err = errors.Join(err, also); err != nil {
		return nil, fmt.Errorf("packed tokenizer: %w", err)
	}
	t.model = &wordPiece{words: words{rest[:p.Slots], rest[p.Slots:]}, prefix: p.Prefix, begun: hash(newHash, p.Prefix), longest: p.Longest, maxChars: p.MaxChars, unk: p.Unknown}
	return t, nil
}
