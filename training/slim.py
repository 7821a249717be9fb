"""Rewrites the exported graph to what decides: the answer is read at the first token, so that the last layer works on that
one alone; a window is one segment without padding, so that there are no masks; and embeddings are made by few operators.

usage: python training/slim.py EXPORTED.onnx OUT.onnx

Up to the last layer's keys and values every number is the exported graph's. Behind them the activations are quantised by
their own largest value, instead of by that of all tokens, which is finer."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
CAUTION = 0.0004  # log odds towards INJECTION: with it no decision on the public corpora differs from that of the exported graph
DEEP = "/encoder/classifier/Gemm_output_0"  # the deep half's log odds of both labels


class Graph:
    """Nodes and initializers that are written one after the other."""

    def __init__(self, model):
        self.old = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        self.exported = model.graph.node
        self.nodes, self.constants = [], {}
        self.hidden = len(self.old["encoder.bert.embeddings.LayerNorm.bias"])

    def const(self, name, value):
        self.constants.setdefault(name, value)
        return name

    def op(self, kind, out, *inputs, domain="", **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, domain=domain, **attributes))
        return out

    def weight(self, name):
        return self.const(name, self.old[name])

    def matmul(self, bias):
        """The names of the weight, its scale and its zero point of the exported product that bias is added to."""
        node = next(n for n in self.exported if bias in n.input)
        names = [n for n in node.input if n in self.old and n != bias]
        return [next(n for n in names if n.endswith(end)) for end in ("_quantized", "_scale", "_zero_point")]

    def quantized(self, out, x, bias):
        """x times a weight, x being quantised on the way."""
        return self.op("DynamicQuantizeMatMul", out, x, *map(self.weight, self.matmul(bias)), self.weight(bias), domain=MS)

    def product(self, out, q, bias, row=None):
        """The same for what has been quantised; row: a name for the first token's alone."""
        weight, scale, zero = map(self.weight, self.matmul(bias))
        return self.op("MatMulIntegerToFloat", out, row or q[0], weight, q[1], scale, q[2], zero, self.weight(bias), domain=MS)

    def first(self, out, x):
        """The first token of x."""
        zero, one = self.const("zero", np.array([0])), self.const("one", np.array([1]))
        return self.op("Slice", out, x, zero, one, one)


def embed(g):
    """What goes into the first layer. Cast, Sub and Mul are DequantizeLinear in a third of the time."""
    old, name = g.old, "encoder.bert.embeddings.%s_embeddings.weight_%s"

    def table(kind):
        scale, zero, q = (old[name % (kind, part)] for part in ("scale", "zero_point", "quantized"))
        return (q.astype(np.float32) - np.float32(zero)) * scale

    zero = g.const("word_zero", old[name % ("word", "zero_point")].astype(np.float32))
    words = g.op("Gather", "word_q", g.weight(name % ("word", "quantized")), "input_ids")
    words = g.op("Sub", "word_steps", g.op("Cast", "word_f", words, to=TensorProto.FLOAT), zero)
    words = g.op("Mul", "words", words, g.weight(name % ("word", "scale")))
    length = g.op("Shape", "length", "input_ids", start=1)
    places = g.op("Slice", "places", g.const("positions", table("position")), g.const("zero", np.array([0])), length, g.const("zero", np.array([0])))
    x = g.op("Add", "embedded", g.op("Add", "words_typed", words, g.const("segment", table("token_type")[0])), places)
    return norm(g, "layer0_in", x, "encoder.bert.embeddings.LayerNorm.")


def norm(g, out, x, name):
    return g.op("LayerNormalization", out, x, g.weight(name + "weight"), g.weight(name + "bias"), axis=-1, epsilon=1e-12)


def layer(g, k, x, last):
    """The layer k. The last one returns the first token only."""
    at, name = f"layer{k}_", f"encoder.bert.encoder.layer.{k}."
    q = [at + part for part in ("q", "scale", "zero")]
    g.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], q, name=at + "quantize"))
    alpha = next(helper.get_attribute_value(a) for n in g.exported if n.op_type == "FusedMatMul" for a in n.attribute if a.name == "alpha")
    size = round(alpha ** -2)
    heads, back = g.const("heads", np.array([1, -1, g.hidden // size, size])), g.const("back", np.array([1, -1, g.hidden]))

    def head(part, perm, row=None):
        y = g.op("Reshape", at + part + "_heads", g.product(at + part, q, f"{name}attention.self.{part}.bias", row), heads)
        return g.op("Transpose", at + part + "_turned", y, perm=perm)

    key = head("key", [0, 2, 3, 1])
    query = head("query", [0, 2, 1, 3], g.first(at + "q_first", q[0]) if last else None)
    y = g.op("FusedMatMul", at + "match", query, key, domain=MS, alpha=alpha)
    y = g.op("MatMul", at + "read", g.op("Softmax", at + "attention", y, axis=-1), head("value", [0, 2, 1, 3]))
    y = g.op("Reshape", at + "joined", g.op("Transpose", at + "read_turned", y, perm=[0, 2, 1, 3]), back)
    y = g.quantized(at + "attended", y, name + "attention.output.dense.bias")
    y = g.op("Add", at + "attended_sum", y, g.first(at + "in_first", x) if last else x)
    x = norm(g, at + "middle", y, name + "attention.output.LayerNorm.")
    y = g.op("Gelu", at + "gelu", g.quantized(at + "wide", x, name + "intermediate.dense.bias"), domain=MS)
    y = g.quantized(at + "narrow", y, name + "output.dense.bias")
    return g.op("SkipLayerNormalization", at + "out", y, x, g.weight(name + "output.LayerNorm.weight"), g.weight(name + "output.LayerNorm.bias"),
                domain=MS, epsilon=1e-12)


def answer(g, x):
    """The deep half's answer, and the exported graph's operators that mix it with the n-grams."""
    x = g.op("Reshape", "pooled", x, g.const("row", np.array([1, g.hidden])))
    x = g.op("Tanh", "pooler", g.quantized("pooler_dense", x, "encoder.bert.pooler.dense.bias"))
    g.quantized(DEEP, x, "encoder.classifier.bias")
    wanted, kept = {"logits"}, []
    for node in reversed(g.exported):
        if wanted.intersection(node.output) and DEEP not in node.output:
            wanted.update(node.input)
            kept.append(node)
    for name in sorted(wanted & g.old.keys()):
        g.weight(name)
    odds = next(n.input[0] for n in kept if n.op_type == "Neg")
    mixed = next(n for n in kept if odds in n.output)
    constant = next(n for n in mixed.input if n in g.old)
    g.constants[constant] = g.old[constant] + np.float32(CAUTION)
    g.nodes += reversed(kept)


def slim(exported):
    """The model that is rewritten; exported is one of export.py, optimised."""
    g = Graph(exported)
    x = embed(g)
    layers = sum(n.op_type == "Gelu" for n in g.exported)
    for k in range(layers):
        x = layer(g, k, x, k == layers - 1)
    answer(g, x)
    inputs = [i for i in exported.graph.input if i.name == "input_ids"]
    graph = helper.make_graph(g.nodes, "shield", inputs, exported.graph.output, [numpy_helper.from_array(v, n) for n, v in g.constants.items()])
    opsets = [o for o in exported.opset_import if o.domain in ("", MS)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=exported.ir_version)


if __name__ == "__main__":
    model = slim(onnx.load(sys.argv[1]))
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[2])
