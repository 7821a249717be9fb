package prefilter

import (
	"regexp"
	"sync"
)

// LazyRegexp returns a function that compiles an expression when it is first called, since most runs of a
// program use few of the expressions in its tables and variables. Inlining is disabled: it would
// generate separate closures for each of some 150 callers.
//
//go:noinline
func LazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
