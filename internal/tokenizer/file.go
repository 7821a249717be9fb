package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a tokenizer.json. The largest in use, of XLM-R's family, has 17 MB
// and 250,002 tokens, none above 48 bytes.
const (
	maxFileBytes                 = 64 << 20
	maxVocabTokens               = 1 << 19
	maxTokenBytes                = 256     // bytes
	initialVocabCapacity         = 8 << 10 // number of tokens for which memory is reserved at once
	maxAddedTokens               = 4096    // added tokens
	maxNormalizerOrSplitterDepth = 8       // nesting depth of sequences
	maxNormalizerOrSplitterSteps = 32      // steps of a normalizer or splitter, with those of all nested sequences
)

// A tokenizerFile is the parts of a tokenizer.json that are followed. Others have to do
// with training, decoding, padding and truncation.
type tokenizerFile struct {
	AddedTokens   []addedToken   `json:"added_tokens"`
	Normalizer    jsontext.Value `json:"normalizer"`
	PreTokenizer  jsontext.Value `json:"pre_tokenizer"`
	PostProcessor jsontext.Value `json:"post_processor"`
	Padding       *struct {
		ID *int64 `json:"pad_id"`
	} `json:"padding"`
	Model *modelSection `json:"model"`
}

type addedToken struct {
	ID      int64  `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

type modelSection struct {
	Type               string     `json:"type"`
	Vocab              vocabulary `json:"vocab"`
	UnkToken           *string    `json:"unk_token"`
	UnkID              *int64     `json:"unk_id"`
	ContinuationPrefix *string    `json:"continuing_subword_prefix"`
	MaxCharsPerWord    *int       `json:"max_input_chars_per_word"`
	ByteFallback       bool       `json:"byte_fallback"`
}

// parseFile decodes a tokenizer.json. Names that occur twice are refused, as
// libraries differ on which of them counts.
func parseFile(data []byte) (*tokenizerFile, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, more than the limit of %d", len(data), maxFileBytes)
	}
	f := new(tokenizerFile)
	// Duplicate tokens are found below. Checking all other names for duplicates would take as long
	// as the rest of the parsing.
	if err := json.Unmarshal(data, f, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, shortenDecodeError(err)
	}
	if f.Model == nil {
		return nil, errors.New("the key model is missing")
	}
	if len(f.AddedTokens) > maxAddedTokens {
		return nil, fmt.Errorf("the file has %d added tokens, more than the limit of %d", len(f.AddedTokens), maxAddedTokens)
	}
	return f, nil
}

// shortenDecodeError shortens an error of the JSON decoder, whose own message would name Go types.
func shortenDecodeError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not valid JSON at byte %d: %.120s", syntax.ByteOffset, syntax.Err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		if semantic.Err != nil {
			return fmt.Errorf("%.80q: %.120s", semantic.JSONPointer, semantic.Err)
		}
		return fmt.Errorf("%.80q: found %s, which is not allowed there", semantic.JSONPointer, kindName(semantic.JSONKind))
	}
	return err
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

// A vocabulary is the model's tokens: for WordPiece an object of ids, for Unigram an
// array of pairs of token and score, whose place is the id.
type vocabulary struct {
	tokens               []token
	isTextScorePairArray bool
}

type token struct {
	text  string
	id    int64
	score float64
}

// UnmarshalJSONFrom reads a vocabulary token by token, so that one too large is
// refused before it fills the memory.
func (v *vocabulary) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	start, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch start.Kind() {
	case '[':
		v.isTextScorePairArray = true
	case '{':
	default:
		return errors.New("the vocabulary is neither an object nor an array")
	}
	v.tokens = make([]token, 0, initialVocabCapacity)
	for dec.PeekKind() != ']' && dec.PeekKind() != '}' {
		if len(v.tokens) == maxVocabTokens {
			return fmt.Errorf("more than %d tokens", maxVocabTokens)
		}
		var t token
		if v.isTextScorePairArray {
			t.id = int64(len(v.tokens))
			err = t.readTextScorePair(dec)
		} else {
			err = t.readVocabObjectMember(dec)
		}
		if err != nil {
			return err
		}
		v.tokens = append(v.tokens, t)
	}
	_, err = dec.ReadToken()
	return err
}

func (t *token) readVocabObjectMember(dec *jsontext.Decoder) error {
	name, err := dec.ReadToken()
	if err != nil {
		return err
	}
	t.text = name.String()
	id, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if id.Kind() != '0' {
		return fmt.Errorf("token %.80q has no number as its id", t.text)
	}
	if t.id, err = id.Int(); err != nil {
		return fmt.Errorf("token %.80q has the id %.40s", t.text, id.String())
	}
	return nil
}

func (t *token) readTextScorePair(dec *jsontext.Decoder) error {
	for i, kind := range []jsontext.Kind{'[', '"', '0', ']'} {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if tok.Kind() != kind {
			return fmt.Errorf("token %d is not a pair of text and score", t.id)
		}
		switch i {
		case 1:
			t.text = tok.String()
		case 2:
			if t.score, err = tok.Float(); err != nil {
				return fmt.Errorf("token %d: its score is out of range", t.id)
			}
		}
	}
	return nil
}

// buildTokenizer makes the tokenizer of shield's own model or of a foreign one.
func (f *tokenizerFile) buildTokenizer(isUserSupplied bool) (*Tokenizer, error) {
	t := &Tokenizer{}
	known, ids, err := f.collectIDs(&t.allTokenIDCount)
	if err != nil {
		return nil, err
	}
	special := map[string]bool{}
	for _, a := range f.AddedTokens {
		if a.Special {
			special[a.Content] = true
		}
	}
	if t.prefixIDs, t.suffixIDs, err = parseSpecialPrefixAndSuffix(f.PostProcessor, ids, special); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if t.normalize, err = parseNormalizer(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.split, err = parseSplitter(f.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.padID, err = f.findPadID(ids, special); err != nil {
		return nil, err
	}
	switch m := f.Model; {
	case m.Type == "WordPiece" && !m.Vocab.isTextScorePairArray, m.Type == "" && m.ContinuationPrefix != nil && !m.Vocab.isTextScorePairArray:
		var own *wordPiece
		if own, err = newWordPiece(m, known, special); err == nil {
			t.model = own
			if isUserSupplied {
				t.model = own.sugarmeModelIf64Bit()
			}
		}
	case m.Type == "Unigram" && m.Vocab.isTextScorePairArray:
		t.model, err = newUnigram(m, known, special)
	case m.Type == "WordPiece" || m.Type == "Unigram":
		err = fmt.Errorf("the vocabulary does not have the form of type %s", m.Type)
	default:
		err = fmt.Errorf("type %.80q is not supported; use WordPiece or Unigram", m.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return t, nil
}

// collectIDs returns the ids of the tokens of the vocabulary in vocabIDs, and the ids of these and
// the added tokens in allIDs; both are the same map if no added token is new. Two tokens with the
// same id are an error. *idCount is set to the largest id plus 1.
func (f *tokenizerFile) collectIDs(idCount *int) (vocabIDs, allIDs map[string]int64, err error) {
	tokens := f.Model.Vocab.tokens
	if len(tokens) == 0 {
		return nil, nil, errors.New("model: empty vocabulary")
	}
	ids := make(map[string]int64, len(tokens))
	owner := make([]bool, 0, len(tokens)+len(f.AddedTokens))
	add := func(text string, id int64) error {
		switch {
		case text == "" || len(text) > maxTokenBytes:
			return fmt.Errorf("token %d has %d bytes; the limit is 1 to %d", id, len(text), maxTokenBytes)
		case id < 0 || id >= 2*maxVocabTokens:
			return fmt.Errorf("token %.80q: id %d is out of range", text, id)
		}
		if had, ok := ids[text]; ok {
			if had == id {
				return nil
			}
			return fmt.Errorf("token %.80q has the ids %d and %d", text, had, id)
		}
		if int(id) >= len(owner) {
			owner = append(owner, make([]bool, int(id)+1-len(owner))...)
		}
		if owner[id] {
			return fmt.Errorf("two tokens have the ID %d, one of them %.80q", id, text)
		}
		owner[id] = true
		ids[text] = id
		return nil
	}
	for _, t := range tokens {
		if err := add(t.text, t.id); err != nil {
			return nil, nil, fmt.Errorf("model: %w", err)
		}
	}
	vocabIDs = ids
	for _, a := range f.AddedTokens {
		if _, has := vocabIDs[a.Content]; !has && len(ids) == len(vocabIDs) {
			ids = maps.Clone(vocabIDs)
		}
		if err := add(a.Content, a.ID); err != nil {
			return nil, nil, fmt.Errorf("added_tokens: %w", err)
		}
	}
	*idCount = len(owner)
	return vocabIDs, ids, nil
}

// findPadID returns the id of the padding token and marks its text as special.
func (f *tokenizerFile) findPadID(ids map[string]int64, special map[string]bool) (int64, error) {
	if f.Padding != nil && f.Padding.ID != nil {
		id := *f.Padding.ID
		if !slices.Contains(slices.Collect(maps.Values(ids)), id) {
			return 0, fmt.Errorf("padding: no token has the id %d", id)
		}
		return id, nil
	}
	for _, name := range []string{"[PAD]", "<pad>"} {
		if id, ok := ids[name]; ok {
			special[name] = true
			return id, nil
		}
	}
	return 0, nil
}
