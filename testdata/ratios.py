#!/usr/bin/env python3
"""CPU time beside jq, a Go program that does nothing, and a build before: in pairs, the
minimum of several, so that a busy machine changes little.

usage: ratios.py [--gate] SHIELD [BEFORE], in an empty folder, which it fills
--gate: status 1 if anything takes more than 10 % longer than BEFORE
"""
import ctypes, json, os, resource, shutil, subprocess, sys, tempfile

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what a child leaves behind counts, too

args = sys.argv[1:]
gate = "--gate" in args
shield, *before = [os.path.abspath(a) for a in args if a != "--gate"]
builds = [shield] + before
tree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMES, LIMIT = 5, 1.10

def cpu(argv, stdin=os.devnull, cwd=None):
    "CPU seconds of a process, with nothing kept from another one"
    shutil.rmtree("home", ignore_errors=True)
    env = dict(os.environ, **{"XDG_%s_HOME" % n: os.path.abspath("home/" + n.lower()) for n in ("STATE", "CONFIG", "DATA")}, XDG_CACHE_HOME=os.path.abspath("cache"))
    was = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(stdin) as f:
        with tempfile.TemporaryFile() as out:
            subprocess.run(argv, stdin=f, stdout=out, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
            if argv[0] in builds and not out.tell():
                sys.exit("%s wrote nothing" % " ".join(argv[:3]))
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - was.ru_utime - was.ru_stime

least = {}
def measure(name, commands, stdin, cwd, times=TIMES):
    "the least that each of some commands takes, in turn"
    got = least.setdefault(name, {})
    for _ in range(times):
        for of, argv in commands.items():
            got[of] = min(got.get(of, 1e9), cpu(argv, stdin, cwd))
    return got

def write(name, records):
    with open(name, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)
    return name

def command(text):
    return {"type": "execute_command", "payload": {"command": text}}

# What is judged.
with open(os.path.join(tree, "testdata/sample/actions.jsonl")) as f:
    sample = f.read() * 5
with open("sample", "w") as f:
    f.write(sample)
os.makedirs("place/many")
for i in range(200):
    with open("place/many/%d.o" % i, "w") as f:
        f.write("x" * 100)
with open("place/old.py", "w") as f:
    f.write("".join("def f%d(x):\n    return x + %d\n" % (i, i) for i in range(1000)))
subprocess.run("git init -q -b main . && git add old.py && git -c user.name=a -c user.email=a@x.test commit -qm x", shell=True, cwd="place", check=True)
write("globs", [command("rm many/*%d.o" % (i % 10)) for i in range(1000)])
write("old", [{"type": "write_file", "payload": {"path": "old.py", "content": "def f(x):\n    return %d\n" % i}} for i in range(1000)])
write("git", [command("git checkout -b b%d && git push origin b%d" % (i, i)) for i in range(1000)])
write("read", [{"type": "read_file", "payload": {"path": "src/main.go"}}])
write("hook", [{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "src/main.go"}}])
for name, session in [("off", "{enabled: false}"), ("on", "{enabled: true}")]:
    with open(name, "w") as f:
        f.write("audit: {enabled: false}\npolicy: offline\nsession: %s\n" % session)
with open("hello.go", "w") as f:
    f.write('package main\n\nfunc main() { println("hello") }\n')
subprocess.run(["go", "build", "-trimpath", "-o", "hello", "hello.go"], check=True, env=dict(os.environ, CGO_ENABLED="0", GOFLAGS=""))
hello = os.path.abspath("hello")

rules = ["run", "--until", "classify", "--model", "none", "--config"]
at = os.path.abspath
ROWS = [  # name, arguments, input, records, folder
    ("policy", ["policy", "--config", at("off")], "sample", 5000, None),
    ("run, rules, session off", [*rules, at("off")], "sample", 5000, None),
    ("run, rules, session on", [*rules, at("on")], "sample", 5000, None),
    ("run, the model", ["run", "--until", "classify", "--config", at("off")], "sample", 5000, None),
    ("globs over 200 files", [*rules, at("off")], "globs", 1000, "place"),
    ("a file that is overwritten", [*rules, at("off")], "old", 1000, "place"),
    ("git in a repository", [*rules, at("off")], "git", 1000, "place"),
    ("cold: policy, a read", ["policy", "--config", at("off")], "read", 1, None),
    ("cold: hook, a read", ["hook", "claude-code"], "hook", 1, None),
    ("cold: hook as installed", ["hook", "claude-code", "--timeout", "50s", "--line", str(os.getpid())], "hook", 1, None),
]
worse = []
copying = min(cpu(["jq", "-c", "."], "sample") for _ in range(TIMES)) / 5000 if shutil.which("jq") else None
print("%-30s %11s %11s %7s %14s" % ("CPU, the minimum of %d" % TIMES, "this build", "before", "", "beside"))
print("%-30s %8.1f µs" % ("jq -c ., a record", copying * 1e6) if copying else "jq is not there")
for name, argv, stdin, records, cwd in ROWS:
    commands = {b: [b, *argv] for b in builds}
    times = TIMES
    if records == 1:
        commands[hello], times = [hello], 5 * TIMES
    got = measure(name, commands, at(stdin), cwd, times)
    if before and got[shield] > LIMIT * got[before[0]]: # once more: only what stays is slower
        got = measure(name, commands, at(stdin), cwd, 2 * times)
    now, unit = got[shield] / records, (1e3, "ms") if records == 1 else (1e6, "µs")
    text = "%-30s %8.1f %s" % (name, now * unit[0], unit[1])
    if before:
        ratio = got[shield] / got[before[0]]
        text += " %8.1f %s %6.2f×" % (got[before[0]] / records * unit[0], unit[1], ratio)
        if ratio > LIMIT:
            worse.append("%s: %.2f times" % (name, ratio))
    if records == 1:
        text += " %7.1f × a Go hello world of %.1f ms" % (got[shield] / got[hello], got[hello] * 1e3)
    elif copying:
        text += " %7.1f × jq" % (now / copying)
    print(text, flush=True)
on, off = (least["run, rules, session " + w][shield] for w in ("on", "off"))
print("%-30s %8.2f ×" % ("session on / off", on / off))
print("%-30s %8.1f MB" % ("the program", os.path.getsize(shield) / 1e6))
if gate:
    if not before:
        sys.exit("there is no build before to compare with")
    for text in worse:
        print("slower: " + text)
    sys.exit(1 if worse else 0)
