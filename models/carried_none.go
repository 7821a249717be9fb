//go:build !cgo

package models

// A build without cgo cannot run the model, and does not carry it.
var compressedGraphWithoutNGramWeights, ngramWeightTable, packedTokenizer string
