//go:build cgo && !debug

package main

// Debug information would add 10 MB to the program, so the linker removes it in a build with cgo, unless the
// build has -tags debug. Stack traces and profiles still show function names.

// #cgo LDFLAGS: -Wl,-s
import "C"
