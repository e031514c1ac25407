# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of Hugging Face and of SentencePiece."""

import json
import struct

from corpora.inputs import ROOT, write


def make_tokenizers():
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3, "\u2581": 4}, "merges": ["a b"], "unk_token": "<unk>"}
    split = {"type": "Split", "pattern": {"Regex": "\\w+|\\s+"}, "behavior": "Isolated", "invert": False}

    def tokenizer(**parts):
        return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                           "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts})

    def added(number, content):
        return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}

    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2]], "byte_fallback": False}
    pieces = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAYQA="}
    write("tokenizer", good=tokenizer(), good_parts=tokenizer(
              normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}, pre_tokenizer=split,
              added_tokens=[added(5, "<s>")]), good_unigram=tokenizer(model=unigram), good_pieces=tokenizer(model=pieces),
          good_bytes=tokenizer(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                               decoder={"type": "ByteLevel"}),
          good_charsmap=tokenizer(normalizer=charsmap), no_model=tokenizer(model=None), kind=tokenizer(model={"type": "X"}),
          merge=tokenizer(model={**model, "merges": ["a c"]}), merge_words=tokenizer(model={**model, "merges": ["a"]}),
          number=tokenizer(model={**model, "vocab": {"a": -1}}), huge=tokenizer(model={**model, "vocab": {"a": 1 << 60}}),
          regex=tokenizer(pre_tokenizer={**split, "pattern": {"Regex": "("}}), unknown=tokenizer(model={**unigram, "unk_id": 9}),
          pieces=tokenizer(model={**unigram, "vocab": []}), empty_token=tokenizer(added_tokens=[added(5, "")]),
          added=tokenizer(added_tokens=[added(1 << 60, "x")]), charsmap_text=tokenizer(
              normalizer={"type": "Precompiled", "precompiled_charsmap": "????"}), truncated=tokenizer()[:100], empty="")
    unigram_model = (ROOT / "datasets/text/testing_unigram.model").read_bytes()
    write("sentence_piece", good=unigram_model, cut=unigram_model[:100], empty=b"", text=b"not a model",
          denormalizer=(ROOT / "datasets/text/testing_denormalizer.model").read_bytes(),
          good_japanese=(ROOT / "datasets/text/testing_japanese.model").read_bytes(), **malformed_models(unigram_model))


def field(number, kind, content=b""):
    """Returns a field of a message in the format of protocol buffers: of kind 0 with a number, of kind 2 with bytes."""
    def varint(value):
        return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])
    key = varint(number << 3 | kind)
    return key + (varint(content) if kind == 0 else varint(len(content)) + content if kind == 2 else content)


def malformed_models(model):
    """Returns malformed models of SentencePiece by error: each is a well-formed model with one more field."""
    def piece(text, score=0.0, kind=1):
        return model + field(1, 2, field(1, 2, text) + field(2, 5, struct.pack("<f", score)) + field(3, 0, kind))

    def rules(units=None, texts=b"\0", size=None):
        trie = struct.pack("<768I", *[(units or {}).get(i, 0x80000000) for i in range(768)])
        return model + field(5, 2, field(2, 2, struct.pack("<I", len(trie) if size is None else size) + trie + texts))

    def unit(label, offset, leaf=False):
        return label | leaf << 8 | offset << 10

    root = {0: unit(0, 256)}  # children from 256 on
    with_rule = {**root, 353: unit(97, 353 ^ 512, leaf=True)}  # for "a"; its text is the one that unit 512 says
    return {"no_text": model + field(1, 2, b""), "nul": piece(b"a\0b"), "type": piece(b"abc", kind=9),
            "score": piece(b"abc", float("nan")), "score_type": model + field(1, 2, field(1, 2, b"abc") + field(2, 0, 1)),
            "text_type": model + field(1, 2, field(1, 0, 1)), "trainer_twice": model + field(2, 2) + field(2, 2),
            "charsmap_twice": model + field(5, 2, field(2, 2) + field(2, 2)), "group": model + b"\x0b\x0c",
            "long_number": model + b"\x08" + b"\xff" * 10, "no_number": model + b"\0\0", "trie_size": rules(root, size=3),
            "trie_beyond": rules(root, size=1 << 30), "trie_out": rules({0: unit(0, 1024)}), "trie_no_texts": rules(root, b""),
            "trie_child_out": rules({**root, 353: unit(97, 1024)}), "trie_endless": rules({**root, 353: unit(97, 97)}),
            "trie_no_text": rules({**with_rule, 512: 0x80000009}), "trie_open_text": rules(with_rule, b"abc"),
            "trie_long_text": rules(with_rule, b"x" * 300 + b"\0"),
            "charsmap_short": model + field(5, 2, field(2, 2, b"\0\0"))}


def make():
    """Writes these corpora."""
    make_tokenizers()
