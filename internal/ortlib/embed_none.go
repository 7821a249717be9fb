//go:build !cgo || !((linux && (amd64 || arm64)) || (darwin && arm64) || (windows && amd64))

package ortlib

var embeddedLibrary *library
