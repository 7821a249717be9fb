package tokenizer

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
)

// models holds what HuggingFace's library made of some thousand texts; see
// models/training/parity.
const models = "../../pkg/classify/testdata/models"

type reference struct {
	Text     string  `json:"text"`
	Prepared string  `json:"prepared"`
	IDs      []int64 `json:"ids"`
}

func openTest(t testing.TB, name string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(models, name, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
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

func TestParity(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bert", "deberta"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok := openTest(t, name)
			rows := readRows[reference](t, filepath.Join(models, name, "tokens.jsonl.gz"))
			bad := 0
			for _, row := range rows {
				got, err := tok.Encode(t.Context(), row.Text)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, row.IDs) {
					bad++
					if bad < 30 {
						t.Errorf("%.200q\n got  %v\n want %v", row.Text, got, row.IDs)
					}
				}
			}
			t.Log(bad, len(rows))
		})
	}
}
