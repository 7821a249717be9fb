// The library needs integers of 64 bits.

//go:build !386 && !arm

package tokenizer

import (
	"slices"
	"testing"

	sugarme "github.com/sugarme/tokenizer/model"
	"github.com/sugarme/tokenizer/model/wordpiece"
)

// TestSecondOpinion compares words with the library that this package stands in
// for.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()
	f, err := parseFile(readModel(t, "bert"))
	if err != nil {
		t.Fatal(err)
	}
	vocab := sugarme.Vocab{}
	for _, token := range f.Model.Vocab.tokens {
		vocab[token.text] = int(token.id)
	}
	theirs := wordpiece.NewWordPieceBuilder().Vocab(&vocab).Build()
	tok := openModel(t, "bert")
	seen := map[string]bool{}
	for _, row := range readReferences(t, "bert") {
		for _, w := range tok.split(nil, word{row.Prepared, true}) {
			if seen[w.text] || len(w.text) > 60 {
				continue
			}
			seen[w.text] = true
			got := tok.model.tokens(nil, w.text)
			tokens, err := theirs.Tokenize(w.text)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for _, token := range tokens {
				want = append(want, int64(token.Id))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: got %v, want %v", w.text, got, want)
			}
		}
	}
	if len(seen) < 4000 {
		t.Errorf("only %d words compared", len(seen))
	}
}
