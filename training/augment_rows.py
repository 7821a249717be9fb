"""Corpus rows again, with hosts, names, quotes, options and wrappers exchanged; the label stays."""

import argparse
import json
import random

from generate.augment import augment


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("rows", nargs="+", help="corpora, JSON Lines")
    a.add_argument("--out", required=True)
    a.add_argument("--malicious", type=int, default=2, help="copies of a malicious row")
    a.add_argument("--benign", type=float, default=0.4, help="share of the benign rows copied")
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    rng = random.Random(o.seed)
    with open(o.out, "w", encoding="utf-8") as out:
        for path in o.rows:
            for line in open(path, encoding="utf-8"):
                r = json.loads(line)
                if "action" not in r:
                    continue
                copies = o.malicious if r["label"] == "malicious" else int(rng.random() < o.benign)
                for n in range(copies):
                    c = augment(r, rng)
                    c["id"] = f"{r['id']}+{n}"
                    out.write(json.dumps(c, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
