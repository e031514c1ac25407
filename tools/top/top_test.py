#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that top shows jobs of any launcher, from their run folders and from their endpoints, once and in a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from program import DEADLINE, ENDLESS, ROOT, SHORT, TRAIN, ProgramTest, becomes_true, free_port, mpirun, sets

TOP = str(ROOT / "tools/top/top")
OWN_SCREEN, SCREEN_BEFORE = "\x1b[?1049h", "\x1b[?1049l"
TABLE = re.compile(r"^rank +own work +data", re.M)


class TopTest(ProgramTest):
    def top(self, *arguments, status=0):
        process = self.start(*arguments, command=[TOP])
        self.assert_status(status, process)
        return process

    def start_job(self, command=(TRAIN,), run="run", **settings):
        """Starts a job that trains until it is ended, and waits for its first measurement."""
        job = self.train(*sets(ENDLESS, settings), command=command, run=run)
        live = self.run_folder(run).path / "live.prom"
        becomes_true(lambda: live.exists() or not job.running)
        self.assertTrue(job.running, job.text())
        return job


class Once(TopTest):
    def test_shows_a_job_of_our_launcher_by_its_run_folder(self):
        self.start_job()
        for words in (["run/"], [str(self.folder / "run"), "--once"]):
            frame = self.top(*words).out
            self.assertRegex(frame, r"^quickstart  2 ranks  measured \d+ s ago")
            self.assertRegex(frame, r"\n[\d]+ samples/s  train/loss \S+")
            self.assertRegex(frame, TABLE)
            self.assertRegex(frame, r"(?m)^0 +[\d.]+ .s")
            self.assertRegex(frame, r"(?m)^1 +[\d.]+ .s")
            self.assertNotIn("\x1b", frame)

    def test_shows_a_job_of_mpirun_by_its_endpoint(self):
        port = free_port()
        self.start_job([*mpirun(3), TRAIN], **{"watch.prometheus.port": port})
        for address in (f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/metrics"):
            frame = self.top(address).out
            self.assertRegex(frame, rf"^quickstart  3 ranks  measured \d+ s ago  {address}")
            self.assertRegex(frame, r"(?m)^2 +[\d.]+ .s")

    def test_without_a_name_it_shows_the_newest_run(self):
        self.start_job(run="runs/old")
        self.start_job(run="runs/new", name="newest")
        self.assertTrue(becomes_true(lambda: self.top().out.startswith("newest  ")))

    def test_names_the_rank_that_others_wait_for(self):
        job = self.start_job(**{"framework.warn_after": 2})
        stopped = self.rank_process(self.run_folder(), 1)
        os.kill(stopped, signal.SIGSTOP)
        try:
            self.assertTrue(becomes_true(lambda: re.search(r"rank 0 has waited \d+ s in .* for\s+rank 1",
                                                           self.top("run").out), 60))
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertTrue(job.running)

    def test_a_job_that_was_killed_has_died(self):
        job = self.start_job()
        job.interrupt(signal.SIGKILL)
        job.wait()
        self.assertTrue(becomes_true(lambda: "has died, measured" in self.top("run").out, 60))

    def test_a_job_that_has_ended_leaves_no_live_file(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        self.assertFalse((self.folder / "run/live.prom").exists())
        self.assertRegex(self.top("run").out, r"^quickstart  2 ranks  has ended  run\nstep 16")

    def test_says_what_is_wrong(self):
        (self.folder / "empty").mkdir()
        for words, status, why in ((["absent"], 1, "absent: there is no such folder"),
                                   (["empty"], 1, "empty: is not a run folder"),
                                   ([], 2, "no run is training in the folder runs/"),
                                   (["a", "b"], 2, "one run at a time: a b"),
                                   (["https://host/"], 2, "https://host/: expected http://HOST:PORT/PATH"),
                                   ([f"http://127.0.0.1:{free_port()}"], 1, "Connection refused"),
                                   (["run", "--interval=0"], 2, "--interval: must be from 0.05 to 3600 seconds")):
            with self.subTest(words):
                self.assertIn(why, self.top(*words, status=status).err)


class InATerminal(TopTest):
    """Runs top in a terminal, which the test reads."""

    def open(self, *arguments, columns=100, rows=30):
        self.ours, theirs = pty.openpty()
        self.addCleanup(os.close, self.ours)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.ours)
        process = subprocess.Popen([TOP, *arguments], cwd=self.folder, stdin=theirs, stdout=theirs, stderr=theirs,
                                   env=self.environment(TERM="xterm"), start_new_session=True)
        os.close(theirs)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        self.shown = ""
        return process

    def resize(self, columns, rows):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, pattern):
        end = time.monotonic() + DEADLINE
        while not re.search(pattern, self.shown, re.S) and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.ours, 1 << 16).decode(errors="replace")
                except OSError:  # the program has ended
                    break
        self.assertTrue(re.search(pattern, self.shown, re.S), f"{pattern} is not in {self.shown[-2000:]!r}")

    def last_frame(self):
        """Returns the lines of the last complete frame, without styles."""
        frame = self.shown.split("\x1b[H")[-1].split("\x1b[J")[0]
        return [re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", line) for line in frame.split("\r\n")]

    def test_follows_the_job_until_a_key_and_brings_the_screen_back(self):
        self.start_job()
        top = self.open("run", "--interval=0.1")
        self.wait_for(re.escape(OWN_SCREEN) + r".*quickstart.*step \d+.*step \d+")
        os.write(self.ours, b"q")
        self.wait_for(re.escape(SCREEN_BEFORE))
        self.assertEqual(0, top.wait(DEADLINE))

    def test_fits_a_terminal_that_changes_its_size(self):
        self.start_job()
        top = self.open("run", "--interval=600", columns=100, rows=30)
        self.wait_for(r"own work.*\x1b\[J")
        self.assertLessEqual(max(map(len, self.last_frame())), 100)
        self.shown = ""
        self.resize(40, 5)
        top.send_signal(signal.SIGWINCH)  # the terminal is not the one that controls the process
        self.wait_for(r"\x1b\[H.*\x1b\[J")
        self.assertLessEqual(max(map(len, self.last_frame())), 40)
        self.assertLessEqual(len(self.last_frame()), 5)

    def test_a_signal_brings_the_screen_back(self):
        self.start_job()
        top = self.open("run")
        self.wait_for("own work")
        top.send_signal(signal.SIGTERM)
        self.wait_for(re.escape(SCREEN_BEFORE))
        self.assertEqual(0, top.wait(DEADLINE))

    def test_ends_with_the_job(self):
        job = self.start_job()
        top = self.open("run", "--interval=0.1")
        self.wait_for("own work")
        job.kill(signal.SIGTERM)
        job.wait()
        self.wait_for(re.escape(SCREEN_BEFORE) + ".*quickstart")
        self.assertEqual(0, top.wait(DEADLINE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
