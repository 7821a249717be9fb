"""Says how certain the model has to be of SAFE, for each type of action, so that about --alarms of the honest actions are
doubted. Reads prepared rows that the model was not trained on (cases/). A type with fewer than 20 honest rows, and one
of which the label alone doubts as many, is left out."""

import argparse
import json
import os

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

import data

LEFT_OUT = {"execute_command", "text"}  # calibrated on the corpora


def odds(session, t, text):
    """The log odds of an injection, the highest of the windows."""
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    best = -np.inf
    for w in data.windows(t.encode(text, add_special_tokens=False).ids):
        x = np.array([[cls, *w, sep]], dtype=np.int64)
        safe, injection = session.run(None, {"input_ids": x})[0][0]
        best = max(best, injection - safe)
    return best


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("rows", help="prepared rows")
    a.add_argument("--model", required=True, help="folder with model.onnx and tokenizer.json")
    a.add_argument("--alarms", type=float, default=0.05, help="share of honest rows of a type that may be doubted")
    o = a.parse_args()
    session = onnxruntime.InferenceSession(os.path.join(o.model, "model.onnx"))
    t = Tokenizer.from_file(os.path.join(o.model, "tokenizer.json"))
    honest = {}
    for r in data.read(o.rows):
        if not r["malicious"] and r["type"] not in LEFT_OUT:
            honest.setdefault(r["type"], []).append(odds(session, t, r["text"]))
    out = {}
    for kind, found in sorted(honest.items()):
        limit = np.quantile(found, 1 - o.alarms)
        threshold = round(float(1 / (1 + np.exp(limit))), 2)
        if len(found) >= 20 and threshold > 0.5:
            out[kind] = threshold
    print(json.dumps(out))


if __name__ == "__main__":
    main()
