//go:build !cgo

package classify

// Native reports whether this build can load ONNX Runtime at all.
const Native = false

func newSession(string, []byte, *graph, graphFormat, bool) (runner, error) { return nil, ErrNoRuntime }

func runtimeVersion() string { return "" }
