#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the first Ctrl-C or SIGTERM ends all ranks after their step and saves their progress, and that the second
ends them at once."""

import os
import pathlib
import signal
import time

import program
from program import ENDLESS, SHORT, ProgramTest, becomes_true, free_port, mpirun, sets, signals, torchrun

INTERRUPTED = 130
CTRL_C = "Stopping after this step; press Ctrl-C again to end it now\n"
LOST = "before the run had stopped; it has no checkpoint, so everything that it has learned is lost\n"


def is_stopped(pid):
    """Returns true if all threads of a process are stopped."""
    states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in
              pathlib.Path(f"/proc/{pid}/task").iterdir()]
    return set(states) == {"T"}


class Interrupt(ProgramTest):
    way = {}

    def start_training(self, more={}):
        process = self.train(*sets(ENDLESS, self.way, more))
        self.wait_for_training(self.run_folder(), process)
        return process

    def assert_stopped_cleanly(self, process, asked, answer):
        self.assert_status(INTERRUPTED, process)
        print(f"asked to stop: the job ended after {time.monotonic() - asked:.2f} s")
        run = self.run_folder()
        self.assertTrue(run.summary["stopped"])
        self.assertGreater(run.summary["steps"], 0)
        self.assertGreater(len(run.weights), 100_000)
        self.assertEqual(answer, process.err)
        self.assert_nothing_left()
        self.assert_tells_how_to_resume(process)

    def assert_tells_how_to_resume(self, process):
        run = self.run_folder()
        steps = run.summary["steps"]
        self.assertIn(f"Stopped after step {steps}; everything is in {run.path}\n", process.out)
        flags = f"--run_dir={run.path} --resume=auto"
        self.assertIn(f"To resume, start it again in the same way, with {flags}\n", process.out)
        resumed = self.train(*sets(ENDLESS, self.way, {"train.epochs": 1, "train.max_steps": steps + 1}), flags.split()[1])
        self.assert_status(0, resumed)
        self.assertIn(f"Resumes after step {steps}, ", resumed.out)

    def test_ctrl_c(self):
        process = self.start_training()
        process.interrupt()
        self.assert_stopped_cleanly(process, time.monotonic(), CTRL_C)

    def test_sigterm(self):
        process = self.start_training()
        process.kill(signal.SIGTERM)
        answer = "SIGTERM: stopping after this step, within 60 s (launch.grace)\n"
        self.assert_stopped_cleanly(process, time.monotonic(), answer)

    def test_sigterm_leaves_a_rank_that_hangs_a_limited_time(self):
        process = self.start_training({"launch.grace": 1.5})
        self.hold_back()
        process.kill(signal.SIGTERM)
        self.assert_status(INTERRUPTED, process)
        self.assertEqual("SIGTERM: stopping after this step, within 1.5 s (launch.grace)\n"
                         f"Ended 1.5 s after SIGTERM (launch.grace), {LOST}", process.err)
        self.assert_nothing_left()

    def test_what_a_checkpoint_keeps_is_not_lost(self):
        process = self.start_training({"checkpoint.every_steps": 4})
        self.assertTrue(becomes_true(lambda: list((self.run_folder().path / "checkpoints").glob("step-*[0-9]"))))
        self.hold_back()
        process.interrupt()
        self.assertTrue(becomes_true(lambda: process.err), "no answer to the first Ctrl-C")
        time.sleep(0.3)
        process.interrupt()
        self.assert_status(INTERRUPTED, process)
        self.assertRegex(process.words, r"what it has learned after \S+/checkpoints/step-\d+ is lost; --resume auto")

    def test_ctrl_c_twice(self):
        process = self.start_training()
        held = self.hold_back()
        process.interrupt()
        self.assertTrue(becomes_true(lambda: signals(held, "ShdPnd") & {signal.SIGTERM, signal.SIGUSR1}),
                        "it has not been asked to stop")
        time.sleep(0.3)
        self.assertTrue(process.running, process.text())
        process.interrupt()
        asked = time.monotonic()
        self.assert_status(INTERRUPTED, process)
        took = time.monotonic() - asked
        print(f"asked twice: the job ended after {took:.2f} s")
        self.assertLess(took, 10)
        self.assertEqual(f"{CTRL_C}Ended at once, as requested, {LOST}", process.err)
        self.assert_nothing_left()

    def hold_back(self):
        """Stops a rank, so that the first Ctrl-C alone cannot end the job."""
        pid = self.rank_process(self.run_folder(), 1)
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(becomes_true(lambda: is_stopped(pid)))  # otherwise a thread could still handle the next signal
        return pid

    def test_ctrl_c_while_the_dataset_is_prepared(self):
        # Making a million digits takes a minute.
        process = self.train(*sets(ENDLESS, self.way, {"dataset.train_samples": 1_000_000}))
        self.assertTrue(becomes_true(lambda: "Preparing dataset digits: 5 s\n" in process.out), process.text())
        process.interrupt()
        asked = time.monotonic()
        self.assert_status(INTERRUPTED, process)
        self.assertLess(time.monotonic() - asked, 10)
        self.assertIn("Stopped before the first step; there is nothing to resume\n", process.out)
        self.assertEqual(CTRL_C, process.err)
        self.assert_nothing_left()

    def test_ctrl_c_at_any_moment_of_the_start(self):
        for milliseconds in (10, 30, 60, 100, 200, 500):
            with self.subTest(milliseconds=milliseconds):
                process = self.train(*sets(ENDLESS, self.way), run=f"after{milliseconds}")
                time.sleep(milliseconds / 1000)
                process.interrupt()
                self.assertIn(process.wait(), (INTERRUPTED, 128 + signal.SIGINT), process.text())
                self.assertIn(process.err, ("", CTRL_C))  # the launcher may not be there yet
                self.assert_nothing_left()

    def test_a_terminal_that_is_closed_at_any_moment_of_the_start(self):
        for milliseconds in (10, 60, 150, 250, 400, 600, 900, 1200):
            with self.subTest(milliseconds=milliseconds):
                process = self.train(*sets(ENDLESS, self.way), run=f"after{milliseconds}")
                time.sleep(milliseconds / 1000)
                process.interrupt(signal.SIGHUP)
                self.assertIn(process.wait(), (INTERRUPTED, 128 + signal.SIGHUP), process.text())
                self.assertIn(process.err, ("", "SIGHUP: stopping after this step\n"))
                self.assert_nothing_left()

    def test_ignored_signals_stay_ignored(self):
        def ignore():  # as nohup does, and a shell for background processes
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        process = self.train(*sets(ENDLESS, self.way), preexec_fn=ignore)
        for _ in range(20):  # also while it starts
            process.interrupt(signal.SIGHUP)
            process.interrupt(signal.SIGINT)
            time.sleep(0.1)
        self.wait_for_training(self.run_folder(), process)
        process.interrupt(signal.SIGHUP)
        process.interrupt(signal.SIGINT)
        done = len(self.run_folder().metrics)
        self.assertTrue(becomes_true(lambda: len(self.run_folder().metrics) >= done + 2), process.text())
        process.kill(signal.SIGTERM)
        self.assert_status(INTERRUPTED, process)
        self.assertEqual("SIGTERM: stopping after this step, within 60 s (launch.grace)\n", process.err)


class Local(Interrupt):
    def test_hang_up_of_a_rank_that_torchrun_started(self):
        for milliseconds in (60, 250, 600, 1200):
            with self.subTest(milliseconds=milliseconds):
                process = self.train(*sets(ENDLESS), environment=torchrun(0, 1, free_port()), run=f"after{milliseconds}")
                time.sleep(milliseconds / 1000)
                process.kill(signal.SIGHUP)
                self.assertIn(process.wait(), (INTERRUPTED, 128 + signal.SIGHUP), process.text())
                self.assert_nothing_left()

    def test_nohup_of_a_rank_that_torchrun_started(self):
        process = self.train(*sets(SHORT), environment=torchrun(0, 1, free_port()),
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while process.running:
            process.kill(signal.SIGHUP)
            time.sleep(0.1)
        self.assert_status(0, process)
        self.assertEqual("", process.err)

    def test_sigterm_of_ranks_that_torchrun_started(self):
        port = free_port()
        ranks = [self.train(*sets(ENDLESS), environment=torchrun(rank, 2, port)) for rank in (0, 1)]
        self.wait_for_training(self.run_folder(), ranks[0])
        for rank in ranks:
            rank.kill(signal.SIGTERM)
        for rank in ranks:
            self.assert_status(INTERRUPTED, rank)
        self.assert_tells_how_to_resume(ranks[0])


class Inproc(Interrupt):
    way = {"backend": "inproc"}

    # Threads cannot be stopped one by one.
    test_ctrl_c_twice = test_sigterm_leaves_a_rank_that_hangs_a_limited_time = None
    test_what_a_checkpoint_keeps_is_not_lost = None


class Mpi(Interrupt):
    way = {"launch.with": "mpi"}

    def test_ctrl_c_of_a_job_that_mpirun_started_by_hand(self):
        process = self.train(*sets(ENDLESS), command=[*mpirun(2), program.TRAIN])
        self.wait_for_training(self.run_folder(), process)
        process.interrupt()
        self.assertNotEqual(0, process.wait())
        self.assertNotIn("┌─", process.err)
        self.assert_nothing_left()


del Interrupt, program.ProgramTest  # not tests themselves

if __name__ == "__main__":
    program.main()
