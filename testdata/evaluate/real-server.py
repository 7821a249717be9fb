"""Serves a tiny language model of random weights on loopback, by llama.cpp.

    real-server.py FOLDER

writes FOLDER/model.gguf if it is not there, prints the base URL of the
OpenAI-compatible API on one line, and serves until standard input ends. It
ends with status 77 and a reason if a package is missing.

The weights are random but for a leaning towards the quotation mark, so that
strings end. What the model says is noise that the server's grammar holds to
the JSON schema of a request: well-formed verdicts with a canary that is wrong.
"""

import os
import sys

try:
    import gguf
    import numpy as np
    import xllamacpp
except ImportError as e:
    print(f"skip: {e}; python3 -m pip install xllamacpp gguf numpy", file=sys.stderr)
    sys.exit(77)

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 16384


def write_model(path):
    # One token a byte needs no vocabulary of anybody's.
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kind = gguf.TokenType
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL] + [kind.BYTE] * 256
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(INNER)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_vocab_size(len(tokens))
    w.add_file_type(0)
    w.add_tokenizer_model("llama")
    w.add_token_list([t.encode() for t in tokens])
    w.add_token_scores([0.0] * len(tokens))
    w.add_token_types(kinds)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)

    random = np.random.default_rng(7)

    def weights(*shape):
        return (random.standard_normal(shape) * 0.1).astype(np.float32)

    embedding, head = weights(len(tokens), WIDTH), weights(len(tokens), WIDTH)
    embedding[:, 0], head[:, 0] = 1.0, 0.0
    for char, leaning in {'"': 4.0, ",": 2.0, "}": 2.0}.items():
        head[3 + ord(char), 0] = leaning
    ones = np.ones(WIDTH, np.float32)
    w.add_tensor("token_embd.weight", embedding)
    w.add_tensor("output_norm.weight", ones)
    w.add_tensor("output.weight", head)
    for i in range(LAYERS):
        block = f"blk.{i}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            w.add_tensor(f"{block}{name}.weight", weights(WIDTH, WIDTH))
        for name in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"{block}{name}.weight", ones)
        w.add_tensor(f"{block}ffn_gate.weight", weights(INNER, WIDTH))
        w.add_tensor(f"{block}ffn_up.weight", weights(INNER, WIDTH))
        w.add_tensor(f"{block}ffn_down.weight", weights(WIDTH, INNER))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    model = os.path.join(sys.argv[1], "model.gguf")
    if not os.path.exists(model):
        write_model(model)
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.n_ctx, p.n_parallel, p.n_gpu_layers, p.warmup = CONTEXT, 1, 0, False
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.port = 0
    p.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
    )
    server = xllamacpp.Server(p)
    print(server.listening_address + "/v1", flush=True)
    sys.stdin.read()
    os._exit(0)


main()
