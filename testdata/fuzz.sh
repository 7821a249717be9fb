#!/bin/sh
# Runs fuzz targets of the module for a while each, then scripts made by chance in
# each shell that is installed.
# usage: fuzz.sh TIME [SCRIPTS [SHARE]]
# With SHARE only every SHAREth target runs, others on another day.
set -eu
cd "$(dirname "$0")/.."
found=0
# the end of the time is sometimes reported as a failure (go.dev/issue/56238);
# what is found is written to testdata/fuzz
fuzz() {
	log=$(mktemp)
	if ! go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "./$1" >"$log" 2>&1 &&
		{ grep -q 'Failing input' "$log" || ! grep -q '^    context deadline exceeded$' "$log"; }; then
		found=1
	fi
	grep -v '^fuzz: elapsed' "$log" || true
	grep '^fuzz: elapsed' "$log" | tail -1
	rm -f "$log"
}
day=$(date +%j)
for target in $(grep -rEo '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' . | sed 's|^\./||; s|/[^/]*:func |:|' | sort -u |
	awk -v share="${3:-1}" -v day="$day" 'NR % share == day % share'); do
	echo "fuzz ${target%:*} ${target#*:} for $1"
	fuzz "${target%:*}" "${target#*:}" "$1"
done
if [ "${2:-0}" -gt 0 ]; then
	# the seed is of the day, and named where something is missed
	SHIELD_SCRIPTS=$2 SHIELD_SEED=$(date +%s) go test -run '^TestSound$' -count 1 -timeout 12h -v ./e2e/soundness
fi
exit $found
