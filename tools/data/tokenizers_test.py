#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tokens of random tokenizers and texts with Hugging Face's tokenizers, if that library is installed.

  TOKENIZERS=FIRST:COUNT changes which are drawn.
"""

import json
import os
import random
import struct
import sys
import unittest

from program import ROOT, ProgramTest

sys.path.insert(0, str(ROOT / "datasets/text"))
try:
    import make_testing_tokenizers as parts
except ImportError:
    parts = None

DATA = str(ROOT / "tools/data/data")
FIRST, COUNT = map(int, os.environ.get("TOKENIZERS", "0:40").split(":"))

# Scripts, normalization forms and control characters that normalizers, character classes and word boundaries treat in
# different ways.
FRAGMENTS = ["the", "cat", " ", "  ", "\n", "\r\n", "\t", "hello", "Hello", "don't", "1990", "19", "½", "é", "e\u0301", "a\u0323\u0302",
             "東京", "猫", "한국", "ひらがな", "カ\u3099", "🙂", "👩\u200d🔬", "🇯🇵", "שלום", "مرحبا", "हिन्दी", "ไทย", "İ", "Straße", "ﬁ", "①",
             "Ǆ", "\u00a0", "\u3000", "\u200b", "\u0085", "\0", "\x01", "\ufeff", "\ufffd", "_", ".", "!", "?!", "'", "<mask>", "ab",
             "ab ab", " <mask> ", "▁", "Ġ", "x" * 30, "\U000e0001", "\U0001d400"]


def draw_tokenizer(draw):
    """Returns the contents of a tokenizer.json whose parts are drawn."""
    def normalizer():
        kind = draw.choice(("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "Strip", "Prepend", "Replace",
                            "BertNormalizer"))
        return {"type": kind} | {
            "Strip": dict(strip_left=draw.random() < 0.5, strip_right=draw.random() < 0.5),
            "Prepend": dict(prepend="▁"),
            "Replace": dict(pattern=draw.choice(({"String": " "}, {"Regex": r"\s+"}, {"Regex": r"[aeiou]{2}"})), content="▁"),
            "BertNormalizer": dict(clean_text=draw.random() < 0.5, handle_chinese_chars=draw.random() < 0.5,
                                   strip_accents=draw.choice((None, True, False)), lowercase=draw.random() < 0.5),
        }.get(kind, {})

    def pre_tokenizer():
        behavior = draw.choice(("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"))
        return draw.choice((
            {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
            dict(type="Digits", individual_digits=draw.random() < 0.5), dict(type="Punctuation", behavior=behavior),
            parts.metaspace(draw.choice(("always", "first", "never")), draw.random() < 0.5),
            parts.split(behavior, draw.random() < 0.5, String=draw.choice(("a", " ", "the"))),
            parts.split(behavior, draw.random() < 0.5, Regex=draw.choice((parts.REGEX, r"\p{N}", r"\w+", r"\s"))),
            {**parts.BYTE_LEVEL, "add_prefix_space": draw.random() < 0.5, "use_regex": draw.random() < 0.5}))

    def steps(make, kind):
        made = [make() for _ in range(draw.choice((0, 1, 1, 2)))]
        return None if not made else made[0] if len(made) == 1 else parts.sequence(kind, *made)

    model = draw.choice((
        lambda: parts.bpe(("a", "t"), ("c", "at"), ("h", "e"), ("東", "京"), fuse_unk=draw.random() < 0.5,
                          ignore_merges=draw.random() < 0.5),
        lambda: parts.bpe(extra=[f"<0x{byte:02X}>" for byte in range(256)], byte_fallback=True),
        lambda: parts.word_piece(draw.choice((8, 100))),
        lambda: parts.unigram(draw.random() < 0.5)))()
    flags = {flag: draw.random() < 0.3 for flag in ("lstrip", "rstrip", "single_word", "normalized")}
    return parts.tokenizer_file(dict(normalizer=steps(normalizer, "normalizers"),
                                     pre_tokenizer=steps(pre_tokenizer, "pretokenizers"), model=model, flags=flags))


@unittest.skipIf(parts is None, "the Python library tokenizers is not installed")
class Tokenizers(ProgramTest):
    def tokens(self, file, text):
        """Returns the tokens, or None if the tokenizer is refused as one that is not supported."""
        (self.folder / "tokenizer.json").write_text(json.dumps(file))
        (self.folder / "text.txt").write_bytes(text.encode())
        process = self.start("tokenize", f"--text={self.folder}/text.txt", f"--tokenizer={self.folder}/tokenizer.json",
                             f"--to={self.folder}/tokens", command=[DATA])
        if process.wait() == 2 and "is not supported; use another tokenizer" in process.err:
            return None
        self.assert_status(0, process)
        files = [(self.folder / "tokens" / name).read_bytes() for name in ("train.bin", "val.bin")]
        return [token for bytes in files for token, in struct.iter_unpack("<H", bytes)]

    def test_tokens_are_the_same_as_of_the_library(self):
        refused = 0
        for seed in range(FIRST, FIRST + COUNT):
            draw = random.Random(seed)
            file = draw_tokenizer(draw)
            text = "".join(draw.choice(FRAGMENTS) for _ in range(400))
            expected = parts.Tokenizer.from_str(json.dumps(file)).encode(text, add_special_tokens=False).ids
            with self.subTest(f"TOKENIZERS={seed}:1"):
                tokens = self.tokens(file, text)
                refused += tokens is None
                self.assertIn(tokens, (expected, None))
        print(f"{refused} of {COUNT} tokenizers were refused", file=sys.stderr)
        self.assertLessEqual(refused, COUNT * 0.05)


if __name__ == "__main__":
    unittest.main(verbosity=2)
