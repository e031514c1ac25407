#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that diff_runs finds the first difference between two runs."""

import unittest

from program import ROOT, SHORT, ProgramTest, sets

DIFF_RUNS = str(ROOT / "tools/diff_runs/diff_runs")


class DiffRuns(ProgramTest):
    def finish(self, name, **settings):
        self.assert_status(0, self.train(*sets(SHORT, settings), run=name))

    def diff(self, *arguments, status):
        process = self.start(*arguments, command=[DIFF_RUNS])
        self.assert_status(status, process)
        return process

    def test_equal_runs(self):
        for name in ("a", "b"):
            self.finish(name, **{"train.digests": 4, "framework.record": f"recorded_{name}"})
        out = self.diff("a", "b", status=0).out
        self.assertIn("No difference in the digests of 4 steps\n", out)
        self.assertIn("No difference in the recorded operations of 2 ranks\n", out)

    def test_names_step_rank_phase_and_tensor_and_the_operation(self):
        settings = {"train.digests": 4, "strategy": "all_reduce"}
        self.finish("a", **settings, **{"framework.record": "recorded_a"})
        self.finish("b", **settings, **{"framework.record": "recorded_b", "optimizer.momentum": 0.5})
        out = self.diff("a", "b", status=1).out
        self.assertIn("First difference in the digests: step 4, phase outputs, rank 0: output 0\n  so does rank 1\n", out)
        # The first two updates give both the same parameters but for the momentum of the second.
        self.assertRegex(out, r"First difference in the recordings: rank 0, the input of all_reduce\(mean\) of \d+ Float, "
                         r"operation \d+ of group world, in step 3: the rank itself computed something else before it\n")
        self.assertIn("replay recorded_a --rank 0 --gdb", out)

    def test_another_optimizer_shows_in_the_parameters(self):
        self.finish("a", **{"train.digests": 1})
        self.finish("b", **{"train.digests": 1, "optimizer.lr": 0.01})
        out = self.diff("a", "b", status=1).out
        self.assertRegex(out, r"First difference in the digests: step 1, phase parameters, rank 0: \S+\n"
                         r"  \d+ more tensors of this rank differ there\n")

    def test_a_resumed_run_goes_on_with_its_digests(self):
        settings = {"train.digests": 2, "checkpoint.every_steps": 4}
        self.finish("whole", **settings)
        self.finish("parts", **settings, **{"train.max_steps": 6})
        self.assert_status(0, self.train("--resume=auto", *sets(SHORT, settings), run="parts"))
        lines = (self.folder / "parts/digests/rank0.txt").read_text().splitlines()
        self.assertEqual([str(step) for step in range(2, 17, 2)], list(dict.fromkeys(line.split("\t")[0] for line in lines)))

    def test_what_is_missing_is_named(self):
        self.finish("a")
        self.assertIn("a has no digests; train.digests: N in its config", self.diff("a", "a", status=2).err)
        self.assertIn("nowhere: no such run folder", self.diff("a", "nowhere", status=2).err)
        self.assertIn("compares two run folders", self.diff("a", status=2).err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
