"""Says how certain the model has to be of SAFE before that clears a doubt of the analysis, for each cause of doubt.

The wide half is fitted anew without each group of sources in turn and asked about the actions of that group; slope and
offset of the cascade turn its log odds into the confidence that shield compares. Then, for each cause, over the rows
that rules and analysis alone leave open because of it, and because of nothing that no model clears: the least confidence
with the greatest gain, which is the share of all attacks that it stops of those SAFE would clear, less --weight times the
share of all honest rows that it asks about. Where fewer than --few rows or --attacks attacks speak, SAFE never clears
the cause. --keep names a confidence that is used whatever was fitted; the report has both.

Prints the card's "doubts" and the report: for each cause its rows, what the fitted and the used confidence clear, and
what is cleared where each group's confidence is fitted on the others. The cause "none" is that of rows without a doubt,
which nothing says to be ordinary."""

import argparse
import json
import random

import numpy as np
from scipy.stats import beta
from tokenizers import Tokenizer

import data
import wide

STEPS = np.round(np.arange(0.5, 0.96, 0.05), 2)  # confidences that are tried; 0.5 is any SAFE


def groups_of(rows, groups):
    """The group of each row's source. Sources that no group names have no commands; they are dealt out."""
    of = {s: g for g, sides in groups.items() for side in sides.values() for s in side}
    rest = sorted({r["source"] for r in rows} - set(of))
    of |= {s: str(i % len(groups)) for i, s in enumerate(rest)}
    return np.array([of[r["source"]] for r in rows])


def left_out(rows, more, group, t):
    """For each row the wide half's log odds of an injection, from a table that was fitted without the row's group."""
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    data.encode(t, rows + more)
    odds = np.full(len(rows), np.nan)
    for g in sorted(set(group)):
        known = [r for r, x in zip(rows, group) if x != g]
        sources = {(r["source"], r["malicious"]) for r in known}
        known += [r for r in more if r["source"].startswith("gen:") or (r["source"], r["malicious"]) in sources]
        table, bias = wide.fit(known, data.weights(known), cls, sep)
        asked = np.flatnonzero(group == g)
        odds[asked] = wide.score(table, bias, [rows[i] for i in asked], cls, sep)
    return odds


def cleared(sure, malicious, t):
    """How many attacks and honest rows SAFE clears from a confidence on."""
    return int((malicious & (sure >= t)).sum()), int((~malicious & (sure >= t)).sum())


def bound(attacks, honest):
    """The upper end of the 95 % interval of the share of attacks."""
    return float(beta.ppf(0.975, attacks + 1, honest)) if honest else 1.0


def fit(sure, malicious, total, o):
    """The confidence with the greatest gain; 2, which none reaches, for never."""
    if len(sure) < o.few or malicious.sum() < o.attacks:
        return 2.0
    a, h = cleared(sure, malicious, STEPS[0])
    gain = [(a - x) / total[0] - o.weight * (h - y) / total[1] for x, y in (cleared(sure, malicious, t) for t in STEPS)]
    return float(STEPS[int(np.argmax(gain))])


def report(sure, malicious, group, used, total, o):
    fitted = fit(sure, malicious, total, o)
    used = fitted if used is None else max(used, STEPS[0])
    out = {"rows": len(sure), "attacks": int(malicious.sum())} | {n: t if t <= 1 else "never" for n, t in (("fitted", fitted), ("used", used))}
    for name, t in ("fitted", fitted), ("used", used):
        a, h = cleared(sure, malicious, t)
        out[name + "_clears"] = {"attacks": a, "honest": h, "bound": round(bound(a, h), 3)}
    left = np.zeros(2, dtype=int)
    for g in set(group):
        t = fit(sure[group != g], malicious[group != g], total, o)
        left += cleared(sure[group == g], malicious[group == g], t)
    out["left_out_clears"] = {"attacks": int(left[0]), "honest": int(left[1])}
    return used, out


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--causes", required=True, help="what ./causes writes of the corpora's actions")
    a.add_argument("--rows", required=True, help="the corpora, prepared; texts are left out")
    a.add_argument("--more", nargs="*", default=[], help="prepared rows of the generators, and changed rows of the corpora")
    a.add_argument("--groups", required=True, help="groups.json of the corpora")
    a.add_argument("--tokenizer", required=True, help="tokenizer.json")
    a.add_argument("--cascade", type=float, nargs=2, metavar=("SLOPE", "OFFSET"), required=True, help="what calibrate.py found")
    a.add_argument("--keep", nargs="*", default=[], metavar="CAUSE=CONFIDENCE")
    a.add_argument("--weight", type=float, default=3)
    a.add_argument("--few", type=int, default=20)
    a.add_argument("--attacks", type=int, default=5)
    o = a.parse_args()
    random.seed(1)
    rows, more = ([r for r in data.read(*paths) if r["type"] != "text"] for paths in ([o.rows], o.more))
    group = groups_of(rows, json.load(open(o.groups)))
    odds = o.cascade[0] * left_out(rows, more, group, Tokenizer.from_file(o.tokenizer)) + o.cascade[1]
    sure, malicious = 1 / (1 + np.exp(odds)), np.array([r["malicious"] for r in rows])
    causes = {r["id"]: r["causes"] for r in map(json.loads, open(o.causes))}
    keep = dict(k.split("=") for k in o.keep)
    doubts, reports, total = {}, {}, (malicious.sum(), (~malicious).sum())
    for cause in sorted({c for all_of in causes.values() for c in all_of}):
        i = np.array([k for k, r in enumerate(rows) if cause in causes.get(r["id"], ())])
        used, reports[cause] = report(sure[i], malicious[i], group[i], float(keep[cause]) if cause in keep else None, total, o)
        if used <= 1 and cause != "none":
            doubts[cause] = used if used > STEPS[0] else 0
    print(json.dumps({"doubts": doubts, "report": {
        "protocol": f"wide half alone, groups of sources left out in turn; the confidence with the greatest share of attacks stopped, less {o.weight:g} times the share of honest rows asked about",
        **reports}}, indent=1))


if __name__ == "__main__":
    main()
