//go:build !cgo

package classify

func newSession(string, []byte, *graph, bool) (runner, error) { return nil, ErrNoRuntime }
