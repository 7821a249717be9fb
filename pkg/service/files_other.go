//go:build !linux

package service

// maxSocketPathBytes is the maximum length of a socket path, including the zero byte.
const maxSocketPathBytes = 104

// checkProcessSharesServiceNamespaces returns nil: only Linux has namespaces.
func checkProcessSharesServiceNamespaces(int) error { return nil }
