#!/bin/sh
# Judges all recorded actions, tasks, sessions and seeded tasks with this build and with that of a commit, and lists what differs.
# usage: BASE=COMMIT compare.sh SHIELD [FLAG OF measure…]
set -eu
shield=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
cd "$(dirname "$0")/.."
base=${BASE:-HEAD~1}
commit=$(git rev-parse --short "$base")
before=build/base/$commit
if [ ! -x "$before/build/shield" ]; then
	mkdir -p "$before"
	git archive "$base" | tar -x -C "$before"
	make -s -C "$before" build
fi
echo "base: $(git log -1 --format='%h %s' "$base")"
go run ./measure -shield "$shield" -base "$before/build/shield" "$@" compare
