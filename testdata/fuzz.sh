#!/bin/sh
# Runs each fuzz target of the module for a while, then scripts made by chance in each
# shell that is installed.
# usage: fuzz.sh TIME [SCRIPTS]
set -eu
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz $pkg $target for $1"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$pkg"
	done
done
if [ "${2:-0}" -gt 0 ]; then
	# the seed is of the day, and named where something is missed
	SHIELD_SCRIPTS=$2 SHIELD_SEED=$(date +%s) go test -run '^TestSound$' -count 1 -timeout 12h -v ./e2e/soundness
fi
