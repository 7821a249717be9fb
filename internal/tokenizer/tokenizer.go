// Package tokenizer turns text into the numbers that a classifier model reads,
// as a tokenizer.json file of HuggingFace's says: WordPiece as BERT has it, and
// SentencePiece's Unigram as DeBERTa-v3, T5 and XLM-R have it.
//
// The text is hostile, and the file may be. Hence three departures from
// HuggingFace's own library:
//
//   - No text makes a special token. "[SEP]" in a text is five characters, never
//     the mark that ends one: a text cannot close itself and open another.
//   - The file's truncation and padding are ignored. Text beyond [MaxBytes] is
//     [ErrTooLong], never cut in silence.
//   - A file without normalizer gets [Prepare].
//
// # Why not a library's
//
// github.com/sugarme/tokenizer v0.3.0 is what a test compares with, and not what
// runs, after measurement: 64 KiB of hostile text may cost 250 ms on one core.
// Its WordPiece takes 2.6 s and 390 MB of garbage for words of 100 unknown
// letters, since it copies and formats every substring that it looks up; this
// one 0.1 s and 2 MB. Its Unigram searches the whole vocabulary at every word
// and takes 2 s for ordinary words and 128,000 tokens, and 10 s for one word of
// 64 KiB; this one 10 ms and 20 ms. It also misses tokens above 20 bytes and
// keeps the words it was given for minutes. Its normalizers panic on decomposed
// accents and ignore the patterns of DeBERTa-v3's.
package tokenizer

import (
	"context"
	"errors"
	"fmt"
)

// MaxBytes is the length of prepared text that [Tokenizer.Encode] reads, in
// bytes.
const MaxBytes = 64 << 10

// maxRaw is the length of a text, in bytes, beyond which it is not prepared
// either. Preparing may shorten a text, but nobody who means well sends four
// times as many invisible characters as others.
const maxRaw = 4 * MaxBytes

// ErrTooLong means that a text was too long to be read to its end.
var ErrTooLong = errors.New("text is too long for the tokenizer")

// A Tokenizer is what a tokenizer.json says. Goroutines may share it.
type Tokenizer struct {
	size      int
	pad       int64
	normalize normalizer // nil for Prepare
	split     splitter
	model     model
	prefix    []int64
	suffix    []int64
}

// A model divides one word into tokens.
type model interface {
	// tokens appends the ids of the word, which is not empty, to dst.
	tokens(dst []int64, word string) []int64
}

// Open reads a tokenizer.json of at most 64 MiB. What it cannot follow exactly,
// such as an unknown normalizer, is an error that names it.
func Open(data []byte) (t *Tokenizer, err error) {
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("tokenizer.json: panic: %.200v", r)
		}
	}()
	f, err := parseFile(data)
	if err == nil {
		t, err = f.build()
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// Size returns 1 + the largest id, which is how many rows the model's table of
// embeddings needs.
func (t *Tokenizer) Size() int { return t.size }

// PadID returns the id that fills up short texts among longer ones: the one
// that the file names, or 0.
func (t *Tokenizer) PadID() int64 { return t.pad }

// Overhead returns how many ids [Tokenizer.Frame] adds.
func (t *Tokenizer) Overhead() int { return len(t.prefix) + len(t.suffix) }

// Frame appends ids to dst between the special tokens that begin and end a text.
func (t *Tokenizer) Frame(dst, ids []int64) []int64 {
	dst = append(dst, t.prefix...)
	dst = append(dst, ids...)
	return append(dst, t.suffix...)
}

// Prepare returns the text as the model was trained to see it. The result for a
// text above 256 KiB is only good for [ErrTooLong].
func (t *Tokenizer) Prepare(text string) string {
	if t.normalize == nil {
		return Prepare(text)
	}
	return normalizeFile(t.normalize, text)
}

// Encode prepares a text and returns its tokens, without those that
// [Tokenizer.Frame] adds. The error is [ErrTooLong], ctx's, or that of a bug, and
// never comes with tokens.
func (t *Tokenizer) Encode(ctx context.Context, text string) (ids []int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			ids, err = nil, fmt.Errorf("tokenize: panic: %.200v", r)
		}
	}()
	if len(text) > maxRaw {
		return nil, ErrTooLong
	}
	text = t.Prepare(text)
	if len(text) > MaxBytes {
		return nil, ErrTooLong
	}
	ids = make([]int64, 0, len(text)/3+1)
	for i, w := range t.split(nil, word{text, true}) {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ids = t.model.tokens(ids, w.text)
	}
	return ids, nil
}
