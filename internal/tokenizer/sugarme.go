// The library github.com/sugarme/tokenizer needs 64-bit integers, so this file is not built for 386
// and arm.

//go:build !386 && !arm

package tokenizer

import (
	"unicode/utf8"

	library "github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
)

// maxVocabLookupsPerText limits how many vocabulary lookups the library sugarme makes for one text. For a
// word of n letters it makes up to n*(n+1)/2 lookups.
const maxVocabLookupsPerText = 1 << 19

// A libraryWordPiece divides words into the same tokens as [wordPiece], by the library
// sugarme/tokenizer.
type libraryWordPiece struct {
	model           wordpiece.WordPiece
	maxCharsPerWord int
}

// sugarmeModelIf64Bit returns a model in which the library sugarme/tokenizer splits words into tokens; the
// library needs 64-bit integers, which this system has. The model gives the library the vocabulary that this
// package has read, since the library's own reader ignores the prefix of tokens within a word.
func (w *wordPiece) sugarmeModelIf64Bit() wordModel {
	// The key of the unknown token is not valid UTF-8. So no text contains it: texts are valid UTF-8 when they
	// are split into tokens.
	const unknown = "\xff"
	vocab := library.Vocab{}
	for text, id := range w.tokenTable.allTokens() {
		vocab[text] = int(id)
	}
	vocab[unknown] = int(w.unknownID)
	m := wordpiece.NewWordPieceBuilder().Vocab(&vocab).UnkToken(unknown).
		ContinuingSubwordPrefix(w.continuationPrefix).MaxInputCharsPerWord(w.maxCharsPerWord).Build()
	return &libraryWordPiece{m, w.maxCharsPerWord}
}

func (s *libraryWordPiece) fitsVocabularyLookupLimit(words []preToken) bool {
	left := maxVocabLookupsPerText
	for _, w := range words {
		if n := utf8.RuneCountInString(w.text); n <= s.maxCharsPerWord {
			left -= n * (n + 1) / 2
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// appendTokens panics if the library sugarme/tokenizer returns an error. [Tokenizer.Encode] turns the panic into
// an error.
func (s *libraryWordPiece) appendTokens(dst []int64, word string) []int64 {
	tokens, err := s.model.Tokenize(word)
	if err != nil {
		panic(err)
	}
	for _, t := range tokens {
		dst = append(dst, int64(t.Id))
	}
	return dst
}
