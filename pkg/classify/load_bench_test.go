package classify

import (
	"os"
	"testing"
)

// BenchmarkLoad is what the first text costs beside reading it.
func BenchmarkLoad(b *testing.B) {
	for _, dir := range []string{"testdata/models/bert", "../../models/default"} {
		b.Run(dir, func(b *testing.B) {
			for b.Loop() {
				m, err := OpenModel(os.DirFS(dir), "known", library)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.load(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(dir+"/tokenizer", func(b *testing.B) {
			m, err := OpenModel(os.DirFS(dir), "known", library)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := m.openVocabCheckedTokenizer(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(dir+"/graph", func(b *testing.B) {
			m, err := OpenModel(os.DirFS(dir), "known", library)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := m.readGraph(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
