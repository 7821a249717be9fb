//go:build 386 || arm

package tokenizer

// sugarmeModelOrSelf returns the model itself: the library needs integers of 64 bits.
func (w *wordPiece) sugarmeModelOrSelf() wordModel { return w }
