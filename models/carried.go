//go:build cgo

package models

import _ "embed"

// graph is default/model.onnx in ONNX Runtime's own format.
//
//go:embed graph_gen.ort
var graph string

// packed is the tokenizer of the default model.
//
//go:embed tokenizer_gen.bin
var packed string
