"""Builds the small tokenizers and models of pkg/classify/testdata/models.

Usage: exports.py WORK OUT, where WORK holds training.jsonl and strings.jsonl of
texts.py and the same texts prepared by ../prepare. The weights are random: the
models say nothing about any text, but say it the same way everywhere.
"""

import collections
import gzip
import io
import json
import os
import random
import sys
from pathlib import Path

import numpy
import onnxruntime
import sentencepiece
import tokenizers
import torch
import transformers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
LONGEST = 128  # tokens of a text with reference logits

# What DeBERTa's charsmap does, for a few characters, so that the file stays small.
RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\x0b": " ", "\x0c": " ", "\xa0": " ", "\u2003": " ", "\u2028": " ", "\u3000": " ", "\u200b": " ",
    "\x01": "", "\x07": "", "\x08": "", "\x1b": "", "\x7f": "", "\x85": " ", "\xad": "", "\u2060": "", "\ufeff": "",
    "\u0130": "I\u0307", "e\u0301": "é", "a\u0308": "ä", "a\u0308\u0323": "ạ̈", "\r\n": " ",
    "\u00bd": "1\u20442", "\u2460": "1", "\ufb03": "ffi", "\u2126": "Ω", "\u3300": "アパート", "\ufdfa": "صلى الله عليه وسلم",
    **{chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)},
}


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def write_lines(path, rows):
    """Writes JSON Lines, compressed, the same bytes each time."""
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as f:
        for row in rows:
            f.write((json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    path.write_bytes(raw.getvalue())


def template(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")],
    )


def wordpiece(work):
    """BERT's, for prepared text, with no normaliser of its own.

    The vocabulary holds every character and the most frequent words, stems and
    endings. The library's trainer would choose better, and otherwise each time.
    """
    pre = pre_tokenizers.BertPreTokenizer()
    words = collections.Counter(w for text in read(work / "training.prepared.jsonl") for w, _ in pre.pre_tokenize_str(text))
    pieces = collections.Counter()
    for word, count in words.items():
        for i in range(1, len(word)):
            pieces[word[:i]] += count
            pieces["##" + word[i:]] += count
        pieces[word] += 2 * count
    letters = sorted({c for w in words for c in w})
    vocab = [*SPECIAL, *letters, *("##" + c for c in letters)]
    for piece, _ in sorted(pieces.items(), key=lambda p: (-p[1], p[0])):
        if len(vocab) < 4000 and len(piece) > 1 and not (len(piece) == 3 and piece.startswith("##")):
            vocab.append(piece)
    t = tokenizers.Tokenizer(models.WordPiece({p: i for i, p in enumerate(vocab)}, unk_token="[UNK]", max_input_chars_per_word=100))
    t.pre_tokenizer = pre
    t.decoder = decoders.WordPiece()
    t.add_special_tokens(SPECIAL)
    template(t)
    return t


def unigram(work):
    """DeBERTa-v3's: a SentencePiece model and the steps around it."""
    rules = work / "rules.tsv"
    with open(rules, "w", encoding="utf-8") as f:
        for source, target in RULES.items():
            f.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
    (work / "training.txt").write_text("\n".join(text.replace("\n", " ") for text in read(work / "training.jsonl")) + "\n", encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(work / "training.txt"), model_prefix=str(work / "unigram"), model_type="unigram", vocab_size=4000,
        normalization_rule_tsv=str(rules), character_coverage=0.9995, num_threads=1, minloglevel=2,
        pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
    )
    spm = sentencepiece_model_pb2.ModelProto()
    spm.ParseFromString((work / "unigram.model").read_bytes())
    t = tokenizers.Tokenizer(models.Unigram([(p.piece, p.score) for p in spm.pieces], unk_id=3, byte_fallback=False))
    t.normalizer = normalizers.Sequence([
        normalizers.Strip(),
        normalizers.Precompiled(spm.normalizer_spec.precompiled_charsmap),
        normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
    ])
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    t.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    t.add_special_tokens(SPECIAL)
    template(t)
    return t


def bert(vocab):
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=vocab, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=512,
        initializer_range=0.5, pad_token_id=0, id2label={0: "SAFE", 1: "INJECTION"}, label2id={"SAFE": 0, "INJECTION": 1}, attn_implementation="eager"))


def deberta(vocab):
    return transformers.DebertaV2ForSequenceClassification(transformers.DebertaV2Config(
        vocab_size=vocab, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=512,
        initializer_range=0.5, pad_token_id=0, type_vocab_size=0, position_biased_input=False, relative_attention=True, position_buckets=32,
        max_relative_positions=-1, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], num_labels=2))


def export(model, inputs, path):
    example = {name: torch.ones((1, 7), dtype=torch.int64) for name in inputs}
    axes = {name: {0: "batch", 1: "tokens"} for name in inputs} | {"logits": {0: "batch"}}
    torch.onnx.export(model, (example,), str(path), input_names=list(inputs), output_names=["logits"], dynamic_axes=axes, opset_version=14, dynamo=False)


def references(tokenizer, work):
    """Token ids without special tokens; literals of these are ordinary text."""
    tokenizer.encode_special_tokens = True
    rows = []
    for text, prepared in zip(read(work / "strings.jsonl"), read(work / "strings.prepared.jsonl"), strict=True):
        seen = text if tokenizer.normalizer else prepared
        rows.append({"text": text, "prepared": prepared, "ids": tokenizer.encode(seen, add_special_tokens=False).ids})
    return rows


def logits(model, session, inputs, rows, frame):
    chosen = [r for r in rows if r["ids"] and len(r["ids"]) + 2 <= LONGEST]
    step = len(chosen) / 200
    out = []
    for i in range(200):
        row = chosen[int(i * step)]
        ids = torch.tensor([frame(row["ids"])])
        feeds = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        with torch.no_grad():
            want = model(**{name: feeds[name] for name in inputs}).logits[0].numpy()
        got = session.run(None, {name: feeds[name].numpy() for name in inputs})[0][0]
        numpy.testing.assert_allclose(got, want, atol=1e-4)
        out.append({"text": row["text"], "ids": ids[0].tolist(), "logits": [round(float(x), 6) for x in want]})
    return out


def build(name, tokenizer, model, inputs, shield, work, out):
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    export(model, inputs, folder / "model.onnx")
    file = json.loads(tokenizer.to_str())
    (folder / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    config = model.config.to_dict()
    config.pop("transformers_version", None)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "shield.json").write_text(json.dumps(shield, indent=2) + "\n")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    rows = references(tokenizer, work)
    write_lines(folder / "tokens.jsonl.gz", rows)
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    write_lines(folder / "logits.jsonl.gz", logits(model, session, inputs, rows, lambda ids: [cls, *ids, sep]))
    print(name, len(rows), "strings,", file["model"]["type"], len(file["model"]["vocab"]), "tokens,", sum(os.path.getsize(p) for p in folder.iterdir()), "bytes")


def normalizer_cases(work):
    """What the library's normalizers make of texts and of single characters."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(work / "training.txt"), model_prefix=str(work / "nmt_nfkc"), model_type="char", vocab_size=2000, hard_vocab_limit=False, num_threads=1, minloglevel=2)
    spm = sentencepiece_model_pb2.ModelProto()
    spm.ParseFromString((work / "nmt_nfkc.model").read_bytes())
    charsmap = normalizers.Precompiled(spm.normalizer_spec.precompiled_charsmap)
    spaces = normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    yield "bert", normalizers.BertNormalizer()
    yield "bert cased", normalizers.BertNormalizer(lowercase=False)
    yield "bert accents", normalizers.BertNormalizer(strip_accents=False)
    yield "bert without cleaning", normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False)
    yield "deberta", normalizers.Sequence([normalizers.Strip(), charsmap, spaces])
    yield "compatible", normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    yield "stripped", normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC(), normalizers.Strip(right=False)])
    yield "decomposed", normalizers.Sequence([normalizers.NFKD(), normalizers.Replace("a", "bb")])


def normalizer_rows(work):
    r = random.Random(30)
    texts = r.sample(read(work / "strings.jsonl"), 400)
    runes = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    texts += ["a" + c + "B" for c in r.sample(runes[:0x3400], 400) + r.sample(runes, 100)]
    for name, n in normalizer_cases(work):
        t = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
        t.normalizer = n
        yield {"name": name, "normalizer": json.loads(t.to_str())["normalizer"], "texts": [{"in": text, "out": n.normalize_str(text)} for text in texts]}


def main():
    work, out = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(7)
    t = wordpiece(work)
    build("bert", t, bert(t.get_vocab_size()), ("input_ids", "attention_mask", "token_type_ids"), {"name": "bert"}, work, out)
    t = unigram(work)
    build("deberta", t, deberta(t.get_vocab_size()), ("input_ids", "attention_mask"), {"name": "deberta", "malicious_label": "LABEL_1"}, work, out)
    write_lines(out / "normalizers.jsonl.gz", normalizer_rows(work))


if __name__ == "__main__":
    main()
