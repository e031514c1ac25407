#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/dev/fuzz without a compiler."""

import contextlib
import importlib.machinery
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path("WORKSPACE").resolve().parent
SCRIPT = ROOT / "tools/dev/fuzz"
fuzz = types.ModuleType("fuzz")
fuzz.__file__ = str(SCRIPT)
importlib.machinery.SourceFileLoader("fuzz", str(SCRIPT)).exec_module(fuzz)

# Ends as libFuzzer does after the time, after an exception, or after Ctrl-C, by the name of the target.
FUZZER = """#!/bin/sh
echo x >> "$0.calls"
case "$1" in
  --target=tar) printf '%s\\n' '#7 NEW    cov: 30 ft: 40' '#9 DONE   cov: 31 ft: 41' 'stat::number_of_executed_units: 1234';;
  --target=zip) printf '%s\\n' '  what():  too far' 'SUMMARY: libFuzzer: deadly signal' 'stat::number_of_executed_units: 5'; exit 77;;
  *) exit 72;;
esac
"""


class Fuzz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

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

    def test_no_jobs_are_refused(self):
        done = self.call("--jobs=0", "zip")
        self.assertEqual(2, done.returncode)
        self.assertIn("--jobs: must be at least 1, not 0", done.stderr)

    def options(self, seconds=0, resume=False, jobs=2):
        return types.SimpleNamespace(corpora=self.folder / "corpora", out=self.folder / "out", seconds=seconds,
                                     resume=resume, jobs=jobs)

    def fuzz(self, names, **options):
        """Returns the lines about targets, the targets in which something was found, and how often the fuzzer was called."""
        fuzzer = self.folder / "fuzzer"
        fuzzer.write_text(FUZZER)
        fuzzer.chmod(0o755)
        calls = self.folder / "fuzzer.calls"
        calls.write_text("")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            found = fuzz.fuzz_targets(self.options(**options), {name: fuzzer for name in names})
        return sorted(re.sub(r"\b\d+ s,", "0 s,", out.getvalue()).splitlines()), found, len(calls.read_text().splitlines())

    def test_prints_what_was_found_and_resumes_after_the_targets_that_are_finished(self):
        found = ("zip: FOUND too far; libFuzzer: deadly signal (status 77) after 0 s, 5 executions, coverage 0, "
                 f"see {self.folder}/out/zip")
        nothing = "tar: nothing found in 0 s, 1234 executions, coverage 31"
        for resume, lines, calls in ((False, [nothing, found], 2), (True, [f"{nothing} (before)", found], 1),
                                     (False, [nothing, found], 2)):
            with self.subTest(resume=resume):
                self.assertEqual((lines, ["zip"], calls), self.fuzz(["tar", "zip"], resume=resume))
        self.assertEqual(1, self.fuzz(["tar"], resume=True, seconds=600)[2], "it was not fuzzed for so long")

    def test_an_interrupted_target_is_not_finished(self):
        kept = self.folder / "out/idx/result.json"
        kept.parent.mkdir(parents=True)
        kept.write_text(json.dumps({"seconds": 1, "executions": 1, "coverage": 1, "found": ""}))
        with self.assertRaises(KeyboardInterrupt):
            self.fuzz(["idx"], jobs=1)
        self.assertFalse(kept.exists())

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
