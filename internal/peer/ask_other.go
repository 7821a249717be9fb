//go:build !linux && !darwin

package peer

import (
	"errors"
	"time"
)

// SupportsServiceConnections says whether this system has the system calls that a [ServiceConnection] needs.
const SupportsServiceConnections = false

// A ServiceConnection is a connection to this user's service. It is empty here, since [Dial] never succeeds on
// this system.
type ServiceConnection struct{}

// Dial finds no service on this system.
func Dial(string) (*ServiceConnection, error) { return nil, errors.ErrUnsupported }

// Ask always returns [errors.ErrUnsupported] on this system.
func (*ServiceConnection) Ask(*Question, time.Duration) (Answer, error) {
	return Answer{}, errors.ErrUnsupported
}

// UIDBySocketFD always returns [errors.ErrUnsupported] on this system.
func UIDBySocketFD(int) (int, error) { return -1, errors.ErrUnsupported }

// PIDBySocketFD always returns [errors.ErrUnsupported] on this system.
func PIDBySocketFD(int) (int, error) { return 0, errors.ErrUnsupported }
