package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// fileWith returns a small tokenizer.json with some members replaced or added.
func fileWith(members ...string) string {
	known := []string{
		`"normalizer":null`,
		`"pre_tokenizer":{"type":"BertPreTokenizer"}`,
		`"post_processor":null`,
		`"model":{"type":"WordPiece","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"##b":4}}`,
	}
	for _, m := range members {
		name, _, _ := strings.Cut(m, ":")
		known = slices.DeleteFunc(known, func(k string) bool { return strings.HasPrefix(k, name+":") })
		known = append(known, m)
	}
	return "{" + strings.Join(known, ",") + "}"
}

func sequences(name string, depth int) string {
	return strings.Repeat(`{"type":"Sequence","`+name+`":[`, depth) + strings.Repeat("]}", depth)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := OpenBuiltinTokenizer([]byte(fileWith())); err != nil {
		t.Fatalf("the file that the others are made of: %v", err)
	}
	wordPiece := func(vocab string) string { return fileWith(`"model":{"type":"WordPiece","vocab":` + vocab + `}`) }
	unigram := func(rest string) string { return fileWith(`"model":{"type":"Unigram",` + rest + `}`) }
	replace := func(rest string) string { return fileWith(`"normalizer":{"type":"Replace",` + rest + `}`) }
	tests := []struct{ name, file, want string }{
		{"empty", "", "not valid JSON at byte 0"},
		{"no object", "[]", "found an array"},
		{"null", "null", "the key model is missing"},
		{"truncated", fileWith()[:90], "not valid JSON at byte 90"},
		{"two files", fileWith() + fileWith(), "not valid JSON"},
		{"invalid UTF-8", wordPiece("{\"[UNK]\":0,\"\xff\":1}"), "invalid UTF-8"},
		{"half a surrogate", wordPiece(`{"[UNK]":0,"\ud800":1}`), "surrogate"},
		{"too deep", fileWith(`"x":` + strings.Repeat("[", 20_000)), "depth"},
		{"too large", strings.Repeat(" ", maxFileBytes+1), "limit of 67108864"},
		{"model is a list", fileWith(`"model":[]`), `"/model": found an array`},
		{"type of a wrong type", fileWith(`"model":{"type":1}`), `"/model/type"`},
		{"no vocabulary", fileWith(`"model":{"type":"WordPiece"}`), "empty vocabulary"},
		{"empty vocabulary", wordPiece(`{}`), "empty vocabulary"},
		{"vocabulary is a number", wordPiece(`7`), "the vocabulary is neither an object nor an array"},
		{"other kind of vocabulary", wordPiece(`[["a",0]]`), "does not have the form of type WordPiece"},
		{"BPE", fileWith(`"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`), `type "BPE" is not supported; use WordPiece or Unigram`},
		{"no type", fileWith(`"model":{"vocab":{"a":0}}`), `type "" is not supported`},
		{"a long type", fileWith(`"model":{"type":"` + strings.Repeat("x", 1<<20) + `","vocab":{"a":0}}`), "is not supported"},
		{"newlines in a type", fileWith(`"model":{"type":"a\n\u001b[2Jb","vocab":{"a":0}}`), `type "a\n\x1b[2Jb"`},
		{"no unknown token", wordPiece(`{"a":0}`), `the unknown token "[UNK]" is not in the vocabulary`},
		{"negative id", wordPiece(`{"[UNK]":0,"a":-1}`), `token "a": id -1 is out of range`},
		{"huge id", wordPiece(`{"[UNK]":0,"a":99999999}`), "id 99999999 is out of range"},
		{"id beyond 64 bits", wordPiece(`{"[UNK]":0,"a":99999999999999999999}`), `token "a" has the id`},
		{"id with a fraction", wordPiece(`{"[UNK]":0,"a":1.5}`), `token "a" has the id`},
		{"id is text", wordPiece(`{"[UNK]":0,"a":"1"}`), `token "a" has no number as its id`},
		{"id twice", wordPiece(`{"[UNK]":0,"a":1,"b":1}`), "two tokens have the ID 1"},
		{"token twice", wordPiece(`{"[UNK]":0,"a":1,"a":2}`), "has the ids 1 and 2"},
		{"empty token", wordPiece(`{"[UNK]":0,"":1}`), "token 1 has 0 bytes"},
		{"long token", wordPiece(`{"[UNK]":0,"` + strings.Repeat("a", 257) + `":1}`), "token 1 has 257 bytes"},
		{"no continuing prefix", fileWith(`"model":{"type":"WordPiece","continuing_subword_prefix":"","vocab":{"[UNK]":0}}`), "continuing_subword_prefix"},
		{"words of no letter", fileWith(`"model":{"type":"WordPiece","max_input_chars_per_word":0,"vocab":{"[UNK]":0}}`), "max_input_chars_per_word"},
		{"endless words", fileWith(`"model":{"type":"WordPiece","max_input_chars_per_word":1000000,"vocab":{"[UNK]":0}}`), "max_input_chars_per_word"},
		{"unigram with ids", unigram(`"unk_id":0,"vocab":{"a":0}`), "does not have the form of type Unigram"},
		{"no unk_id", unigram(`"vocab":[["a",0]]`), "unk_id"},
		{"unk_id too large", unigram(`"unk_id":1,"vocab":[["a",0]]`), "unk_id"},
		{"unk_id negative", unigram(`"unk_id":-1,"vocab":[["a",0]]`), "unk_id"},
		{"no pair", unigram(`"unk_id":0,"vocab":["a"]`), "token 0 is not a pair of text and score"},
		{"three of a pair", unigram(`"unk_id":0,"vocab":[["a",0,1]]`), "token 0 is not a pair"},
		{"score is text", unigram(`"unk_id":0,"vocab":[["a","NaN"]]`), "token 0 is not a pair"},
		{"endless score", unigram(`"unk_id":0,"vocab":[["a",-1e999]]`), "score is out of range"},
		{"the same piece twice", unigram(`"unk_id":0,"vocab":[["a",0],["a",-1]]`), "has the ids 0 and 1"},
		{"unclosed vocabulary", `{"model":{"type":"Unigram","vocab":[["a",0]}`, "not valid JSON"},
		{"added token of another's id", fileWith(`"added_tokens":[{"id":3,"content":"x","special":true}]`), "two tokens have the ID 3"},
		{"added token with another id", fileWith(`"added_tokens":[{"id":9,"content":"a","special":true}]`), `token "a" has the ids 3 and 9`},
		{"added token without text", fileWith(`"added_tokens":[{"id":9}]`), "token 9 has 0 bytes"},
		{"many added tokens", fileWith(`"added_tokens":[` + strings.Repeat("{},", 5000) + `{}]`), "5001 added tokens"},
		{"unknown normalizer", fileWith(`"normalizer":{"type":"Nmt"}`), `normalizer: type "Nmt" is not supported`},
		{"unknown in a sequence", fileWith(`"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"ByteLevel"}]}`), `type "ByteLevel" is not supported`},
		{"null in a sequence", fileWith(`"normalizer":{"type":"Sequence","normalizers":[null]}`), `type "" is not supported`},
		{"normalizer is text", fileWith(`"normalizer":"NFC"`), "normalizer: "},
		{"nested normalizers", fileWith(`"normalizer":` + sequences("normalizers", 12)), "the Sequence has too many steps"},
		{"many normalizers", fileWith(`"normalizer":{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"NFC"},`, 40) + `{"type":"NFC"}]}`), "the Sequence has too many steps"},
		{"unknown pattern", replace(`"pattern":{"Regex":"(a+)+$"},"content":""`), `Replace with the pattern "(a+)+$" is not supported`},
		{"no pattern", replace(`"content":"a"`), "Replace with the pattern"},
		{"two patterns", replace(`"pattern":{"Regex":" {2,}","String":"a"},"content":""`), "Replace with the pattern"},
		{"growing text", replace(`"pattern":{"String":"a"},"content":"` + strings.Repeat("a", 100) + `"`), "more than 16 bytes"},
		{"charsmap no base64", fileWith(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"?"}`), "not base64"},
		{"no charsmap", fileWith(`"normalizer":{"type":"Precompiled"}`), "impossible size"},
		{"truncated charsmap", fileWith(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////wAAAAA="}`), "truncated"},
		{"unknown pre_tokenizer", fileWith(`"pre_tokenizer":{"type":"ByteLevel"}`), `pre_tokenizer: type "ByteLevel" is not supported`},
		{"nested pre_tokenizers", fileWith(`"pre_tokenizer":` + sequences("pretokenizers", 12)), "the Sequence has too many steps"},
		{"punctuation merged", fileWith(`"pre_tokenizer":{"type":"Punctuation","behavior":"MergedWithNext"}`), `"MergedWithNext" is not supported`},
		{"metaspace without mark", fileWith(`"pre_tokenizer":{"type":"Metaspace"}`), "one character"},
		{"metaspace with a long mark", fileWith(`"pre_tokenizer":{"type":"Metaspace","replacement":"__"}`), "one character"},
		{"metaspace scheme", fileWith(`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`), `prepend_scheme "last"`},
		{"unknown post_processor", fileWith(`"post_processor":{"type":"ByteLevel"}`), `post_processor: type "ByteLevel" is not supported`},
		{"frame without pair", fileWith(`"post_processor":{"type":"BertProcessing","cls":"[CLS]"}`), "cls and sep must be pairs of token and ID"},
		{"frame of unknown ids", fileWith(`"post_processor":{"type":"BertProcessing","cls":["[CLS]",1],"sep":["[SEP]",77]}`), "no token has the id 77"},
		{"template without text", fileWith(`"post_processor":{"type":"TemplateProcessing","single":[]}`), "leaves the text out"},
		{"template with two texts", fileWith(`"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}}]}`), "only special tokens"},
		{"template of an unknown token", fileWith(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]}`), `special token "x" is not defined`},
		{"template of many tokens", fileWith(`"post_processor":{"type":"TemplateProcessing","single":[` + strings.Repeat(`{"SpecialToken":{"id":"x"}},`, 20) + `{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[1]}}}`), "more than 16 special tokens"},
		{"processors in processors", fileWith(`"post_processor":` + `{"type":"Sequence","processors":[` + sequences("processors", 3) + `]}`), "a Sequence in a Sequence"},
		{"padding with an unknown id", fileWith(`"padding":{"pad_id":12}`), "padding: no token has the id 12"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := OpenBuiltinTokenizer([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one with %q", err, tt.want)
			}
			checkMessage(t, err)
		})
	}
}

// checkMessage holds that an error is one short line that a terminal can show.
func checkMessage(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, "tokenizer.json: ") || len(text) > 600 || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("not one clear line: %.900q", text)
	}
}

// TestOpenManyTokens refuses a vocabulary without end before it is in memory.
func TestOpenManyTokens(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]struct{ before, token, after string }{
		"WordPiece": {`{"model":{"type":"WordPiece","vocab":{"[UNK]":0`, `,"%d":1`, `}}}`},
		"Unigram":   {`{"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0]`, `,["%d",0]`, `]}}`},
	} {
		var b strings.Builder
		b.WriteString(form.before)
		for i := range maxVocabTokens + 10 {
			fmt.Fprintf(&b, form.token, i)
		}
		b.WriteString(form.after)
		if _, err := OpenBuiltinTokenizer([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 524288 tokens") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenAccepts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		want             []int64 // framed
	}{
		{"usual names", fileWith(), "ab", []int64{1, 3, 4, 2}},
		{"no frame", fileWith(`"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1}}`), "a", []int64{1}},
		{"no type, old files", fileWith(`"model":{"continuing_subword_prefix":"##","unk_token":"u","vocab":{"u":7,"a":1}}`), "a b", []int64{1, 7}},
		{"truncation and padding", fileWith(`"truncation":{"max_length":1}`, `"padding":{"strategy":{"Fixed":99},"pad_id":0}`), "a a a", []int64{1, 3, 3, 3, 2}},
		{"one processor in a sequence", fileWith(`"post_processor":{"type":"Sequence","processors":[{"type":"BertProcessing","cls":["[SEP]",2],"sep":["[CLS]",1]}]}`), "a", []int64{2, 3, 1}},
		{"template", fileWith(`"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"e"}}],"special_tokens":{"e":{"id":"e","ids":[2,2]}}}`), "a", []int64{3, 2, 2}},
		{"long word", fileWith(`"model":{"type":"WordPiece","max_input_chars_per_word":2,"vocab":{"[UNK]":0,"é":1,"##é":2}}`, `"normalizer":{"type":"NFC"}`), "éé ééé", []int64{1, 2, 0}},
		{"unfinished word", fileWith(), "abx ab", []int64{1, 0, 3, 4, 2}},
		{"XLM-R", fileWith(`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Metaspace","replacement":"▁","add_prefix_space":true}]}`,
			`"model":{"type":"Unigram","unk_id":1,"vocab":[["<s>",0],["<unk>",0],["</s>",0],["▁a",-1],["b",-2]]}`), "a\tab xy", []int64{0, 3, 3, 4, 1, 2}},
	}
	for _, tt := range tests {
		tok, err := OpenBuiltinTokenizer([]byte(tt.file))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		ids, err := tok.Encode(t.Context(), tt.text)
		if got := tok.AddSpecialTokens(nil, ids); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q has %v, %v; want %v", tt.name, tt.text, got, err, tt.want)
		}
	}
}

// FuzzOpen holds that a file is refused in one line, or its tokenizer reads a
// text and stays within its ids.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(fileWith()), "a [SEP] b")
	f.Add([]byte(fileWith(`"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKD"},{"type":"Strip"},{"type":"Replace","pattern":{"String":"a"},"content":"b"}]}`)), "a\u0301")
	f.Add([]byte(fileWith(`"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`,
		`"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["▁",-1],["a",-2]]}`)), " a\xff  b")
	f.Add([]byte(fileWith(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAP///39hAQAAeAA="}`)), "aa\r\n")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := OpenBuiltinTokenizer(data)
		if err != nil {
			checkMessage(t, err)
			return
		}
		ids, err := tok.Encode(t.Context(), text)
		if err != nil && err != ErrTooLong {
			t.Error(err)
		}
		for _, id := range tok.AddSpecialTokens(nil, ids) {
			if id < 0 || id >= int64(tok.VocabSize()) {
				t.Errorf("%q has the id %d of %d", text, id, tok.VocabSize())
			}
		}
	})
}
