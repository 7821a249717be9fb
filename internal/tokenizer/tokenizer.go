// Package tokenizer turns text into the numbers that a classifier model reads, as a tokenizer.json
// file of HuggingFace's says: WordPiece as BERT has it, and SentencePiece's Unigram as DeBERTa-v3,
// T5 and XLM-R have it.
//
// The text is hostile, and the file may be. Hence three departures from HuggingFace's own library:
//
//   - No text makes a special token. "[SEP]" in a text is five characters, never
//     the mark that ends one: a text cannot close itself and open another.
//   - The file's truncation and padding are ignored. Text beyond [MaxNormalizedTextBytes] is
//     [ErrTooLong], never truncated silently.
//   - A file without normalizer is used with [NormalizeForShieldModels].
//
// # Own code or library
//
// [OpenBuiltinTokenizer] is for the model that comes with shield, and [OpenUserSuppliedTokenizer] for one
// that a user names. There, words of WordPiece are divided by github.com/sugarme/tokenizer v0.3.0;
// reading the file, normalizing and splitting into words, and Unigram, are this package's own in
// both cases. That was decided by measurement, on HuggingFace's ids of 2,401 texts for a model of
// each kind and on the time of 1,000 real actions of 255 kB together:
//
//	                            ids that agree          time
//	WordPiece, own              2,401 of 2,401          19 ms
//	WordPiece, sugarme by word  2,401 of 2,401         137 ms
//	WordPiece, sugarme whole    2,401 (prepared text)  353 ms
//	Unigram, own                2,322 (see below)       34 ms
//	Unigram, sugarme by word    2,399                  136 ms
//	Unigram, sugarme whole      2,139, 46 panics     9,683 ms
//
// The 79 texts where our Unigram differs, on purpose, hold the names of special tokens; sugarme
// makes those tokens of them, so that a text could close itself. It also prefers long tokens to
// likely ones, misses those above 20 bytes (5 of the 1,000 actions got other ids), searches the
// whole vocabulary at each word and keeps the words it was given in memory. Its normalizers panic
// on decomposed accents, can end the process by log.Fatal, which nothing recovers from, and ignore
// the patterns of DeBERTa-v3's. It ignores continuing_subword_prefix when it reads a file.
//
// For WordPiece the difference is small beside the model itself: with the model of this test, 0.7
// MB, the 1,000 actions take 0.56 s instead of 0.50 s, with that of shield the same time. It is not
// small for text made to be slow: a word of 100 letters costs up to 5,050 look-ups. Hence a text
// that would take more than maxVocabLookupsPerText of them, 0.16 s, is [ErrTooLong] there; the most that
// any of 57,000 real actions takes is 46,401, a tenth of that.
package tokenizer

import (
	"context"
	"errors"
	"fmt"
)

// MaxNormalizedTextBytes is the length of prepared text that [Tokenizer.Encode] reads, in
// bytes.
const MaxNormalizedTextBytes = 64 << 10

// maxUnnormalizedTextBytes is the length of a text, in bytes, beyond which it is not prepared
// either. Preparing may shorten a text, but honest text does not have four
// times as many invisible characters as others.
const maxUnnormalizedTextBytes = 4 * MaxNormalizedTextBytes

// ErrTooLong means that a text was too long to be read to its end.
var ErrTooLong = errors.New("text is too long for the tokenizer")

// A Tokenizer splits text into tokens as a tokenizer.json file specifies. Goroutines may share it.
type Tokenizer struct {
	idCount   int
	padID     int64
	normalize normalizer // nil means [NormalizeForShieldModels]
	split     splitter
	model     wordModel
	prefixIDs []int64
	suffixIDs []int64
}

// A wordModel divides one word into tokens.
type wordModel interface {
	// appendTokens appends the ids of the word, which is not empty, to dst.
	appendTokens(dst []int64, word string) []int64
}

// A vocabularyLookupLimitChecker reports whether it can divide words without exceeding its limit of vocabulary
// lookups.
type vocabularyLookupLimitChecker interface{ fitsLookupLimit(words []textPart) bool }

// OpenBuiltinTokenizer reads a tokenizer.json of at most 64 MiB. What it cannot follow exactly,
// such as an unknown normalizer, is an error that names it.
func OpenBuiltinTokenizer(data []byte) (*Tokenizer, error) { return openTokenizer(data, false) }

// OpenUserSuppliedTokenizer opens the tokenizer of a model that the user names. Unlike
// [OpenBuiltinTokenizer], it lets the library sugarme divide the words of a WordPiece tokenizer, see
// the package documentation.
func OpenUserSuppliedTokenizer(data []byte) (*Tokenizer, error) { return openTokenizer(data, true) }

func openTokenizer(data []byte, isUserSupplied bool) (t *Tokenizer, err error) {
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("tokenizer.json: panic: %.200v", r)
		}
	}()
	f, err := parseFile(data)
	if err == nil {
		t, err = f.buildTokenizer(isUserSupplied)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// VocabSize returns 1 + the largest id, which is how many rows the model's table of
// embeddings needs.
func (t *Tokenizer) VocabSize() int { return t.idCount }

// PadID returns the id that fills up short texts among longer ones: the one
// that the file names, or 0.
func (t *Tokenizer) PadID() int64 { return t.padID }

// SpecialTokenCount returns how many ids [Tokenizer.AddSpecialTokens] adds.
func (t *Tokenizer) SpecialTokenCount() int { return len(t.prefixIDs) + len(t.suffixIDs) }

// AddSpecialTokens appends ids to dst between the special tokens that begin and end a text.
func (t *Tokenizer) AddSpecialTokens(dst, ids []int64) []int64 {
	dst = append(dst, t.prefixIDs...)
	dst = append(dst, ids...)
	return append(dst, t.suffixIDs...)
}

// NormalizeText returns the text in the form that the model was trained on. For a text above 256
// KiB the result can be incomplete, but is still too long for [Tokenizer.Encode], which returns
// [ErrTooLong].
func (t *Tokenizer) NormalizeText(text string) string {
	if t.normalize == nil {
		return NormalizeForShieldModels(text)
	}
	return runNormalizerOnText(t.normalize, text)
}

// Encode prepares a text and returns its tokens, without those that
// [Tokenizer.AddSpecialTokens] adds. The error is [ErrTooLong], ctx's, or that of a bug, and
// never comes with tokens.
func (t *Tokenizer) Encode(ctx context.Context, text string) (ids []int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			ids, err = nil, fmt.Errorf("tokenize: panic: %.200v", r)
		}
	}()
	if len(text) > maxUnnormalizedTextBytes {
		return nil, ErrTooLong
	}
	text = t.NormalizeText(text)
	if len(text) > MaxNormalizedTextBytes {
		return nil, ErrTooLong
	}
	words := t.split(nil, textPart{text, true})
	if b, ok := t.model.(vocabularyLookupLimitChecker); ok && !b.fitsLookupLimit(words) {
		return nil, ErrTooLong
	}
	ids = make([]int64, 0, len(text)/3+1)
	for i, w := range words {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ids = t.model.appendTokens(ids, w.text)
	}
	return ids, nil
}
