#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.cc and unicode_word_table.cc, the character classes of Hugging Face's tokenizers.

Each class follows a different version of Unicode.

  datasets/text/make_unicode_tables.py datasets/text

Asks the library about each character, which takes minutes. Needs tokenizers 0.23. Run clang-format on the result.
"""

import sys

from tokenizers import normalizers, pre_tokenizers

BERT = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
CHARACTERS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def is_alone(pre_tokenizer, code):
    return len(pre_tokenizer.pre_tokenize_str("a" + chr(code) + "a")) == 3


def is_removed(normalizer, code):
    return normalizer.normalize_str("a" + chr(code) + "a") == "aa"


def classes():
    punctuation, digits = pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.Whitespace()
    accents, bert_accents = normalizers.StripAccents(), normalizers.BertNormalizer(**{**BERT, "strip_accents": True})
    clean = normalizers.BertNormalizer(**{**BERT, "clean_text": True})
    yield "kPunctuation", lambda code: is_alone(punctuation, code)
    yield "kNumeric", lambda code: is_alone(digits, code)
    yield "kWord", lambda code: len(words.pre_tokenize_str("a" + chr(code) + "a")) == 1
    yield "kMarks", lambda code: is_removed(accents, code)
    yield "kNonspacingMarks", lambda code: is_removed(bert_accents, code)
    yield "kControl", lambda code: is_removed(clean, code)


def ranges(holds):
    found = []
    for code in filter(holds, CHARACTERS):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def write(path, tables):
    with open(path, "w") as file:
        file.write("// Written by make_unicode_tables.py.\n#include \"datasets/text/unicode_tables.h\"\n\n")
        file.write("namespace phalanx::unicode {\n\n")
        for name, found in tables:
            pairs = ", ".join(f"{{{first:#x}, {last:#x}}}" for first, last in found)
            file.write(f"const std::array<Range, {len(found)}> {name}{{{{{pairs}}}}};\n")
        file.write("\n}  // namespace phalanx::unicode\n")


def main():
    tables = [(name, ranges(holds)) for name, holds in classes()]
    write(sys.argv[1] + "/unicode_tables.cc", [table for table in tables if table[0] != "kWord"])
    write(sys.argv[1] + "/unicode_word_table.cc", [table for table in tables if table[0] == "kWord"])


main()
