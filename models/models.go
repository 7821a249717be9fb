// Package models carries the classifier model that ships with shield.
package models

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

//go:generate go run ./gen

//go:embed default/config.json default/shield.json default/tokenizer.json
var files embed.FS

// Default returns the folder of the default model. What is large in it is there in
// forms that need no reading, and is in the program, where no one can write to
// it: reading and copying would take half of the time that the model needs to
// start.
func Default() fs.FS {
	sub, err := fs.Sub(files, "default")
	if err != nil {
		panic(err) // the name above is not a valid path
	}
	return folder{sub}
}

// Size is how much of the default model the program carries, in bytes.
func Size() int64 {
	size := len(graph) + len(packed)
	for _, name := range plain {
		if text, err := files.ReadFile("default/" + name); err == nil {
			size += len(text)
		}
	}
	return int64(size)
}

// Intact returns an error if what the program carries of the default model is not
// what it was built with.
func Intact() error {
	if graph == "" {
		return errors.New("this shield was built without cgo and contains no model; install one that was built with cgo")
	}
	got, err := Sum(Default(), graph, packed)
	if err == nil && got != sum {
		err = fmt.Errorf("shield's program file was changed: the checksum of its model is %s instead of %s; install shield again", got, sum)
	}
	return err
}

// Sum returns "sha256:" and hex over the plain files of the model in folder and
// its two packed ones, each with its length in bytes before it.
func Sum(folder fs.FS, graph, tokenizer string) (string, error) {
	h := sha256.New()
	for _, name := range plain {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d\n%s", len(text), text)
	}
	fmt.Fprintf(h, "%d\n%s%d\n%s", len(graph), graph, len(tokenizer), tokenizer)
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// plain are the files of the model that the program carries as they are.
var plain = []string{"config.json", "shield.json", "tokenizer.json"}

type folder struct{ fs.FS }

// PackedTokenizer returns tokenizer.json in the form of tokenizer.OpenPacked.
func (folder) PackedTokenizer() string { return packed }

// PackedGraph returns model.onnx in the format that ONNX Runtime uses as it lies,
// https://onnxruntime.ai/docs/performance/model-optimizations/ort-format-models.html.
func (folder) PackedGraph() string { return graph }

// PackedTable returns the table of n-grams, a part of the graph.
func (folder) PackedTable() string { return graph[tableStart : tableStart+tableSize] }
