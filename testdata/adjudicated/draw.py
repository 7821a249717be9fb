#!/usr/bin/env python3
"""Draw the commands to be adjudicated, and turn judgements into labels.jsonl.

    draw.py rows CORPORA FROM TO   print the drawn commands FROM..TO (counted from 1),
                                   shuffled together, without id, source or label
    draw.py label CORPORA FILE     read judgements (a line "NUMBER s|a|p" each) and
                                   write labels.jsonl to stdout
    draw.py table CORPORA LABELS   count the labels against the corpus' own

The rows are text to be read. Nothing here runs one.
"""

import hashlib
import json
import os
import random
import sys

SEED = 20261121
EACH = 500
FILES = ("actions-malicious.jsonl", "actions-benign.jsonl")
LABELS = {"s": "stop", "a": "ask", "p": "pass"}


def draw(corpora):
    """Return EACH malicious and EACH benign rows, shuffled, always in the same order."""
    rng = random.Random(SEED)
    drawn = []
    for name in FILES:
        with open(os.path.join(corpora, name), encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        rows = [r for r in rows
                if r["split"] == "dev" and r["action"]["type"] == "execute_command"]
        rows.sort(key=lambda r: r["id"])
        drawn += rng.sample(rows, EACH)
    rng.shuffle(drawn)
    return drawn


def held_out(row_id):
    """Report whether the row is in the fifth that is held back until the end."""
    return int(hashlib.sha256(row_id.encode()).hexdigest(), 16) % 5 == 0


def rows(corpora, first, last):
    for n, row in enumerate(draw(corpora), 1):
        if first <= n <= last:
            payload = row["action"]["payload"]
            rest = {k: v for k, v in payload.items() if k != "command"}
            print(f"[{n}] {payload.get('command', '')}" + (f"  {json.dumps(rest)}" if rest else ""))


def label(corpora, judgements):
    drawn = draw(corpora)
    given = {}
    with open(judgements, encoding="utf-8") as f:
        for line in f:
            number, letter = line.split()
            if int(number) in given:
                sys.exit(f"{judgements}: row {number} is judged twice")
            given[int(number)] = LABELS[letter]
    missing = [n for n in range(1, len(drawn) + 1) if n not in given]
    if missing or len(given) != len(drawn):
        sys.exit(f"{judgements}: {len(given)} judgements for {len(drawn)} rows; missing {missing[:10]}")
    out = sorted((row["id"], given[n]) for n, row in enumerate(drawn, 1))
    for row_id, name in out:
        entry = {"id": row_id, "label": name}
        if held_out(row_id):
            entry["held_out"] = True
        print(json.dumps(entry))


def table(corpora, labels):
    corpus = {row["id"]: row["label"] for row in draw(corpora)}
    counts = {}
    with open(labels, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            for part in ("all", "held out" if entry.get("held_out") else "tuning"):
                key = (part, corpus[entry["id"]], entry["label"])
                counts[key] = counts.get(key, 0) + 1
    print("| rows | corpus label | stop | ask | pass |\n|---|---|---|---|---|")
    for part in ("all", "tuning", "held out"):
        for side in ("malicious", "benign"):
            cells = [str(counts.get((part, side, name), 0)) for name in LABELS.values()]
            print(f"| {part} | {side} | " + " | ".join(cells) + " |")


def main(args):
    if len(args) == 4 and args[0] == "rows":
        rows(args[1], int(args[2]), int(args[3]))
    elif len(args) == 3 and args[0] == "label":
        label(args[1], args[2])
    elif len(args) == 3 and args[0] == "table":
        table(args[1], args[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
