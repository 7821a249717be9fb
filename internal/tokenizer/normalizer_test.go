package tokenizer

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type normalizerRow struct {
	Name       string         `json:"name"`
	Normalizer jsontext.Value `json:"normalizer"`
	Texts      []struct {
		In  string `json:"in"`
		Out string `json:"out"`
	} `json:"texts"`
}

// newer are characters of the references that Go's Unicode tables know and those
// of HuggingFace's library do not: an Arabic format character, an Arabic mark
// and a small capital.
const newer = "\u08e2\u08db\U000107ae"

// TestNormalizerParity compares with HuggingFace's library, whose charsmap case
// is SentencePiece's own nmt_nfkc. Only characters of newer may differ.
func TestNormalizerParity(t *testing.T) {
	t.Parallel()
	differ := map[string]int{"bert": 2, "bert cased": 1, "bert accents": 1, "bert without cleaning": 1, "compatible": 1, "decomposed": 1}
	rows := readRows[normalizerRow](t, filepath.Join(models, "normalizers.jsonl.gz"))
	if len(rows) != 8 {
		t.Errorf("%d normalizers, want 8", len(rows))
	}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			n, err := parseNormalizer(row.Normalizer)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, text := range row.Texts {
				if out := runNormalizerOnText(n, text.In); out != text.Out {
					got++
					if !strings.ContainsAny(text.In, newer) {
						t.Errorf("%.200q\n got  %.200q\n want %.200q", text.In, out, text.Out)
					}
				}
			}
			if got != differ[row.Name] || len(row.Texts) != 900 {
				t.Errorf("%d of %d texts differ, want %d of 900", got, len(row.Texts), differ[row.Name])
			}
		})
	}
}

func TestNormalizers(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, json, in, want string }{
		{"strip left", `{"type":"Strip","strip_left":true,"strip_right":false}`, " \u3000a ", "a "},
		{"replace text", `{"type":"Replace","pattern":{"String":"ab"},"content":"c"}`, "abab", "cc"},
		{"replace spaces", `{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}`, "a  b c    d ", "a b c d "},
		{"spaces by nothing", `{"type":"Replace","pattern":{"Regex":" {2,}"},"content":""}`, "  a  ", "a"},
		{"invalid UTF-8", `{"type":"Lowercase"}`, "A\xffB", "a\ufffdb"},
		{"dotted I", `{"type":"Lowercase"}`, "İI", "i\u0307i"},
		{"empty sequence", `{"type":"Sequence","normalizers":[]}`, "A", "A"},
	}
	for _, tt := range tests {
		n, err := parseNormalizer(jsontext.Value(tt.json))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := runNormalizerOnText(n, tt.in); got != tt.want {
			t.Errorf("%s: %q becomes %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// modelCharsmap returns the charsmap of the small DeBERTa.
func modelCharsmap(t testing.TB) []byte {
	t.Helper()
	var file struct {
		Normalizer struct {
			Normalizers []normalizerSection `json:"normalizers"`
		} `json:"normalizer"`
	}
	if err := json.Unmarshal(readModel(t, "deberta"), &file); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(file.Normalizer.Normalizers[1].Charsmap)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestCharsmapGrows holds that a text which a charsmap multiplies is cut short
// and too long: here each letter becomes a megabyte.
func TestCharsmapGrows(t *testing.T) {
	t.Parallel()
	raw := modelCharsmap(t)
	m, err := parseCharsmap(raw)
	if err != nil {
		t.Fatal(err)
	}
	m.replacementTexts = bytes.Repeat([]byte("x"), 1<<20)
	if got := m.normalize(strings.Repeat("Ａ", MaxNormalizedTextBytes/3)); len(got) <= MaxNormalizedTextBytes || len(got) > maxUnnormalizedTextBytes+1<<20 {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzCharsmap holds that no charsmap, however broken, fails on any text, or
// grows without bound.
func FuzzCharsmap(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0}, "a")
	f.Add([]byte{8, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 'a', 1, 0, 0, 'x', 0}, "aa\r\ne\u0301")
	f.Add(modelCharsmap(f), "ﬃ Ａa\u0308\u0323\r\n")
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		m, err := parseCharsmap(raw)
		if err != nil {
			return
		}
		if got := m.normalize(text); len(got) > maxUnnormalizedTextBytes+len(m.replacementTexts)+len(text) {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	})
}
