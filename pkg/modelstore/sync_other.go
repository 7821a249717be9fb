//go:build !unix

package modelstore

// syncFolder does nothing: a folder cannot be synced here.
func syncFolder(string) error { return nil }
