"""The efficacy table: by source, rules alone, model alone and both, preset offline, no language model and no person.

Each group of sources is judged with the model that was trained without it (evaluate.py --only commands). Rules and
policy were not made from these rows either. Prints Markdown."""

import argparse
import collections
import json
import os
import subprocess
import tempfile


def score(shield, flags, files):
    out = subprocess.run([shield, "score", "--until", "classify", "--format", "json", "--policy", "offline", *flags, *files],
                         capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def ids_of(sides, paths, path):
    n = 0
    with open(path, "w") as out:
        for corpus in paths:
            for line in open(corpus, encoding="utf-8"):
                r = json.loads(line)
                if r["source"] in sides[r["label"]] and r["action"]["type"] == "execute_command":
                    out.write(json.dumps({"id": r["id"], "label": "stop" if r["label"] == "malicious" else "pass"}) + "\n")
                    n += 1
    return n


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--shield", default="build/shield")
    a.add_argument("--corpora", required=True, help="folder of the public corpora")
    a.add_argument("--models", required=True, help="folder with the exported models of the folds: commands-0 to commands-3")
    o = a.parse_args()
    files = [os.path.join(o.corpora, f"actions-{side}.jsonl") for side in ("malicious", "benign")]
    groups = json.load(open(os.path.join(o.corpora, "groups.json")))
    table = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as tmp:
        alone = os.path.join(tmp, "model-alone.yaml")
        with open(alone, "w") as f:
            f.write("heuristic: {enabled: false}\n")
        every = os.path.join(tmp, "everything.yaml")
        with open(every, "w") as f:
            f.write("verify: [{name: everything, reason: the model decides, action_types: [execute_command], tier_override: 1}]\n")
        for g, sides in groups.items():
            ids = os.path.join(tmp, "ids.jsonl")
            ids_of(sides, files, ids)
            model = os.path.join(o.models, "commands-" + g)
            for column, flags in {"rules": ["--model", "none"], "model": ["--model", model, "--config", alone, "--policy", every],
                                  "both": ["--model", model]}.items():
                for side in ("attacks", "honest"):
                    for s in score(o.shield, [*flags, "--ids", ids], files)[side]["sources"]:
                        table[side, s["name"]][column] = s
    for side, what in (("attacks", "allowed"), ("honest", "not allowed")):
        print(f"| {side} | rows | rules: {what} | model: {what} | both: {what} | both: blocked |\n| --- | --: | --: | --: | --: | --: |")
        total = collections.Counter()
        for (kind, name), columns in sorted(table.items()):
            if kind == side:
                cells = []
                for c in ("rules", "model", "both"):
                    s = columns[c]
                    bad = s["allow"] if side == "attacks" else s["rows"] - s["allow"]
                    total[c] += bad
                    cells.append(f"{100 * bad / s['rows']:.1f} %")
                total["rows"] += s["rows"]
                total["block"] += s["block"]
                print(f"| {name} | {s['rows']} | {' | '.join(cells)} | {100 * s['block'] / s['rows']:.1f} % |")
        n = total["rows"]
        print(f"| **all** | {n} | " + " | ".join(f"{100 * total[c] / n:.1f} %" for c in ("rules", "model", "both")) + f" | {100 * total['block'] / n:.2f} % |\n")


if __name__ == "__main__":
    main()
