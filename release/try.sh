#!/usr/bin/env bash
# try.sh DIST: installs what a release has for Linux on this machine, each into a
# folder of its own and without a network, and runs the first example of its README.
set -euo pipefail
dist=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -m) in
x86_64) arch=amd64 machine=x86_64 cpu=x64 ;;
aarch64) arch=arm64 machine=aarch64 cpu=arm64 ;;
*) echo "no package is built for $(uname -m)"; exit 1 ;;
esac
number=$(sed -n 's/.*  shield_\(.*\)_linux_'$arch'\.tar\.gz$/\1/p' "$dist/SHA256SUMS")

# Only root may take the network away.
offline=()
! unshare --net true 2>/dev/null || offline=(unshare --net)

fail() { echo "FAILED: $*"; exit 1; }
tried() { echo "tried: $*"; }
# have PROGRAM WHAT: whether a program is there to try something with
have() { command -v "$1" >/dev/null || { echo "not tried: $2, since $1 is not there"; return 1; }; }

# The first example of README.md: what is piped into shield, and what it answers.
pipe=$(sed -n "s/^    \\$ \\(echo .* | shield run --no-action\\)$/\\1/p" README.md | head -n 1)
answer=$(grep -A1 -F -- "$pipe" README.md | sed -n 's/^    \({.*\)…}$/\1/p')
[ -n "$pipe" ] && [ -n "$answer" ] || fail 'README.md has no first example'

# example WHAT MODEL COMMAND...: runs shield as COMMAND, and the example; MODEL says whether the model is to be there.
example() {
	local what=$1 model=$2 home got
	shift 2
	home=$(mktemp -d "$work/home-XXXX")
	shield() { HOME=$home XDG_CACHE_HOME='' XDG_STATE_HOME='' XDG_CONFIG_HOME='' "${offline[@]}" "$@"; }
	got=$(shield "$@" --version)
	[ "$got" = "shield version v$number" ] || fail "$what: $got"
	got=$(shield bash -c "shield() { \"\${command[@]}\" \"\$@\"; }; command=($(printf '%q ' "$@")); $pipe") || true
	case $got in "$answer"*) ;; *) fail "$what: the first example answers: $got" ;; esac
	got=$(shield "$@" doctor 2>&1) || true
	case $model,$got in
	yes,*'ok    model: default '* | no,*'ok    model: only rules judge, since the model cannot be used: this build of shield has no ONNX Runtime'*) ;;
	*) fail "$what: model: $model, and shield doctor says: $got" ;;
	esac
	tried "$what, model: $model"
}

(cd "$dist" && sha256sum --quiet --strict --check SHA256SUMS)
tried "$(wc -l <"$dist/SHA256SUMS") sums"

mkdir "$work/archive"
tar -xzf "$dist/shield_${number}_linux_$arch.tar.gz" -C "$work/archive" --strip-components=1
example 'archive' yes "$work/archive/shield"

# The program verifies the release that it is from, and refuses one that was tampered with.
sed -n 's/^key=//p' "$dist/install.sh" >"$work/key.pub"
verify() { HOME=$work "$work/archive/shield" doctor --release "$@" --key "$work/key.pub" 2>&1; }
got=$(verify "$dist") || fail "doctor --release: $got"
[[ $got = *'this program ('*') is the one in shield_'* ]] || fail "doctor --release: $got"
got=$(verify "$dist/shield_${number}_linux_$arch.tar.gz") || fail "doctor --release of a file: $got"
mkdir "$work/bad"
for what in SHA256SUMS SHA256SUMS.minisig install.sh "shield_${number}_linux_$arch.tar.gz" "shield_${number}_linux_$arch.tar.gz.minisig"; do
	cp "$dist"/SHA256SUMS* "$dist"/install.sh* "$dist/shield_${number}_linux_$arch.tar.gz"* "$work/bad/"
	got=$(verify "$work/bad") || fail "doctor --release of a part: $got"
	printf x >>"$work/bad/$what"
	! got=$(verify "$work/bad") || fail "doctor --release takes a changed $what: $got"
done
rm -r "$work/bad"
tried 'shield doctor --release, and five changed files'

if have dpkg deb; then
	mkdir -p "$work/deb/var/lib/dpkg/"{info,updates}
	touch "$work/deb/var/lib/dpkg/status"
	# its libraries are those of this machine
	fakeroot=()
	[ "$(id -u)" = 0 ] || fakeroot=(fakeroot)
	"${fakeroot[@]}" dpkg --root="$work/deb" --force-not-root --force-depends --log=/dev/null --install "$dist/shield_${number}-1_$arch.deb" >"$work/log" 2>&1 || fail "deb: $(cat "$work/log")"
	[ -z "$(dpkg --root="$work/deb" --verify shield)" ] || fail 'deb: dpkg --verify'
	example 'deb' yes "$work/deb/usr/bin/shield"
fi

if have rpm rpm; then
	rpm --root="$work/rpm" --dbpath=/db --nodeps --ignorearch --install "$dist/shield-$number-1.$machine.rpm"
	example 'rpm' yes "$work/rpm/usr/bin/shield"
fi

if [ -f "$dist/shield_$number-r1_$machine.apk" ]; then
	mkdir "$work/apk"
	tar -xzf "$dist/shield_$number-r1_$machine.apk" -C "$work/apk" --warning=no-unknown-keyword
	example 'apk, unpacked' no "$work/apk/usr/bin/shield"
fi

installer() {
	HOME=$work/installer sh "$dist/install.sh" --from "$@" >"$work/log" 2>&1 || fail "installer: $(cat "$work/log")"
}
installer "$dist"
rm -r "$work/installer"
if have python3 'installer over HTTP'; then
	(cd "$dist" && exec python3 -u -m http.server --bind 127.0.0.1 0 >"$work/served" 2>&1) &
	server=$!
	trap 'kill $server; rm -rf "$work"' EXIT
	until port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/served") && [ -n "$port" ]; do sleep 0.1; done
	installer "http://127.0.0.1:$port"
	kill $server
	trap 'rm -rf "$work"' EXIT
	example 'installer' yes "$work/installer/.local/bin/shield"
fi

image=$dist/shield_${number}_linux_$arch.oci.tar
if [ -f "$image" ] && [ "$(id -u)" = 0 ] && have jq image; then
	mkdir "$work/oci" "$work/root"
	tar -xf "$image" -C "$work/oci"
	blob() { echo "$work/oci/blobs/$(tr : / <<<"$1")"; }
	manifest=$(blob "$(jq -r '.manifests[0].digest' "$work/oci/index.json")")
	for layer in $(jq -r '.layers[].digest' "$manifest"); do tar -xzf "$(blob "$layer")" -C "$work/root"; done
	config=$(blob "$(jq -r .config.digest "$manifest")")
	[ "$(jq -c '[.config.User, .config.Entrypoint]' "$config")" = '["65534:65534",["/usr/bin/shield"]]' ] || fail "image: $(cat "$config")"
	mapfile -t environment < <(jq -r '.config.Env[]' "$config")
	example 'image, as nobody in a chroot' yes env -i "${environment[@]}" "$(command -v chroot)" --userspec=65534:65534 "$work/root" /usr/bin/shield
fi

# block LANGUAGE FILE: the first example of a client's README
block() { awk -v from="\`\`\`$1" '$0 == from {on = 1; next} on && $0 == "```" {exit} on' "$2"; }

if have python3 wheel; then
	python3 -m venv "$work/python"
	"$work/python/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links "$dist" "shieldcli==$number"
	block python clients/python/README.md >"$work/example.py"
	got=$(cd "$work" && HOME=$work/python PATH=/usr/bin:/bin "${offline[@]}" python/bin/python example.py)
	case $got in BLOCK\ *) ;; *) fail "wheel: the first example prints: $got" ;; esac
	example 'wheel' yes "$work/python/bin/shield"
fi

if have npm 'npm tarball'; then
	mkdir "$work/node"
	(cd "$work/node" && npm init --yes && npm install --offline --no-audit --no-fund "$dist/shieldcli-shield-linux-$cpu-$number.tgz" "$dist/shieldcli-shield-$number.tgz") >"$work/log" 2>&1 || fail "npm: $(cat "$work/log")"
	block js clients/node/README.md >"$work/node/example.mjs"
	got=$(cd "$work/node" && HOME=$work/node PATH=$(dirname "$(command -v node)"):/usr/bin:/bin "${offline[@]}" node example.mjs)
	case $got in BLOCK\ *) ;; *) fail "npm: the first example prints: $got" ;; esac
	example 'npm tarball' yes "$work/node/node_modules/.bin/shield"
fi
