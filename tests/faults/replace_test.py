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
import shrink_test
from shrink_test import LONG


class Replacing(shrink_test.Shrink):
    ranks = 2

    def begin(self, settings=None, base=LONG):
        settings = {**base, "faults.on_lost_rank": "replace", "launch.ranks": self.ranks, **self.way, **(settings or {})}
        process, run = self.train(*sets(settings)), self.run_folder()
        self.wait_for_training(run, process)
        return process, run, settings

    def kill(self, run, rank):
        os.kill(self.rank_process(run, rank), signal.SIGKILL)

    def kill_newcomer(self, run):
        """Kills rank 1, and the process that is started for it."""
        before = set(processes(self.mark))
        self.kill(run, 1)
        for pid in becomes_true(lambda: set(processes(self.mark)) - before):
            os.kill(pid, signal.SIGKILL)

    def wait_for_return(self, process, rank, lost, source):
        """Returns the step after which a rank has taken the place of a lost one."""
        found = self.wait_for(process, rf"^Rank {rank} takes part in place of rank {lost} after (\S+) s, after step (\d+), "
                                       rf"with the state of {source}, on ranks: {self.ranks}$")
        print(f"rank {rank} took part {found[1]} s after the loss of rank {lost}")
        return int(found[2])

    def assert_replaced(self, run, lost, returned):
        self.assertEqual(lost, [one["rank"] for one in run.summary["lost_ranks"]])
        self.assertEqual(returned, [(one["rank"], one["in_place_of"]) for one in run.summary["returned_ranks"]])
        self.assertEqual(self.ranks, run.summary["ranks"])

    def stop_and_compare(self, process, run):
        """Stops a job, and checks that its state is that of a job that loses no rank."""
        step = self.stop(process, run)
        self.assert_nothing_left()
        self.assert_undisturbed_until(step, run, process)


class Replace(Replacing):
    def test_rank_1(self):
        process, run, _ = self.begin()
        self.kill(run, 1)
        self.wait_for_return(process, 2, 1, "rank 0")
        self.stop_and_compare(process, run)
        self.assert_replaced(run, [1], [(2, 1)])

    def test_rank_0_and_then_the_other(self):
        """The state that the last rank has came from a rank that is lost."""
        process, run, _ = self.begin()
        self.kill(run, 0)
        self.wait_for_return(process, 2, 0, "rank 1")
        self.kill(run, 1)
        self.wait_for_return(process, 3, 1, "rank 2")
        self.stop_and_compare(process, run)
        self.assert_replaced(run, [0, 1], [(2, 0), (3, 1)])

    def test_newcomer_that_is_killed(self):
        process, run, _ = self.begin({"launch.restart_delay": 0.1})
        self.kill_newcomer(run)
        self.wait_for(process, r"^Rank 2, which was to take the place of a lost one, has failed: |^Rank 2 of 3 is lost, ")
        self.wait_for(process, r"^Rank 3 takes part in place of rank [12] after ")
        self.stop_and_compare(process, run)


class Shm(Replace):
    """Has the tests that are the same with every backend, too."""
    way = {"backend": "shm"}

    def test_whole_run_in_which_one_rank_alone_makes_no_step(self):
        """It waits for a newcomer, and both train to the end."""
        process = self.train_with({"faults.on_lost_rank": "replace", "faults.min_ranks": 2, "launch.ranks": 2},
                                  environment=self.fault("kill", rank=0))
        run = self.run_folder()
        self.assert_undisturbed(process, run, 2, [0], left=2)
        self.wait_for_return(process, 2, 0, "rank 1")
        self.assert_replaced(run, [0], [(2, 0)])
        waits = "Waits up to 60 s for new processes, since 1 rank is left and faults.min_ranks is 2\n"
        self.assertEqual(1, process.err.count(waits), process.text())
        self.assertNotIn("Training goes on", process.err)

    def test_newcomer_that_is_awaited_in_vain(self):
        process, run, _ = self.begin({"faults.min_ranks": 2, "faults.wait": 1, "faults.replacements": 1}, base=ENDLESS)
        self.kill_newcomer(run)
        self.assert_status(5, process)
        self.assertIn("Waits up to 1 s for new processes, since 1 rank is left and faults.min_ranks is 2", process.words)
        self.assertIn("fewer than faults.min_ranks: 2, and too few have come in faults.wait: 1 s.", process.words)
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
    way = {"backend": "gloo"}


class Copies(Replacing):
    """No rank has all state. The result is that of a job that resumes on fewer ranks, and then on as many as before."""
    way = {"backend": "shm", "strategy": "sharded", "determinism": "run", "faults.copies_every": 20}

    def resume(self, settings, ranks, step, end):
        """Runs a job that ends after a step and saves there, from a checkpoint of the job before. Returns its run."""
        resume = f"--resume={self.run_folder(f'to_{step}').path}/checkpoints/step-{step:08}" if step else "--resume=none"
        name = f"to_{end}"
        self.assert_status(0, self.train(*sets(settings, {"launch.ranks": ranks, "faults.on_lost_rank": "stop",
                                                          "train.max_steps": end, "checkpoint.every_steps": end}),
                                         resume, run=name))
        return self.run_folder(name)

    def lose_and_compare(self, killed, lost):
        """Kills a rank. It is lost with the others in `lost`, and all of them are replaced."""
        process, run, settings = self.begin()
        self.kill(run, killed)
        found = self.wait_for(process, rf"^Rank {self.ranks} takes part in place of rank {killed} after \S+ s, after step (\d+), "
                                       rf"with the state of all others, on ranks: {self.ranks}$")
        grown_at = int(found[1])
        end = self.stop(process, run)
        steps = {one["step"] for one in run.summary["lost_ranks"]}
        self.assertEqual((1, sorted(lost)), (len(steps), sorted(one["rank"] for one in run.summary["lost_ranks"])))
        shrunk_at = steps.pop()
        returned = run.summary["returned_ranks"]
        self.assertEqual([(self.ranks + i, -1, grown_at) for i in range(len(lost))],
                         [(one["rank"], one["source"], one["step"]) for one in returned])
        self.assertEqual(sorted(lost), sorted(one["in_place_of"] for one in returned))
        self.assertEqual((self.ranks, end), (run.summary["ranks"], run.summary["steps"]))
        self.assert_nothing_left()
        if shrunk_at:
            self.resume(settings, self.ranks, 0, shrunk_at)
        self.resume(settings, self.ranks - len(lost), shrunk_at, grown_at)
        undisturbed = self.resume(settings, self.ranks, grown_at, end)
        self.assertEqual(undisturbed.weights_after(end), run.weights_after(end), process.text())

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
