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


class Replacing(ProgramTest):
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
        """Returns the step after which a rank has taken the place of a lost one."""
        found = self.wait_for(process, rf"^Rank {rank} takes part in place of rank {lost} after (\S+) s, after step (\d+), "
                                       rf"with the state of {source}, on ranks: {self.ranks}$")
        print(f"rank {rank} took part {found[1]} s after the loss of rank {lost}")
        return int(found[2])

    def assert_undisturbed(self, process, run, settings, lost, returned):
        self.assert_status(0, process)
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        self.assertEqual(self.run_folder("undisturbed").weights, run.weights, process.text())
        self.assertEqual(lost, [one["rank"] for one in run.summary["lost_ranks"]])
        self.assertEqual(returned, [(one["rank"], one["in_place_of"]) for one in run.summary["returned_ranks"]])
        self.assertEqual(self.steps, run.summary["steps"])
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assert_nothing_left()


class Replace(Replacing):
    def test_rank_1(self):
        process, run, settings = self.begin()
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, "rank 0")
        self.assert_undisturbed(process, run, settings, [1], [(2, 1)])
        self.assertEqual(self.ranks, run.summary["ranks"])

    def test_rank_0_and_then_the_other(self):
        """The state that the last rank has came from a rank that is lost."""
        process, run, settings = self.begin()
        self.kill(run, 0)
        self.wait_for_return(process, 2, 0, "rank 1")
        self.kill(run, 1)
        self.wait_for_return(process, 3, 1, "rank 2")
        self.assert_undisturbed(process, run, settings, [0, 1], [(2, 0), (3, 1)])
        self.assertIn("Done after step", process.out)

    def test_newcomer_that_is_killed(self):
        process, run, settings = self.begin()
        before = set(processes(self.mark))
        self.kill(run, 1)
        new = becomes_true(lambda: set(processes(self.mark)) - before)
        for pid in new:
            os.kill(pid, signal.SIGKILL)
        self.wait_for(process, r"^Rank 2, which was to take the place of a lost one, has failed: |^Rank 2 of 3 is lost, ")
        self.wait_for(process, r"^Rank 3 takes part in place of rank [12] after ")
        self.assert_status(0, process)
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        self.assertEqual(self.run_folder("undisturbed").weights, run.weights, process.text())
        self.assert_nothing_left()


class Shm(Replace):
    """Has the tests that are the same with every backend, too."""
    way = {"backend": "shm"}

    def test_fewer_ranks_than_there_must_be(self):
        """One rank alone makes no step. It waits, the first time for a newcomer, and the second time in vain."""
        process, run, _ = self.begin({"faults.min_ranks": 2, "faults.wait": 8, "faults.replacements": 1}, base=ENDLESS)
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, "rank 0")
        waits = "Waits up to 8 s for new processes, since 1 rank is left and faults.min_ranks is 2\n"
        self.assertEqual(1, process.err.count(waits), process.text())
        self.assertNotIn("Training goes on", process.err)
        self.kill(run, 2)
        self.assert_status(5, process)
        self.assertEqual(2, process.err.count(waits), process.text())
        self.assertIn("fewer than faults.min_ranks: 2, and too few have come in faults.wait: 8 s.", process.words)
        self.assert_nothing_left()

    def test_no_more_replacements(self):
        process, run, _ = self.begin({"faults.replacements": 1}, base=ENDLESS)
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, "rank 0")
        self.kill(run, 2)
        self.wait_for(process, r"^No process takes the place of rank 2: 1 have been started already")
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 1$")
        process.interrupt()
        self.assert_status(130, process)
        self.assert_nothing_left()


class Gloo(Replace):
    way, steps = {"backend": "gloo"}, 3000


class Copies(Replacing):
    """No rank has all state. The result is that of a job that resumes on fewer ranks, and then on as many as before."""
    way = {"backend": "shm", "strategy": "sharded", "determinism": "run", "faults.copies_every": 20,
           "checkpoint.keep_last": 1000}
    steps = 2000

    def resume(self, settings, ranks, step, save_at):
        """Runs a job that saves after a step, from a checkpoint of the job before. Returns its run."""
        resume = f"--resume={self.run_folder(f'to_{step}').path}/checkpoints/step-{step:08}" if step else "--resume=none"
        name = f"to_{save_at}"
        self.assert_status(0, self.train(*sets(settings, {"launch.ranks": ranks, "checkpoint.every_steps": save_at,
                                                          "faults.on_lost_rank": "stop"}), resume, run=name))
        return self.run_folder(name)

    def lose_and_compare(self, killed, lost):
        """Kills a rank. It is lost with the others in `lost`, and all of them are replaced."""
        process, run, settings = self.begin()
        self.kill(run, killed)
        found = self.wait_for(process, rf"^Rank {self.ranks} takes part in place of rank {killed} after \S+ s, after step (\d+), "
                                       rf"with the state of all others, on ranks: {self.ranks}$")
        grown_at = int(found[1])
        self.assert_status(0, process)
        steps = {one["step"] for one in run.summary["lost_ranks"]}
        self.assertEqual((1, sorted(lost)), (len(steps), sorted(one["rank"] for one in run.summary["lost_ranks"])))
        shrunk_at = steps.pop()
        returned = run.summary["returned_ranks"]
        self.assertEqual([(self.ranks + i, -1, grown_at) for i in range(len(lost))],
                         [(one["rank"], one["source"], one["step"]) for one in returned])
        self.assertEqual(sorted(lost), sorted(one["in_place_of"] for one in returned))
        self.assertEqual((self.ranks, self.steps), (run.summary["ranks"], run.summary["steps"]))
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assert_nothing_left()
        if shrunk_at:
            self.resume(settings, self.ranks, 0, shrunk_at)
        self.resume(settings, self.ranks - len(lost), shrunk_at, grown_at)
        self.assertEqual(self.resume(settings, self.ranks, grown_at, self.steps).weights, run.weights, process.text())

    def test_sharded(self):
        self.lose_and_compare(1, [1])

    def test_tensor(self):
        """Rank 3 leaves when its replica has lost rank 2. The one that is left is the only one for a while."""
        self.ranks = 4
        self.way = {**self.way, "strategy": "all_reduce", "mesh.tensor": 2}
        self.lose_and_compare(2, [2, 3])


class Refused(ProgramTest):
    def test_settings(self):
        for settings, words in (({"backend": "inproc"}, "replace needs ranks that are processes"),
                                ({"launch.with": "mpi"}, "mpirun cannot; set launch.with: local, or ssh for several hosts"),
                                ({"mesh.tensor": 2, "launch.ranks": 4, "faults.replacements": 1}, "set it to 2 at least")):
            process = self.train(*sets(ENDLESS, {"faults.on_lost_rank": "replace"}, settings))
            self.assert_status(2, process)
            self.assertIn(words, process.words)


del Replacing, Replace  # have no tests of their own

if __name__ == "__main__":
    program.main()
