"""The wide half of the model: logistic regression on hashed n-grams of tokens, as one table that ONNX can look up.

A window's log odds are the sum of the weights of its different 1- to 3-grams, [CLS] and [SEP] among the tokens, divided
by the square root of their number. It remembers what attacks are spelt with; the encoder beside it reads."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

import data

SIZE = 1048573  # slots of the table, a prime
STEP = 100003


def slots(x):
    """The slots of the n-grams of a window of token ids, an array of int64."""
    parts = [x % SIZE]
    if len(x) > 1:
        parts.append((x[:-1] * STEP + x[1:] + 7919) % SIZE)
    if len(x) > 2:
        parts.append(((x[:-2] * STEP + x[1:-1]) * STEP + x[2:] + 104729) % SIZE)
    return np.concatenate(parts)


def features(windows, cls, sep):
    ind, val, ptr = [], [], [0]
    for w in windows:
        h = slots(np.array([cls, *w, sep], dtype=np.int64))
        u = np.unique(h)
        ind.append(u)
        val.append(np.full(len(u), 1 / np.sqrt(len(u)), dtype=np.float32))
        ptr.append(ptr[-1] + len(u))
    return csr_matrix((np.concatenate(val), np.concatenate(ind), ptr), shape=(len(windows), SIZE))


def score(table, bias, rows, cls, sep):
    """For each row the log odds of the most suspicious window; notes which one that is."""
    out = np.full(len(rows), -np.inf)
    for start in range(0, len(rows), 2000):
        items = [(w, i, k) for i in range(start, min(start + 2000, len(rows))) for k, w in enumerate(data.windows(rows[i]["ids"]))]
        s = features([w for w, _, _ in items], cls, sep) @ table + bias
        for (_, i, k), v in zip(items, s):
            if v > out[i]:
                out[i] = v
                rows[i]["best"] = k
    return out


def fit(rows, weights, cls, sep, c=5.0):
    """Returns the table (float32, SIZE) and the bias. Rows that are long and malicious are read where the attack
    seems to stand: a first fit says where."""
    y = np.array([r["malicious"] for r in rows])
    long = [r for r in rows if r["malicious"] and len(r["ids"]) > data.WINDOW - 2]
    for r in rows:
        r.pop("best", None)
    w = weights * len(rows)
    for again in (False, True) if long else (False,):
        if again:
            score(table, bias, long, cls, sep)
        x = features([data.one_window(r) for r in rows], cls, sep)
        m = LogisticRegression(C=c, solver="liblinear", tol=1e-3).fit(x, y, w)
        table, bias = m.coef_[0].astype(np.float32), float(m.intercept_[0])
    return table, bias
