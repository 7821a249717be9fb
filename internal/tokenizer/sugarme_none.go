//go:build 386 || arm

package tokenizer

// sugarmeModelIf64Bit returns the model itself: the library needs integers of 64 bits.
func (w *wordPiece) sugarmeModelIf64Bit() wordModel { return w }
