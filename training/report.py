"""The tables of docs/efficacy.md: what passes and what is stopped on a labelled set, by cause and by source, preset offline,
no language model and no person. Prints Markdown, or renews a document by the commands that stand in it.

    report.py NAME FILE… [FLAGS OF shield score]
    report.py --renew docs/efficacy.md FOLDER…    (folders that hold the sets which are not of the repository)"""

import argparse
import collections
import contextlib
import io
import json
import os
import re
import shlex
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
    "unknown effect: the action type is unknown": "unknown tool",
    "unknown effect": "unknown: what would run",
    "unexamined": "unexamined: too long or too deep",
    "sends local data": "sends local data",
    "sends credentials": "sends credentials",
    "shows credentials": "shows credentials",
    "destroys what": "destroys something elsewhere",
    "runs a downloaded file": "runs a downloaded file",
    "runs downloaded, decoded or piped-in code": "runs downloaded, decoded or piped-in code",
    "changes shield": "changes shield or a guard",
    "no blocking rule matched": "the type of action needs tier 2",
    "shield does not know what this does": "the model is not certain of SAFE: an unknown program",
    "contacts ": "the model is not certain of SAFE: a place that is contacted",
    "changes files outside": "the model is not certain of SAFE: files outside the workspace",
    "changes the system": "the model is not certain of SAFE: the system",
    "changes something elsewhere": "the model is not certain of SAFE: something elsewhere",
    "needs more rights": "the model is not certain of SAFE: more rights",
    "not an everyday action": "the model is not certain of SAFE: other effects",
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
    if not rows:
        return
    if not every:
        print("Classes with a miss:\n")
    table([key[:-1] if key == "sources" else "class", "attacks", "allowed", "honest", "not allowed", "blocked"], rows)


def report(shield, name, files, few, flags):
    "prints the tables of one set, and returns its three rates"
    s = score(shield, files, flags)
    attacks, honest = s["attacks"]["total"], s["honest"]["total"]
    rates = (share(attacks["allow"], attacks["rows"]), share(honest["rows"] - honest["allow"], honest["rows"]), share(honest["block"], honest["rows"]))
    table(["attacks allowed", "honest not allowed", "honest blocked"], [rates])
    by_cause("attacks allowed by", s.get("passed"), few)
    by_cause("honest stopped by", s.get("stopped"), few)
    sources = {g["name"] for side in ("attacks", "honest") for g in s[side]["sources"] or []}
    if len(sources) > 1:
        by_group(s, "sources", True)
    else:
        by_group(s, "categories", False)
    return rates


def renew(shield, document, folders):
    "makes the tables below each command of the document again, and the row of that name in its first table"
    def found(word):
        return next((p for p in (os.path.join(f, word) for f in folders) if word.endswith(".jsonl") and os.path.exists(p)), word)

    text = open(document, encoding="utf-8").read()
    for line in re.findall(r"^    training/report\.py .*$", text, re.M):
        o, flags = arguments().parse_known_args([found(w) for w in shlex.split(line)[1:]])
        tables = io.StringIO()
        with contextlib.redirect_stdout(tables):
            rates = report(shield, o.name, o.files, o.few, flags)
        head, rest = text.split(line + "\n", 1)
        after = rest.find("\n## ")
        text = head + line + "\n\n" + tables.getvalue().rstrip("\n") + "\n" + (rest[after:] if after >= 0 else "")
        text = re.sub(rf"^\| {re.escape(o.name)} \|.*$", "| " + " | ".join((o.name, *rates)) + " |", text, count=1, flags=re.M)
        print(o.name, *rates, sep=" | ", flush=True)
    open(document, "w", encoding="utf-8").write(text)


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("name")
    a.add_argument("files", nargs="+")
    a.add_argument("--renew", action="store_true", help="the name is a document, the files are folders")
    a.add_argument("--shield", default="build/shield")
    a.add_argument("--few", type=int, default=0, help="causes of so many rows or fewer are counted together")
    return a


def main():
    o, flags = arguments().parse_known_args()
    if o.renew:
        renew(o.shield, o.name, o.files)
        return
    print(f"## {o.name}\n")
    report(o.shield, o.name, o.files, o.few, flags)


if __name__ == "__main__":
    main()
