#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench_kernels by its command line."""

import json
import subprocess
import unittest

from program import ROOT, ProgramTest

BENCH = str(ROOT / "tools/bench_kernels/bench_kernels")


class BenchKernels(ProgramTest):
    def bench(self, *words, status=0):
        done = subprocess.run([BENCH, "--rounds=2", "--budget_ms=0.1", *words], cwd=self.folder,
                              env=self.environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_measures_every_operation_with_both_choices(self):
        table = self.bench("--json=kernels.json")
        found = json.loads((self.folder / "kernels.json").read_text())
        self.assertTrue(found["vectors"])
        names = {row["operation"] for row in found["rows"]}
        self.assertLessEqual({"mm", "gelu", "max_pool2d 3x3", "convolution backward"}, names)
        for row in found["rows"]:
            self.assertGreater(row["libtorch_us"], 0, row)
            self.assertGreater(row["auto_us"], 0, row)
            self.assertIn(row["operation"], table)

    def test_measures_what_is_asked_for(self):
        self.assertEqual(4, len(self.bench("--only=gelu").splitlines()) - 2)
        self.assertIn("--only", self.bench("--only=nothing", status=2))


if __name__ == "__main__":
    unittest.main()
