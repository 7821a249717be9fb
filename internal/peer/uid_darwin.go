package peer

import "golang.org/x/sys/unix"

// UIDBySocketFD returns the user of the process at the other end of a Unix socket.
func UIDBySocketFD(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// PIDBySocketFD returns the process at the other end of a Unix socket.
func PIDBySocketFD(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}
