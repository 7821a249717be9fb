package tokenizer

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// models holds what HuggingFace's library made of some thousand texts; see
// training/parity.
const models = "../../pkg/classify/testdata/models"

type reference struct {
	Text     string  `json:"text"`
	Prepared string  `json:"prepared"`
	IDs      []int64 `json:"ids"`
}

func readModel(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(models, name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openModel(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := OpenBuiltinTokenizer(readModel(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func readReferences(t testing.TB, name string) []reference {
	t.Helper()
	rows := readRows[reference](t, filepath.Join(models, name, "tokens.jsonl.gz"))
	if len(rows) < 2000 {
		t.Fatalf("%d references; at least 2000 are expected", len(rows))
	}
	return rows
}

// readRows reads a compressed file of JSON lines.
func readRows[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestWordPieceParity demands HuggingFace's ids for every text, and the text
// that these were made of.
func TestWordPieceParity(t *testing.T) {
	t.Parallel()
	tok := openModel(t, "bert")
	for _, row := range readReferences(t, "bert") {
		if got := tok.NormalizeText(row.Text); got != row.Prepared {
			t.Errorf("Prepare(%.200q)\n got  %.200q\n want %.200q", row.Text, got, row.Prepared)
		}
		got, err := tok.Encode(t.Context(), row.Text)
		if err != nil || !slices.Equal(got, row.IDs) {
			t.Errorf("%.200q\n got  %v, %v\n want %v", row.Text, got, err, row.IDs)
		}
	}
}

// TestUnigramParity demands HuggingFace's ids for every text as it is, through
// the file's own normalizer. One class differs, and on purpose: literals of
// special tokens, which its best path treats as the tokens themselves.
func TestUnigramParity(t *testing.T) {
	t.Parallel()
	tok := openModel(t, "deberta")
	literal := strings.NewReplacer("[PAD]", "0", "[CLS]", "1", "[SEP]", "2", "[UNK]", "3")
	differ := 0
	for _, row := range readReferences(t, "deberta") {
		got, err := tok.Encode(t.Context(), row.Text)
		if err != nil {
			t.Errorf("%.200q: %v", row.Text, err)
			continue
		}
		if slices.Equal(got, row.IDs) {
			continue
		}
		differ++
		if literal.Replace(row.Text) == row.Text || slices.ContainsFunc(got, func(id int64) bool { return id < 3 }) {
			t.Errorf("%.200q\n got  %v\n want %v", row.Text, got, row.IDs)
		}
	}
	if differ != 79 {
		t.Errorf("%d texts with literals differ, want 79", differ)
	}
}
