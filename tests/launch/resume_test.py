#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a run that was killed, asked to stop or out of time resumes from its checkpoints, and ends like an
uninterrupted run."""

import json
import os
import random
import signal
import struct
import time

import program
from program import ENDLESS, SHORT, ProgramTest, becomes_true, sets

FAILED, USAGE, TIME_UP, INTERRUPTED = 1, 2, 124, 130

RUN = {**SHORT, "train.max_steps": 120, "train.epochs": 100, "checkpoint.every_steps": 3}


class Resume(ProgramTest):
    way = {}

    def finish(self, name, *flags, settings=RUN, status=0):
        process = self.train(*sets(settings, self.way), *flags, run=name)
        self.assert_status(status, process)
        return self.run_folder(name), process

    def checkpoints(self, name):
        return sorted((self.folder / name / "checkpoints").glob("step-" + 8 * "[0-9]"))

    def lines(self, run):
        """Returns the metrics without values that depend on the clock."""
        return [{key: value for key, value in line.items() if key not in ("samples_per_second", "seconds", "step_ms")}
                for line in run.metrics]

    def assert_same(self, run, whole):
        self.assertEqual(whole.weights, run.weights)
        self.assertEqual(self.lines(whole), self.lines(run))
        self.assertEqual(whole.summary["test"], run.summary["test"])
        self.assertEqual(whole.summary["steps"], run.summary["steps"])

    def test_a_killed_run_resumes_bit_for_bit(self):
        whole, _ = self.finish("whole")
        process = self.train(*sets(RUN, self.way), run="killed")
        becomes_true(lambda: self.checkpoints("killed") or not process.running)
        process.kill(signal.SIGKILL)
        process.wait()
        self.assertTrue(self.checkpoints("killed"), process.text())
        run, process = self.finish("killed", "--resume", "auto")
        self.assertIn("Resumes after step", process.out)
        self.assert_same(run, whole)
        self.assert_nothing_left()

    def test_ranks_killed_at_any_moment(self):
        """Kills one process each time, not all of them; the others end, and the run resumes bit for bit."""
        settings = {**RUN, "train.max_steps": 600}
        whole, _ = self.finish("whole", settings=settings)
        moments, kills = random.Random(7), 0
        for attempt in range(6):
            newest = self.checkpoints("killed")[-1:]
            process = self.train(*sets(settings, self.way), "--resume=auto", run="killed")
            becomes_true(lambda: self.checkpoints("killed")[-1:] != newest or not process.running)
            time.sleep(moments.uniform(0, 0.2))
            try:
                os.kill(self.rank_process(self.run_folder("killed"), attempt % 2), signal.SIGKILL)
            except (AssertionError, ProcessLookupError):
                self.assert_status(0, process)
            if process.wait() == 0:  # the run had ended before
                self.assertEqual(600, self.run_folder("killed").summary["steps"])
                break
            kills += 1
        self.assertGreater(kills, 0)
        run, _ = self.finish("killed", "--resume=auto", settings=settings)
        self.assert_same(run, whole)
        self.assert_nothing_left()

    def test_a_run_that_is_asked_to_stop_writes_a_checkpoint(self):
        whole, _ = self.finish("whole")
        process = self.train(*sets({**RUN, "checkpoint.every_steps": 0}, self.way), run="stopped")
        becomes_true(lambda: self.run_folder("stopped").metrics or not process.running)
        process.kill(signal.SIGTERM)
        self.assert_status(INTERRUPTED, process)
        self.assertEqual(1, len(self.checkpoints("stopped")))
        run, _ = self.finish("stopped", "--resume=auto", settings={**RUN, "checkpoint.every_steps": 0})
        self.assert_same(run, whole)

    def test_two_runs_cannot_use_one_folder(self):
        first = self.train(*sets(ENDLESS, self.way), run="busy")
        becomes_true(lambda: self.run_folder("busy").metrics or not first.running)
        second = self.train(*sets(ENDLESS, self.way), "--resume=auto", run="busy")
        self.assert_status(USAGE, second)
        self.assertIn("another run is using the run folder", second.err)
        self.assertTrue(first.running)
        first.kill(signal.SIGTERM)
        self.assert_status(INTERRUPTED, first)

    def test_a_run_whose_time_is_up_writes_a_checkpoint(self):
        run, process = self.finish("run", settings={**ENDLESS, "train.max_seconds": 1}, status=TIME_UP)
        self.assertTrue(run.summary["stopped"])
        steps = run.summary["steps"]
        self.assertIn("Time limit reached", process.out)
        run, _ = self.finish("run", "--resume=auto", settings={**ENDLESS, "train.max_steps": steps + 8})
        self.assertEqual(steps + 8, run.summary["steps"])
        steps = [line["step"] for line in run.metrics if line["split"] == "train"]
        self.assertEqual(sorted(set(steps)), steps, "no line twice")


class Local(Resume):
    way = {"launch.ranks": 2}

    def damage(self, checkpoint):
        file = checkpoint / "state-00002-of-00002.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        return file

    def test_a_damaged_checkpoint_is_refused_by_name_and_the_one_before_offered(self):
        self.finish("run")
        before, last = self.checkpoints("run")[-2:]
        file = self.damage(last)
        _, process = self.finish("other", "--resume", last, status=FAILED)
        self.assertIn("state-00002-of-00002.safetensors: has", process.words)
        self.assertIn("the newest that this run can resume from is", process.words)
        _, process = self.finish("run", "--resume", "auto")
        self.assertIn(f"A checkpoint is skipped: {file}", process.err)
        self.assertIn(f"from {before}", process.out)

    def test_a_checkpoint_can_start_another_run(self):
        whole, _ = self.finish("whole")
        run, _ = self.finish("branch", "--resume", self.checkpoints("whole")[0])
        self.assertEqual(whole.weights, run.weights)

    def test_a_refused_resume_leaves_the_config_as_it_was(self):
        run, _ = self.finish("run")
        config = self.folder / "run" / "config.yaml"
        before = config.read_bytes()
        _, process = self.finish("run", "--resume=auto", "--set=seed=77", status=USAGE)
        self.assertIn("belongs to another run: its seed is", process.words)
        self.assertEqual(before, config.read_bytes())
        self.finish("run", "--resume=auto", "--set=watch.every_steps=7")
        self.assertIn(b"every_steps: 7", config.read_bytes(), "an accepted one replaces it")

    def test_a_run_is_not_overwritten(self):
        self.finish("run")
        _, process = self.finish("run", status=USAGE)
        self.assertIn("--resume auto", process.err)

    def test_without_a_folder_the_newest_run_with_the_name_resumes(self):
        arguments = [f"--config={program.QUICKSTART}", *sets(RUN, self.way)]
        self.assert_status(0, self.start(*arguments))
        self.assert_status(0, self.start(*arguments, "--resume=auto"))
        self.assertEqual(1, len(list((self.folder / "runs").iterdir())))

    def test_python_reads_the_weights(self):
        self.finish("run")
        names = []
        for file in self.checkpoints("run")[-1].glob("weights-*.safetensors"):
            data = file.read_bytes()
            header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
            names += [name for name in header if name != "__metadata__"]
        self.assertEqual(len(set(names)), len(names))
        self.assertIn("weight", " ".join(names))


class Mpi(Resume):
    way = {"launch.ranks": 2, "launch.with": "mpi"}


del Resume, program.ProgramTest  # not tests themselves

if __name__ == "__main__":
    program.main()
