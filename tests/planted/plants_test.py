#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the planted regressions still fit the code, and that the nightly has the cases that find them."""

import fnmatch
import re

import program
from plants import FOUND_AT_ONCE, FOUND_BY_FUZZERS, FOUND_IN_HISTORY, PLANTS
from program import ROOT, ProgramTest

REGRESS = str(ROOT / "tools/regress/regress")
SOURCES = (ROOT / "WORKSPACE").resolve().parent


class Plants(ProgramTest):
    def test_each_can_be_planted(self):
        for plant in PLANTS:
            with self.subTest(plant.name):
                text = (SOURCES / plant.file).read_text()
                self.assertNotEqual(text, plant.planted(text))

    def test_there_are_fuzz_targets_for_theirs(self):
        self.assertEqual(len(FOUND_BY_FUZZERS), len({found.target for found in FOUND_BY_FUZZERS}))
        for found in FOUND_BY_FUZZERS:
            with self.subTest(found.plant.name):
                self.assertTrue(list((SOURCES / "tests/fuzz/testdata" / found.target).glob("good*")))

    def test_the_nightly_has_their_cases(self):
        process = self.start("--suite", SOURCES / "configs/suites/nightly.yaml", "--dry_run", command=(REGRESS,))
        self.assert_status(0, process)
        lines = [line.split("  ") for line in process.out.splitlines()]
        names = [line[0] for line in lines if len(line) > 1 and not line[1].startswith("skipped")]
        for found in FOUND_AT_ONCE + FOUND_IN_HISTORY:
            with self.subTest(found.plant.name):
                selected = []
                for pattern in found.cases:
                    matches = fnmatch.filter(names, pattern)
                    self.assertTrue(matches, pattern)
                    selected += matches
                if found in FOUND_AT_ONCE:
                    failing = [name for name in selected if re.search(found.fail, name)]
                    self.assertTrue(failing)
                    self.assertLess(len(failing), len(selected), "another case must pass")


if __name__ == "__main__":
    program.main()
