"""Writes an optimised ONNX graph in ONNX Runtime's own format, which is loaded without copying the weights.

usage: setarch -R python training/pack.py models/default/model.onnx GRAPH

Without setarch the order of the parts differs from run to run; what they say does not."""

import sys

import onnxruntime as ort


def pack(graph, out):
    """Writes graph, a file, to out as it is: no further optimisation, which could fit this processor alone."""
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.add_session_config_entry("session.save_model_format", "ORT")
    o.optimized_model_filepath = out
    ort.InferenceSession(graph, o, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    pack(*sys.argv[1:])
