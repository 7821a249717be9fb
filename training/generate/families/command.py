"""execute_command: one template file per label, the same sub-scenarios in both; attacks are also disguised."""
import base64
import pathlib
import re
from ..registry import add
from ..grammar import sections, expand

D = pathlib.Path(__file__).parent.parent / "data"
OK = []  # harmless templates put next to attacks
WIN = {"powershell", "cmd"}


def _q(s): return "'" + s.replace("'", "'\\''") + "'"


def _split_word(w, r):
    if len(w) < 3: return w
    i = r.randrange(1, len(w) - 1)
    return r.choice([w[:i] + "''" + w[i:], w[:i] + '""' + w[i:], w[:i] + "\\" + w[i:], w[:i] + "$@" + w[i:], w[0] + "${x}" + w[1:]])


def disguise_sh(c, r):
    """evasions which hardly any honest command carries"""
    k = r.randrange(9)
    if k < 2:
        return re.sub(r"^(sudo )?([a-z0-9_]{3,})", lambda m: (m[1] or "") + _split_word(m[2], r), c)
    if k == 2 and "'" not in c and '"' not in c:
        return c.replace(" ", r.choice(["${IFS}", "$IFS", "${IFS}", "\t"]))
    if k == 3:
        v = r.choice("abcxyz")
        m = re.match(r"([a-z0-9_]{3,})(.*)", c, re.S)
        return f"{v}={m[1][:2]};{r.choice('klmn')}={m[1][2:]};" + "$" + v + "$" + "k" + m[2] if m else c
    if k == 4:
        return "echo " + c[::-1].replace("'", "'\\''").join("''") + " | rev | " + r.choice(["sh", "bash"])
    if k == 5:
        return "printf '" + "".join("\\x%02x" % b for b in c.encode()[:160]) + "' | " + r.choice(["sh", "bash"])
    if k == 6:
        return r.choice(["eval", "bash -c"]) + ' "$(echo ' + base64.b64encode(c.encode()).decode() + ' | base64 -d)"'
    if k == 7:
        return "python3 -c \"import os,base64;os.system(base64.b64decode('" + base64.b64encode(c.encode()).decode() + "').decode())\""
    return c.replace("/bin/sh", "/???/sh").replace("/etc/passwd", "/e?c/p*d").replace("curl", r.choice(["c'u'rl", "$(echo cu)rl", "cur[l]", "/usr/bin/c?rl"]))


def disguise_win(c, r):
    k = r.randrange(5)
    if k == 0: return re.sub(r"(?i)powershell|certutil|invoke|schtasks|reg |net ", lambda m: "^".join(m[0]), c, count=1)
    if k == 1: return c.replace("iex", "&('i'+'ex')").replace("Invoke-Expression", ".( $ENV:ComSpec[4,26,25]-Join'')").replace("IEX", "&(gcm i*x)")
    if k == 2: return "".join(ch.upper() if r.random() < .4 else ch for ch in c)
    if k == 3: return "set a=" + c.split(" ")[0][:3] + "&& call %a%" + c.split(" ")[0][3:] + " " + " ".join(c.split(" ")[1:])
    return c.replace("-ExecutionPolicy", "-ep").replace("http", "h`t`tp").replace("New-Object", "New`-Obj`ect")


def _mk(tmpls, os, bad):
    def f(r):
        c = expand(r.choice(tmpls), r)
        if not bad and r.random() < .3:  # harmless work comes in longer lines, too
            for _ in range(r.choice([1, 1, 2])):
                c += (r.choice([" & ", " && "]) if os == "cmd" else "; " if os == "powershell" else r.choice([" && ", "; ", "\n", " || "])) + expand(r.choice(tmpls), r)
        elif bad and os not in WIN and OK and r.random() < .12:
            c = r.choice([lambda a: a + r.choice(["; ", " && ", "\n"]) + c, lambda a: c + r.choice(["; ", "\n"]) + a])(expand(r.choice(OK), r))
        if bad and r.random() < .15:
            c = disguise_win(c, r) if os in WIN else disguise_sh(c, r)
        return {"command": c}
    return f


for fn, lab in (("commands_mal.txt", "malicious"), ("commands_ben.txt", "benign")):
    for head, ts in sections((D / fn).read_text(encoding="utf-8")):
        sub, os = [x.strip() for x in head.split("|")]
        cat = sub if os == "linux" else f"windows:{os}:{sub}" if os in WIN else sub
        add("execute_command", "execute_command", lab, sub, cat, _mk(ts, os, lab == "malicious"), weight=1 + len(ts) / 6)

# ordinary work without an attack's shape
MISC = """## git | linux
git ⟦status⟦¦ -sb⟧¦log --oneline -⟦5¦10¦20⟧¦diff ⟦--stat ¦--cached ¦⟧‹srcfile›¦add ‹srcfile› && git commit -m "⟦fix: ¦feat: ¦chore: ¦⟧‹ticket› ⟦update¦handle¦remove¦rename⟧ ‹fileword›"¦checkout -b feature/‹ticket›¦rebase origin/main¦stash pop¦blame ‹srcfile›¦reset --hard origin/main¦clean -fdx¦cherry-pick ‹hex6›¦tag v‹ver›⟧
## build | linux
⟦make ⟦test¦build¦lint¦clean all⟧¦npm run ⟦build¦test -- --watch=false¦lint⟧¦go test ./... -run Test‹first›¦cargo build --release¦pytest -q tests/test_‹fileword›.py¦mvn -q package¦gradle test¦tox -e py311¦cmake --build build -j⟦4¦8⟧¦tsc --noEmit¦ruff check . && black --check .¦bundle exec rspec¦dotnet build ‹proj›.sln⟧
## look | linux
⟦ls -la ‹projdir›¦cat ‹safelin›¦head -n ‹num› ‹safelin›¦wc -l ‹srcfile›¦tree -L 2 ‹projdir›¦du -sh ‹projdir›/*¦df -h¦free -m¦uptime¦ps aux | grep ‹project›¦tail -f /var/log/‹project›.log¦sed -n '‹small›,‹num›p' ‹srcfile›¦sort ‹docfile› | uniq -c | sort -rn | head¦diff -u ‹srcfile› ‹srcfile›¦jq '.‹word›' ‹projdir›/package.json¦stat ‹safelin›¦which ⟦node¦python3¦go⟧¦date +%F¦journalctl -u ‹project› -n ‹num› --no-pager⟧
## sysadmin | linux
⟦sudo apt-get install -y ⟦nginx¦jq¦htop¦nmap¦tcpdump¦netcat-openbsd¦hashcat⟧¦systemctl ⟦restart¦reload¦status⟧ ⟦nginx¦‹project›¦postgresql⟧¦sudo certbot renew --dry-run¦sudo lsof -i :‹port›¦sudo dmesg | tail¦nginx -t && sudo systemctl reload nginx¦sudo hostnamectl set-hostname ‹word›-‹small›¦rsync -a --exclude node_modules ‹projdir› /mnt/backup/¦sudo timedatectl set-timezone Europe/Berlin¦pg_restore -d ‹project›_dev ‹tmp›.dump¦kill $(pgrep -f ‹project›)¦sudo reboot¦sudo shutdown -r +5 "kernel update"⟧
## psdev | powershell
⟦Get-ChildItem ‹windir› -Recurse -Filter *.log | Remove-Item -Confirm¦Get-Process | Sort-Object CPU -Descending | Select-Object -First ‹small›¦Restart-Service ‹project›¦dotnet test ‹windir›\‹word›.sln¦Test-Path "‹safewin›"¦Get-Content ‹windir›\logs\‹fileword›.log -Tail ‹num›¦Invoke-Pester ‹windir›\tests¦choco install ⟦git¦nmap¦7zip⟧ -y¦winget upgrade --all¦Get-EventLog System -Newest ‹small›¦New-Item -ItemType Directory ‹windir›\‹word›¦ipconfig /all¦systeminfo | findstr /B /C:"OS"¦Get-NetTCPConnection -State Listen⟧"""
for head, ts in sections(MISC):
    sub, os = [x.strip() for x in head.split("|")]
    if os == "linux": OK += ts
    add("execute_command", "execute_command", "benign", sub, "dev_workflow", _mk(ts, os, False), weight=1)
