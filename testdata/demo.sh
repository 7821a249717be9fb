#!/bin/sh
# Judges the demo's actions and prints one line for each.
# usage: demo.sh SHIELD
set -u
shield=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.." || exit 1
"$shield" run --until classify --no-action <testdata/actions/demo.jsonl 2>/dev/null |
	sed -E 's/^\{("id":"([^"]*)",)?"line":([0-9]+),"decision":"([A-Z]+)","tier":([0-9]).*"reasoning":"(([^"\\]|\\.)*)".*/\3\t\4\ttier \5\t\2\t\6/' |
	awk -F '\t' '{ printf "%3s  %-8s  %s  %-13s  %.90s\n", $1, $2, $3, $4, $5; n[$2]++ }
		END { printf "\n%d allowed, %d escalated, %d blocked\n", n["ALLOW"], n["ESCALATE"], n["BLOCK"]
			exit !(n["ALLOW"] && n["ESCALATE"] && n["BLOCK"]) }'
