#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that replay runs a recorded rank alone, and that it says what it cannot do."""

import os
import shutil
import signal
import unittest

from program import ENDLESS, ROOT, SHORT, ProgramTest, becomes_true, sets

REPLAY = str(ROOT / "tools/replay/replay")


class Replay(ProgramTest):
    def record(self, *settings, status=0, run="run", **more):
        """Records a run of two ranks in the folder `recording`."""
        process = self.train(*sets(SHORT, {"framework.record": "recording"}, *settings, more), run=run)
        self.assert_status(status, process)
        return process

    def replay(self, *arguments, status=0, folder="recording"):
        process = self.start(folder, *arguments, command=[REPLAY])
        self.assert_status(status, process)
        return process

    def test_every_rank_ends_with_the_same_parameters(self):
        process = self.record()
        self.assertRegex(process.out, r"(?m)^Recorded in recording: [\d.]+ MB of all ranks; to run rank 0 alone: replay "
                         r"recording --rank 0$")
        size = self.run_folder().summary["recording"]
        self.assertEqual("recording", size["folder"])
        self.assertGreater(size["bytes"], 1_000_000)
        before = sorted(path.name for path in (self.folder / "run").iterdir())
        for rank in (0, 1):
            self.assertRegex(self.replay("--rank", rank).out,
                             rf"(?m)^Rank {rank} of 2 did what is recorded: \d+ operations, and after step 16 the same "
                             r"parameters, bit for bit$")
        self.assertEqual(before, sorted(path.name for path in (self.folder / "run").iterdir()))
        self.assert_nothing_left()

    def test_the_last_steps_begin_at_a_checkpoint(self):
        self.record(**{"framework.record_last": 4, "checkpoint.every_steps": 4, "checkpoint.keep_last": 4})
        self.assertIn("did what is recorded from step 9: ", self.replay("--rank=1").out)
        shutil.rmtree(self.folder / "run/checkpoints")
        process = self.replay("--rank=1", status=1)
        self.assertIn("the recording begins after step 8, but there is no checkpoint of it in", process.err)

    def test_a_killed_rank_is_replayed_up_to_its_end(self):
        process = self.train(*sets(ENDLESS, {"framework.record": "recording"}))
        self.wait_for_training(self.run_folder(), process)
        os.kill(self.rank_process(self.run_folder(), 1), signal.SIGKILL)
        self.assert_status(3, process)
        out = self.replay("--rank=1", "--set=train.max_seconds=0").out
        self.assertIn("Rank 1 of 2 did what is recorded, up to the end of the recording after step ", out)
        self.assertIn("the recording ends in step", out)

    def test_the_first_difference_is_named(self):
        self.record(strategy="all_reduce")
        process = self.replay("--rank=0", "--set=optimizer.momentum=0.5", status=1)
        self.assertRegex(process.err, r"Rank 0 of 2: the replay differs in step \d+: ")

    def test_the_operation_in_which_another_run_differs_is_named(self):
        self.record(strategy="all_reduce")
        other = {"framework.record": "other", "strategy": "all_reduce", "optimizer.lr": 0.01}
        self.assert_status(0, self.train(*sets(SHORT, other), run="other_run"))
        process = self.replay("--rank=0", "--against=other", "--until=4", status=1)
        self.assertRegex(process.out, r"(?m)^Rank 0 of 2 did what is recorded up to step 4: \d+ operations$")
        self.assertRegex(process.out, r"(?m)^First difference from other: the input of all_reduce\(mean\) of .*, in step 2, other "
                         r"bits in the gradient of ")
        # The difference that was found is also printed if the replay later differs from its own recording.
        process = self.replay("--rank=0", "--against=other", "--set=optimizer.momentum=0.5", status=1)
        self.assertRegex(process.err, r"Rank 0 of 2: the replay differs in step \d+: ")
        self.assertRegex(process.out, r"(?m)^First difference from other: .*, in step 2, other bits in the gradient of ")
        self.assertIn("No difference from recording in these operations\n", self.replay("--rank=0", "--against=recording").out)
        self.assertIn("--until: steps are numbered from 1", self.replay("--until=-1", status=2).err)

    def test_results_that_do_not_depend_on_the_ranks(self):
        self.record(determinism="world_size_invariant", **{"launch.threads": 1})
        self.assertIn("bit for bit", self.replay("--rank=1").out)

    def test_servers_are_not_needed(self):
        self.record(strategy="ssp", **{"roles.server": 1, "launch.ranks": 3})
        self.assertRegex(self.replay("--rank=1").out, r"(?m)^Rank 1 of 3 did what is recorded: \d+ operations, and after step 16 "
                         r"the same parameters, bit for bit$")
        err = self.replay("--rank=2", status=2).err
        self.assertIn("rank 2 of 3 was a parameter server", err)
        self.assertIn("replay one of ranks 0 to 1", err)

    def test_digests_can_be_written_afterwards(self):
        self.record()
        self.replay("--rank=0", "--set=train.digests=1", "--run_dir=again")
        lines = (self.folder / "again/digests/rank0.txt").read_text().splitlines()
        self.assertEqual(16, len({line.split("\t")[0] for line in lines}))

    def test_what_is_missing_is_named(self):
        self.record(**{"framework.record_ranks": "[1]"})
        self.assertIn("has no recording of rank 0, only of rank 1", self.replay(status=2).err)
        self.assertIn("nowhere: cannot be read", self.replay(status=2, folder="nowhere").err)
        process = self.start("--rank=1", command=[REPLAY])
        self.assert_status(2, process)
        self.assertIn("no recording: ", process.err)
        process = self.record(status=2, run="other")
        self.assertIn("has a recording already; name another folder, or remove it", process.words)

    def test_gdb_is_started_with_the_same_command(self):
        fake = self.folder / "bin/gdb"
        fake.parent.mkdir()
        fake.write_text('#!/bin/sh\necho "$@" > gdb.txt\n')
        fake.chmod(0o755)
        process = self.start("recording", "--rank", 3, "--gdb", command=[REPLAY],
                             environment={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
        self.assert_status(0, process)
        words = (self.folder / "gdb.txt").read_text().split()
        self.assertEqual(["-q", "--args"], words[:2])
        self.assertEqual(["recording", "--rank", "3"], words[-3:])


class Refusals(ProgramTest):
    def refusal(self, **settings):
        process = self.train(*sets(SHORT, {"framework.record": "recording"}, settings))
        self.assert_status(2, process)
        return process.words

    def test_what_a_recording_cannot_see(self):
        for strategy in ("hogwild", "{sharded: {one_copy: true}}"):
            self.assertIn("lets ranks write into each other's memory outside of operations", self.refusal(strategy=strategy))

    def test_what_the_clock_decides(self):
        self.assertIn("framework.tune: auto calls operations as often as the clock says",
                      self.refusal(**{"framework.tune": "auto"}))

    def test_a_ring_without_checkpoints(self):
        self.assertIn("must be a multiple of checkpoint.every_steps", self.refusal(**{"framework.record_last": 4}))


class Backends(ProgramTest):
    """One run of each backend with each strategy that can be recorded. Nightly."""

    STRATEGIES = ("all_reduce", "overlapped", "sharded", "{sharded: {stage: 2}}", "{sharded: {stage: 3}}", "gossip",
                  "local_sgd", "diloco", "{levels: {inter: all_reduce}}", "auto", "sync_ps", "ssp",
                  "{downpour: {every: 3, prefetch: 1}}", "{easgd: {every: 2}}")

    def check(self, backend, strategy, number):
        recording = f"recording{number}"
        process = self.train(*sets(SHORT, {"framework.record": recording, "backend": backend, "strategy": strategy}),
                             run=f"run{number}")
        self.assert_status(0, process)
        for rank in (0, 1):
            process = self.start(recording, f"--rank={rank}", command=[REPLAY])
            self.assert_status(0, process)
            self.assertIn("the same parameters, bit for bit", process.out)

    def test_replays_have_equal_parameters(self):
        number = 0
        for backend in ("inproc", "shm", "gloo", "mpi", "hybrid"):
            for strategy in self.STRATEGIES:
                with self.subTest(backend=backend, strategy=strategy):
                    number += 1
                    self.check(backend, strategy, number)


if __name__ == "__main__":
    unittest.main(verbosity=2)
