//go:build !386 && !arm

package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sugarme/tokenizer/model/wordpiece"
)

func openForeign(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := OpenUserSuppliedTokenizer(readModel(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestForeignParity demands HuggingFace's ids of the library that divides words
// for users' models, which are those of our own path too.
func TestForeignParity(t *testing.T) {
	t.Parallel()
	tok, own := openForeign(t, "bert"), openModel(t, "bert")
	if _, ok := tok.model.(*libraryWordPiece); !ok {
		t.Fatalf("words are divided by %T", tok.model)
	}
	if _, ok := own.model.(*wordPiece); !ok {
		t.Fatalf("words of shield's own model are divided by %T", own.model)
	}
	for _, row := range readReferences(t, "bert") {
		got, err := tok.Encode(t.Context(), row.Text)
		if err != nil || !slices.Equal(got, row.IDs) {
			t.Errorf("%.200q\n got  %v, %v\n want %v", row.Text, got, err, row.IDs)
		}
	}
	if _, ok := openForeign(t, "deberta").model.(*unigram); !ok {
		t.Error("Unigram is not divided by our own code")
	}
}

// The file's own prefix and limits hold in the library too, and no text spells
// the unknown token.
func TestForeignSettings(t *testing.T) {
	t.Parallel()
	file := `{"model":{"type":"WordPiece","unk_token":"<u>","continuing_subword_prefix":"@@","max_input_chars_per_word":6,
		"vocab":{"<u>":0,"a":1,"@@b":2,"@@a":3,"\ufffd":4,"ab":5}},"pre_tokenizer":{"type":"WhitespaceSplit"}}`
	own, err := OpenBuiltinTokenizer([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := OpenUserSuppliedTokenizer([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int64{
		"a": {1}, "aa": {1, 3}, "aba": {5, 3}, "abababab": {0}, "@@b": {2}, "<u>": {0}, "b a": {0, 1}, "a\xffb": {5}, "": {},
	} {
		for name, tok := range map[string]*Tokenizer{"own": own, "foreign": foreign} {
			if got, err := tok.Encode(t.Context(), text); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %q: got %v, %v, want %v", name, text, got, err, want)
			}
		}
	}
}

// Text that would take the library too many look-ups is refused before any.
func TestForeignBound(t *testing.T) {
	t.Parallel()
	tok := openForeign(t, "bert")
	var slow strings.Builder
	for i := range 600 {
		fmt.Fprintf(&slow, "%s%03d ", strings.Repeat("zq", 48), i)
	}
	if _, err := tok.Encode(t.Context(), slow.String()); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
	for _, fine := range []string{
		strings.Repeat("word ", MaxNormalizedTextBytes/5),
		strings.Repeat(strings.Repeat("x", 101)+" ", MaxNormalizedTextBytes/102), // longer than a word may be: unknown at once
		strings.Repeat("0123456789abcdef0123456789abcdef01234567 ", 400),
	} {
		if _, err := tok.Encode(t.Context(), fine); err != nil {
			t.Errorf("%.40q…: %v", fine, err)
		}
	}
}

// A library that panics or fails makes an error, never ids.
func TestForeignFailure(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]*libraryWordPiece{
		"no unknown token": {wordpiece.NewWordPiece(), 100},
		"no vocabulary":    {wordpiece.WordPiece{}, 100},
	} {
		tok := openForeign(t, "bert")
		tok.model = broken
		if ids, err := tok.Encode(t.Context(), "some words"); err == nil || ids != nil {
			t.Errorf("%s: got %v, %v", name, ids, err)
		}
	}
}

func TestForeignShared(t *testing.T) {
	t.Parallel()
	tok := openForeign(t, "bert")
	rows := readReferences(t, "bert")[:200]
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, row := range rows {
				if got, err := tok.Encode(t.Context(), row.Text); err != nil || !slices.Equal(got, row.IDs) {
					t.Errorf("%.80q: got %v, %v", row.Text, got, err)
				}
			}
		})
	}
	group.Wait()
}

// Both paths divide every text alike.
func FuzzForeign(f *testing.F) {
	own, foreign := openModel(f, "bert"), openForeign(f, "bert")
	for _, row := range readReferences(f, "bert")[:100] {
		f.Add(row.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := own.Encode(t.Context(), text)
		got, foreignErr := foreign.Encode(t.Context(), text)
		if errors.Is(foreignErr, ErrTooLong) {
			return
		}
		if err != nil || foreignErr != nil || !slices.Equal(got, want) {
			t.Errorf("%q\n got  %v, %v\n want %v, %v", text, got, foreignErr, want, err)
		}
	})
}

func BenchmarkForeign(b *testing.B) {
	rows := readReferences(b, "bert")
	for name, tok := range map[string]*Tokenizer{"own": openModel(b, "bert"), "sugarme": openForeign(b, "bert")} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := tok.Encode(b.Context(), rows[i%len(rows)].Text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
