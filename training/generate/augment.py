"""Label-keeping changes of rows, for generated and for corpus rows: augment(row, rng) -> row"""
import base64
import copy
import re
import urllib.parse
from . import vocab as V

HARMLESS = ["ls", "pwd", "cd ~", "date", "echo ok", "git status", "whoami", "ls -la", "true", "clear", "echo start", "cd /tmp", "uname -a", "sleep 1", "mkdir -p build", "cat README.md", "id", "hostname", "npm test", "echo \"deploying\"", "python3 --version", "df -h"]
LONG = [("curl -s ", "curl --silent "), ("curl -o ", "curl --output "), ("curl -L ", "curl --location "), ("rm -rf ", "rm --recursive --force "), ("rm -rf ", "rm -fr "), ("rm -rf ", "rm -r -f "), ("wget -q ", "wget --quiet "), ("tar czf ", "tar --create --gzip --file "), ("tar -czf ", "tar -c -z -f "), ("grep -r ", "grep --recursive "), ("chmod +x ", "chmod a+x "), ("base64 -d", "base64 --decode"), ("git commit -m ", "git commit --message "), ("ls -la", "ls -l -a"), ("kubectl get -n ", "kubectl get --namespace "), ("-X POST", "--request POST"), ("-H ", "--header "), ("-d ", "--data "), ("-Command", "-c"), ("-NoProfile", "-nop")]
IPRE = re.compile(r"\b(?!169\.254|127\.0|0\.0|100\.100)(\d{1,3}\.){3}\d{1,3}\b")
HOSTRE = re.compile(r"(?<=://)(?!(?:localhost|127\.|169\.|raw\.|github|pypi|registry|sh\.|get\.|metadata|hooks|api\.|\[))([a-z0-9-]+\.)+[a-z]{2,}(?=[/:'\"\s]|$)")
USERRE = re.compile(r"(/home/|/Users/|C:\\Users\\)(?!Public|Shared)([A-Za-z][\w.]+)")


def is_win(c):
    return bool(re.search(r"(?i)\b(powershell|reg (add|query)|schtasks|invoke-|get-\w+|set-\w+|[a-z]:\\|\$env:|iwr|irm|certutil|net user|wmic|vssadmin)|%\w+%", c))


# a well-known host is part of the meaning (an installer from its own project is honest, from a stranger not)
KNOWN = re.compile(r"(?:deno\.land|bun\.sh|python-poetry\.org|astral\.sh|starship\.rs|rustup\.rs|nodesource\.com|google(?:apis)?\.com|microsoft(?:online)?\.com|azure\.(?:com|net)|amazonaws\.com|amazon\.com|docker\.(?:com|io)|npmjs\.(?:org|com)|pypi\.org|pythonhosted\.org|slack\.com|discord\.com|telegram\.org|cloudflare\.com|heroku\.com|digitalocean\.com|paypal\.com|apple\.com|github(?:usercontent)?\.(?:com|io)|gitlab\.com|chocolatey\.org|scoop\.sh|hc-ping\.com|helm\.sh|ubuntu\.com|debian\.org|golang\.org|go\.dev|nodejs\.org|k8s\.io|kubernetes\.io|opencode\.ai|ollama\.(?:ai|com)|nixos\.org|brew\.sh|postgresql\.org|hashicorp\.com|apache\.org|gnu\.org|kernel\.org|mozilla\.org|pastebin\.com|webhook\.site)$")
RUNS = re.compile(r"(?i)\|\s*(sudo\s+(-E\s+)?)?(ba|z|da)?sh\b|\|\s*(iex|python3?|tar|sudo)\b|<\(curl|\$\((curl|wget)|iex|DownloadString|\binstall\b|chmod \+x|\.list\b|gpg|apt-key|index-url|registry")


def rename(s, r):
    m = {}
    def sub(rx, mk, g=0):
        nonlocal s
        s = rx.sub(lambda x: m.setdefault((g, x[0]), mk(x)), s)
    sub(IPRE, lambda x: V.ip(r), 1)
    sub(HOSTRE, lambda x: x[0] if KNOWN.search(x[0]) else V.dhost(r), 2)
    u = V.P(r, "first").lower()
    sub(USERRE, lambda x: x[1] + u, 3)
    if r.random() < .5: sub(re.compile(r"(?<=[\w\]]):(\d{4,5})\b"), lambda x: ":" + V.port(r), 4)
    return s


def requote(c, r):
    if "'" in c and '"' not in c and "$" not in c and "\\" not in c and "`" not in c: return c.replace("'", '"')
    if '"' in c and "'" not in c and "$" not in c and "\\" not in c and "`" not in c: return c.replace('"', "'")
    return c


def options(c, r):
    for a, b in r.sample(LONG, len(LONG)):
        if a in c: return c.replace(a, b, 1)
        if b in c: return c.replace(b, a, 1)
    return c


def prefix(c, r):
    if is_win(c): return r.choice(["", "cd C:\\; " if "&" not in c else "cd C:\\ & "]) + c
    if c.startswith(("#", "cd ", "(", "for ", "if ", "while ", "export", "source", "eval", ".")) or "\n" in c: return c
    return r.choice(["sudo ", "time ", "nohup ", "env LANG=C ", "DEBUG=1 ", "nice -n 10 ", "sudo -E ", "timeout 60 ", V.P(r, "secretenv") + "=" + V.phkey(r).replace(" ", "") + " ", "stdbuf -oL ", "command "]) + c


def shell(c, r):
    if "\n" in c: return c
    if is_win(c):
        if '"' in c: return c
        if re.search(r"(?i)\b(reg|schtasks|net|wmic|certutil|vssadmin|sc|copy|del|bitsadmin) ", c[:20]): return r.choice(["cmd /c ", "cmd.exe /C ", "cmd /q /c "]) + '"' + c + '"'
        return r.choice(["powershell -Command ", "powershell.exe -NoProfile -Command ", "pwsh -c "]) + '"' + c + '"'
    q = "'" + c.replace("'", "'\\''") + "'"
    return r.choice(["sh -c ", "bash -c ", "bash -lc ", "/bin/sh -c ", "zsh -c ", "ssh " + V.user(r) + "@" + V.host(r) + " ", "docker exec " + V.P(r, "project") + " sh -c ", "sudo bash -c "]) + q


def space(c, r):
    if "\n" in c: return c
    return re.sub(r" (?=[-|&>/])", lambda m: r.choice([" ", "  ", " ", "\t" if r.random() < .2 else " ", " \\\n  " if r.random() < .15 and not is_win(c) else " "]), c)


def encode(c, r):
    """with its decoder; both labels"""
    if is_win(c): return r.choice(["powershell -enc ", "powershell.exe -NoProfile -EncodedCommand "]) + V.psenc(c)
    b = base64.b64encode(c.encode()).decode()
    return r.choice([f"echo {b} | base64 -d | sh", f"echo '{b}' | base64 --decode | bash", f"bash <<< $(base64 -d <<< {b})", f"echo {c.encode().hex()} | xxd -r -p | sh", "python3 -c \"import urllib.parse as u,os;os.system(u.unquote('" + urllib.parse.quote(c) + "'))\"", f"sh -c \"$(echo {b} | base64 -d)\""])


def neighbour(c, r):
    h = r.choice(HARMLESS)
    if "\n" in c or (is_win(c) and h not in ("whoami", "hostname", "git status", "npm test")):
        return r.choice(["echo start", "hostname", "whoami"]) + ("\n" if "\n" in c else " & " if "cmd" in c else "; ") + c
    return r.choice([h + r.choice(["; ", " && ", "\n", " ; "]) + c, c + r.choice(["; ", " && ", "\n"]) + h, h + "; " + c + " ; " + r.choice(HARMLESS)])


def placeholder(c, r):
    k = V.P(r, "word")
    p = r.choice(["<%s>", "{{%s}}", "$%s", "${%s}"])
    f = p % (r.choice(["host", "target", "server", "url"]) if "$" not in p else r.choice(["HOST", "TARGET", "SERVER"]))
    return HOSTRE.sub(lambda m: m[0] if KNOWN.search(m[0]) else f, IPRE.sub(f, c)) if r.random() < .6 else re.sub(r"<(\w+)>|\{\{(\w+)\}\}", k, c)


def comments(c, r):
    if re.search(r"(^|\n)\s*#(?!!)", c): return re.sub(r"(^|\n)\s*#(?!!)[^\n]*", "", c).strip() or c
    return c


CMD = [(rename, 4), (requote, 2), (options, 3), (prefix, 2), (shell, 2), (space, 2), (encode, .35), (neighbour, 2.5), (placeholder, 1), (comments, 1)]


def _walk(x, f):
    if isinstance(x, str): return f(x)
    if isinstance(x, list): return [_walk(v, f) for v in x]
    if isinstance(x, dict): return {k: _walk(v, f) for k, v in x.items()}
    return x


def augment(row, rng):
    row = copy.deepcopy(row)
    if "text" in row:
        t = rename(row["text"], rng)
        row["text"] = rng.choice([t, t, t.replace("\n\n", "\n"), t.replace("\n", "\r\n"), "\n".join("> " + l for l in t.split("\n")), "```\n" + t + "\n```", "  " + t + "\n"])
        return row
    a = row["action"]
    if a["type"] == "execute_command":
        k = next((k for k in ("command", "cmd", "script", "code") if isinstance(a["payload"].get(k), str)), None)
        if k:
            c = a["payload"][k]
            keep = row["label"] == "benign" and RUNS.search(c)  # the host carries the meaning
            for _ in range(rng.choice([1, 1, 2])):
                f = rng.choices([f for f, _ in CMD], [w for _, w in CMD])[0]
                if keep and f in (rename, placeholder): continue
                c = f(c, rng)
                if f is encode: break
            a["payload"][k] = c
            return row
    if not (row["label"] == "benign" and RUNS.search(str(a["payload"].get("content", a["payload"].get("text", ""))) if isinstance(a["payload"], dict) else "")):
        a["payload"] = _walk(a["payload"], lambda s: rename(s, rng))
    return row


def vary(row, rng):
    """other keys around the same content, the same for both labels"""
    a = row["action"]
    p = a["payload"]
    if a["type"] == "execute_command":
        k = rng.random()
        if k < .08: p["cwd"] = V.projdir(rng)
        elif k < .14: p["timeout"] = rng.choice([30, 60, 120, 300, 10000])
        elif k < .18: p["description"] = rng.choice(["Run command", "Check " + V.P(rng, "project"), "Clean up", "Set up " + V.P(rng, "word"), "Update " + V.P(rng, "project"), "Test the connection", "Prepare the environment"])
        elif k < .21: p["background"] = rng.random() < .5
    for k, v in list(p.items()):
        if v == "true" and k in ("recursive", "force", "overwrite", "enabled", "new_tab"): p[k] = rng.random() < .7
        if isinstance(v, str) and k == "limit" and v.isdigit(): p[k] = int(v)
    if rng.random() < .2:
        ks = list(p); rng.shuffle(ks)
        a["payload"] = {k: p[k] for k in ks}
    return row
