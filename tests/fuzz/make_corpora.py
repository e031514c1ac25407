#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs in testdata/: for each target well-formed ones, called good*, and malformed ones, called after what
is wrong with them. Inputs that a fuzzer has found, called found*, stay as they are.

    python3 tests/fuzz/make_corpora.py
"""

import sys

sys.dont_write_bytecode = True  # writes no cache next to the sources
from corpora import datasets, files, launch, messages, pickles, tokenizers


def main():
    """Writes all corpora."""
    for corpora in (files, pickles, datasets, tokenizers, messages, launch):
        corpora.make()


if __name__ == "__main__":
    main()
