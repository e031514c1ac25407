#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the promise of the quickstart: 97 % on two ranks within a minute."""

import program
from program import ProgramTest


class Quickstart(ProgramTest):
    def test_reaches_97_percent(self):
        process = self.train()
        self.assert_status(0, process, 240)
        summary = self.run_folder().summary
        self.assertGreaterEqual(summary["test"]["accuracy"], 0.97)
        self.assertEqual(2, summary["ranks"])
        self.assertLess(summary["train_seconds"], 60)
        self.assertIn("connects by shm", self.run_folder().log(0).read_text())


class Expectation(ProgramTest):
    def test_a_result_below_the_expected_one_fails(self):
        process = self.train(*program.sets(program.SHORT, {"expect.test.accuracy.min": 0.99}))
        self.assert_status(4, process)
        self.assertEqual(1, process.err.count("expect.test.accuracy.min: wanted >= 0.99, got "), process.err)
        self.assertIn("accuracy", self.run_folder().summary["test"])


if __name__ == "__main__":
    program.main()
