#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the benchmark of slow ranks measures, and refuses unknown systems."""

import subprocess
import unittest


class Uneven(unittest.TestCase):
    def uneven(self, *arguments):
        return subprocess.run(["tools/bench/uneven/uneven", *arguments], capture_output=True, text=True, check=False)

    def test_a_row_for_each_system(self):
        done = self.uneven("--rounds=1", "--model=mlp", "--systems=all_reduce,ssp; staleness: 3", "--speed=0.5")
        self.assertEqual(0, done.returncode, done.stderr)
        rows = [line.split("|")[1:-1] for line in done.stdout.splitlines()][2:]
        self.assertEqual(["all_reduce", "ssp, staleness: 3"], [row[0].strip() for row in rows])
        for row in rows:
            even, slowed, ratio, of_ceiling = (float(cell) for cell in row[1:])
            self.assertGreater(min(even, slowed), 0)
            self.assertAlmostEqual(slowed / even, ratio, delta=0.01)
            self.assertAlmostEqual(slowed / even / 0.75, of_ceiling, delta=0.01, msg="two ranks at 1 and 0.5")

    def test_an_unknown_system(self):
        done = self.uneven("--systems=ssb")
        self.assertNotEqual(0, done.returncode)
        self.assertIn('there is no system "ssb"; known: all_reduce', done.stderr)


if __name__ == "__main__":
    unittest.main()
