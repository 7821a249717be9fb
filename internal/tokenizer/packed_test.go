package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func openPacked(t testing.TB, name string) *Tokenizer {
	t.Helper()
	data, err := Pack(readModel(t, name))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := OpenPacked(string(data))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestPacked holds that a packed tokenizer makes the tokens of the file that it was
// made of.
func TestPacked(t *testing.T) {
	t.Parallel()
	file, packed := openModel(t, "bert"), openPacked(t, "bert")
	if packed.VocabSize() != file.VocabSize() || packed.PadID() != file.PadID() || !slices.Equal(packed.AddSpecialTokens(nil, nil), file.AddSpecialTokens(nil, nil)) {
		t.Errorf("size %d, padding %d, frame %v", packed.VocabSize(), packed.PadID(), packed.AddSpecialTokens(nil, nil))
	}
	for _, row := range readReferences(t, "bert") {
		if got, err := packed.Encode(t.Context(), row.Text); err != nil || !slices.Equal(got, row.IDs) {
			t.Errorf("%.200q\n got  %v, %v\n want %v", row.Text, got, err, row.IDs)
		}
	}
	for _, bomb := range bombs {
		want, _ := file.Encode(t.Context(), bomb.text)
		if got, _ := packed.Encode(t.Context(), bomb.text); !slices.Equal(got, want) {
			t.Errorf("%s: %d tokens, want %d", bomb.name, len(got), len(want))
		}
	}
}

// TestPackedRefuses holds that nothing is packed that would be read differently, and
// that what was cut off is not opened.
func TestPackedRefuses(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"Unigram": string(readModel(t, "deberta")), "no JSON": "x", "empty": ""} {
		if _, err := Pack([]byte(data)); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
	whole, err := Pack(readModel(t, "bert"))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.IndexByte(string(whole), '\n')
	for name, data := range map[string]string{
		"empty": "", "no line": "{", "the line alone": string(whole[:line+1]), "half the slots": string(whole[:line+1000]),
		"slots of an odd number": strings.Replace(string(whole), `"slots":`, `"slots":1`, 1), "no slots": `{"slots":0}` + "\n",
	} {
		if _, err := OpenPacked(data); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	tok, err := OpenPacked(string(whole[:len(whole)-20000]))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readReferences(t, "bert") {
		if _, err := tok.Encode(t.Context(), row.Text); err != nil {
			return
		}
	}
	t.Error("texts are read by a vocabulary that was cut off")
}

// TestWords holds that each token is found, by its own text alone.
func TestWords(t *testing.T) {
	t.Parallel()
	tokens := []token{{text: "a", id: 1}, {text: "##a", id: 2}, {text: "ab", id: 1<<20 - 1}, {text: strings.Repeat("x", maxTokenBytes), id: 0}}
	w := newPackedVocab(tokens)
	for _, want := range tokens {
		for cut := range len(want.text) + 1 {
			prefix, text := want.text[:cut], want.text[cut:]
			if id, ok := w.findID(hashText(emptyTextHash, want.text), prefix, text); !ok || id != want.id {
				t.Errorf("%.10q and %.10q: %d, %v; want %d", prefix, text, id, ok, want.id)
			}
		}
	}
	for _, text := range []string{"", "b", "aa", "#a", strings.Repeat("x", maxTokenBytes-1)} {
		if id, ok := w.findID(hashText(emptyTextHash, text), "", text); ok {
			t.Errorf("%.10q has the id %d", text, id)
		}
	}
	n := 0
	for text, id := range w.allTokens() {
		if text != tokens[n].text || id != tokens[n].id {
			t.Errorf("token %d is %.10q with the id %d", n, text, id)
		}
		n++
	}
}
