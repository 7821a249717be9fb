// Package models carries the classifier model that ships with shield.
package models

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/shieldcli/shield/internal/unpacked"
)

//go:generate go run ./gen

//go:embed default/config.json default/shield.json default/tokenizer.json
var files embed.FS

// DefaultModelFolder returns the folder of the default model. Its large files are stored in a form
// that needs no parsing and no copy, which would take half of the model's start time. The graph is
// unpacked to cacheFolder on first use; if cacheFolder is "" or cannot be used, the graph is
// unpacked in memory each time.
func DefaultModelFolder(cacheFolder string) fs.FS {
	sub, err := fs.Sub(files, "default")
	if err != nil {
		panic(err) // fs.Sub fails only if the folder name is not a valid path
	}
	return modelFolder{sub, cacheFolder}
}

// packedGraph is the graph of the default model.
var packedGraph = unpacked.File{Name: "model.ort", UnpackedBytes: graphSize, UnpackedSHA256: graphSum, Unpack: func() ([]byte, error) {
	if compressedGraphWithoutNGramWeights == "" {
		return nil, errors.New("this shield was built without cgo and contains no model; install one that was built with cgo")
	}
	data, err := unpacked.Decompress(compressedGraphWithoutNGramWeights, graphSize)
	if err != nil || len(data) < tableStart {
		return nil, cmp.Or(err, errors.New("the model in this program is damaged; install shield again"))
	}
	return slices.Insert(data, tableStart, []byte(ngramWeightTable)...), nil
}}

// UnpackedGraph returns the graph of the default model, unpacked in memory: model.onnx in the ORT format,
// which ONNX Runtime uses without parsing,
// https://onnxruntime.ai/docs/performance/model-optimizations/ort-format-models.html.
func UnpackedGraph() ([]byte, error) { return packedGraph.Read("") }

// TotalUnpackedModelBytes is the size of the default model, unpacked, in bytes.
func TotalUnpackedModelBytes() int64 {
	size := graphSize + len(packedTokenizer)
	for _, name := range uncompressedModelFiles {
		if text, err := files.ReadFile("default/" + name); err == nil {
			size += len(text)
		}
	}
	return int64(size)
}

// CheckEmbeddedModelIntact returns an error if the default model in this program file differs from the one that
// shield was built with.
func CheckEmbeddedModelIntact() error {
	data, err := UnpackedGraph()
	if err != nil {
		return err
	}
	got, err := Sum(DefaultModelFolder(""), string(data), packedTokenizer)
	if err == nil && got != sum {
		err = fmt.Errorf("shield's program file was changed: the checksum of its model is %s instead of %s; install shield again", got, sum)
	}
	return err
}

// Sum returns "sha256:" and the SHA-256 in hex of the default model: of the files uncompressedModelFiles in
// folder, the unpacked graph and the packed tokenizer, each with its length in bytes before it.
func Sum(folder fs.FS, graph, tokenizer string) (string, error) {
	h := sha256.New()
	for _, name := range uncompressedModelFiles {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d\n%s", len(text), text)
	}
	fmt.Fprintf(h, "%d\n%s%d\n%s", len(graph), graph, len(tokenizer), tokenizer)
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// uncompressedModelFiles are the files of the model that the program carries as they are.
var uncompressedModelFiles = []string{"config.json", "shield.json", "tokenizer.json"}

type modelFolder struct {
	fs.FS
	cacheFolder string
}

// PackedTokenizerData returns tokenizer.json in the form of tokenizer.OpenPacked.
func (modelFolder) PackedTokenizerData() string { return packedTokenizer }

// PackedGraph returns what [UnpackedGraph] returns, mapped from the cache folder if possible. It must not be modified.
func (f modelFolder) PackedGraph() ([]byte, error) { return packedGraph.Read(f.cacheFolder) }

// NGramWeightTableData returns the table of n-grams, a part of the graph.
func (modelFolder) NGramWeightTableData() string { return ngramWeightTable }
