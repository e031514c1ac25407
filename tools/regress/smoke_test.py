#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suite configs/suites/smoke.yaml: a few runs of each kind."""

import json
import time

import program
from program import ROOT, ProgramTest

REGRESS = str(ROOT / "tools/regress/regress")
LONGEST = 840  # seconds; 300 on two cores that do nothing else


class Smoke(ProgramTest):
    def test_all_cases_pass(self):
        start = time.monotonic()
        suite = ROOT / "configs/suites/smoke.yaml"
        process = self.start("--suite", suite, "--out", self.folder / "out", command=(REGRESS,))
        status = process.wait(LONGEST)
        print(process.out, f"{time.monotonic() - start:.0f} s", sep="")
        self.assertEqual(0, status, process.text())
        counts = json.loads((self.folder / "out/summary.json").read_text())["counts"]
        self.assertGreaterEqual(counts["passed"], 15)
        self.assertTrue((self.folder / "out/report/index.html").exists())
        self.assert_nothing_left()


if __name__ == "__main__":
    program.main()
