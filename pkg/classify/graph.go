package classify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A tensorInfo is an input or output of a model.
type tensorInfo struct {
	name        string
	elementType int64 // TensorProto.DataType
}

// Data types of tensors, as onnx.proto numbers them.
const (
	elemFloat = 1
	elemInt8  = 3
	elemInt32 = 6
	elemInt64 = 7
)

// An onnxGraph holds the inputs and outputs of a model.onnx file, which are read before ONNX
// Runtime loads the file. Reading also checks that the file refers to no other file.
type onnxGraph struct {
	inputs, outputs []tensorInfo
}

// Limits of a model's graph.
const (
	maxONNXGraphDepth  = 8 // nested graphs
	maxONNXGraphInputs = 16
	maxDimension       = 1 << 31 // maximum size of one dimension of a tensor
	maxTensorElements  = 1 << 31 // maximum number of elements of one tensor
)

// builtinOperatorDomains are the domains of ONNX Runtime's built-in operators.
var builtinOperatorDomains = []string{"", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc"}

// parseONNXGraph parses a ModelProto, https://github.com/onnx/onnx/blob/v1.18.0/onnx/onnx.proto. It rejects
// weights in other files (the name could be any path), operators that need another library, and tensors
// larger than in any real model.
func parseONNXGraph(data []byte) (*onnxGraph, error) {
	g := new(onnxGraph)
	if err := eachProtoField(data, func(number, _ uint64, value []byte) error {
		switch number {
		case 7: // graph
			return g.parseGraph(value, 0)
		case 25: // functions
			return eachProtoField(value, func(number, _ uint64, value []byte) error {
				if number == 7 {
					return g.parseNode(value, 1)
				}
				return nil
			})
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("model.onnx: %w", err)
	}
	if len(g.inputs) == 0 || len(g.outputs) == 0 {
		return nil, errors.New("model.onnx: the graph has no inputs or no outputs; is it an ONNX file?")
	}
	return g, nil
}

// parseGraph walks a GraphProto.
func (g *onnxGraph) parseGraph(data []byte, depth int) error {
	if depth > maxONNXGraphDepth {
		return fmt.Errorf("graphs are nested deeper than %d", maxONNXGraphDepth)
	}
	return eachProtoField(data, func(number, _ uint64, value []byte) error {
		switch number {
		case 1: // node
			return g.parseNode(value, depth)
		case 5: // initializer
			return checkTensorSizeAndDataLocation(value)
		case 15: // sparse_initializer
			return checkSparseTensor(value)
		case 11, 12: // input, output
			if depth > 0 {
				return nil
			}
			p, err := readTensorInfo(value)
			if err != nil {
				return err
			}
			list := &g.inputs
			if number == 12 {
				list = &g.outputs
			}
			if *list = append(*list, p); len(*list) > maxONNXGraphInputs {
				return fmt.Errorf("more than %d inputs or outputs", maxONNXGraphInputs)
			}
		}
		return nil
	})
}

// parseNode walks a NodeProto.
func (g *onnxGraph) parseNode(data []byte, depth int) error {
	return eachProtoField(data, func(number, _ uint64, value []byte) error {
		switch number {
		case 5: // attribute
			return eachProtoField(value, func(number, _ uint64, value []byte) error {
				switch number {
				case 5, 10: // t, tensors
					return checkTensorSizeAndDataLocation(value)
				case 22, 23: // sparse_tensor, sparse_tensors
					return checkSparseTensor(value)
				case 6, 11: // g, graphs
					return g.parseGraph(value, depth+1)
				}
				return nil
			})
		case 7: // domain
			if !slices.Contains(builtinOperatorDomains, string(value)) {
				return fmt.Errorf("operators of the domain %.40q are not built into ONNX Runtime", value)
			}
		}
		return nil
	})
}

// checkSparseTensor checks the values and indices of an ONNX sparse tensor, in the encoding of SparseTensorProto.
func checkSparseTensor(data []byte) error {
	return eachProtoField(data, func(number, _ uint64, value []byte) error {
		if number <= 2 {
			return checkTensorSizeAndDataLocation(value)
		}
		return nil
	})
}

// checkTensorSizeAndDataLocation returns an error if an ONNX tensor, in the encoding of TensorProto, has too
// many elements or is malformed, or if its data is in another file.
func checkTensorSizeAndDataLocation(data []byte) error {
	elements := uint64(1)
	dim := func(n uint64) error {
		if n > maxDimension || n > 0 && elements > maxTensorElements/n {
			return errors.New("a tensor has too many elements")
		}
		elements *= n
		return nil
	}
	return eachProtoField(data, func(number, n uint64, value []byte) error {
		switch {
		case number == 1 && value == nil: // dims
			return dim(n)
		case number == 1: // dims, packed
			for len(value) > 0 {
				v, used := binary.Uvarint(value)
				if used <= 0 {
					return errMalformedONNX
				}
				if err := dim(v); err != nil {
					return err
				}
				value = value[used:]
			}
		case number == 13, number == 14 && n == 1: // external_data, data_location
			return errors.New("the weights are in another file; export the model as a single file")
		}
		return nil
	})
}

// readTensorInfo reads a ValueInfoProto.
func readTensorInfo(data []byte) (tensorInfo, error) {
	var p tensorInfo
	err := eachProtoField(data, func(number, _ uint64, value []byte) error {
		switch number {
		case 1: // name
			p.name = string(value)
		case 2: // type
			return eachProtoField(value, func(number, _ uint64, value []byte) error {
				if number != 1 { // tensor_type
					return nil
				}
				return eachProtoField(value, func(number, n uint64, _ []byte) error {
					if number == 1 { // elem_type
						p.elementType = int64(n)
					}
					return nil
				})
			})
		}
		return nil
	})
	return p, err
}
