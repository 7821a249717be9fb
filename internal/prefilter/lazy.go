package prefilter

import (
	"regexp"
	"sync"
)

// Lazy returns an expression that is compiled when it is first asked for: most
// programs need few of those that are in tables and variables. It is not inlined: each of some 150
// variables would have closures of its own to compile.
//
//go:noinline
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
