//go:build cgo

package models

import _ "embed"

// compressedGraphWithoutNGramWeights is the graph of default/model.onnx in ONNX Runtime's own format, without the
// bytes in ngramWeightTable, compressed by zstd.
//
//go:embed graph_gen.zst
var compressedGraphWithoutNGramWeights string

// ngramWeightTable is the table of n-grams, a part of the graph that is also used without the rest.
//
//go:embed table_gen.bin
var ngramWeightTable string

// packedTokenizer is the tokenizer of the default model.
//
//go:embed tokenizer_gen.bin
var packedTokenizer string
