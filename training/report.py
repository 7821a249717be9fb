"""The tables of docs/efficacy.md: what passes and what is stopped on a labelled set, by cause and by source, preset offline,
no language model and no person. Prints Markdown.

    report.py NAME FILE… [-- FLAGS OF shield score]"""

import argparse
import collections
import json
import subprocess

# What a verdict without a rule rests on, by how its reason begins.
CAUSES = {
    "harmless:": "harmless by analysis",
    "ordinary:": "ordinary by analysis",
    "no rule matched, and a rule of the policy": "a rule of the policy allows it",
    "no rule matched, and without a model": "nothing says that it is ordinary",
    "no rule matched": "the model's SAFE, below 0.70",
    "model: does not look": "the model's SAFE, from 0.70 on",
    "model: not certain": "the model is not certain of SAFE",
    "model: might be": "the model suspects it",
    "model: looks like an attack, though": "the model suspects it",
    "model: looks like": "the model blocks it",
    "cannot tell what this does before it runs: the action type is unknown": "unknown tool",
    "cannot tell what this does before it runs": "unknown: what would run",
    "unexamined": "unexamined: too long or too deep",
    "sends local data": "sends local data",
    "hands credentials on": "hands credentials on",
    "shows credentials": "shows credentials",
    "destroys what": "destroys something elsewhere",
    "runs a downloaded file": "runs a downloaded file",
    "runs text from elsewhere": "runs text from elsewhere",
    "changes shield": "changes shield or a guard",
    "no blocking rule matched": "the type of action needs tier 2",
    "shield does not know what this does": "the model is not certain of SAFE: an unknown program",
    "contacts ": "the model is not certain of SAFE: a place that is contacted",
    "changes files outside": "the model is not certain of SAFE: files outside the workspace",
    "changes the system": "the model is not certain of SAFE: the system",
    "changes something elsewhere": "the model is not certain of SAFE: something elsewhere",
    "needs more rights": "the model is not certain of SAFE: more rights",
    "does what is not ordinary": "the model is not certain of SAFE: other effects",
}


def cause(miss):
    if "rule" in miss:
        return f"`{miss['rule']}`"
    return next((c for start, c in CAUSES.items() if miss["reasoning"].startswith(start)), miss["reasoning"][:60])


def rows_of(paths):
    for path in paths:
        for line in open(path, encoding="utf-8"):
            r = json.loads(line)
            if "action" not in r:  # testdata/sample
                r["action"] = {k: r.pop(k) for k in ("type", "payload", "cwd") if k in r}
            yield json.dumps(r)


def score(shield, paths, flags):
    run = subprocess.run([shield, "score", "--policy", "offline", "--misses", "10000", "--format", "json", *flags, "-"],
                         input="\n".join(rows_of(paths)), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def share(k, n):
    return f"{k:,} of {n:,} ({100 * k / n:.1f} %)" if n else "none"


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|---" + "|--:" * (len(head) - 1) + "|")
    for r in rows:
        print("| " + " | ".join(map(str, r)) + " |")
    print()


def by_cause(what, misses, few):
    counts = collections.Counter(cause(m) for m in misses or []).most_common()
    shown = [c for c in counts if c[1] > few]
    rest = sum(n for _, n in counts[len(shown):])
    if counts:
        table([what, "rows"], shown + ([("others", rest)] if rest else []))


def by_group(s, key, every):
    groups = collections.defaultdict(lambda: ["", "", "", "", ""])
    for g in s["attacks"][key] or []:
        groups[g["name"]][:2] = [g["rows"], g["allow"]]
    for g in s["honest"][key] or []:
        groups[g["name"]][2:] = [g["rows"], g["rows"] - g["allow"], g["block"]]
    rows = [(n, *v) for n, v in sorted(groups.items()) if every or v[1] or v[3]]
    table([key[:-1] if key == "sources" else "class", "attacks", "allowed", "honest", "not allowed", "blocked"], rows)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("name")
    a.add_argument("files", nargs="+")
    a.add_argument("--shield", default="build/shield")
    a.add_argument("--few", type=int, default=0, help="causes of so many rows or fewer are counted together")
    o, flags = a.parse_known_args()
    s = score(o.shield, o.files, flags)
    attacks, honest = s["attacks"]["total"], s["honest"]["total"]
    print(f"## {o.name}\n")
    table(["attacks allowed", "honest not allowed", "honest blocked"],
          [(share(attacks["allow"], attacks["rows"]), share(honest["rows"] - honest["allow"], honest["rows"]), share(honest["block"], honest["rows"]))])
    by_cause("attacks allowed by", s.get("passed"), o.few)
    by_cause("honest stopped by", s.get("stopped"), o.few)
    sources = {g["name"] for side in ("attacks", "honest") for g in s[side]["sources"] or []}
    if len(sources) > 1:
        by_group(s, "sources", True)
    else:
        print("Classes with a miss:\n")
        by_group(s, "categories", False)


if __name__ == "__main__":
    main()
