package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A packedTokenizerHeader is the first line of a packed tokenizer, in JSON. The hash slots and the entries
// of its [packedVocab] follow.
type packedTokenizerHeader struct {
	VocabSize          int            `json:"size"`
	PadTokenID         int64          `json:"pad"`
	PrefixIDs          []int64        `json:"before"`
	SuffixIDs          []int64        `json:"after"`
	Normalizer         jsontext.Value `json:"normalizer"`
	Splitter           jsontext.Value `json:"splitter"`
	UnknownID          int64          `json:"unknown"`
	ContinuationPrefix string         `json:"prefix"`
	MaxTokenBytes      int            `json:"longest"`
	MaxCharsPerWord    int            `json:"max_chars"`
	HashSlotTableBytes int            `json:"slots"` // bytes
}

// Pack returns a tokenizer.json in the form that [OpenPacked] opens. Only WordPiece
// has one.
func Pack(data []byte) ([]byte, error) {
	t, err := OpenBuiltinTokenizer(data)
	if err != nil {
		return nil, err
	}
	m, ok := t.model.(*wordPiece)
	f, err := parseFile(data)
	if !ok || err != nil {
		return nil, errors.Join(err, errors.New("tokenizer.json: only a WordPiece tokenizer can be packed"))
	}
	p := packedTokenizerHeader{t.allTokenIDCount, t.padID, t.prefixIDs, t.suffixIDs, f.Normalizer, f.PreTokenizer, m.unknownID, m.continuationPrefix, m.maxTokenBytes, m.maxCharsPerWord, len(m.tokenTable.hashSlots)}
	line, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{line, []byte("\n"), []byte(m.tokenTable.hashSlots), []byte(m.tokenTable.entryBytes)}, nil), nil
}

// OpenPacked opens data in the form that [Pack] returns. It does not copy the vocabulary, so a process that
// tokenizes a single text reads only the entries that this text needs.
func OpenPacked(data string) (*Tokenizer, error) {
	line, rest, _ := strings.Cut(data, "\n")
	var p packedTokenizerHeader
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		return nil, fmt.Errorf("packed tokenizer: %w", shortenDecodeError(err))
	}
	if p.HashSlotTableBytes <= 0 || p.HashSlotTableBytes > len(rest) || p.HashSlotTableBytes&(p.HashSlotTableBytes-1) != 0 {
		return nil, errors.New("packed tokenizer: the file is truncated")
	}
	t := &Tokenizer{allTokenIDCount: p.VocabSize, padID: p.PadTokenID, prefixIDs: p.PrefixIDs, suffixIDs: p.SuffixIDs}
	var err, also error
	t.normalize, err = parseNormalizer(p.Normalizer)
	t.split, also = parseSplitter(p.Splitter)
	if err = errors.Join(err, also); err != nil {
		return nil, fmt.Errorf("packed tokenizer: %w", err)
	}
	t.model = &wordPiece{tokenTable: packedVocab{rest[:p.HashSlotTableBytes], rest[p.HashSlotTableBytes:]}, continuationPrefix: p.ContinuationPrefix, continuationPrefixHash: hashText(emptyTextHash, p.ContinuationPrefix), maxTokenBytes: p.MaxTokenBytes, maxCharsPerWord: p.MaxCharsPerWord, unknownID: p.UnknownID}
	return t, nil
}
