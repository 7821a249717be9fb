package modelstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of an installed model, in bytes.
const (
	maxModel = 1 << 30  // all files of an archive, installed or not
	maxVocab = 64 << 20 // tokenizer.json
	maxText  = 1 << 20
	maxNames = 1000 // number of entries of an archive

	modelFile  = "model.onnx"
	shieldFile = "shield.json"
)

// A known file is one that a model consists of; others are left out.
type known struct {
	name string // path in a source
	as   string // name in the installed model
	max  int64  // most bytes
	json bool   // the file must contain one JSON object
}

// knownFiles lists the files of a model. The weights have three usual places.
var knownFiles = []known{
	{modelFile, modelFile, maxModel, false},
	{"onnx/model.onnx", modelFile, maxModel, false},
	{"onnx/model_quantized.onnx", modelFile, maxModel, false},
	{"tokenizer.json", "tokenizer.json", maxVocab, true},
	{"config.json", "config.json", maxText, true},
	{shieldFile, shieldFile, maxText, true},
	{"tokenizer_config.json", "tokenizer_config.json", maxText, true},
	{"special_tokens_map.json", "special_tokens_map.json", maxText, true},
	{"vocab.txt", "vocab.txt", maxVocab, false},
	{"README.md", "README.md", maxText, false},
	{"LICENSE", "LICENSE", maxText, false},
	{"LICENSE.md", "LICENSE.md", maxText, false},
	{"LICENSE.txt", "LICENSE.txt", maxText, false},
	{"NOTICE", "NOTICE", maxText, false},
}

// required are the files without which there is no model.
var required = []string{modelFile, "tokenizer.json", "config.json"}

// knownAt returns the known file that a source has at name.
func knownAt(name string) (known, bool) {
	i := slices.IndexFunc(knownFiles, func(k known) bool { return k.name == name })
	if i < 0 {
		return known{}, false
	}
	return knownFiles[i], true
}

// checkFiles refuses a folder that is not a model by the look of its files.
func checkFiles(dir string) error {
	for _, name := range required {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("the folder has no %s; a model needs the files %q", name, required)
		}
	}
	for _, k := range knownFiles {
		if !k.json {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, k.as))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if v := jsontext.Value(bytes.TrimSpace(data)); !v.IsValid() || v.Kind() != '{' {
			return fmt.Errorf("%s is not a single JSON object; download the model again", k.as)
		}
	}
	return nil
}
