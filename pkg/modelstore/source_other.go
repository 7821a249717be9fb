//go:build !unix

package modelstore

const openNonblocking = 0
