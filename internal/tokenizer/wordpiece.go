package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A wordPiece divides a word into the longest tokens, from its beginning on. A
// word that leaves a rest is one unknown token as a whole.
type wordPiece struct {
	start    map[string]int64 // tokens as they stand in the vocabulary
	inside   map[string]int64 // tokens that continue a word, without their prefix
	prefix   string           // of those in the vocabulary
	longest  int              // bytes of the longest token
	maxChars int              // a longer word is unknown
	unk      int64
}

// newWordPiece takes over known, the ids of the vocabulary.
func newWordPiece(m *modelFile, known map[string]int64, special map[string]bool) (*wordPiece, error) {
	unk, prefix := "[UNK]", "##"
	w := &wordPiece{maxChars: 100}
	if m.UnkToken != nil {
		unk = *m.UnkToken
	}
	if m.Prefix != nil {
		prefix = *m.Prefix
	}
	if m.MaxChars != nil {
		w.maxChars = *m.MaxChars
	}
	if prefix == "" || len(prefix) > maxToken {
		return nil, errors.New("continuing_subword_prefix has to be a short text")
	}
	if w.maxChars < 1 || w.maxChars > 10_000 {
		return nil, fmt.Errorf("max_input_chars_per_word is %d; 1 to 10000 are expected", w.maxChars)
	}
	var ok bool
	if w.unk, ok = known[unk]; !ok {
		return nil, fmt.Errorf("the unknown token %.80q is not in the vocabulary", unk)
	}
	delete(known, unk)
	for text := range special {
		delete(known, text)
	}
	w.prefix = prefix
	within := 0
	for i := range m.Vocab.tokens {
		if strings.HasPrefix(m.Vocab.tokens[i].text, prefix) {
			within++
		}
	}
	w.start, w.inside = known, make(map[string]int64, within)
	for i := range m.Vocab.tokens {
		t := &m.Vocab.tokens[i]
		if t.text == unk || special[t.text] {
			continue
		}
		w.longest = max(w.longest, len(t.text))
		if rest, ok := strings.CutPrefix(t.text, prefix); ok && rest != "" {
			w.inside[rest] = t.id
		}
	}
	return w, nil
}

func (w *wordPiece) tokens(dst []int64, word string) []int64 {
	before := len(dst)
	if len(word) > w.maxChars && utf8.RuneCountInString(word) > w.maxChars {
		return append(dst, w.unk)
	}
	known := w.start
	for word != "" {
		end := min(len(word), w.longest)
		for ; end > 0; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			if id, ok := known[word[:end]]; ok {
				dst = append(dst, id)
				break
			}
		}
		if end == 0 {
			return append(dst[:before], w.unk)
		}
		word, known = word[end:], w.inside
	}
	return dst
}
