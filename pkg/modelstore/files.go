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
	maxModelBytes     = 1 << 30  // all files of an archive, installed or not
	maxTokenizerBytes = 64 << 20 // tokenizer.json
	maxTextFileBytes  = 1 << 20
	maxArchiveEntries = 1000 // number of entries of an archive

	modelFile                = "model.onnx"
	modelDescriptionFileName = "shield.json"
)

// A modelFileSpec is a file that can be part of a model. All other files are ignored.
type modelFileSpec struct {
	sourcePath    string // path of the file in the folder or archive from which a model is installed
	installedName string // name of the file in the folder of the installed model
	maxBytes      int64  // most bytes
	mustBeJSON    bool   // the file must contain one JSON object
}

// modelFileSpecs lists the files of a model. The weights have three usual places.
var modelFileSpecs = []modelFileSpec{
	{modelFile, modelFile, maxModelBytes, false},
	{"onnx/model.onnx", modelFile, maxModelBytes, false},
	{"onnx/model_quantized.onnx", modelFile, maxModelBytes, false},
	{"tokenizer.json", "tokenizer.json", maxTokenizerBytes, true},
	{"config.json", "config.json", maxTextFileBytes, true},
	{modelDescriptionFileName, modelDescriptionFileName, maxTextFileBytes, true},
	{"tokenizer_config.json", "tokenizer_config.json", maxTextFileBytes, true},
	{"special_tokens_map.json", "special_tokens_map.json", maxTextFileBytes, true},
	{"vocab.txt", "vocab.txt", maxTokenizerBytes, false},
	{"README.md", "README.md", maxTextFileBytes, false},
	{"LICENSE", "LICENSE", maxTextFileBytes, false},
	{"LICENSE.md", "LICENSE.md", maxTextFileBytes, false},
	{"LICENSE.txt", "LICENSE.txt", maxTextFileBytes, false},
	{"NOTICE", "NOTICE", maxTextFileBytes, false},
}

// requiredFiles are the files without which there is no model.
var requiredFiles = []string{modelFile, "tokenizer.json", "config.json"}

// findModelFileSpec returns the entry of modelFileSpecs for a path in the folder or archive of a model; false if
// a model has no file with this path.
func findModelFileSpec(sourcePath string) (modelFileSpec, bool) {
	i := slices.IndexFunc(modelFileSpecs, func(k modelFileSpec) bool { return k.sourcePath == sourcePath })
	if i < 0 {
		return modelFileSpec{}, false
	}
	return modelFileSpecs[i], true
}

// checkRequiredModelFiles returns an error if a folder lacks a file that a model requires, or if one of the JSON
// files is invalid.
func checkRequiredModelFiles(dir string) error {
	for _, name := range requiredFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("the folder has no %s; add this file, or name another folder (a model needs the files %q)", name, requiredFiles)
		}
	}
	for _, k := range modelFileSpecs {
		if !k.mustBeJSON {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, k.installedName))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if v := jsontext.Value(bytes.TrimSpace(data)); !v.IsValid() || v.Kind() != '{' {
			return fmt.Errorf("%s is not a single JSON object; download the model again", k.installedName)
		}
	}
	return nil
}
