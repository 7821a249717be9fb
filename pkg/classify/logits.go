package classify

import (
	"errors"
	"fmt"
	"math"
)

// inputsSupportedByShield returns the inputs of a graph. It returns an error for an input that shield cannot provide.
func (g *onnxGraph) inputsSupportedByShield() ([]tensorInfo, error) {
	ids := false
	for _, in := range g.inputs {
		switch in.name {
		case "input_ids":
			ids = true
		case "attention_mask", "token_type_ids":
		default:
			return nil, fmt.Errorf("model.onnx: the input %.40q is not supported; export the model with input_ids, attention_mask or token_type_ids", in.name)
		}
		if in.elementType != elemInt64 && in.elementType != elemInt32 {
			return nil, fmt.Errorf("model.onnx: the input %s is not of type int64 or int32; export the model again", in.name)
		}
	}
	if !ids {
		return nil, errors.New("model.onnx: the input input_ids is missing; export the model as a text classifier")
	}
	if g.outputs[0].elementType != elemFloat {
		return nil, errors.New("model.onnx: the first output is not of type float32; export the model with float32 outputs")
	}
	return g.inputs, nil
}

// probability returns the softmax of logits at one label.
func probability(logits []float32, label int) (float64, error) {
	if label >= len(logits) {
		return 0, errors.New("model: model.onnx returns fewer numbers than config.json has labels; use the files of one model")
	}
	top := math.Inf(-1)
	for _, l := range logits {
		top = max(top, float64(l))
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	p := math.Exp(float64(logits[label])-top) / sum
	if math.IsNaN(p) || math.IsInf(p, 0) {
		return 0, errors.New("model: model.onnx returned a number that is not finite; choose another model")
	}
	return p, nil
}
