package service

import (
	"errors"
	"fmt"
	"os"
)

// maxSocketPathBytes is the maximum length of a socket path, including the zero byte.
const maxSocketPathBytes = 108

// checkProcessSharesServiceNamespaces returns an error unless a process has the same root folder and namespaces (mount, user,
// PID, network) as this process: it could run in a container that shares only the socket.
func checkProcessSharesServiceNamespaces(pid int) error {
	if pid <= 0 {
		return errors.New("the calling process is in another PID namespace (a container), so its identity cannot be checked; start shield serve in that container, too")
	}
	for _, kind := range []string{"mnt", "user", "pid", "net"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return err
		}
		other, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			return err
		}
		if own != other {
			return fmt.Errorf("the calling process is in another %s namespace (a container), so its identity cannot be checked; start shield serve in that container, too", kind)
		}
	}
	own, err := os.Stat("/proc/self/root/")
	if err != nil {
		return err
	}
	other, err := os.Stat(fmt.Sprintf("/proc/%d/root/", pid))
	if err != nil {
		return err
	}
	if !os.SameFile(own, other) {
		return errors.New("the calling process has another root folder (chroot), so its identity cannot be checked; start shield serve in that chroot, too")
	}
	return nil
}
