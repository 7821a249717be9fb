//go:build !linux && !darwin

package modelstore

import "errors"

// swapPaths is not supported here.
func swapPaths(string, string) error { return errors.ErrUnsupported }
