#!/bin/sh
# Runs each fuzz target of the module for a while.
# usage: fuzz.sh TIME
set -eu
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz $pkg $target for $1"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$pkg"
	done
done
