//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package term

import (
	"errors"
	"os"
)

var errUnsupported = errors.New("terminals are not supported on this system; answer on the approval page")

func open() (in, out *os.File, err error) { return nil, nil, errUnsupported }
func name(*os.File) string                { return "unknown" }
func foreground(*os.File) bool            { return false }
func raw(*os.File) bool                   { return true }
func flush(*os.File) error                { return errUnsupported }
func sane(*os.File) error                 { return errUnsupported }
func keys(*os.File) error                 { return errUnsupported }
