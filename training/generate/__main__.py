import argparse
import json
import random
from . import registry
from .augment import augment, vary
from .grammar import fill, expand


def generate(seed, count):
    scen = registry.load()
    W = registry.WEIGHTS
    tot = sum(W.values())
    rows, seen = [], set()
    for fam, w in W.items():
        rng = random.Random(f"{seed}:{fam}")
        fs = [s for s in scen if s["family"] == fam]
        types = sorted({s["type"] for s in fs})
        tw = [sum(s["weight"] for s in fs if s["type"] == t) for t in types]
        quota = round(count * w / tot)
        for t, x in zip(types, tw):
            n = max(2, round(quota * x / sum(tw)))
            for lab in ("malicious", "benign"):
                ss = [s for s in fs if s["type"] == t and s["label"] == lab]
                ws = [s["weight"] for s in ss]
                got = tries = 0
                while got < n // 2 and tries < n * 8:
                    tries += 1
                    s = rng.choices(ss, ws)[0]
                    tm = s["templates"]
                    v = tm(rng) if callable(tm) else fill(rng.choice(tm), rng)
                    row = {"id": "", "source": "gen:" + fam, "label": lab, "category": s["category"], "sub": s["sub"]}
                    if t == "document":
                        row["text"] = v
                    else:
                        row["action"] = {"type": expand(t, rng), "payload": v}
                        row = vary(row, rng)
                    if rng.random() < .35:
                        row = augment(row, rng)
                    k = json.dumps(row.get("action") or row["text"], sort_keys=True, ensure_ascii=False).lower()
                    if k in seen:
                        continue
                    seen.add(k)
                    got += 1
                    row["id"] = f"gen-{fam}-{s['sub']}-{lab[:3]}-{len(rows)}"
                    rows.append(row)
    # equal numbers of both labels in each type
    by = {}
    for r in rows:
        by.setdefault((r["source"], r.get("action", {}).get("type", "text")), {"malicious": [], "benign": []})[r["label"]].append(r)
    rows = []
    for k in sorted(by):
        n = min(map(len, by[k].values()))
        rows += by[k]["malicious"][:n] + by[k]["benign"][:n]
    random.Random(f"{seed}:order").shuffle(rows)
    return rows


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=30000)
    a.add_argument("--out", required=True)
    o = a.parse_args()
    # ask for a little more: unequal or repeated rows fall out
    rs = generate(o.seed, int(o.count * 1.12) + 40)[:o.count]
    with open(o.out, "w", encoding="utf-8") as f:
        for r in rs:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    print(len(rs), "rows")
