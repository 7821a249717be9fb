package cmd

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"
)

// systemErrorAdvice returns what a user can do about an error of the operating system or the network, as the
// end of a message. It is "" for other errors, and for a text that already names an action after a
// semicolon.
func systemErrorAdvice(err error, messageText string) string {
	var lookup *net.DNSError
	var network *net.OpError
	switch {
	case strings.Contains(messageText, ";"):
		return ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "; check the path"
	case errors.Is(err, fs.ErrPermission):
		return "; check owner and mode with 'ls -l'"
	case errors.Is(err, fs.ErrExist):
		return "; remove it, or choose another name"
	case errors.Is(err, syscall.ENOSPC):
		return "; free disk space"
	case errors.Is(err, syscall.EROFS):
		return "; choose a folder that is writable"
	case errors.Is(err, syscall.EISDIR):
		return "; name a file instead of the folder"
	case errors.Is(err, syscall.ELOOP):
		return "; remove the symbolic links that refer to each other"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "; raise the limit of open files with 'ulimit -n'"
	case errors.As(err, &lookup), errors.As(err, &network):
		return "; check the address and the network"
	case errors.Is(err, context.DeadlineExceeded):
		return "; try again"
	}
	return ""
}
