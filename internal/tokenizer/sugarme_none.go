//go:build 386 || arm

package tokenizer

// sugarme returns the model itself: the library needs integers of 64 bits.
func (w *wordPiece) sugarme() model { return w }
