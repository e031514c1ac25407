#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/dev/fuzz as far as that needs no compiler."""

import contextlib
import importlib.machinery
import io
import pathlib
import subprocess
import sys
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path("WORKSPACE").resolve().parent
SCRIPT = ROOT / "tools/dev/fuzz"
fuzz = types.ModuleType("fuzz")
fuzz.__file__ = str(SCRIPT)
importlib.machinery.SourceFileLoader("fuzz", str(SCRIPT)).exec_module(fuzz)


class Fuzz(unittest.TestCase):
    def call(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def test_lists_the_targets_that_have_inputs(self):
        done = self.call("--list")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(sorted(path.name for path in (ROOT / fuzz.TESTDATA).iterdir()), done.stdout.split())

    def test_an_unknown_target_is_refused(self):
        done = self.call("pikcle")
        self.assertEqual(2, done.returncode)
        self.assertIn("there is no target pikcle", done.stderr)

    def test_every_parser_exists(self):
        for pattern in fuzz.PARSERS:
            with self.subTest(pattern):
                self.assertTrue(list(ROOT.glob(pattern)))

    def test_a_place_is_reached_as_often_as_the_segment_that_begins_before_it(self):
        segments = [[3, 1, 5, True, True, False], [3, 20, 0, True, True, False], [3, 40, 5, True, False, False]]
        self.assertEqual([0, 5, 0, 5], [fuzz.times_reached(segments, place) for place in ((2, 9), (3, 5), (3, 25), (4, 1))])

    def test_prints_the_lines_that_refuse_but_are_not_reached(self):
        file = pathlib.Path("datasets/images/tar_index.cc")
        lines = (ROOT / file).read_text().splitlines()
        number = next(i for i, line in enumerate(lines, 1) if "not a header of a tar archive" in line)
        summary = {"lines": {"covered": 1, "count": 2}, "branches": {"covered": 1, "count": 4}}
        segments = [[1, 1, 7, True, True, False], [number, 1, 0, True, True, False], [number + 1, 1, 7, True, True, False]]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            fuzz.print_counts({file: {"summary": summary, "segments": segments}})
        self.assertIn(f"  50.0%   25.0% {file}", out.getvalue())
        self.assertEqual([str(number)], [line.split(":")[2] for line in out.getvalue().splitlines() if "not reached" in line])


if __name__ == "__main__":
    unittest.main(verbosity=2)
