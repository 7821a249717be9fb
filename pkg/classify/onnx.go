//go:build cgo

package classify

// #include <stdlib.h>
// #ifdef __GLIBC__
// #include <malloc.h>
//
// // Limit malloc to one arena before any thread creates its own: an arena other than the first grows by
// // one page per system call, which takes 2,000 system calls while ONNX Runtime starts.
// __attribute__((constructor)) static void one_arena(void) { mallopt(M_ARENA_MAX, 1); }
// #endif
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// IsONNXRuntimeSupported reports whether this build can load ONNX Runtime at all.
const IsONNXRuntimeSupported = true

// onnxEnvironment starts ONNX Runtime. A process has only one runtime, of the library that is loaded first.
var onnxEnvironment = struct {
	sync.Mutex
	path string
	err  error
}{}

func startONNXRuntime(libraryPath string) error {
	onnxEnvironment.Lock()
	defer onnxEnvironment.Unlock()
	switch {
	case onnxEnvironment.path == "":
		onnxEnvironment.path = libraryPath
		ort.SetSharedLibraryPath(libraryPath)
		if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
			onnxEnvironment.err = fmt.Errorf("ONNX Runtime cannot be loaded from %s: %w; set classifier.onnxruntime to the path of the library", libraryPath, err)
		}
	case onnxEnvironment.path != libraryPath && onnxEnvironment.err == nil:
		return fmt.Errorf("load ONNX Runtime from %s: this process already loaded %s; use one library", libraryPath, onnxEnvironment.path)
	}
	return onnxEnvironment.err
}

// onnxRuntimeVersion returns the release of the library that was loaded.
func onnxRuntimeVersion() string { return ort.GetVersion() }

// An onnxSession is a graph that ONNX Runtime has loaded. Goroutines share it; each
// run takes one thread.
type onnxSession struct {
	inner  *ort.DynamicAdvancedSession
	inputs []tensorInfo
}

// goMemoryPinnedForONNXRuntime pins the Go memory that ONNX Runtime uses in place as long as the process lives.
var goMemoryPinnedForONNXRuntime struct {
	sync.Mutex
	runtime.Pinner
}

// newSession loads a graph. graphData in the format modelGraphFormatORT must stay unchanged as long as the
// process lives: ONNX Runtime uses it in place. runsOnce is true for a process that runs the graph
// once.
func newSession(libraryPath string, graphData []byte, g *onnxGraph, f modelGraphFormat, runsOnce bool) (modelGraphRunner, error) {
	inputs, err := g.inputsSupportedByShield()
	if err != nil {
		return nil, err
	}
	if err := startONNXRuntime(libraryPath); err != nil {
		return nil, err
	}
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	level := ort.GraphOptimizationLevel(ort.GraphOptimizationLevelEnableExtended)
	if f != modelGraphFormatONNX {
		level = ort.GraphOptimizationLevelDisableAll
	}
	if err := errors.Join(opts.SetIntraOpNumThreads(1), opts.SetInterOpNumThreads(1), opts.SetGraphOptimizationLevel(level),
		opts.SetLogSeverityLevel(ort.LoggingLevelFatal), opts.SetCpuMemArena(false)); err != nil {
		return nil, err
	}
	// https://github.com/microsoft/onnxruntime/blob/v1.24.1/include/onnxruntime/core/session/onnxruntime_session_options_config_keys.h
	var entries []string
	if f == modelGraphFormatORT {
		goMemoryPinnedForONNXRuntime.Lock()
		goMemoryPinnedForONNXRuntime.Pin(unsafe.SliceData(graphData))
		goMemoryPinnedForONNXRuntime.Unlock()
		entries = append(entries, "session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers")
	}
	if runsOnce {
		entries = append(entries, "session.disable_prepacking") // prepacking takes longer than it saves in one run
	}
	for _, key := range entries {
		if err := opts.AddSessionConfigEntry(key, "1"); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(inputs))
	for i, in := range inputs {
		names[i] = in.name
	}
	inner, err := ort.NewDynamicAdvancedSessionWithONNXData(graphData, names, []string{g.outputs[0].name}, opts)
	if err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	return &onnxSession{inner: inner, inputs: inputs}, nil
}

func (s *onnxSession) run(ctx context.Context, ids []int64) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts, err := ort.NewRunOptions()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	// The options must exist until the cancelling goroutine has returned.
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		opts.Terminate()
	})
	defer func() {
		if !stop() {
			<-ended
		}
	}()

	inputs := make([]ort.Value, 0, len(s.inputs))
	defer func() {
		for _, v := range inputs {
			v.Destroy()
		}
	}()
	for _, in := range s.inputs {
		v, err := in.newTensor(ids)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, v)
	}
	outputs := []ort.Value{nil}
	err = s.inner.RunWithOptions(inputs, outputs, opts)
	runtime.KeepAlive(inputs)
	if outputs[0] != nil {
		defer outputs[0].Destroy()
	}
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	logits, ok := outputs[0].(*ort.Tensor[float32])
	if shape := outputs[0].GetShape(); !ok || len(shape) != 2 || shape[0] != 1 {
		return nil, fmt.Errorf("model.onnx returns %T of shape %v instead of logits; use a text classification model", outputs[0], shape)
	}
	return slices.Clone(logits.GetData()), nil
}

// newTensor returns the value of one input for the tokens of a window.
func (p tensorInfo) newTensor(ids []int64) (ort.Value, error) {
	values := make([]int64, len(ids)) // token_type_ids are all 0: there is one segment
	switch p.name {
	case "input_ids":
		copy(values, ids)
	case "attention_mask":
		for i := range values {
			values[i] = 1
		}
	}
	shape := ort.NewShape(1, int64(len(ids)))
	if p.elementType == elemInt64 {
		return ort.NewTensor(shape, values)
	}
	short := make([]int32, len(values))
	for i, v := range values {
		short[i] = int32(v)
	}
	return ort.NewTensor(shape, short)
}
