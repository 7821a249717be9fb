//go:build 386 || arm

package tokenizer

// useLibrary returns the model itself: the library needs integers of 64 bits.
func (w *wordPiece) useLibrary() wordModel { return w }
