//go:build !unix

package modelstore

const noWait = 0
