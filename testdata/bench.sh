#!/usr/bin/env bash
# Go benchmarks, then what whole processes cost: this build in turn with that of a
# commit before, in pairs.
# usage: [BASE=COMMIT] [GATE=yes] bench.sh SHIELD
# GATE: only what is compared with the commit before, and a failure if it is slower
set -eu
shield=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
[ -n "${PROCESSES_ONLY:-}${GATE:-}" ] || go test -run '^$' -bench . -benchmem ./... | grep -E '^(Benchmark|pkg:)'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work" "$scratch/before" "$scratch/ratios"
base=${BASE:-HEAD~1}
before=
sample() { go -C "$1" test -c -o "$2" ./pkg/shield 2>/dev/null || true; }
[ -n "${GATE:-}" ] || sample . "$scratch/sample"
if git archive "$base" 2>/dev/null | tar -x -C "$scratch/before" 2>/dev/null; then
	make -s -C "$scratch/before" build
	before=$scratch/before/build/shield
	cp "$before" "$before.new" && mv "$before.new" "$before" # a copy, as the other is: how a file came to be on the disk shows in cold starts
	[ -n "${GATE:-}" ] || sample "$scratch/before" "$scratch/before/build/sample"
	echo "before: $(git log -1 --format='%h %s' "$base")"
else
	echo "before: nothing, since git gives no $base here"
fi

tree=$PWD
cp "$shield" "$scratch/shield" # as new, and on the same disk, as the one before
shield=$scratch/shield
(cd "$scratch/ratios" && python3 "$tree/testdata/ratios.py" ${GATE:+--gate} "$shield" ${before:+"$before"})
[ -z "${GATE:-}" ] || exit 0
cd "$scratch/work"
python3 - "$tree" "$scratch/sample" "$shield" ${before:+"$before"} <<'PY'
import ctypes, json, os, resource, shutil, subprocess, sys, time

tree, sample_test, shield, *before = sys.argv[1:]
builds = before + [shield]
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what a child leaves behind counts, too

def place(build):
    "sets the folders of a build, so that neither finds what the other has left"
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        os.environ["XDG_%s_HOME" % name] = os.path.join(os.getcwd(), "home%d" % builds.index(build), name.lower())

def cpu(argv, **kw):
    "CPU seconds, wall seconds of one child, and of what it leaves behind"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=kw.get("stdin", subprocess.PIPE))
    if "stdin" not in kw:
        child.communicate(kw.get("input", b""))
    child.wait()
    wall = time.time() - start
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall

def middle(numbers):
    return sorted(numbers)[len(numbers) // 2]

def pairs(times, measure):
    "the medians of what measure returns, a tuple for each build, in turn"
    got = {build: [] for build in builds}
    for _ in range(times):
        for build in builds:
            place(build)
            got[build].append(measure(build))
    return [[middle(column) for column in zip(*got[build])] for build in builds]

def line(name, form, medians, note=""):
    texts = [form % tuple(m) for m in medians]
    print("%-46s %s%s" % (name, " before: ".join(reversed(texts)), note), flush=True)

def cold(name, text, *args):
    line(name, "%6.1f ms of CPU", pairs(51, lambda build: (cpu([build, *args], input=text.encode())[0] * 1000,)), ", medians of 51")

print()
read = '{"type":"read_file","payload":{"path":"src/main.go"}}'
command = '{"type":"execute_command","payload":{"command":"git log --oneline | head -20"}}'
cold("cold: shield --version", "", "--version")
cold("cold: shield policy, a read", read, "policy")
cold("cold: shield run, a read", read, "run")
cold("cold: shield run, a command", command, "run", "--until", "classify")
unknown = '{"type":"execute_command","payload":{"command":"make -j8 test | tee build/test.log"}}'
cold("cold: shield run, a command, no model", unknown, "run", "--until", "classify", "--model", "none")
cold("cold: shield run, a command for the n-grams", unknown, "run", "--until", "classify")
encoded = '{"type":"execute_command","payload":{"command":"hydra -L usernames.txt -p password 10.10.11.23 rdp"}}'
cold("cold: shield run, a command for the encoder", encoded, "run", "--until", "classify")
cold("cold: shield hook claude-code, a read", '{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"src/main.go"}}', "hook", "claude-code")
cold("cold: shield exec --check", "", "exec", "--check", "--shell", "git status")
line("shield exec -- true", "%6.1f ms of CPU more than true", pairs(51, lambda build: ((cpu([build, "exec", "--", "true"])[0] - cpu(["true"])[0]) * 1000,)))

# The hook as a host runs it, on commands of every day.
everyday = ["npm test", "go build ./...", "pytest -q", "cargo check", "git commit -m x", "make", "docker compose up -d",
    "npm install", "npm run build", "go test ./...", "cargo test", "git status", "git push", "ls", "git diff", "python app.py",
    "mvn test", "terraform plan", "eslint .", "tsc --noEmit"]
with open("app.py", "w") as f:
    f.write("print('hello')\n")
hooks = []
for text in everyday:
    event = json.dumps({"session_id": "s", "cwd": os.getcwd(), "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": text}}).encode()
    hooks.append(pairs(11, lambda build: [1000 * t for t in cpu([build, "hook", "claude-code", "--timeout", "50s"], input=event)]))
line("the hook on %d everyday commands" % len(hooks), "%6.1f ms wall, %.1f ms of CPU, %d of them at most 20 ms wall",
    [(middle([h[b][1] for h in hooks]), middle([h[b][0] for h in hooks]), sum(h[b][1] <= 20 for h in hooks)) for b in range(len(builds))])

# One judgement in process, over the sample.
def in_process(build):
    at = sample_test if build == shield else os.path.join(os.path.dirname(build), "sample")
    out = subprocess.run([at, "-test.run", "^$", "-test.bench", "Sample/classify", "-test.benchtime", "5x"], cwd=os.path.join(tree, "pkg/shield"), capture_output=True, text=True).stdout.split()
    return [float(out[out.index("µs-" + what) - 1]) for what in ("median", "mean", "p99")]

try:
    line("1,000 real actions in process, rules", "%6.1f µs median, %.1f µs mean, %.1f µs p99", pairs(3, in_process))
except (OSError, ValueError):
    print("1,000 real actions in process: the benchmark of one of the builds cannot be run")

with open("actions.jsonl", "w") as f:
    for i in range(10000):
        for kind, payload in [
            ("read_file", {"path": f"src/file{i}.go"}),
            ("execute_command", {"command": f"git log --oneline -n {i} | head -20"}),
            ("execute_command", {"command": f"go test ./pkg/p{i}/... 2>&1 | tail"}),
            ("execute_command", {"command": f"ls -la src/dir{i}"}),
            ("write_file", {"path": f"src/file{i}.go", "content": "package main\n"}),
            ("execute_command", {"command": f"grep -rn 'func main{i}' --include='*.go' ."}),
            ("search_files", {"path": "src", "pattern": f"TODO {i}"}),
            ("http_request", {"url": f"https://api.example.com/v1/items/{i}", "method": "GET"}),
            ("execute_command", {"command": f"npm install left-pad@1.{i}.0"}),
            ("read_file", {"path": f"/home/me/.ssh/id_{i}"}),
        ]:
            f.write(json.dumps({"id": f"{kind}-{i}", "type": kind, "payload": payload}) + "\n")

# The sample of real actions, twenty times: what one costs as a whole process.
with open(os.path.join(tree, "testdata/sample/actions.jsonl")) as f:
    sample = f.read()
with open("sample.jsonl", "w") as f:
    f.write(sample * 20)
for name, args in [
    ("20,000 real actions, policy", ["policy", "--config", "off", "--state", "off.state"]),
    ("20,000 real actions, run without log, rules", ["run", "--until", "classify", "--model", "none", "--config", "off", "--state", "off.state"]),
    ("20,000 real actions, run with log, rules", ["run", "--until", "classify", "--model", "none", "--config", "on", "--state", "on.state"]),
    ("20,000 real actions, run without log, model", ["run", "--until", "classify", "--config", "off", "--state", "off.state"]),
]:
    for state in ("off", "on"):
        with open(state, "w") as f:
            f.write("audit: {enabled: %s}\npolicy: offline\n" % ("true" if state == "on" else "false"))
    def stream(build):
        with open("sample.jsonl") as f:
            seconds, wall = cpu([build, *args], stdin=f)
        for state in ("off.state", "on.state"):
            shutil.rmtree(state, ignore_errors=True)
        return seconds / 20000 * 1e6, 20000 / wall
    line(name, "%6.1f µs of CPU each, %.0f a second", pairs(3, stream), ", medians of 3")

one = ["taskset", "-c", "0"] if shutil.which("taskset") else []
def whole(build):
    with open("actions.jsonl") as f:
        return cpu([*one, build, "run", "--until", "classify", "--model", "none"], stdin=f)
line("100,000 actions, one core, rules", "%6.2f s of CPU, %.2f s", pairs(3, whole), ", medians of 3")

# The model on every action: what changes something, is no read, and meets no
# rule.
with open("unknown.jsonl", "w") as f:
    for i in range(1000):
        for payload in ["make -j8 test%d | tee build/test.log", "npm run build -- --scope app%d", "go build -o bin/tool%d ./cmd/tool", "pytest -q tests/test_%d.py -k 'not slow'"]:
            f.write(json.dumps({"type": "execute_command", "payload": {"command": payload % i}}) + "\n")
def modelled(build):
    with open("unknown.jsonl") as f:
        child = subprocess.Popen([build, "run", "--until", "classify", "--jobs", "2"], stdin=f, stdout=subprocess.DEVNULL)
    start = time.time()
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return 4000 / (time.time() - start), (used.ru_utime + used.ru_stime) / 4, used.ru_maxrss // 1024
line("4,000 actions for the model, --jobs 2", "%6.0f a second, %.2f ms of CPU each, %d MB resident", pairs(3, modelled), ", medians of 3")

# From here on this build alone: what it keeps in memory, and what its parts add.
place(shield)
print()

# A reader that stalls: what waits must not be all that was read.
words = "func main() { fmt.Println(x) } // some words of a usual file\\n" * 16000
with open("large.jsonl", "w") as f:
    for i in range(800):
        f.write('{"id":"%d","type":"write_file","payload":{"path":"src/f%d.txt","content":"%s"}}\n' % (i, i, words))
for args in [[], ["--trace", "--jobs", "8"], ["--no-action"]]:
    with open("large.jsonl") as f:
        child = subprocess.Popen([shield, "run", "--until", "classify", *args], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(5)
    verdicts = sum(1 for _ in child.stdout)
    _, _, used = os.wait4(child.pid, 0)
    print("%-46s %6d MB resident at most, %d verdicts %s" % ("800 MiB, read after 5 s", used.ru_maxrss // 1024, verdicts, " ".join(args)))
os.remove("large.jsonl")

# What the audit log costs: the same actions without it and with it, in turn,
# the best of three of each.
def configured(name, text):
    with open(name, "w") as f:
        f.write(text)
    return ["--config", name, "--state", name + ".state"]

best = {}
for name, text in [("off", "audit: {enabled: false}"), ("on", "audit: {enabled: true}")] * 3:
    with open("actions.jsonl") as f:
        seconds, wall = cpu([shield, "run", "--until", "classify", "--model", "none", "--jobs", "2", *configured(name, text)], stdin=f)
    best[name] = min(best.get(name, (wall, seconds)), (wall, seconds))
    shutil.rmtree(name + ".state")
print("%-46s %6.2f s with audit, %.2f s without: %.2f times (of CPU: %.2f times)" % (
    "100,000 actions, --jobs 2", best["on"][0], best["off"][0], best["on"][0] / best["off"][0], best["on"][1] / best["off"][1]))

# A log of almost 1 GB, the most that one file may have and most of it a hole: what opens it reads its end.
flags = configured("large", "audit: {enabled: true, max_bytes: 1073741824}")
def opened(name):
    walls = sorted(cpu([shield, "policy", *flags], input=read.encode())[1] for _ in range(51))
    print("%-46s %6.1f ms, the median of %d" % (name, walls[25] * 1000, len(walls)))
    return walls[25]
small = opened("one verdict into a small log")
log = "large.state/audit.jsonl"
with open(log, "rb") as f:
    entries = f.read()
with open(log, "r+b") as f:
    f.seek(size := (1 << 30) - (1 << 20))
    f.truncate(size)
    f.write(b"\n" + entries)
print("%-46s %6.1f ms more" % ("", (opened("one verdict into a log of 1 GB") - small) * 1000))

# Tier 2, with a server that answers at once and knows how long it took.
import http.server, re, threading

class Judge(http.server.BaseHTTPRequestHandler):
    protocol_version, took, calls = "HTTP/1.1", 0.0, 0
    disable_nagle_algorithm, wbufsize = True, -1
    def do_POST(self):
        start = time.perf_counter()
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        canary = re.search(r"VERIFICATION TOKEN: ([0-9a-f]+)", asked).group(1)
        verdict = {"decision": "ALLOW", "confidence": 0.9, "reasoning": "harmless", "canary": canary}
        message = {"role": "assistant", "content": json.dumps(verdict)}
        reply = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.wfile.flush()
        Judge.took += time.perf_counter() - start
        Judge.calls += 1
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = "evaluator: {provider: custom, model: m, base_url: 'http://127.0.0.1:%d/v1'}\nrate_limit: 1000000\ndaily_budget: 1000000\n" % server.server_port
deletions = "".join('{"type":"delete_file","payload":{"path":"notes/%d.txt"}}\n' % i for i in range(1000)).encode()
for name, text in [("without audit", "audit: {enabled: false}"), ("with audit", "")]:
    Judge.took, Judge.calls = 0.0, 0
    _, wall = cpu([shield, "evaluate", *configured("evaluate", base + text)], input=deletions)
    shutil.rmtree("evaluate.state")
    print("%-46s %6.2f ms a call beyond the server's %.2f ms" % ("1,000 evaluations in turn, " + name, (wall - Judge.took) / Judge.calls * 1000, Judge.took / Judge.calls * 1000))

# What the snippets of shield init add to a line of an interactive shell.
import pty

def typed(argv):
    "CPU seconds of a shell that runs ten lines"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    seen = b""
    def until(mark):
        nonlocal seen
        while mark not in seen:
            seen += os.read(fd, 65536)
        seen = seen.split(mark, 1)[1]
    until(b"ready>")
    for i in range(10):
        os.write(fd, b"echo mark''-%d-\r" % i)
        until(b"mark-%d-" % i)
        until(b"ready>")
    os.write(fd, b"exit\r")
    try:
        while os.read(fd, 65536):
            pass
    except OSError: # the shell has closed it
        pass
    os.waitpid(pid, 0)
    os.close(fd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

os.environ.update(HOME=os.getcwd(), ZDOTDIR=os.getcwd(), TERM="dumb")
for shell, prompt, argv in [
    ("bash", "PS1='ready> '\n", ["bash", "--noprofile", "--rcfile", ".zshrc", "-i"]),
    ("zsh", "PS1='ready> '\n", ["zsh", "-d", "-i"]),
    ("fish", "function fish_prompt; echo 'ready> '; end\n", ["fish", "--no-config", "-i", "-C", "source .zshrc"]),
]:
    if not shutil.which(shell):
        continue
    snippet = subprocess.run([shield, "init", shell], capture_output=True, text=True, check=True).stdout
    took = {"": [], snippet: []}
    for _ in range(31):
        for text, runs in took.items():
            with open(".zshrc", "w") as f:
                f.write(prompt + text)
            runs.append(typed(argv))
    without, with_it = (sorted(runs)[15] for runs in took.values())
    print("%-46s %6.1f ms of CPU more, the median of 31" % ("a line of %s with its snippet" % shell, (with_it - without) * 100))
PY
