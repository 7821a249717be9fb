// Package models carries the classifier model that ships with shield.
package models

import (
	"embed"
	"io/fs"
)

//go:generate go run ./gen

//go:embed default
var files embed.FS

// Default returns the folder of the default model.
func Default() fs.FS {
	sub, err := fs.Sub(files, "default")
	if err != nil {
		panic(err) // the name above is no path
	}
	return sub
}
