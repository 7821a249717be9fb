//go:build !linux

package classify

func releaseFiles() {}
