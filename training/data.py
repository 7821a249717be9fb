"""Rows of prepared text: reading, the vocabulary, sampling weights, windows and batches.

A row is one JSON object a line, as ./rows writes it: id, source, category, split, label, type, text.
The text is already in the form that the Go side gives to the model."""

import collections
import json
import random

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WINDOW = 128  # tokens, [CLS] and [SEP] among them
OVERLAP = 32  # tokens that two windows share
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_TEXT = 8000  # characters of one row that training looks at


def read(*paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            rows += [json.loads(line) for line in f]
    for r in rows:
        r["malicious"] = r["label"] == "malicious"
        r["text"] = r["text"][:MAX_TEXT]
    return rows


def tokenizer(vocab):
    """vocab: piece -> id. The normaliser is the Go side's, so the file names none."""
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(s, vocab[s]) for s in ("[CLS]", "[SEP]")])
    t.add_special_tokens(SPECIAL)
    return t


def vocabulary(teacher, rows, size):
    """The teacher's pieces that the rows use most, and every ASCII character.

    Returns the vocabulary and, for each of its ids, the teacher's id."""
    full = json.load(open(teacher, encoding="utf-8"))["model"]["vocab"]
    t = tokenizer(full)
    counts = collections.Counter()
    for i in range(0, len(rows), 1000):
        for e in t.encode_batch([r["text"][:2000] for r in rows[i:i + 1000]], add_special_tokens=False):
            counts.update(e.tokens)
    keep = set(SPECIAL) | {p for p in full if len(p.removeprefix("##")) == 1 and ord(p[-1]) < 128}
    for piece, _ in counts.most_common():
        if len(keep) == size:
            break
        if piece in full:
            keep.add(piece)
    ids = sorted(full[p] for p in keep)
    names = {i: p for p, i in full.items()}
    return {names[i]: n for n, i in enumerate(ids)}, ids


def encode(t, rows):
    for i in range(0, len(rows), 1000):
        part = rows[i:i + 1000]
        for r, e in zip(part, t.encode_batch([r["text"] for r in part], add_special_tokens=False)):
            r["ids"] = e.ids


def windows(ids):
    """The windows that judging reads, without [CLS] and [SEP]."""
    size = WINDOW - 2
    if len(ids) <= size:
        return [ids]
    return [ids[i:i + size] for i in range(0, len(ids) - OVERLAP, size - OVERLAP)]


def one_window(r):
    """A window for one step of training.

    Of a malicious text only some windows hold the attack: "best", where a model has looked, says which."""
    w = windows(r["ids"])
    if r["malicious"] and "best" in r:
        return w[min(r["best"], len(w) - 1)]
    return random.choice(w)


def weights(rows):
    """Sampling weights: types of action balanced between labels, sources damped by a square root.

    Within each type both labels have the same mass, so that the type says nothing of the label. A type
    that has one label only is left to the mass of all types together."""
    def kind(r):
        return r["type"]

    count = collections.Counter((kind(r), r["malicious"], r["source"]) for r in rows)
    w = np.array([count[kind(r), r["malicious"], r["source"]] ** -0.5 for r in rows])
    mass, size = collections.Counter(), collections.Counter()
    for r, x in zip(rows, w):
        mass[kind(r), r["malicious"]] += x
        size[kind(r), r["malicious"]] += 1
    share = {}
    for k in {kind(r) for r in rows}:
        a, b = size[k, True], size[k, False]
        share[k] = (min(a, b) + 20) ** 0.75 if a and b else 20.0
    w = np.array([x / mass[kind(r), r["malicious"]] * share[kind(r)] for r, x in zip(rows, w)])
    return w / w.sum()


def batches(items, tokens):
    """items: (ids, label). Batches of about that many tokens, of similar length, shuffled."""
    items = sorted(items, key=lambda t: len(t[0]) + 6 * random.random())
    out, b = [], []
    for it in items:
        if b and (len(b) + 1) * (len(it[0]) + 2) > tokens:
            out.append(b)
            b = []
        b.append(it)
    if b:
        out.append(b)
    random.shuffle(out)
    return out
