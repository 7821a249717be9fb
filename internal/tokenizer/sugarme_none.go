//go:build 386 || arm

package tokenizer

// libraryWordPieceModelOrSelf returns the model itself: the library needs integers of 64 bits.
func (w *wordPiece) libraryWordPieceModelOrSelf() wordModel { return w }
