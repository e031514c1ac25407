#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the SentencePiece models of tokenizer_test.cc and prints their expected outputs. Needs sentencepiece 0.2.

  datasets/text/make_testing_models.py FOLDER

Models normalize with a few custom rules, because the precompiled rules take 240 KB.
"""

import io
import pathlib
import sys
import tempfile

import sentencepiece

SENTENCES = [
    "the cat sat on the mat and the dog sat there",
    "what have you heard of the other cats and dogs",
    "a small model learns small words before it learns long ones",
    "there are cats and there are dogs in the house",
    "the house of the dog is a small house",
    "we have heard that there is a long word in the model",
    "words and numbers: 1990, 42 and 7",
    "naïve café, über alles",
] * 4

TEXTS = [
    "the cat sat there.",
    "  it's   what\n\nwe've heard: 1990s & 42!",
    "naïve übercafé 東京 🙂",
    "ＡＢ the ﬁsh",
    "one<sep>the other<sep>",
    "",
    "\ttabs\tand trailing   ",
]

JAPANESE = ["吾輩は猫である。名前はまだ無い。", "どこで生れたかとんと見当がつかぬ。", "何でも薄暗いじめじめした所で"] * 3

COMMON = dict(user_defined_symbols=["<sep>"], minloglevel=2, num_threads=1, hard_vocab_limit=False)


def train(path, sentences=SENTENCES, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, **COMMON, **options
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    print(path.name, len(model.getvalue()), "bytes,", processor.get_piece_size(), "pieces")
    for text in TEXTS:
        numbers = processor.encode(text)
        print(repr(text), "{" + ", ".join(map(str, numbers)) + "}", repr(processor.decode(numbers)))
        print("    ", processor.encode(text, out_type=str))


def main():
    folder = pathlib.Path(sys.argv[1])
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        # full-width A and B, the ligature fi, tab and line feed
        for letters, by in [("FF21", "61"), ("FF22", "62"), ("FB01", "66 69"), ("9", "20"), ("A", "20")]:
            rules.write(letters + "\t" + by + "\n")
        rules.flush()
        train(folder / "testing_unigram.model", model_type="unigram", vocab_size=90, normalization_rule_tsv=rules.name)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write("74\t54\n")  # t becomes T once a text is decoded
        rules.flush()
        train(folder / "testing_denormalizer.model", model_type="char", vocab_size=40,
              normalization_rule_name="identity", denormalization_rule_tsv=rules.name)
    train(
        folder / "testing_bpe.model",
        model_type="bpe",
        vocab_size=360,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )
    # Pieces without spaces.
    train(folder / "testing_japanese.model", JAPANESE, model_type="unigram", vocab_size=60, add_dummy_prefix=False,
          normalization_rule_name="identity")


main()
