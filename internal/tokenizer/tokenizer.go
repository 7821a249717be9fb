// Package tokenizer turns text into the token IDs that a classifier model reads, as a
// tokenizer.json file of HuggingFace specifies: WordPiece as in BERT, and SentencePiece's Unigram
// as in DeBERTa-v3, T5 and XLM-R.
//
// The text is untrusted, and the file can be. So the package differs from HuggingFace's own
// library:
//
//   - No text becomes a special token. "[SEP]" in a text is five characters, never
//     the separator token: a text cannot end itself and begin another text.
//   - The file's truncation and padding are ignored. Normalized text beyond
//     [MaxNormalizedTextBytes] is [ErrTooLong], never truncated silently.
//   - A file without normalizer is used with [NormalizeForShieldModels].
//
// # Own code or library
//
// [OpenBuiltinTokenizer] opens the tokenizer of shield's built-in model, and
// [OpenUserSuppliedTokenizer] that of a model that a user configures. For a user's WordPiece model,
// github.com/sugarme/tokenizer v0.3.0 splits each word into tokens. This package itself reads the
// file, normalizes the text, splits it into words, and runs Unigram, for both kinds of models. The
// choice rests on a measurement: HuggingFace's token IDs of 2,401 texts for a model of each kind,
// and the time for 1,000 real actions of 255 kB together. In the table, "by word" means that
// sugarme got single words, and "whole" that it got the whole text:
//
//	                            ids that agree            time
//	WordPiece, own              2,401 of 2,401            19 ms
//	WordPiece, sugarme by word  2,401 of 2,401           137 ms
//	WordPiece, sugarme whole    2,401 (normalized text)  353 ms
//	Unigram, own                2,322 (see below)         34 ms
//	Unigram, sugarme by word    2,399                    136 ms
//	Unigram, sugarme whole      2,139, 46 panics       9,683 ms
//
// The 79 texts for which this package's Unigram differs on purpose contain the names of special
// tokens. sugarme turns these names into special tokens, so that a text could end itself. sugarme's
// Unigram also prefers long tokens to likely tokens, misses tokens above 20 bytes (5 of the 1,000
// actions got other IDs), searches the whole vocabulary for each word, and keeps all words in
// memory. Its normalizers panic on decomposed accents, can end the process by log.Fatal, and ignore
// the patterns of DeBERTa-v3's normalizers. sugarme ignores continuing_subword_prefix when it reads
// a file.
//
// For WordPiece, the time of sugarme is small beside that of the model: with the 0.7 MB model of
// this test, the 1,000 actions take 0.56 s instead of 0.50 s, and with shield's model the same
// time. But a crafted text can be slow: a word of 100 letters costs up to 5,050 vocabulary
// look-ups. So for a user's WordPiece model, a text that needs more than maxVocabLookupsPerText
// look-ups (0.16 s) is [ErrTooLong]. The maximum of 57,000 real actions is 46,401 look-ups, a tenth
// of that limit.
package tokenizer

import (
	"context"
	"errors"
	"fmt"
)

// MaxNormalizedTextBytes is the length of prepared text that [Tokenizer.Encode] reads, in
// bytes.
const MaxNormalizedTextBytes = 64 << 10

// maxUnnormalizedTextBytes is the maximum length in bytes of a text before normalization; a longer
// text is [ErrTooLong]. Normalization can shorten a text, but an ordinary text does not lose three
// quarters of its bytes as invisible characters.
const maxUnnormalizedTextBytes = 4 * MaxNormalizedTextBytes

// ErrTooLong means that a text was too long to be read to its end.
var ErrTooLong = errors.New("text is too long for the tokenizer")

// A Tokenizer splits text into tokens as a tokenizer.json file specifies. Goroutines may share it.
type Tokenizer struct {
	allTokenIDCount int
	padID           int64
	normalize       normalizer // nil means [NormalizeForShieldModels]
	split           splitter
	model           wordModel
	prefixIDs       []int64
	suffixIDs       []int64
}

// A wordModel divides one word into tokens.
type wordModel interface {
	// appendTokens appends the ids of the word, which is not empty, to dst.
	appendTokens(dst []int64, word string) []int64
}

// A vocabularyLookupLimitChecker reports whether it can divide words without exceeding its limit of vocabulary
// lookups.
type vocabularyLookupLimitChecker interface{ fitsVocabularyLookupLimit(words []preToken) bool }

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
func (t *Tokenizer) VocabSize() int { return t.allTokenIDCount }

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
	words := t.split(nil, preToken{text, true})
	if b, ok := t.model.(vocabularyLookupLimitChecker); ok && !b.fitsVocabularyLookupLimit(words) {
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
