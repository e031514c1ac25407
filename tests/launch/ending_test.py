#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what a run leaves to others when it has ended: its exit status if a result is not as expected, and the command
of watch.on_end, which gets the summary however the run has ended."""

import json
import os
import signal

import program
from program import ENDLESS, SHORT, ProgramTest, free_port, mpirun, sets, torchrun

UNMET = {"expect": "{test: {accuracy: {min: 1}, loss: {min: 0}}, throughput: {min: 1e12}}"}


class Ending(ProgramTest):
    way = {}

    def settings(self, *settings):
        told = self.folder / "told"
        # Appends, so that a command that runs twice leaves no JSON.
        return sets(*settings, self.way, {"watch.on_end": f"'cat >> {told}'"})

    @property
    def told(self):
        return json.loads((self.folder / "told").read_text())

    def assert_unmet(self, process):
        """Expects that a run has completed, but not as expected."""
        self.assert_status(4, process)
        self.assertIn("the run has completed, but not as expected: 2 of 3 expectations are not met", process.words)
        for key in ("expect.test.accuracy.min: wanted >= 1, got 0",
                    "expect.throughput.min: wanted >= 1e+12 samples/s, got"):
            self.assertEqual(1, process.words.count(key), process.text())
        met = {entry["key"]: entry["met"] for entry in self.run_folder().summary["expectations"]}
        self.assertEqual({"test.accuracy.min": False, "test.loss.min": True, "throughput.min": False}, met)
        self.assertEqual((4, met["test.loss.min"]), (self.told["exit_status"], self.told["expectations"][1]["met"]))
        self.assertIn("expect.throughput.min", self.told["error"])

    def done(self):
        process = self.train(*self.settings(SHORT))
        self.assert_status(0, process)
        self.assertEqual((0, str(self.run_folder().path)), (self.told["exit_status"], self.told["run_folder"]))
        self.assertEqual(self.run_folder().summary["test"], self.told["test"])

    def unmet(self):
        self.assert_unmet(self.train(*self.settings(SHORT, UNMET)))

    def killed(self):
        process = self.train(*self.settings(ENDLESS))
        self.wait_for_training(self.run_folder(), process)
        os.kill(self.rank_process(self.run_folder(), 1), signal.SIGKILL)
        self.assert_status(3, process)
        self.assertEqual((3, "quickstart"), (self.told["exit_status"], self.told["name"]))
        self.assertIn("killed by signal 9", self.told["error"])
        self.assertNotIn("test", self.told)
        self.assert_nothing_left()


class Local(Ending):
    def test_done(self):
        self.done()

    def test_unmet(self):
        self.unmet()

    def test_killed(self):
        self.killed()

    def test_a_command_that_fails_does_not_fail_the_run(self):
        process = self.train(*sets(SHORT, {"watch.on_end": "'exit 7'"}))
        self.assert_status(0, process)
        self.assertEqual('Warning: watch.on_end: "exit 7" ended with exit status 7; the run itself is not affected\n',
                         process.err)

    def test_what_takes_other_runs_is_left_to_regress(self):
        expect = "{same_as: {config: single.yaml}, resume_at: 0.5, traffic: {tolerance: 0}}"
        process = self.train(*sets(SHORT, {"expect": expect}))
        self.assert_status(0, process)
        left = "Left to tools:regress, which compares runs: expect.same_as, expect.resume_at\n"
        self.assertEqual(1, process.out.count(left), process.out)
        self.assertEqual(["traffic.bytes_per_step", "traffic.collectives_per_step", "traffic.operations"],
                         [entry["key"] for entry in self.run_folder().summary["expectations"]])

    def test_traffic_without_a_plan_is_refused(self):
        process = self.train(*sets(SHORT, {"expect": "{traffic: {tolerance: 0}}", "strategy": "local_sgd"}))
        self.assert_status(2, process)
        self.assertIn("expect.traffic: there is no plan to compare with", process.words)


class Inproc(Ending):
    way = {"backend": "inproc"}

    def test_unmet(self):
        self.unmet()


class Joined(Ending):
    def test_unmet(self):
        """Ranks that another launcher has started: rank 0 runs the command."""
        port = free_port()
        ranks = [self.train(*self.settings(SHORT, UNMET), environment=torchrun(rank, 2, port)) for rank in range(2)]
        self.assertEqual([4, 4], [rank.wait() for rank in ranks], ranks[0].text() + ranks[1].text())
        self.assertEqual(4, self.told["exit_status"])


class Mpi(Ending):
    way = {"backend": "mpi"}

    def test_done(self):
        self.done()

    def test_unmet(self):
        self.unmet()

    def test_mpirun_passes_the_status_on(self):
        process = self.train(*self.settings(SHORT, UNMET), command=(*mpirun(2), program.TRAIN))
        self.assert_status(4, process)
        self.assertEqual(4, self.told["exit_status"])


if __name__ == "__main__":
    program.main()
