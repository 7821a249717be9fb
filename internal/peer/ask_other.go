//go:build !linux && !darwin

package peer

import (
	"errors"
	"time"
)

// Supported says that this system has what a [Connection] needs.
const Supported = false

// A Connection is a connection to the service.
type Connection struct{}

// Dial finds no service on this system.
func Dial(string) (*Connection, error) { return nil, errors.ErrUnsupported }

// Ask has no one to ask.
func (*Connection) Ask(*Question, time.Duration) (Answer, error) {
	return Answer{}, errors.ErrUnsupported
}

// UIDBySocketFD is not known on this system.
func UIDBySocketFD(int) (int, error) { return -1, errors.ErrUnsupported }

// PIDBySocketFD is not known on this system.
func PIDBySocketFD(int) (int, error) { return 0, errors.ErrUnsupported }
