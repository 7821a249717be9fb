#!/usr/bin/env bash
# Makes the folder of a build in testdata/upgrade: what an installation of that build leaves behind, which every later build
# has to read.
# usage: make.sh SHIELD FOLDER     with the sources of that build beside this script
# @HOME@ and @SHIELD@ stand for the home folder and the program.
set -euo pipefail
shield=$(realpath "$1")
repo=$(realpath "$(dirname "$0")/../..")
mkdir -p "$2"
out=$(realpath "$2")
home=$(mktemp -d ~/upgrade-XXXXXX) # what is deleted in a folder for temporary files is not kept
trap 'rm -rf "$home"' EXIT
mkdir -p "$home/bin" "$home/app" "$home/.config/shield"
cp "$shield" "$home/bin/shield"
shield=$home/bin/shield

# every setting of that build, and a policy with exceptions
cat >"$home/.config/shield/shield.yaml" <<EOF
policy: $home/.config/shield/policy.yaml
layers: {team: $home/.config/shield/team.yaml}
roots: [$home/app]
classifier: {enabled: true, model: none, threshold: 0.85, skip_types: auto}
heuristic: {enabled: true}
evaluator: {timeout: 30s, price: {input: 0.15, output: 0.6}}
approval: {channels: [command], unattended: deny, timeout: 300s, max_per_hour: 60, command: [/bin/sh, $home/.config/shield/answer], web: {listen: "127.0.0.1:0"}}
fail_closed: true
rate_limit: 60
daily_budget: 100
budget_reset: utc
verdict_ttl: 300s
audit: {enabled: true, max_bytes: 67108864}
sanitize: {enabled: auto, mode: flag, evaluator: false}
hook: {answer: delegate, permission_request: "off", timeout: 50s}
trusted: {hosts: [deploy.example.com], git_remotes: [origin], recipients: ["*@example.com"], targets: [staging]}
session: {enabled: true, keep: 24h, max_files: 10000, max_denials: 10}
container: auto
undo: {enabled: true, keep: 168h, max_bytes: 5368709120}
telemetry: {otlp: "http://127.0.0.1:4318"}
mcp: {sampling: deny, servers: [{name: files, command: [npx, -y, "@modelcontextprotocol/server-filesystem", .]}]}
max_bytes: 1048576
EOF
cat >"$home/.config/shield/answer" <<'EOF'
printf '%s\n' '{"decision":"approve","by":"kim","minutes":60}'
EOF
cat >"$home/.config/shield/team.yaml" <<'EOF'
deny:
  - {name: no_prod, reason: production is off limits, action_types: [execute_command], commands: ['\bprod-cluster\b']}
EOF
cat >"$home/.config/shield/policy.yaml" <<'EOF'
extends: offline
deny:
  - {name: cloud_metadata, except: {hosts: [metadata.lab.example.com]}}
verify:
  - {name: ask_before_deleting, except: {paths: ["$WORKSPACE/scratch/**"]}}
  - {name: ask_to_publish, reason: publishes; ask the user, action_types: [execute_command], commands: ['^make publish'], tier_override: 3}
allow:
  - {name: read_notes, action_types: [read_file], paths: [~/notes/**]}
  - {name: workspace_reads, except: {paths: ["$WORKSPACE/private/**"]}}
EOF
run() { USER=me HOME=$home SHIELD_CONFIG='' XDG_CONFIG_HOME='' XDG_STATE_HOME='' XDG_DATA_HOME='' XDG_CACHE_HOME="$home/cache" "$shield" "$@"; }

# a log, a session that has read a secret, denials, an approval that is remembered
(
	cd "$home/app"
	printf 'API_KEY=none\n' >.env
	run run --no-action <<'EOF' || true
{"id":"read","session":"s1","type":"read_file","payload":{"path":"main.go"}}
{"id":"secret","session":"s1","type":"read_file","payload":{"path":".env"}}
{"id":"wipe","session":"s1","type":"execute_command","payload":{"command":"rm -rf /"}}
{"id":"team","session":"s1","type":"execute_command","payload":{"command":"ls prod-cluster"}}
{"id":"asked","session":"s2","type":"execute_command","payload":{"command":"make publish"}}
EOF
	printf '%s' '{"session_id":"h1","cwd":"'"$home/app"'","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"'"$home/app"'/.env"}}' |
		run hook claude-code >/dev/null || true
	# what an action deletes is kept
	mkdir scratch && printf 'all that I know\n' >scratch/notes.txt
	printf '%s' '{"session_id":"h2","cwd":"'"$home/app"'","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm scratch/notes.txt"}}' |
		run hook claude-code
	run undo list
	run approvals list --json
	run audit verify
)
# what hosts are told
for host in $(cd "$repo/pkg/host/hosts" && ls -- *.yaml | sed 's/\.yaml$//'); do
	run hook install --timeout 20s "$host" >/dev/null 2>&1 || echo "not installed: $host"
done

rm -rf "$out" && mkdir -p "$out/policies"
date -u +%Y-%m-%dT%H:%M:%SZ >"$out/made"
rm -rf "$home/cache" "$home/bin" "$home/app"
cp -r "$home/." "$out/home"
find "$out/home" -name '*.lock' -delete
find "$out/home" -path '*/programs/*.program' -delete # a link to the program
find "$out/home" -type d -empty -delete
grep -rlI --exclude-dir=state -e "$home" "$out/home" | while read -r f; do sed -i "s|$home/bin/shield|@SHIELD@|g; s|$home|@HOME@|g" "$f"; done

# an exception to every rule of every preset, and a rule for every name of an action
python3 - "$repo" "$out/policies" <<'EOF'
import os, re, sys
repo, out = sys.argv[1:]
def read(name):
    lists, extends, now = {"deny": [], "verify": [], "allow": []}, "", ""
    for line in open(f"{repo}/policies/{name}.yaml"):
        if m := re.match(r"extends: (\w+)", line): extends = m[1]
        if m := re.match(r"(deny|verify|allow):", line): now = m[1]
        if now and (m := re.match(r"  - name: (\S+)", line)): lists[now].append(m[1])
    if extends:
        for k, v in read(extends).items(): lists[k] += v
    return {k: list(dict.fromkeys(v)) for k, v in lists.items()}
for f in sorted(os.listdir(f"{repo}/policies")):
    name = f.removesuffix(".yaml")
    if not f.endswith(".yaml") or name in ("base", "core", "dangers"): continue
    core = sum(read("core").values(), [])
    with open(f"{out}/except-{name}.yaml", "w") as o:
        o.write(f"# an exception to every rule of the preset {name} that allows one\nextends: {name}\n")
        for k, v in read(name).items():
            if v := [r for r in v if r not in core]:
                o.write(f"{k}:\n" + "".join(f"  - {{name: {r}, except: {{paths: [/nowhere/**]}}}}\n" for r in v))
types = re.findall(r'"([a-z_]+)"', re.search(r"(?s)types = .*?\n\}", open(f"{repo}/pkg/action/names_gen.go").read())[0])
kinds = re.findall(r'Kind += "([a-z_]+)"', open(f"{repo}/pkg/effect/effect.go").read())
names = sorted({*types, *kinds})
with open(f"{out}/types.yaml", "w") as o:
    o.write("# a rule on every name of an action and an effect\nverify:\n  - name: every\n    reason: a\n    tier_override: 1\n    action_types:\n")
    o.write("".join(f"      - {n}\n" for n in names))
EOF
