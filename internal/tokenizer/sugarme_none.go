//go:build 386 || arm

package tokenizer

// sugarmeModelIf64Bit returns w itself, since the library sugarme/tokenizer needs 64-bit integers, which this
// system does not have.
func (w *wordPiece) sugarmeModelIf64Bit() wordModel { return w }
