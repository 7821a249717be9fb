"""Small grammar: weighted templates with slots, nested.

‹slot›      a value of a pool or maker            ‹slot#1›  the same value each time in one expansion
⟦a¦b¦c⟧     one of the alternatives (nested; ⟦a¦b¦⟧ may be empty)      ⟦3*a¦b⟧  weights
⏎           new line
"""
import re
from .vocab import make

_ALT = re.compile(r"⟦([^⟦⟧]*)⟧")
_SLOT = re.compile(r"‹([a-z_0-9]+)(?:#(\w+))?›")
_CURL = re.compile(r"\b(curl) -(?:s|fsS|sf|fsSL|sS) ")
_CURLO = [" -s", " -s", " -sS", " -fsS", " -fsSL", " -sL", " --silent", " -k", " -sk", " -L", ""]
_W = re.compile(r"^(\d+)\*")


def _alt(m, rng):
    opts, ws = [], []
    for o in m.group(1).split("¦"):
        w = _W.match(o)
        ws.append(int(w.group(1)) if w else 1)
        opts.append(o[w.end():] if w else o)
    return rng.choices(opts, ws)[0]


def expand(t, rng, memo=None):
    memo = {} if memo is None else memo
    for _ in range(12):
        n = _ALT.sub(lambda m: _alt(m, rng), t)
        while n != t:
            t, n = n, _ALT.sub(lambda m: _alt(m, rng), n)

        def slot(m):
            name, tag = m.groups()
            if tag is None:
                return make(name, rng)
            k = (name, tag)
            if k not in memo:
                memo[k] = expand(make(name, rng), rng, memo)
            return memo[k]
        n = _SLOT.sub(slot, t)
        if n == t:
            break
        t = n
    # spellings of the same options, alike for both labels
    t = _CURL.sub(lambda m: m[1] + rng.choice(_CURLO) + " ", t)
    return t.replace("⏎", "\n")


def fill(x, rng, memo=None):
    """Expand every string of a nested payload; keys ending in ? come half the time."""
    memo = {} if memo is None else memo
    if isinstance(x, str):
        return expand(x, rng, memo)
    if isinstance(x, list):
        return [fill(v, rng, memo) for v in x]
    if isinstance(x, dict):
        out = {}
        for k, v in x.items():
            if k.endswith("?"):
                if rng.random() < .5:
                    continue
                k = k[:-1]
            out[k] = fill(v, rng, memo)
        return out
    return x


def sections(text):
    """'## head' lines followed by one template a line → [(head, [templates])]."""
    out = []
    for line in text.splitlines():
        if line.startswith("## "):
            out.append((line[3:].strip(), []))
        elif line.strip() and not line.startswith("#!#"):
            out[-1][1].append(line.rstrip())
    return out
