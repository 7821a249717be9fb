"""Checkpoint -> model folder: ONNX with int8 weights, already optimised, and the files that go with it."""

import argparse
import json
import os
import shutil
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoModelForSequenceClassification

import wide
from slim import slim


class WideDeep(torch.nn.Module):
    """One window's logits: SAFE, INJECTION. mix: factors of the wide and the deep log odds, and a constant."""

    def __init__(self, encoder, table, bias, mix):
        super().__init__()
        self.encoder = encoder
        limit = float(np.abs(table).max()) / 127
        self.register_buffer("table", torch.tensor(np.round(table / limit), dtype=torch.int8))
        self.limit, self.bias, self.mix = limit, bias, mix

    def forward(self, input_ids, attention_mask):
        deep = self.encoder(input_ids=input_ids, attention_mask=attention_mask).logits
        x = input_ids[0]
        grams = torch.cat([x % wide.SIZE, (x[:-1] * wide.STEP + x[1:] + 7919) % wide.SIZE,
                           ((x[:-2] * wide.STEP + x[1:-1]) * wide.STEP + x[2:] + 104729) % wide.SIZE])
        found = self.table[torch.unique(grams)].float() * self.limit
        odds = found.sum() / torch.sqrt(torch.ones_like(found).sum()) + self.bias
        odds = self.mix[0] * odds + self.mix[1] * (deep[:, 1] - deep[:, 0]) + self.mix[2]
        return torch.stack([-odds / 2, odds / 2], dim=1)


def export(model, path):
    """Writes a model of one window as ONNX with int8 weights to path."""
    model = model.cpu().eval()
    with tempfile.TemporaryDirectory() as tmp:
        full, small, best = (os.path.join(tmp, n) for n in ("full.onnx", "int8.onnx", "optimised.onnx"))
        ids = torch.ones(1, 16, dtype=torch.long)
        torch.onnx.export(model, (ids, ids), full, input_names=["input_ids", "attention_mask"], output_names=["logits"],
                          dynamic_axes={"input_ids": {1: "length"}, "attention_mask": {1: "length"}},
                          opset_version=17, dynamo=False)
        quantize_dynamic(full, small, weight_type=QuantType.QInt8, per_channel=True, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
        o = ort.SessionOptions()
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        o.optimized_model_filepath = best
        ort.InferenceSession(small, o, providers=["CPUExecutionProvider"])
        onnx.save(slim(onnx.load(best)), path)


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("checkpoint")
    a.add_argument("out")
    a.add_argument("--mix", type=float, nargs=3, required=True, help="what calibrate.py prints")
    o = a.parse_args()
    os.makedirs(o.out, exist_ok=True)
    encoder = AutoModelForSequenceClassification.from_pretrained(o.checkpoint, attn_implementation="eager")
    npz = np.load(os.path.join(o.checkpoint, "wide.npz"))
    model = WideDeep(encoder, npz["table"], float(npz["bias"]), o.mix)
    export(model, os.path.join(o.out, "model.onnx"))
    c = encoder.config
    json.dump({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": c.vocab_size,
               "hidden_size": c.hidden_size, "num_hidden_layers": c.num_hidden_layers, "num_attention_heads": c.num_attention_heads,
               "intermediate_size": c.intermediate_size, "max_position_embeddings": c.max_position_embeddings, "pad_token_id": 0,
               "id2label": {"0": "SAFE", "1": "INJECTION"}}, open(os.path.join(o.out, "config.json"), "w"), indent=1)
    shutil.copy(os.path.join(o.checkpoint, "tokenizer.json"), o.out)
    print(json.dumps({"table": "table", "scale": model.limit, "bias": model.bias}))


if __name__ == "__main__":
    main()
