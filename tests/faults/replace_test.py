#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that new processes take the places of lost ranks, and that the result is that of a job that loses none."""

import os
import re
import signal
import sys

import program
from program import ENDLESS, ROOT, ProgramTest, becomes_true, processes, sets

sys.path.insert(0, str(ROOT / "tests/faults"))
from shrink_test import LONG


class Replace(ProgramTest):
    way = {}
    steps = 6000  # enough to lose ranks and to replace them
    ranks = 2

    def begin(self, settings=None, base=LONG):
        settings = {**base, "faults.on_lost_rank": "replace", "launch.ranks": self.ranks, **self.way, **(settings or {})}
        if base is LONG:
            settings["train.max_steps"] = self.steps
        process, run = self.train(*sets(settings)), self.run_folder()
        self.wait_for_training(run, process)
        return process, run, settings

    def kill(self, run, rank):
        os.kill(self.rank_process(run, rank), signal.SIGKILL)

    def wait_for(self, process, pattern):
        self.assertTrue(becomes_true(lambda: re.search(pattern, process.err, re.M)), process.text())
        return re.search(pattern, process.err, re.M)

    def wait_for_return(self, process, rank, lost, source):
        found = self.wait_for(process, rf"^Rank {rank} takes part in place of rank {lost} after (\S+) s, after step \d+, "
                                       rf"with the state of rank {source}, on ranks: {self.ranks}$")
        print(f"rank {rank} took part {found[1]} s after the loss of rank {lost}")

    def assert_undisturbed(self, process, run, settings, lost, returned):
        self.assert_status(0, process)
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        self.assertEqual(self.run_folder("undisturbed").weights, run.weights, process.text())
        self.assertEqual(lost, [one["rank"] for one in run.summary["lost_ranks"]])
        self.assertEqual(returned, [(one["rank"], one["in_place_of"]) for one in run.summary["returned_ranks"]])
        self.assertEqual(self.steps, run.summary["steps"])
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assert_nothing_left()

    def test_rank_1(self):
        process, run, settings = self.begin()
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, 0)
        self.assert_undisturbed(process, run, settings, [1], [(2, 1)])
        self.assertEqual(self.ranks, run.summary["ranks"])

    def test_rank_0_and_then_the_other(self):
        """The state that the last rank has came from a rank that is lost."""
        process, run, settings = self.begin()
        self.kill(run, 0)
        self.wait_for_return(process, 2, 0, 1)
        self.kill(run, 1)
        self.wait_for_return(process, 3, 1, 2)
        self.assert_undisturbed(process, run, settings, [0, 1], [(2, 0), (3, 1)])
        self.assertIn("Done after step", process.out)

    def test_newcomer_that_is_killed(self):
        process, run, settings = self.begin()
        before = set(processes(self.mark))
        self.kill(run, 1)
        new = becomes_true(lambda: set(processes(self.mark)) - before)
        for pid in new:
            os.kill(pid, signal.SIGKILL)
        self.wait_for(process, r"^Rank 2, which was to take the place of a lost one, has failed: |^Rank 2 of 2 is lost, ")
        self.wait_for(process, r"^Rank 3 takes part in place of rank [12] after ")
        self.assert_status(0, process)
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        self.assertEqual(self.run_folder("undisturbed").weights, run.weights, process.text())
        self.assert_nothing_left()

    def test_no_more_replacements(self):
        process, run, _ = self.begin({"faults.replacements": 1}, base=ENDLESS)
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, 0)
        self.kill(run, 2)
        self.wait_for(process, r"^No process takes the place of rank 2: 1 have been started already")
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 1$")
        process.interrupt()
        self.assert_status(130, process)
        self.assert_nothing_left()


class Shm(Replace):
    way = {"backend": "shm"}


class Gloo(Replace):
    way, steps = {"backend": "gloo"}, 3000


class Refused(ProgramTest):
    def test_settings(self):
        for settings, words in (({"backend": "inproc"}, "replace needs ranks that are processes"),
                                ({"strategy": "sharded"}, "set strategy: all_reduce or overlapped")):
            process = self.train(*sets(ENDLESS, {"faults.on_lost_rank": "replace"}, settings))
            self.assert_status(2, process)
            self.assertIn(words, process.words)


del Replace  # has no tests of its own

if __name__ == "__main__":
    program.main()
