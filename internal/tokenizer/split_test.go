package tokenizer

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	meta := func(rest string) string { return `{"type":"Metaspace","replacement":"▁"` + rest + `}` }
	sequence := `{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},` + meta(`,"prepend_scheme":"first"`) + `,{"type":"Punctuation"}]}`
	// Words are shown between bars.
	tests := []struct{ name, json, in, want string }{
		{"none", `null`, "a b", "a b"},
		{"none, empty", `null`, "", ""},
		{"BERT", `{"type":"BertPreTokenizer"}`, " ab,c\u3000«d» $1", "ab|,|c|«|d|»|$|1"},
		{"white space", `{"type":"WhitespaceSplit"}`, " ab,c\u00a0d ", "ab,c|d"},
		{"punctuation", `{"type":"Punctuation","behavior":"Isolated"}`, "a,b c!", "a|,|b c|!"},
		{"always", meta(`,"prepend_scheme":"always"`), "ab  c", "▁ab|▁|▁c"},
		{"always, there already", meta(`,"prepend_scheme":"always"`), " a", "▁a"},
		{"always, empty", meta(`,"prepend_scheme":"always"`), "", ""},
		{"never", meta(`,"prepend_scheme":"never"`), "a b", "a|▁b"},
		{"no prefix", meta(`,"add_prefix_space":false`), "a b", "a|▁b"},
		{"not divided", meta(`,"split":false`), "a b", "▁a▁b"},
		{"only spaces replaced", meta(``), "a\tb", "▁a\tb"},
		{"first of a sequence", sequence, "ab c,d", "▁ab|c|,|d"},
		{"first after spaces", sequence, " ab c", "ab|c"},
		{"empty sequence", `{"type":"Sequence","pretokenizers":[]}`, "a b", "a b"},
	}
	for _, tt := range tests {
		s, err := parseSplitter(jsontext.Value(tt.json))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, w := range s(nil, preToken{tt.in, true}) {
			got = append(got, w.text)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%s: %q (-want +got)\n%s", tt.name, tt.in, diff)
		}
	}
}
