package cmd

import (
	"io/fs"
	"os"
)

// sameOwner does nothing: a new file inherits its folder's permissions here.
func sameOwner(*os.File, fs.FileInfo) error { return nil }
