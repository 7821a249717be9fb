package peer

import "syscall"

// UIDBySocketFD returns the user of the process at the other end of a Unix socket.
func UIDBySocketFD(fd int) (int, error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// PIDBySocketFD returns the ID of the process at the other end of a Unix socket, in the PID
// namespace of this process.
func PIDBySocketFD(fd int) (int, error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
