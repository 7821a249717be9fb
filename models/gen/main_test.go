package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/shieldcli/shield/internal/gentest"
	"github.com/shieldcli/shield/models"
)

// TestFresh checks that go generate would change nothing: that digest and tokenizer
// are those of the files which ship, and that the packed graph holds their weights.
func TestFresh(t *testing.T) {
	gentest.CheckUpToDate(t, func() {
		if err := writeEmbeddedModelFiles(""); err != nil {
			t.Error(err)
		}
	}, []string{"default"}, []string{"digest_gen.go", "tokenizer_gen.bin"})
}

// TestOtherGraph holds that a packed graph of other weights, and an ONNX file that
// is damaged or has no table, are refused.
func TestOtherGraph(t *testing.T) {
	packed, err := models.UnpackedGraph()
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile("../default/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(packed)
	changed[len(changed)/2]++
	for _, test := range []struct{ name, model, packed, want string }{
		{"a weight is another", string(model), string(changed), "run training/pack.py"},
		{"the file is cut", string(model[:len(model)/2]), string(packed), "EOF"},
		{"no table", "", string(packed), "no initializer"},
	} {
		t.Chdir(gentest.WriteFolder(t, map[string]string{"default/model.onnx": test.model}))
		_, _, err := findNGramWeightTable([]byte(test.packed))
		gentest.CheckErrorMentions(t, test.name, err, test.want)
	}
}

// TestRefuses holds that no digest is written where there is no model.
func TestRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	gentest.CheckErrorMentions(t, "no model", writeEmbeddedModelFiles(""), "no such file")
	if _, err := os.Stat("digest_gen.go"); err == nil {
		t.Error("a digest was written")
	}
}
