//go:build !linux

package classify

func releaseResidentProgramFilePages() {}
