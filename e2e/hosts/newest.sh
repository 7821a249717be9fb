#!/bin/sh
# newest.sh HOSTS TO ONLY: has the newest package of each host that check.yaml names, and that ONLY
# matches, below TO: a link to what HOSTS has if that is the newest, or else a fresh one.
set -eu
hosts=$(cd "$1" && pwd) to=$(cd "$2" && pwd) only=$3
sed -n 's/^- host: \([^ ]*\).*/\1/p; s/^  package: "*\([^"]*\)"*$/\1/p; s/^  prepare: \(.*\)/+\1/p' "$(dirname "$0")/check.yaml" |
awk '/^\+/ { print last, substr($0, 2); last = ""; n = 0; next } last != "" { print last; last = "" } n { last = name " " $0; n = 0; next } { name = $0; n = 1 } END { if (last != "") print last }' |
while read -r name package program; do
	echo "$name" | grep -Eqx "$only" || continue
	newest=$(npm view "$package" version)
	for dir in "$to/$name" "$hosts/$name"; do
		grep -qs "\"version\": *\"$newest\"" "$dir/node_modules/$package/package.json" && break
		dir=
	done
	if [ -z "$dir" ]; then
		rm -rf "${to:?}/$name"
		npm install --prefix "$to/$name" --no-audit --no-fund "$package@$newest"
	elif [ "$dir" != "$to/$name" ]; then
		rm -rf "${to:?}/$name"
		ln -s "$dir" "$to/$name"
	fi
	if [ -n "$program" ] && [ ! -d "$to/$name/home/.cache" ]; then
		mkdir -p "$to/$name/home"
		HOME=$to/$name/home "$to/$name/node_modules/.bin/$program" --version
	fi
done
