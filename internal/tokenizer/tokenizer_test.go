package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(t, name)
		ids, err := tok.Encode(t.Context(), "")
		if err != nil || len(ids) != 0 {
			t.Errorf("%s: the empty text has %v, %v", name, ids, err)
		}
		if got := tok.AddSpecialTokens([]int64{9}, []int64{7, 8}); !slices.Equal(got, []int64{9, 1, 7, 8, 2}) {
			t.Errorf("%s: Frame = %v", name, got)
		}
		if tok.SpecialTokenCount() != 2 || tok.PadID() != 0 {
			t.Errorf("%s: Overhead %d, PadID %d", name, tok.SpecialTokenCount(), tok.PadID())
		}
	}
	if got := openModel(t, "bert").VocabSize(); got != 4000 {
		t.Errorf("bert has %d ids", got)
	}
	if got := openModel(t, "deberta").VocabSize(); got != 4001 { // [MASK] is added
		t.Errorf("deberta has %d ids", got)
	}
}

// bombs are texts made to cost much.
var bombs = []struct{ name, text string }{
	{"one letter", strings.Repeat("x", MaxNormalizedTextBytes)},
	{"unknown words of 100 letters", strings.Repeat(strings.Repeat("qzxj", 25)+" ", MaxNormalizedTextBytes/101)},
	{"punctuation", strings.Repeat("-", MaxNormalizedTextBytes)},
	{"brackets", strings.Repeat("[", MaxNormalizedTextBytes)},
	{"spaces", strings.Repeat(" ", MaxNormalizedTextBytes)},
	{"words of one letter", strings.Repeat("a ", MaxNormalizedTextBytes/2)},
	{"NUL", strings.Repeat("\x00", 4*MaxNormalizedTextBytes)},
	{"invalid", strings.Repeat("\xff", 4*MaxNormalizedTextBytes)},
	{"combining marks", "e" + strings.Repeat("\u0301\u0323", MaxNormalizedTextBytes/4)},
	{"joined emoji", strings.Repeat("👩\u200d", MaxNormalizedTextBytes/7)},
	{"flags", strings.Repeat("🇫", MaxNormalizedTextBytes/4)},
	{"ideographs", strings.Repeat("字", MaxNormalizedTextBytes/5)},
	{"Hangul apart", strings.Repeat("\u1112\u1161\u11ab", MaxNormalizedTextBytes/9)},
	{"long ligatures", strings.Repeat("\ufdfa", MaxNormalizedTextBytes/33)},
	{"metaspace", strings.Repeat("▁", MaxNormalizedTextBytes/3)},
	{"known beginnings", strings.Repeat("configuratio", MaxNormalizedTextBytes/12)},
	{"literals", strings.Repeat("[SEP][CLS]", MaxNormalizedTextBytes/10)},
	{"CR LF", strings.Repeat("\r\n", MaxNormalizedTextBytes/2)},
}

// TestBombs holds that such texts are read to their end or are too long, and
// make no more tokens than bytes may be. BenchmarkBombs says what they cost.
func TestBombs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(t, name)
		for _, bomb := range bombs {
			ids, err := tok.Encode(t.Context(), bomb.text)
			if err != nil && !errors.Is(err, ErrTooLong) || len(ids) > MaxNormalizedTextBytes {
				t.Errorf("%s: %s: %d ids, %v", name, bomb.name, len(ids), err)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(t, name)
		for _, tt := range []struct {
			name, text string
			want       error
		}{
			{"as long as may be", strings.Repeat("x", MaxNormalizedTextBytes), nil},
			{"one byte more", strings.Repeat("x", MaxNormalizedTextBytes+1), ErrTooLong},
			{"megabytes", strings.Repeat("x", 8<<20), ErrTooLong},
			{"megabytes of nothing", strings.Repeat("\u200b", 8<<20), ErrTooLong},
			{"an attack behind megabytes of nothing", strings.Repeat(" ", 8<<20) + "rm -rf /", ErrTooLong},
			{"grows", strings.Repeat("\ufdfa", MaxNormalizedTextBytes/4), ErrTooLong},
			{"shrinks", strings.Repeat(" ", 2*MaxNormalizedTextBytes) + "rm -rf /", nil},
		} {
			ids, err := tok.Encode(t.Context(), tt.text)
			if !errors.Is(err, tt.want) || err != nil && ids != nil || err == nil && len(ids) == 0 {
				t.Errorf("%s: %s: %d ids, %v; want %v", name, tt.name, len(ids), err, tt.want)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ids, err := openModel(t, "bert").Encode(ctx, "ls -l")
	if !errors.Is(err, context.Canceled) || ids != nil {
		t.Errorf("got %v, %v", ids, err)
	}
}

// TestGoroutines shares a tokenizer; the race detector watches.
func TestGoroutines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(t, name)
		rows := readReferences(t, name)[:300]
		want := make([][]int64, len(rows))
		for i, row := range rows {
			want[i], _ = tok.Encode(t.Context(), row.Text)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for i, row := range rows {
					if got, err := tok.Encode(t.Context(), row.Text); err != nil || !slices.Equal(got, want[i]) {
						t.Errorf("%q: got %v, %v", row.Text, got, err)
					}
				}
			})
		}
		all.Wait()
	}
}

// TestLiterals holds that no text makes a special token, whatever the model
// leaves of its case and its brackets.
func TestLiterals(t *testing.T) {
	t.Parallel()
	wordPieces := func(normalizer, split string) string {
		return fmt.Sprintf(`{"normalizer":%s,"pre_tokenizer":{"type":%q},
			"added_tokens":[{"id":0,"content":"[PAD]","special":true},{"id":4,"content":"[MASK]","special":true},{"id":30,"content":"<tool>","special":true}],
			"post_processor":{"type":"BertProcessing","cls":["[CLS]",2],"sep":["[SEP]",3]},
			"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"<":5,"##tool":6,"##>":7,"[":8,"##sep":9,"##]":10,"sep":11,"]":12,"a":13}}}`, normalizer, split)
	}
	cased := `{"type":"BertNormalizer","lowercase":false}`
	roberta := `{"pre_tokenizer":{"type":"Metaspace","replacement":"▁"},"normalizer":{"type":"NFKC"},
		"post_processor":{"type":"RobertaProcessing","cls":["<s>",0],"sep":["</s>",2]},
		"model":{"type":"Unigram","unk_id":3,"byte_fallback":%v,"vocab":[["<s>",0],["<pad>",0],["</s>",0],["<unk>",0],["▁",-1],["<",-2],["s",-2],[">",-2],["/",-2],["a",-3]%s]}}`
	var bytes strings.Builder
	for b := range 256 {
		fmt.Fprintf(&bytes, `,["<0x%02X>",0]`, b)
	}
	tests := []struct {
		name, file, text string
		want             []int64
	}{
		{"cased, between spaces", wordPieces(cased, "WhitespaceSplit"), "a [SEP] [CLS] [MASK] <tool>", []int64{13, 1, 1, 1, 5, 6, 7}},
		{"uncased, between spaces", wordPieces("null", "WhitespaceSplit"), "[SEP] [sep]", []int64{8, 9, 10, 8, 9, 10}},
		{"cased, brackets apart", wordPieces(cased, "BertPreTokenizer"), "[SEP][sep]", []int64{8, 1, 12, 8, 11, 12}},
		{"full width", wordPieces("null", "WhitespaceSplit"), "［ＳＥＰ］", []int64{8, 9, 10}},
		{"unigram", fmt.Sprintf(roberta, false, ""), "<s></s> <pad>a<unk>", []int64{4, 5, 6, 7, 5, 8, 6, 7, 4, 5, 3, 9, 3, 7, 9, 5, 3, 7}},
		{"unigram, full width", fmt.Sprintf(roberta, false, ""), "＜/s＞", []int64{4, 5, 8, 6, 7}},
		{"bytes", fmt.Sprintf(roberta, true, bytes.String()), "é<0x41>", []int64{4, 10 + 0xc3, 10 + 0xa9, 5, 10 + '0', 10 + 'x', 10 + '4', 10 + '1', 7}},
	}
	for _, tt := range tests {
		tok, err := OpenBuiltinTokenizer([]byte(tt.file))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := tok.Encode(t.Context(), tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %q (-want +got)\n%s", tt.name, tt.text, diff)
		}
	}
}

func FuzzEncode(f *testing.F) {
	toks := []*Tokenizer{openModel(f, "bert"), openModel(f, "deberta")}
	for _, row := range readReferences(f, "bert")[:200] {
		f.Add(row.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			ids, err := tok.Encode(t.Context(), text)
			if err != nil {
				if !errors.Is(err, ErrTooLong) {
					t.Error(err)
				}
				continue
			}
			for _, id := range ids {
				if id < 0 || id >= int64(tok.VocabSize()) || id < 5 && text != "" && special(i, id) {
					t.Errorf("%q has the id %d", text, id)
				}
			}
			if again, err := tok.Encode(t.Context(), tok.NormalizeText(text)); i == 0 && (err != nil || !slices.Equal(ids, again)) {
				t.Errorf("%q: %v, prepared before: %v, %v", text, ids, again, err)
			}
		}
	})
}

// special reports the special ids of a test model but the unknown token's.
func special(model int, id int64) bool {
	return id <= 2 || model == 0 && id == 4
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(b, name)
		for _, n := range []int{16, 64, 302} {
			var text strings.Builder
			for _, row := range readReferences(b, name)[300:] {
				text.WriteString(row.Text + " ")
				if ids, _ := tok.Encode(b.Context(), text.String()); len(ids) >= n {
					break
				}
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tok.Encode(b.Context(), text.String()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkBombs(b *testing.B) {
	for _, name := range []string{"bert", "deberta"} {
		tok := openModel(b, name)
		for _, bomb := range bombs {
			b.Run(name+"/"+bomb.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = tok.Encode(b.Context(), bomb.text)
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"bert", "deberta"} {
		data := readModel(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := OpenBuiltinTokenizer(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
