#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that diff_runs finds the first difference between two runs."""

import json
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
        operation = r"the input of all_reduce\(mean\) of \d+ Float, operation \d+ of group world, in step 3"
        self.assertRegex(out, rf"First difference in the recordings: rank 0, {operation}: the rank itself computed something "
                         r"else before it\n")
        self.assertRegex(out, rf"Replayed up to the first operation that differs: {operation}, other bits in the gradient of "
                         r"\S+.*: the rank itself computed something else before it\n")
        self.assertRegex(out, r"Replayed with the digests of every step: they differ first in step 2, phase parameters: \S+, "
                         r"and \d+ more tensors\n")
        self.assertIn("replay recorded_a --rank 0 --until 3 --gdb, and the same with recorded_b", out)
        self.assertNotIn("Replayed", self.diff("a", "b", "--noreplay", status=1).out)
        self.assert_nothing_left()

    def test_a_gradient_that_was_computed_wrongly(self):
        """The replay of the run in which a bit was flipped does not flip it, so it tells which of the runs is wrong."""
        settings = {"strategy": "all_reduce", "watch.nan_guard.every_steps": 0}
        self.finish("a", **settings, **{"framework.record": "recorded_a"})
        fault = {"kind": "flip_gradient", "rank": 1, "step": 5, "event": "on_backward", "note": str(self.folder / "note")}
        process = self.train(*sets(SHORT, settings, {"framework.record": "recorded_b"}), run="b",
                             environment={"PHALANX_FAULT": json.dumps(fault)})
        self.assertIsNotNone(process.wait())
        self.assertTrue((self.folder / "note").exists(), process.text())
        out = self.diff("a", "b", status=1).out
        self.assertRegex(out, r"First difference in the recordings: rank 1, the input of all_reduce\(mean\) of .*, in step 5: ")
        self.assertRegex(out, r"differs: the input of all_reduce\(mean\) of .*, in step 5, other bits in the gradient of \S+, "
                         r"of the bucket \S+ to \S+: ")
        self.assertRegex(out, r"(?m)^recorded_b does not repeat what it has recorded:\n"
                         r"  Rank 1 of 2: the replay differs in step 5: its input of all_reduce\(mean\) of .* has other bits in "
                         r"the gradient of \S+, of the bucket ")
        self.assertNotIn("recorded_a does not repeat", out)

    def test_another_optimizer_shows_in_the_parameters(self):
        self.finish("a", **{"train.digests": 1})
        self.finish("b", **{"train.digests": 1, "optimizer.lr": 0.01})
        out = self.diff("a", "b", status=1).out
        self.assertRegex(out, r"First difference in the digests: step 1, phase parameters, rank 0: \S+\n"
                         r"  \d+ more tensors of this rank differ there\n")
        self.assertIn("To find the operation, run both with framework.record: FOLDER, and compare them again\n", out)

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
