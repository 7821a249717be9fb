"""Writes the model's shield.json: how shield uses it, and what it was made from."""

import argparse
import json


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("corpora", nargs="+", help="JSON Lines with source and license")
    a.add_argument("--measured", required=True, help="JSON file: what evaluate.py and shield score found")
    a.add_argument("--safe", required=True, help="JSON file: what safe.py found")
    a.add_argument("--mix", required=True, help="JSON file: what calibrate.py found")
    a.add_argument("--doubts", required=True, help="JSON file: what doubts.py found")
    a.add_argument("--wide", required=True, help="JSON file: what export.py says of the table")
    a.add_argument("--out", required=True)
    o = a.parse_args()
    sources = {"generated": "Apache-2.0", "all-MiniLM-L6-v2": "Apache-2.0"}
    for path in o.corpora:
        for line in open(path, encoding="utf-8"):
            r = json.loads(line)
            sources[r["source"]] = r["license"]
    cascade, doubts = json.load(open(o.mix))["cascade"], json.load(open(o.doubts))
    card = {
        "name": "default",
        "version": "1",
        "licence": "Apache-2.0",
        "threshold": 0.85,
        "safe_thresholds": json.load(open(o.safe)),
        "doubts": doubts["doubts"],
        "skip_types": [],
        "max_length": 128,
        "optimized": True,
        "malicious_label": "INJECTION",
        "wide": {**json.load(open(o.wide)), **{k: cascade[k] for k in ("slope", "offset", "margin")}},
        "sources": dict(sorted(sources.items())),
        "measured": {**json.load(open(o.measured)), "doubts": doubts["report"]},
    }
    with open(o.out, "w") as f:
        json.dump(card, f, indent=1, ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main()
