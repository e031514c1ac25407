#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tools/step_profile adds up a trace: the time of each operator without its children, per step and rank."""

import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent


def lane(rank, number, name):
    return {"name": "thread_name", "ph": "M", "pid": rank, "tid": number, "args": {"name": name}}


def event(rank, lane, name, begin_us, end_us):
    return {"name": name, "ph": "X", "pid": rank, "tid": lane, "ts": begin_us, "dur": end_us - begin_us}


# Two ranks, each with two steps of 10 ms. On rank 1, `linear` takes 4 ms, of which its child `mm` takes 3 ms.
EVENTS = [event for rank in range(2) for event in [lane(rank, 0, "steps"), lane(rank, 1, "operators")]] + [
    event(rank, 0, f"step {step}", 10_000 * step, 10_000 * step + 10_000) for rank in range(2) for step in range(2)
] + [
    event(1, 1, "linear", 1_000, 5_000),
    event(1, 1, "mm", 1_500, 3_500),
    event(1, 1, "mm", 4_000, 5_000),
    event(1, 1, "relu", 5_000, 6_000),
    event(1, 1, "relu", 11_000, 12_000),
]


class StepProfile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("trace.json", {"traceEvents": EVENTS})
        self.write("summary.json", {"matrix_products": {"share_of_peak": 0.25, "peak_of_core": 50e9}})

    def write(self, name, content):
        (self.folder / name).write_text(json.dumps(content))

    def run_script(self, *arguments):
        return subprocess.run([ROOT / "tools/step_profile", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def rows(self, *arguments):
        done = self.run_script(self.folder, *arguments)
        self.assertEqual(0, done.returncode, done.stderr)
        return [line.split() for line in done.stdout.splitlines()]

    def test_the_time_of_an_operator_excludes_what_it_calls(self):
        first, _, *operators, rest, peak = self.rows()
        self.assertEqual(["10.00", "ms", "per", "step"], first[1:])
        # There are 4 steps: 3 ms, 2 ms and 1 ms, each divided by 4.
        self.assertEqual([["mm", "0.5", "0.750", "7.5%"], ["relu", "0.5", "0.500", "5.0%"],
                          ["linear", "0.2", "0.250", "2.5%"]], operators)
        self.assertEqual(["all", "else", "8.500", "85.0%"], rest)
        self.assertIn("25.0%", peak)
        self.assertIn("(50.0", peak)

    def test_shows_the_requested_number_of_rows(self):
        *_, operator, rest, _ = self.rows("--rows", "1")
        self.assertEqual("mm", operator[0])
        self.assertEqual(["all", "else", "9.250", "92.5%"], rest)

    def test_the_last_line_is_omitted_if_products_were_not_counted(self):
        self.write("summary.json", {"matrix_products": None})
        self.assertEqual("all", self.rows()[-1][0])

    def test_says_what_is_missing(self):
        (self.folder / "trace.json").unlink()
        done = self.run_script(self.folder)
        self.assertEqual(1, done.returncode)
        self.assertIn(f"{self.folder}/trace.json", done.stderr)
        self.assertIn("watch.profile", done.stderr)
        self.write("trace.json", {"traceEvents": []})
        self.assertIn("has no steps", self.run_script(self.folder).stderr)
        self.assertEqual(2, self.run_script().returncode)


if __name__ == "__main__":
    unittest.main()
