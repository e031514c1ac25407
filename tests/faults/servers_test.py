#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a job with parameter servers goes on without ranks that it loses, whether these train or serve."""

import os
import re
import signal

import program
from program import ENDLESS, ProgramTest, QUICKSTART, SHORT, becomes_true, sets

STEPS = 1500
KILLED = "it was killed by signal 9 (SIGKILL)"


class Servers(ProgramTest):
    way = {}
    LONG = {**SHORT, "faults.on_lost_rank": "shrink", "launch.threads": 1, "train.max_steps": STEPS, "train.epochs": 1000,
            "evaluate.every_steps": 100, "checkpoint.every_steps": 150, "watch.every_steps": 10,
            "model": "{name: mlp, hidden: [16]}"}

    def begin(self, settings, config=QUICKSTART):
        """Starts a job that trains until it is ended, and waits until it trains."""
        process = self.train(*sets({**ENDLESS, "faults.on_lost_rank": "shrink", "launch.threads": 1}, self.way, settings),
                             config=config)
        self.wait_for_training(self.run_folder(), process)
        return process

    def without_optimizer(self):
        """Returns a config for strategies whose servers have the optimizer."""
        config = self.folder / "served.yaml"
        config.write_text("name: served\nmodel: lenet\ndataset: digits\ntrain: {global_batch_size: 64}\n")
        return config

    def kill(self, process, rank, train, left):
        """Kills a rank of a job. Returns the step after which `train` ranks go on training, of `left` in all."""
        before = process.err.count("Training goes on")
        os.kill(self.rank_process(self.run_folder(), rank), signal.SIGKILL)
        self.assertTrue(becomes_true(lambda: process.err.count("Training goes on") > before, 30), process.text())
        self.assertRegex(process.err, rf"Rank {rank} of \d is lost, {left} (is|are) left: {re.escape(KILLED)}")
        again = re.findall(r"^Training goes on after (\S+) s, after step (\d+), on ranks: (\d+)$", process.err, re.M)[-1]
        print(f"rank {rank} was killed: training went on after {again[0]} s")
        self.assertEqual(train, int(again[2]), process.text())
        return int(again[1])

    def assert_trains(self, process, step):
        """Checks that training has come further than a step."""
        run = self.run_folder()
        self.assertTrue(becomes_true(lambda: run.metrics[-1]["step"] > step + 20, 30), process.text())

    def finish(self, process, lost, ranks, servers):
        """Interrupts a job of which these ranks were lost, and checks its end."""
        process.interrupt()
        self.assert_status(130, process)
        self.assertEqual(0, process.err.count("┌─"), process.text())
        run = self.run_folder()
        self.assertEqual(lost, [one["rank"] for one in run.summary["lost_ranks"]])
        self.assertEqual(ranks, run.summary["ranks"])
        steps = [line["step"] for line in run.metrics if line["split"] == "train"]
        if 0 not in lost:  # otherwise, the steps by which rank 0 was ahead have two lines
            self.assertEqual(sorted(set(steps)), steps, "no step is repeated")
        counted = run.summary["strategy"]
        self.assertEqual((True, False), (f"server_{servers - 1}_requests" in counted, f"server_{servers}_requests" in counted))
        self.assert_nothing_left()


class Shm(Servers):
    def test_lost_worker(self):
        process = self.begin({"launch.ranks": 3, "roles.server": 1, "strategy": "{downpour: {every: 2}}"})
        self.assert_trains(process, self.kill(process, 1, train=1, left=2))
        self.finish(process, [1], 1, servers=1)

    def test_workers_that_others_wait_for(self):
        """Rank 0 is lost first, so the next one takes over the metrics and the console."""
        process = self.begin({"launch.ranks": 4, "roles.server": 1, "strategy": "{ssp: {staleness: 1}}"})
        self.assert_trains(process, self.kill(process, 0, train=2, left=3))
        self.assert_trains(process, self.kill(process, 2, train=1, left=2))
        self.finish(process, [0, 2], 1, servers=1)

    def test_server_and_worker(self):
        """A server has copies of all parts of the one that is lost."""
        process = self.begin({"launch.ranks": 4, "roles.server": 2, "roles.replicas": 2,
                              "strategy": "{downpour: {every: 1, server_optimizer: {name: adam, lr: 0.001}}}"},
                             self.without_optimizer())
        self.assert_trains(process, self.kill(process, 2, train=2, left=3))
        self.assert_trains(process, self.kill(process, 0, train=1, left=2))
        self.finish(process, [2, 0], 1, servers=1)

    def test_server_without_replicas(self):
        process = self.begin({"launch.ranks": 3, "roles.server": 1, "strategy": "dc_asgd"}, self.without_optimizer())
        os.kill(self.rank_process(self.run_folder(), 2), signal.SIGKILL)
        self.assert_status(3, process)
        self.assert_framed_once(process, 2, 3, self.run_folder().log(2))
        self.assertIn("Rank 2, a parameter server, is lost, and no other server has the same part of the parameters; set "
                      "roles.replicas: 2 with roles.server: 2 or more", process.words)
        self.assert_nothing_left()

    def test_server_that_is_not_needed_any_more(self):
        """The final model is on the ranks that train, which evaluate it. Its test takes a second or two."""
        settings = {**SHORT, "faults.on_lost_rank": "shrink", "launch.ranks": 2, "launch.threads": 1, "roles.server": 1,
                    "strategy": "{downpour: {every: 2}}", "evaluate.validation": 0.1, "evaluate.global_batch_size": 1,
                    "dataset.test_samples": 4000}
        process, run = self.train(*sets(settings)), self.run_folder()
        self.assertTrue(becomes_true(lambda: any(line["split"] == "validation" for line in run.metrics), 60), process.text())
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        self.assert_status(0, process)
        self.assertIn("Rank 1 of 2 was lost when the others did not need it any more: It was killed by signal 9 (SIGKILL).\n",
                      process.err)
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assertEqual(16, run.summary["steps"])
        self.assertIn("loss", run.summary["test"])
        self.assert_nothing_left()

    def test_all_workers(self):
        """The servers that are left have nothing to do."""
        process = self.begin({"launch.ranks": 2, "roles.server": 1, "strategy": "{easgd: {every: 2}}"})
        os.kill(self.rank_process(self.run_folder(), 0), signal.SIGKILL)
        self.assert_status(3, process)
        self.assert_framed_once(process, 0, 2, self.run_folder().log(0))
        self.assert_nothing_left()

    def test_below_min_ranks(self):
        """Ranks that serve count, too."""
        settings = {"launch.ranks": 3, "roles.server": 1, "strategy": "{easgd: {every: 2}}", "faults.min_ranks": 3}
        process = self.begin(settings)
        os.kill(self.rank_process(self.run_folder(), 1), signal.SIGKILL)
        self.assert_status(5, process)
        saved = re.search(r"2 ranks are left, fewer than faults.min_ranks: 3. The run is saved after step (\d+);", process.words)
        self.assertTrue(saved, process.text())
        self.assert_nothing_left()


class Gloo(Servers):
    way = {"backend": "gloo"}

    def test_whole_run(self):
        """A run that loses a rank in a step learns what others learn."""
        settings = {**self.LONG, **self.way, "launch.ranks": 4, "roles.server": 2, "roles.replicas": 2,
                    "strategy": "{easgd: {every: 2}}"}
        process, run = self.train(*sets(settings)), self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        self.assert_status(0, process)
        lost = [one["rank"] for one in run.summary["lost_ranks"]]
        self.assertEqual((1, STEPS, [1]), (run.summary["ranks"], run.summary["steps"], lost))
        self.assert_nothing_left()
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        self.assertAlmostEqual(self.run_folder("undisturbed").summary["test"]["loss"], run.summary["test"]["loss"], delta=0.1)

    def test_server_and_rank_0(self):
        process = self.begin({"launch.ranks": 4, "roles.server": 2, "roles.replicas": 2, "strategy": "{ssp: {staleness: 2}}"})
        self.assert_trains(process, self.kill(process, 3, train=2, left=3))
        self.assert_trains(process, self.kill(process, 0, train=1, left=2))
        self.finish(process, [3, 0], 1, servers=1)


if __name__ == "__main__":
    program.main()
