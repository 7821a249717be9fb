// The library github.com/sugarme/tokenizer needs 64-bit integers, so this file is not built for 386
// and arm.

//go:build !386 && !arm

package tokenizer

import (
	"unicode/utf8"

	library "github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
)

// maxVocabLookups limits how many vocabulary lookups the library sugarme makes for one text. For a
// word of n letters it makes up to n*(n+1)/2 lookups.
const maxVocabLookups = 1 << 19

// A libraryWordPiece divides words as [wordPiece] does, by the library of that name.
type libraryWordPiece struct {
	model    wordpiece.WordPiece
	maxChars int
}

// libraryWordPieceModelOrSelf returns a model that does the same by the library. It is given the
// vocabulary that was read here, since its own reading ignores the prefix of
// tokens within a word.
func (w *wordPiece) libraryWordPieceModelOrSelf() wordModel {
	// A text cannot spell the unknown token: it is valid UTF-8 when it is divided.
	const unknown = "\xff"
	vocab := library.Vocab{}
	for text, id := range w.wordTable.allTokens() {
		vocab[text] = int(id)
	}
	vocab[unknown] = int(w.unknownID)
	m := wordpiece.NewWordPieceBuilder().Vocab(&vocab).UnkToken(unknown).
		ContinuingSubwordPrefix(w.continuationPrefix).MaxInputCharsPerWord(w.maxChars).Build()
	return &libraryWordPiece{m, w.maxChars}
}

func (s *libraryWordPiece) fitsLookupLimit(words []textPart) bool {
	left := maxVocabLookups
	for _, w := range words {
		if n := utf8.RuneCountInString(w.text); n <= s.maxChars {
			left -= n * (n + 1) / 2
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// appendTokens panics where the library fails, which [Tokenizer.Encode] makes an error.
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
