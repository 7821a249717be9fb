//go:build !cgo

package classify

// IsONNXRuntimeSupported reports whether this build can load ONNX Runtime at all.
const IsONNXRuntimeSupported = false

func newSession(string, []byte, *onnxGraph, modelGraphFormat, bool) (modelGraphRunner, error) {
	return nil, ErrNoRuntime
}

func onnxRuntimeVersion() string { return "" }
