#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tidy passes the arguments of GCC to clang, except unknown ones, and reports each finding once."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path("WORKSPACE").resolve().parent / "tests/ci"))
sys.dont_write_bytecode = True

import tidy  # noqa: E402

GCC = ["/usr/bin/gcc", "-Wall", "-O2", "-std=c++20", "-MD", "-MF", "a.d", "-frandom-seed=a.o", "-iquote", ".", "-DX=1",
       "-include", "bazel/tensor.pch.h", "-fpch-deps", "-c", "engine/a.cc", "-o", "a.o"]
OUTPUT = """engine/a.cc:3:5: warning: 'x' used after it was moved [bugprone-use-after-move]
    3 |   use(x);
      |       ^
engine/a.cc:2:5: note: move occurred here
    2 |   take(std::move(x));
engine/a.h:9:1: error: no such type [clang-diagnostic-error]
"""


class Tidy(unittest.TestCase):
    def test_clang_gets_only_options_that_it_knows(self):
        graph = {"actions": [{"arguments": GCC}, {"arguments": GCC},
                             {"arguments": ["gcc", "-c", "external/googletest/all.cc", "-o", "all.o"]}]}
        self.assertEqual([("engine/a.cc", ["-O2", "-std=c++20", "-iquote", ".", "-DX=1"])], tidy.commands(graph))

    def test_findings_are_warnings_and_errors_with_their_lines(self):
        first, second = tidy.findings(OUTPUT)
        self.assertTrue(first.startswith("engine/a.cc:3:5: warning: ") and first.endswith("^"), first)
        self.assertEqual("engine/a.h:9:1: error: no such type [clang-diagnostic-error]", second)
        self.assertEqual([], tidy.findings(""))


if __name__ == "__main__":
    unittest.main()
