//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package term

import (
	"errors"
	"os"
)

var errUnsupported = errors.New("terminals are not supported on this system; answer on the approval page")

func openTerminal() (in, out *os.File, err error) { return nil, nil, errUnsupported }
func deviceName(*os.File) string                  { return "unknown" }
func isForeground(*os.File) bool                  { return false }
func isRaw(*os.File) bool                         { return true }
func discardInput(*os.File) error                 { return errUnsupported }
func setLineMode(*os.File) error                  { return errUnsupported }
func setCbreakMode(*os.File) error                { return errUnsupported }
