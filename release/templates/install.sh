#!/bin/sh
# Installs shield {{.Number}} for Linux and macOS: sh install.sh [--to FOLDER] [--from FOLDER|URL] [--signed]
# An archive whose sum is not in this file is not unpacked, nor, where minisign is installed, one whose signature
# is not by this key; --signed refuses to install without minisign. This file's own signature is install.sh.minisig.
set -eu

key={{.Key}}
from={{.Downloads}}/{{.Source.Version}}
sums='
{{- range archives}}
{{.Sum}} {{.Name}}
{{- end}}
'

stop() {
	echo "install.sh: $*" >&2
	exit 1
}

# fetch NAME: copies a file of the release to here
fetch() {
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null; then curl -fsSL -o "$1" "$from/$1"
		elif command -v wget >/dev/null; then wget -q -O "$1" "$from/$1"
		else stop 'curl or wget is needed'; fi ;;
	file://*) cp "${from#file://}/$1" "$1" ;;
	*) cp "$from/$1" "$1" ;;
	esac
}

# sum NAME: prints the SHA-256 of a file
sum() {
	if command -v sha256sum >/dev/null; then sha256sum <"$1"
	elif command -v shasum >/dev/null; then shasum -a 256 <"$1"
	elif command -v openssl >/dev/null; then openssl dgst -sha256 -r <"$1"
	else stop 'sha256sum, shasum or openssl is needed'; fi | cut -d ' ' -f 1
}

# system: prints what the archive for this machine is called
system() {
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) stop "there is no archive for $(uname -m)" ;;
	esac
	case $(uname -s) in
	Darwin) echo "darwin_$arch" ;;
	Linux)
		# the program that carries the model needs glibc 2.28
		case $(getconf GNU_LIBC_VERSION 2>/dev/null) in
		'' | 'glibc 2.'? | 'glibc 2.1'? | 'glibc 2.2'[0-7]) echo "linux_musl_$arch" ;;
		*) echo "linux_$arch" ;;
		esac ;;
	*) stop "there is no archive for $(uname -s)" ;;
	esac
}

# put MODE FILE PATH: installs a file in one step
put() {
	mkdir -p "$to/$(dirname "$3")"
	cp "$2" "$to/$3.new"
	chmod "$1" "$to/$3.new"
	mv -f "$to/$3.new" "$to/$3"
}

# verify NAME: stops unless the key has signed a file that was fetched
verify() {
	if ! command -v minisign >/dev/null; then
		[ -z "$signed" ] || stop 'minisign is not installed, so the signature cannot be verified; nothing was installed'
		echo "checksum verified; install minisign to verify the signature of $1, too"
		return
	fi
	fetch "$1.minisig" || stop "$1.minisig cannot be fetched from $from; nothing was installed"
	minisign -V -P "$key" -m "$1" >/dev/null || stop "the signature of $1 is not by the key of the release; nothing was installed"
	echo "checksum and signature verified"
}

# All of the script has arrived when this runs.
main() {
	to=${HOME:?}/.local
	signed=
	while [ $# -gt 0 ]; do
		case $1 in
		--to) to=${2:?} ;;
		--from) from=${2:?} ;;
		--signed)
			signed=yes
			shift
			continue ;;
		*) stop "usage: sh install.sh [--to FOLDER] [--from FOLDER|URL] [--signed]" ;;
		esac
		shift 2
	done
	case $to in /*) ;; *) to=$PWD/$to ;; esac
	case $from in /* | *://*) ;; *) from=$PWD/$from ;; esac
	name=shield_{{.Number}}_$(system)
	want=$(echo "$sums" | sed -n "s/ $name\.tar\.gz\$//p")
	[ -n "$want" ] || stop "$name.tar.gz is not part of this release"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	fetch "$name.tar.gz" || stop "$name.tar.gz cannot be fetched from $from"
	got=$(sum "$name.tar.gz")
	[ "$got" = "$want" ] || stop "$name.tar.gz is not the file of the release: its SHA-256 is $got, and should be $want; nothing was installed"
	verify "$name.tar.gz"
	tar -xzf "$name.tar.gz"
	put 755 "$name/shield" bin/shield
	for page in "$name"/man/*.1; do put 644 "$page" "share/man/man1/${page##*/}"; done
	put 644 "$name/completions/shield.bash" share/bash-completion/completions/shield
	put 644 "$name/completions/_shield" share/zsh/site-functions/_shield
	put 644 "$name/completions/shield.fish" share/fish/vendor_completions.d/shield.fish
	echo "installed $to/bin/shield"
	case :$PATH: in *:"$to/bin":*) ;; *) echo "add $to/bin to PATH" ;; esac
}

main "$@"
