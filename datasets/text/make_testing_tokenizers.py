#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small tokenizers, texts and their tokens by Hugging Face's tokenizers, for tokenizer_json_test.cc.

  datasets/text/make_testing_tokenizers.py datasets/text/testing_tokenizers.json

Needs tokenizers 0.23. Vocabularies are written by hand and have a few words.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer

WORDS = ["▁", "▁the", "the", "Ġthe", "he", "##he", "cat", "▁cat", "c", "a", "t", "at", "##at", "##t", "hello", "Hello",
         "don", "'t", "1", "9", "19", "é", "e", "\u0301", "東", "京", "東京", ".", "!", "_", "x", "s", "o", "l", "H", "h",
         " ", "\n", "n", "d", "'", "Ġ", "ł", "Ã", "©", "</w>", "t</w>", "at</w>", "<mask>", "ab", "i", "\u0307", "ß"]
TEXTS = ["the cat", "  Hello\n\nthe cat's hat!", "don't 1990", "café cafe\u0301", "東京 the 猫", "🙂 x_y", "İ Straße ﬁ ①",
         "the <mask> cat<mask>", "\u200d\u00a0a\u0085b\0c", "_ab_ ab a b", "", " ", "x" * 12, "שלום هل"]

REGEX = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTE_LEVEL = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
BERT = dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)


def bpe(*merges, extra=(), **options):
    vocab = list(dict.fromkeys(["<unk>", *extra, *WORDS]))
    return dict(type="BPE", vocab={text: i for i, text in enumerate(vocab)}, merges=list(map(list, merges)),
                unk_token="<unk>", **options)


def word_piece(most=100):
    vocab = ["[UNK]", *WORDS, "##c", "##a"]
    return dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=most,
                vocab={text: i for i, text in enumerate(vocab)})


def unigram(byte_fallback=False):
    pieces = ["<unk>", *WORDS, *(f"<0x{byte:02X}>" for byte in range(256) if byte_fallback)]
    return dict(type="Unigram", unk_id=0, byte_fallback=byte_fallback,
                vocab=[[text, -(i * 37 % 101) / 8] for i, text in enumerate(pieces)])


def split(behavior, invert=False, **pattern):
    return dict(type="Split", pattern=pattern, behavior=behavior, invert=invert)


def metaspace(scheme, splits=True):
    return dict(type="Metaspace", replacement="▁", prepend_scheme=scheme, split=splits)


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def cases():
    merges = [("t", "h"), ("a", "t"), ("c", "at"), ("h", "e"), ("東", "京"), ("a", "t")]
    plain = bpe(*merges[1:])
    plain["vocab"].update({"th": len(plain["vocab"])})
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        yield kind, dict(normalizer={"type": kind}, model=plain)
    yield "Strip", dict(normalizer=dict(type="Strip", strip_left=True, strip_right=True), model=plain)
    yield "Prepend", dict(normalizer=dict(type="Prepend", prepend="▁"), model=plain)
    yield "Replace", dict(normalizer=dict(type="Replace", pattern={"Regex": r"\s+"}, content="▁"), model=plain)
    yield "BertNormalizer", dict(normalizer=BERT, pre_tokenizer={"type": "BertPreTokenizer"}, model=word_piece())
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"Split {behavior} {invert}", dict(pre_tokenizer=split(behavior, invert, String="a"), model=plain)
        yield f"Punctuation {behavior}", dict(pre_tokenizer=dict(type="Punctuation", behavior=behavior),
                                              model=word_piece())
    yield "regex", dict(pre_tokenizer=sequence("pretokenizers", split("Isolated", Regex=REGEX),
                                               {**BYTE_LEVEL, "use_regex": False}), model=bpe(*merges[1:5]))
    yield "ByteLevel with a space", dict(pre_tokenizer={**BYTE_LEVEL, "add_prefix_space": True}, model=plain)
    for individual in (False, True):
        yield f"Digits {individual}", dict(pre_tokenizer=dict(type="Digits", individual_digits=individual),
                                           model=word_piece())
    yield "Whitespace", dict(pre_tokenizer={"type": "Whitespace"}, model=word_piece())
    yield "WhitespaceSplit", dict(pre_tokenizer={"type": "WhitespaceSplit"}, model=word_piece(8))
    for scheme in ("always", "first", "never"):
        yield f"Metaspace {scheme}", dict(pre_tokenizer=metaspace(scheme), model=unigram())
    yield "Metaspace in one", dict(pre_tokenizer=metaspace("first", False), model=unigram(True))
    spaces = {"type": "WhitespaceSplit"}
    yield "ignore_merges", dict(pre_tokenizer=spaces, model={**plain, "ignore_merges": True})
    yield "fuse_unk", dict(pre_tokenizer=spaces, model={**plain, "fuse_unk": True})
    yield "byte_fallback", dict(model=bpe(extra=[f"<0x{byte:02X}>" for byte in range(200)], byte_fallback=True))
    yield "end_of_word_suffix", dict(pre_tokenizer=spaces, model=bpe(("a", "t</w>"), end_of_word_suffix="</w>"))
    yield "continuing_subword_prefix", dict(pre_tokenizer=spaces,
                                            model=bpe(("a", "##t"), continuing_subword_prefix="##"))
    for flag in ("lstrip", "rstrip", "single_word", "normalized"):
        yield flag, dict(normalizer={"type": "Lowercase"}, model=plain, flags={flag: True})


def tokenizer_file(parts):
    """Returns the contents of a tokenizer.json with these parts; `flags` applies to its added tokens."""
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) | parts.get("flags", {})
    vocab = parts["model"]["vocab"]
    number = {text: i for i, (text, _) in enumerate(vocab)} if isinstance(vocab, list) else vocab
    added = [dict(id=number[text], content=text, **flags) for text in ("<mask>", "ab", "Hello")]
    parts = {key: value for key, value in parts.items() if key != "flags"}
    return dict(added_tokens=added, normalizer=None, pre_tokenizer=None, decoder=None) | parts


def main():
    lines = []
    for name, parts in cases():
        file = tokenizer_file(parts)
        tokenizer = Tokenizer.from_str(json.dumps(file))
        numbers = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        lines.append(json.dumps(dict(name=name, file=file, numbers=numbers), ensure_ascii=False))
    text = '{"texts": ' + json.dumps(TEXTS) + ',\n"tokenizers": [\n' + ",\n".join(lines) + "\n]}\n"
    pathlib.Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
