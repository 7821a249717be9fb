// Package models carries the classifier model that ships with shield.
package models

import (
	"embed"
	"io/fs"
	"unsafe"
)

//go:generate go run ./gen

//go:embed default
var files embed.FS

// graph is the same bytes as in files, of which the program has one copy.
//
//go:embed default/model.onnx
var graph string

// packed is the tokenizer of the default model.
//
//go:embed tokenizer_gen.bin
var packed string

// Default returns the folder of the default model. Its graph is given out as it
// lies in the program, where nobody can write to it: a copy would take a tenth
// of the time that the model needs to start.
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

func (f folder) ReadFile(name string) ([]byte, error) {
	if name == "model.onnx" {
		return unsafe.Slice(unsafe.StringData(graph), len(graph)), nil
	}
	return fs.ReadFile(f.FS, name)
}
