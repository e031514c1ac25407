#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that schedule shows pipeline schedules as text, pictures and data, and compares them."""

import json
import unittest
import xml.etree.ElementTree

from program import ROOT, ProgramTest

SCHEDULE = str(ROOT / "tools/schedule/schedule")


class Schedule(ProgramTest):
    def schedule(self, *arguments, status=0):
        process = self.start(*arguments, command=[SCHEDULE])
        self.assert_status(status, process)
        return process

    def test_shows_who_does_what_when(self):
        out = self.schedule("--name=1f1b", "--ranks=2", "--micro_batches=3").out
        self.assertTrue(out.startswith("rank 0   F0F1....D0  F2D1  ..D2  \n"
                                       "rank 1   ..F0D0  F1D1  F2D2  ....\n"), out)
        self.assertIn("bubble          25.0 % of the step (25.0 % by formula)\n", out)
        self.assertIn("activations     2 1 micro-batches at most, by rank\n", out)

    def test_breaks_long_lines(self):
        out = self.schedule("--name=1f1b", "--ranks=2", "--micro_batches=3", "--width=19").out
        self.assertTrue(out.startswith("rank 0   F0F1....D0\nrank 1   ..F0D0  F1\n\nrank 0     F2D1  ..\n"), out)

    def test_compares_all(self):
        out = self.schedule("--ranks=4", "--micro_batches=8", "--stages_per_rank=2").out
        rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:]}
        self.assertEqual(["gpipe", "1f1b", "interleaved", "zb_h1", "zero_bubble", "dualpipe"], list(rows))
        bubbles = {name: float(row[0]) for name, row in rows.items()}
        self.assertEqual(27.3, bubbles["gpipe"])
        self.assertEqual(27.3, bubbles["1f1b"])
        self.assertEqual(15.8, bubbles["interleaved"])
        self.assertEqual(11.1, bubbles["zb_h1"])
        self.assertIn("even number of ranks", self.schedule("--ranks=3").out)

    def test_writes_pictures_and_data(self):
        self.schedule("--name=zero_bubble", "--ranks=4", "--micro_batches=6", "--svg=s.svg", "--json=s.json")
        svg = xml.etree.ElementTree.parse(self.folder / "s.svg").getroot()
        texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(4 * 3, texts.count("5"), "a forward and two gradients for each stage")
        data = json.loads((self.folder / "s.json").read_text())
        self.assertEqual(4 * 6 * 3, sum(len(actions) for actions in data["actions"]))
        self.assertEqual({"kind": "forward", "stage": 0, "micro_batch": 0, "begin": 0, "end": 1},
                         data["actions"][0][0])

    def test_refuses_what_does_not_fit(self):
        for arguments, why in ((["--name=2f2b"], '"2f2b" is not known; known: gpipe, 1f1b'),
                               (["--name=interleaved", "--micro_batches=6"], "use 4 or 8"),
                               (["--name=1f1b", "--costs=1,x,1"], "--costs: "),
                               (["--svg=a.svg"], "name one schedule"),
                               (["--ranks=1000"], "at most 64"),
                               (["--ranks=0"], "--ranks: must be at least 1, got 0"),
                               (["--micro_batches=-3"], "--micro_batches: must be at least 1, got -3")):
            self.assertIn(why, self.schedule(*arguments, status=2).err)


if __name__ == "__main__":
    unittest.main()
