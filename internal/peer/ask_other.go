//go:build !linux && !darwin

package peer

import (
	"errors"
	"time"
)

// SupportsConnections says whether this system has the system calls that a [Connection] needs.
const SupportsConnections = false

// A Connection is a connection to the service.
type Connection struct{}

// Dial finds no service on this system.
func Dial(string) (*Connection, error) { return nil, errors.ErrUnsupported }

// Ask always returns [errors.ErrUnsupported] on this system.
func (*Connection) Ask(*Question, time.Duration) (Answer, error) {
	return Answer{}, errors.ErrUnsupported
}

// UIDBySocketFD always returns [errors.ErrUnsupported] on this system.
func UIDBySocketFD(int) (int, error) { return -1, errors.ErrUnsupported }

// PIDBySocketFD always returns [errors.ErrUnsupported] on this system.
func PIDBySocketFD(int) (int, error) { return 0, errors.ErrUnsupported }
