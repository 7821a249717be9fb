//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package flock

import (
	"errors"
	"os"
)

const noFollow = 0

func lock(*os.File) error            { return errors.ErrUnsupported }
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
func unlock(*os.File) error          { return errors.ErrUnsupported }
