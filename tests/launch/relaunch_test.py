#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a job that fails is started again from its newest checkpoint, by train or by another launcher."""

import json
import re
import signal

import program
from program import HOST, ProgramTest, SHORT, becomes_true, free_port, sets, torchrun

STEPS = 16
SAVED = {**SHORT, "checkpoint.every_steps": 4}
AGAIN = {**SAVED, "launch.restarts": 2, "launch.restart_delay": 0.1}


class Relaunch(ProgramTest):
    way = {}

    def fault(self, kind, step=14, rank=1, note="note", times=1):
        """Returns the variable that makes a rank fail once, in a step, or flip a bit in several steps."""
        return {"PHALANX_FAULT": json.dumps({"kind": kind, "rank": rank, "step": step, "event": "on_backward",
                                             "times": times, "note": str(self.folder / note)})}

    def assert_recovers(self, kind, rank=1):
        """A run with a fault ends as one without, after one restart from the newest checkpoint. The checkpoint of step
        4 is complete in step 14, since the checkpoint of step 8 has waited for it."""
        self.assert_status(0, self.train(*sets(SAVED, self.way), run="undisturbed"))
        process = self.train(*sets(AGAIN, self.way), environment=self.fault(kind, rank=rank))
        self.assert_status(0, process)
        run = self.run_folder()
        self.assertEqual(1, process.err.count("┌─"), process.text())
        again = re.search(r"^Starts again in 0.1 s \(1 of 2\), from (.*)/checkpoints/step-0*(\d+)$", process.err, re.M)
        self.assertTrue(again, process.text())
        self.assertEqual(str(run.path), again[1])
        self.assertIn(f"Resumes after step {again[2]},", process.out)
        self.assertGreaterEqual(int(again[2]), 4)
        self.assertEqual(self.run_folder("undisturbed").weights, run.weights)
        self.assertEqual(1, run.summary["restarts"])
        self.assertGreater(run.summary["lost_seconds"], 0.1)
        self.assertEqual(0, self.run_folder("undisturbed").summary["restarts"])
        self.assertEqual([line["step"] for line in run.metrics if line["split"] == "train"], [4, 8, 12, 16])
        self.assert_nothing_left()
        return process


class Local(Relaunch):
    def test_killed_rank(self):
        self.assert_recovers("kill")

    def test_killed_rank_0(self):
        self.assert_recovers("kill", rank=0)

    def test_exception(self):
        self.assert_recovers("exception_in_hook")

    def test_flipped_bit(self):
        """The host of the rank whose memory has changed is blamed, whichever rank notices it."""
        self.way = {"launch.ranks": 3, "strategy": "all_reduce", "replica_check.every_steps": 1}
        process = self.assert_recovers("flip_parameter")
        self.assertIn("─ Rank 1 of 3 on ", process.err)
        self.assertIn("after step 14 replicas differ: parameter ", process.words)

    def test_a_rank_that_computes_wrongly_twice(self):
        """The first wrong result is repaired and the second one ends the run. There is no other host to go on with."""
        checked = {"launch.ranks": 3, "strategy": "all_reduce", "replica_check": "{every_steps: 1, repair: true}"}
        process = self.train(*sets(AGAIN, checked), environment=self.fault("flip_parameter", times=2))
        self.assert_status(1, process)
        self.assertRegex(process.err, "Warning: after step 14 replicas differ: .* on rank 1.*; repaired with the values of rank 0")
        self.assertIn("─ Rank 1 of 3 on ", process.err)
        self.assertRegex(process.words, "after step 15 replicas differ: .* on rank 1.*, for the second time")
        self.assertIn("has computed wrongly 2 times (launch.exclude_after), and there is no other host to go on without it",
                      process.words)
        self.assertNotIn("Starts again", process.err)
        self.assertEqual([], list(self.run_folder().path.glob("logs/*.wrong")))

    def test_a_wrong_result_before_and_after_a_restart(self):
        checked = {"launch.ranks": 3, "strategy": "all_reduce", "replica_check.every_steps": 1}
        process = self.train(*sets(AGAIN, checked), environment=self.fault("flip_parameter", times=2))
        self.assert_status(1, process)
        self.assertEqual(2, process.err.count("─ Rank 1 of 3 on "), process.text())
        self.assertEqual(1, process.err.count("Starts again"), process.text())
        self.assertRegex(process.words, "after step 15 replicas differ: .* on rank 1.*, for the second time")
        self.assertIn("has computed wrongly 2 times (launch.exclude_after)", process.words)

    def test_threads(self):
        self.way = {"backend": "inproc"}
        self.assert_recovers("crash")

    def test_before_the_first_checkpoint(self):
        process = self.train(*sets(AGAIN), environment=self.fault("kill", step=2))
        self.assert_status(0, process)
        self.assertIn("Starts again in 0.1 s (1 of 2), from the beginning\n", process.err)
        self.assertEqual(STEPS, self.run_folder().summary["steps"])

    def test_a_failure_that_repeats_itself_is_not_repeated_forever(self):
        process = self.train(*sets(AGAIN, {"launch.restarts": 9, "dataset": "mnist", "dataset.root": "/no/such"}))
        self.assert_status(1, process)
        self.assertEqual(2, process.err.count("┌─"), process.text())
        self.assertIn("It has failed twice in the same way", process.err)

    def test_ctrl_c_while_it_waits(self):
        process = self.train(*sets(AGAIN, {"launch.restart_delay": 600}), environment=self.fault("kill"))
        self.assertTrue(becomes_true(lambda: "Starts again" in process.err), process.text())
        process.interrupt()
        self.assert_status(130, process, 20)
        self.assertIn("Stopped before it was started again", process.err)
        self.assert_nothing_left()

    def test_a_stopped_run_is_not_started_again(self):
        process = self.train(*sets(AGAIN, {"train.max_steps": 0, "train.epochs": 1000000}))
        self.wait_for_training(self.run_folder(), process)
        process.kill(signal.SIGTERM)
        self.assert_status(130, process)
        self.assertNotIn("Starts again", process.err)

    def test_restarts_without_checkpoints(self):
        process = self.train(*sets(SHORT, {"launch.restarts": 2}))
        self.assert_status(2, process, 20)
        self.assertIn("launch.restarts: a job that is started again goes on from a checkpoint", process.err)

    def test_restarts_under_another_launcher(self):
        process = self.train(*sets(AGAIN), environment=torchrun(0, 2, free_port()))
        self.assert_status(2, process, 20)
        self.assertIn("only it can start them again (torchrun --max-restarts, sbatch --requeue); set 0", process.err)


class Torchrun(Relaunch):
    """Ranks that torchrun starts again, which sets TORCHELASTIC_RESTART_COUNT."""

    def run_ranks(self, restart, **variables):
        port = free_port()
        ranks = [self.train(*sets(SAVED), environment=torchrun(rank, 2, port, TORCHELASTIC_RESTART_COUNT=str(restart),
                                                               **variables)) for rank in range(2)]
        return [rank.wait() for rank in ranks], ranks

    def test_resumes(self):
        self.assert_status(0, self.train(*sets(SAVED), run="undisturbed"))
        fault = self.fault("kill")
        statuses, _ = self.run_ranks(0, **fault)
        self.assertNotIn(0, statuses)
        statuses, ranks = self.run_ranks(1, **fault)
        self.assertEqual([0, 0], statuses, ranks[0].text())
        self.assertIn("Resumes after step ", ranks[0].out)
        self.assertEqual(self.run_folder("undisturbed").weights, self.run_folder().weights)


class Mpi(Relaunch):
    way = {"launch.with": "mpi"}

    def test_killed_rank(self):
        self.assert_recovers("kill")

    def test_too_few_ranks_to_start_again(self):
        """Two names of this host, of which the one that ranks report is left out after the first failure."""
        hosts = {"launch.hosts": f"[{HOST}:1, 127.0.0.1:1]", "launch.exclude_after": 1, "faults.min_ranks": 2}
        process = self.train(*sets(AGAIN, self.way, hosts), environment=self.fault("kill"))
        self.assert_status(5, process)
        self.assertIn(f"Without {HOST}, 1 rank is left, on 127.0.0.1:1, fewer than faults.min_ranks: 2, so",
                      process.err)
        self.assertNotIn("Starts again", process.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    program.main()
