package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// A wordPiece divides a word into the longest tokens, from its beginning on. A
// word that leaves a rest is one unknown token as a whole.
type wordPiece struct {
	tokenTable             packedVocab
	continuationPrefix     string // prefix of tokens that continue a word
	continuationPrefixHash uint32 // its hash
	maxTokenBytes          int    // bytes of the longest token
	maxCharsPerWord        int    // a longer word is unknown
	unknownID              int64
}

// newWordPiece returns the WordPiece model in a model file. known maps each token to its ID. Tokens
// in special are never found in a text.
func newWordPiece(m *modelSection, known map[string]int64, special map[string]bool) (*wordPiece, error) {
	unk, prefix := "[UNK]", "##"
	w := &wordPiece{maxCharsPerWord: 100}
	if m.UnkToken != nil {
		unk = *m.UnkToken
	}
	if m.ContinuationPrefix != nil {
		prefix = *m.ContinuationPrefix
	}
	if m.MaxCharsPerWord != nil {
		w.maxCharsPerWord = *m.MaxCharsPerWord
	}
	if prefix == "" || len(prefix) > maxTokenBytes {
		return nil, errors.New("continuing_subword_prefix must be a short text")
	}
	if w.maxCharsPerWord < 1 || w.maxCharsPerWord > 10_000 {
		return nil, fmt.Errorf("max_input_chars_per_word is %d; use 1 to 10000", w.maxCharsPerWord)
	}
	var ok bool
	if w.unknownID, ok = known[unk]; !ok {
		return nil, fmt.Errorf("the unknown token %.80q is not in the vocabulary", unk)
	}
	w.continuationPrefix, w.continuationPrefixHash = prefix, hashText(emptyTextHash, prefix)
	spelled := make([]token, 0, len(m.Vocab.tokens))
	for _, t := range m.Vocab.tokens {
		if t.text != unk && !special[t.text] {
			spelled = append(spelled, t)
			w.maxTokenBytes = max(w.maxTokenBytes, len(t.text))
		}
	}
	w.tokenTable = newPackedVocab(spelled)
	return w, nil
}

func (w *wordPiece) appendTokens(dst []int64, word string) []int64 {
	before := len(dst)
	if len(word) > w.maxCharsPerWord && utf8.RuneCountInString(word) > w.maxCharsPerWord {
		return append(dst, w.unknownID)
	}
	prefix, begun := "", emptyTextHash
	for word != "" {
		id, n := w.longestToken(prefix, begun, word)
		if n == 0 {
			return append(dst[:before], w.unknownID)
		}
		dst = append(dst, id)
		word, prefix, begun = word[n:], w.continuationPrefix, w.continuationPrefixHash
	}
	return dst
}

// longestToken finds the longest token that consists of prefix and a non-empty beginning of word.
// It returns the id of the token and the length of that beginning; 0, 0 if there is no such token.
// h is the hash of prefix.
func (w *wordPiece) longestToken(prefix string, h uint32, word string) (id int64, n int) {
	var hashes [maxTokenBytes]uint32 // hashes of prefix followed by the first i+1 bytes of word
	end := min(len(word), w.maxTokenBytes-len(prefix))
	for i := range end {
		h = hashByte(h, word[i])
		hashes[i] = h
	}
	for ; end > 0; end-- {
		if end < len(word) && !utf8.RuneStart(word[end]) {
			continue
		}
		if id, ok := w.tokenTable.findID(hashes[end-1], prefix, word[:end]); ok {
			return id, end
		}
	}
	return 0, 0
}
