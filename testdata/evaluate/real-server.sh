#!/bin/sh
# Judges actions with a server that nobody here wrote: llama.cpp, with a tiny
# model of random weights that a grammar holds to well-formed verdicts. Such a
# model cannot know the canary, so each action must end in BLOCK.
#
#   real-server.sh [SHIELD]
#
# SHIELD is the program to test; without it only the Go test runs. PYTHON names
# a python3 that has xllamacpp, gguf and numpy. Without one it skips.
set -eu
cd "$(dirname "$0")/../.."
here=testdata/evaluate
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skip: no $python"; exit 0; }
work=$(mktemp -d)
mkfifo "$work/in"
"$python" "$here/real-server.py" "$work" <"$work/in" >"$work/url" 2>"$work/log" &
server=$!
exec 3>"$work/in" # the server ends when this is closed
trap 'exec 3>&-; wait "$server" || true; rm -rf "$work"' EXIT

tries=0
until [ -s "$work/url" ]; do
	if ! kill -0 "$server" 2>/dev/null; then
		grep '^skip: ' "$work/log" || { echo "skip: the server did not start:"; tail -n 5 "$work/log"; }
		exit 0
	fi
	tries=$((tries + 1))
	[ "$tries" -lt 300 ] || { echo "skip: the server was not ready within 30 s"; exit 0; }
	sleep 0.1
done
url=$(cat "$work/url")

SHIELD_REAL_SERVER=$url go test -count=1 -run '^TestRealServer$' -v ./pkg/evaluate

[ $# -gt 0 ] || exit 0
mkdir -m 700 "$work/state"
cat >"$work/config.yaml" <<YAML
evaluator: {provider: custom, model: random, base_url: "$url", timeout: 60s}
YAML
status=0
echo '{"type":"delete_file","payload":{"path":"notes.txt"}}' |
	"$1" run --config "$work/config.yaml" --state "$work/state" --model none --root "$work" --no-action >"$work/out" || status=$?
cat "$work/out"
[ "$status" = 2 ] || { echo "fail: status $status, want 2"; exit 1; }
grep -q '"decision":"BLOCK","tier":2,.*canary token missing from evaluator response' "$work/out" ||
	{ echo "fail: the action was not blocked for its canary"; exit 1; }
echo "pass: $1"
