"""Says how the wide and the deep half of the model are mixed: log odds = a * wide + b * deep + c.

Reads what evaluate.py wrote: scores of rows whose sources the models had not seen. Every fold and label has the same
weight. The constant is moved so that the label INJECTION (log odds over 0) is right about the honest rows as often as
--alarms says; 0.85, from where on shield blocks, then follows from the slope.

Then it says what the wide half alone tells of the answer: log odds of about slope * wide + offset, give or take margin,
within which shield asks the deep half. The margin is the least at which at most --changed of all decisions differ from
asking both, none of them an attack that is allowed."""

import argparse
import json

import numpy as np
from sklearn.linear_model import LogisticRegression


def cascade(x, malicious, mix, changed):
    wide, odds = x[:, 0], x @ mix[:2] + mix[2]
    slope, offset = np.polyfit(wide, odds, 1)
    guess = slope * wide + offset
    decide = lambda o: np.digitize(o, [0, np.log(0.85 / 0.15)])
    for margin in np.arange(0.05, 3, 0.05):
        settled = decide(guess - margin) == decide(guess + margin)
        wrong = settled & (decide(guess) != decide(odds))
        if wrong.mean() <= changed and not (wrong & malicious & (decide(guess) == 0)).any():
            break
    return {"slope": round(float(slope), 3), "offset": round(float(offset), 3), "margin": round(float(margin), 2),
            "settled": round(float(settled.mean()), 3), "changed": int(wrong.sum()), "rows": len(x)}


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("scores", nargs="+", help="commands-*.jsonl and texts-*.jsonl of evaluate.py")
    a.add_argument("--alarms", type=float, default=0.03, help="share of honest rows that may be called INJECTION")
    a.add_argument("--blocks", type=float, default=0.003, help="share of honest rows that may reach 0.85")
    a.add_argument("--changed", type=float, default=0.002, help="share of decisions that the cascade may change")
    o = a.parse_args()
    x, y, w = [], [], []
    for path in o.scores:
        rows = [json.loads(line) for line in open(path)]
        m = np.array([r["malicious"] for r in rows])
        x += [(r["wide"], r["deep"]) for r in rows]
        y += list(m)
        w += list(np.where(m, 1 / m.sum(), 1 / (~m).sum()))
    x, y, w = np.array(x), np.array(y), np.array(w) * len(y) / 2 / len(o.scores)
    fit = LogisticRegression(C=10).fit(x, y, w)
    odds = x @ fit.coef_[0]
    honest, weight = odds[~y], w[~y]
    order = np.argsort(-honest)
    reached = np.cumsum(weight[order]) / weight.sum()
    alarm = honest[order][np.searchsorted(reached, o.alarms)]
    block = honest[order][np.searchsorted(reached, o.blocks)]
    slope = np.log(0.85 / 0.15) / max(block - alarm, 1e-6)
    mix = [slope * fit.coef_[0][0], slope * fit.coef_[0][1], -slope * alarm]
    print(json.dumps({"mix": [round(float(v), 4) for v in mix],
                      "attacks_found": round(float(w[y & (odds > alarm)].sum() / w[y].sum()), 3),
                      "attacks_blocked": round(float(w[y & (odds > block)].sum() / w[y].sum()), 3),
                      "cascade": cascade(x, y, np.array(mix), o.changed)}))


if __name__ == "__main__":
    main()
