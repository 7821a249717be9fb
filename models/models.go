// Package models carries the classifier model that ships with shield.
package models

import (
	"embed"
	"io/fs"
)

//go:generate go run ./gen

//go:embed default/config.json default/shield.json default/tokenizer.json
var files embed.FS

// graph is default/model.onnx in ONNX Runtime's own format.
//
//go:embed graph_gen.ort
var graph string

// packed is the tokenizer of the default model.
//
//go:embed tokenizer_gen.bin
var packed string

// Default returns the folder of the default model. What is large in it is there in
// forms that need no reading, and lies in the program, where nobody can write to
// it: reading and copying would take half of the time that the model needs to
// start.
func Default() fs.FS {
	sub, err := fs.Sub(files, "default")
	if err != nil {
		panic(err) // the name above is not a valid path
	}
	return folder{sub}
}

type folder struct{ fs.FS }

// PackedTokenizer returns tokenizer.json in the form of tokenizer.OpenPacked.
func (folder) PackedTokenizer() string { return packed }

// PackedGraph returns model.onnx in the format that ONNX Runtime uses as it lies,
// https://onnxruntime.ai/docs/performance/model-optimizations/ort-format-models.html.
func (folder) PackedGraph() string { return graph }

// PackedTable returns the table of n-grams, a part of the graph.
func (folder) PackedTable() string { return graph[tableStart : tableStart+tableSize] }
