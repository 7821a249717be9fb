//go:build cgo && !debug

package main

// What a debugger needs is 10 MB of the program: it is left out, unless the build has
// -tags debug. Stack traces and profiles keep their names.

// #cgo LDFLAGS: -Wl,-s
import "C"
