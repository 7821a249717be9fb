#!/bin/sh
# Rebuilds pkg/classify/testdata/models: small tokenizers and models with random
# weights, and what HuggingFace's own libraries make of some thousand texts.
#
# PYTHON names an interpreter that has requirements.txt installed; without it
# they are installed into a virtual environment under build/.
set -eu
cd "$(dirname "$0")/../.."
work=build/parity
mkdir -p "$work"
if [ -z "${PYTHON:-}" ]; then
	python3.11 -m venv "$work/venv"
	PYTHON=$work/venv/bin/python
	"$PYTHON" -m pip install -q -r training/parity/requirements.txt
fi
"$PYTHON" training/parity/texts.py "$work"
for name in training strings; do
	go run ./training/prepare <"$work/$name.jsonl" >"$work/$name.prepared.jsonl"
done
"$PYTHON" training/parity/exports.py "$work" pkg/classify/testdata/models
