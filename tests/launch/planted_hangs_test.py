#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants hangs in runs of 4 ranks, and tests that the console and the error that ends the run say in one sentence who waits
for whom, and why. docs/faults.md lists these hangs."""

import json
import os
import re
import signal
import subprocess

import program
from program import ENDLESS, ROOT, ProgramTest, becomes_true, sets

WARN_AFTER, TIMEOUT = 2, 8
# Seconds for a busy machine, in addition to WARN_AFTER.
SLACK = 20
FAULTY = 2

WAIT = r"ranks? [0-9, ]+ ha(s|ve) waited \d+ s in [a-z_ ]+ #\d+ of world( \([^\n]*\))? for rank 2, which has not come: "
DIFFER = r"all ranks have waited for each other for \d+ s, because they differ in operation #\d+ of world: "
DOING = r"it has been {activity} step \d+ for \d+ s \([^\n]*{why}[^\n]*process \d+ on [^\n]+\)"

# The kinds of planned_fault.h, with the sentence that they lead to.
HANGS = {
    "skip_collective": DIFFER + r".*all_reduce\(max\) of 7 Double on ranks 0, 1, 3",
    "other_order": DIFFER + r".*all_reduce\(max\) of 5 Double on ranks 0, 1, 3, but all_reduce\(max\) of 9 Double on rank 2",
    "stop": WAIT + r"its process \d+ on [^\n]+ is stopped \(SIGSTOP\), in hooks after step \d+",
    "loader_hangs": WAIT + DOING.format(activity="loading data of", why="dataset digits, blocked in "),
    "loader_blocks": WAIT + DOING.format(activity="loading data of", why="open of /[^\n]*/note.fifo"),
    "full_pipe": WAIT + DOING.format(activity="in hooks after", why=r"blocked in write to pipe:\[\d+\]"),
    "deadlock": WAIT + DOING.format(activity="in hooks after", why=r"blocked in a lock or another thread \(futex\)"),
    "slow": WAIT + DOING.format(activity="in hooks after", why="blocked in sleep"),
    "lost_message": r"rank 2 has waited \d+ s in recv #\d+ of world \(recv\(from 3, tag 77\) of 3 Double\) for a message from "
                    r"rank 3, which has not sent it|" + WAIT,
}
# Ranks that make different calls do not hang if calls are compared.
DIFFERENCES = {"skip_collective", "other_order"}


class Planted(ProgramTest):
    backend = None
    comparing = None  # settings with which the backend compares calls; None: it must hang

    def hang(self, kind, *settings):
        """Returns a job of 4 ranks, of which rank 2 causes a hang in step 20, and its folder."""
        note = self.folder / "note"
        fault = {"kind": kind, "rank": FAULTY, "step": 20, "event": "on_update", "seconds": WARN_AFTER + 3, "note": str(note)}
        process = self.train(*sets(ENDLESS, {"launch.ranks": 4, "backend": self.backend, "framework.warn_after": WARN_AFTER,
                                             "framework.timeout": TIMEOUT}, *settings),
                             run=kind, environment={"PHALANX_FAULT": json.dumps(fault)})
        self.assertTrue(becomes_true(lambda: note.exists() or not process.running))
        self.assertTrue(note.exists(), process.text())
        return process, self.run_folder(kind)

    def assert_sentence(self, kind, ends=True):
        process, run = self.hang(kind)
        sentence = HANGS[kind]
        becomes_true(lambda: re.search(sentence, process.err) or not process.running, WARN_AFTER + SLACK)
        self.assertRegex(process.err, sentence)
        dump = json.loads((run.path / "logs/hang.json").read_text())
        self.assertRegex(dump["sentence"], sentence)
        self.assertEqual(4, dump["size"])
        if ends:
            self.assertIn(process.wait(TIMEOUT + SLACK), (1, 3), process.text())
            self.assertRegex(process.words.partition("┌─")[2], sentence, "the error must have the sentence")
        else:
            process.kill(signal.SIGKILL)

    def assert_doctor_says(self, sentence, process):
        """Asks the doctor until it says the sentence, and returns what it has seen last."""
        doctor = [ROOT / "tools/doctor/doctor", f"--attach={process.pid}", f"--json={self.folder / 'dump.json'}"]
        said = []

        def says():
            done = subprocess.run(doctor, cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            said.append(done.stdout)
            return done.returncode == 0 and re.search(sentence, done.stdout)

        self.assertTrue(becomes_true(says, SLACK), said[-1])
        return json.loads((self.folder / "dump.json").read_text())

    def check(self, kind):
        if kind in DIFFERENCES and self.comparing is not None:
            process, _ = self.hang(kind, self.comparing)
            self.assert_status(1, process)
            self.assertRegex(process.words, "ranks disagree: rank . calls .*, rank . calls ")
        else:
            self.assert_sentence(kind, ends=kind != "slow")


class Common:
    """Hangs on one backend other than one rank that waits in an operation."""

    def test_a_rank_at_a_tenth_of_its_speed(self):
        """No operation takes long, but the others wait for the same rank in each."""
        process, _ = self.hang("tenth_speed", {"framework.timeout": 60})
        self.assert_doctor_says(rf"rank {FAULTY} is slow: the others (regularly wait|waited) for it", process)
        sentence = rf"rank {FAULTY} is slow: the others regularly wait for it \(process \d+ on [^\n]+\)"
        becomes_true(lambda: re.search(sentence, process.err) or not process.running, WARN_AFTER + SLACK)
        self.assertRegex(process.err, sentence)
        self.assertTrue(process.running, process.text())
        process.kill()

    def test_a_stopped_server(self):
        process = self.train(*sets(ENDLESS, {"launch.ranks": 4, "backend": self.backend, "strategy": "downpour",
                                             "roles.server": 1, "framework.warn_after": WARN_AFTER,
                                             "framework.timeout": TIMEOUT}), run="server")
        run = self.run_folder("server")
        self.wait_for_training(run, process)
        server = self.rank_process(run, 3)
        os.kill(server, signal.SIGSTOP)
        sentence = rf"its process {server} on [^\n]+ is stopped \(SIGSTOP\), serving parameters"
        becomes_true(lambda: re.search(sentence, process.err) or not process.running, WARN_AFTER + SLACK)
        self.assertRegex(process.err, sentence)


class Shm(Common, Planted):
    backend = "shm"
    comparing = {}

    def test_a_stopped_process(self):
        self.check("stop")

    def test_a_folder_that_blocks(self):
        self.check("loader_blocks")

    def test_a_full_pipe_seen_from_outside(self):
        process, run = self.hang("full_pipe", {"framework.warn_after": 1, "framework.timeout": 60})
        dump = self.assert_doctor_says(HANGS["full_pipe"], process)
        self.assertEqual([0, 1, 2, 3], [rank["rank"] for rank in dump["ranks"]])
        self.assertEqual("hooks", dump["ranks"][FAULTY]["activity"])
        self.assertEqual(str(run.path / "logs"), dump["folder"])
        process.kill()


class All:
    """Tests every hang of one rank, on one backend."""

    def test_every_hang_gets_its_sentence(self):
        for kind in HANGS:
            with self.subTest(kind):
                (self.folder / "note").unlink(missing_ok=True)
                (self.folder / "note.fifo").unlink(missing_ok=True)
                self.check(kind)


class ShmAll(All, Planted):
    backend = "shm"
    comparing = {}


class Gloo(All, Common, Planted):
    backend = "gloo"


class Mpi(All, Common, Planted):
    backend = "mpi"
    comparing = {"framework.check_collectives": "true"}  # without it, Open MPI fails, and may abort, instead of hanging


del Planted, program.ProgramTest  # not tests themselves

if __name__ == "__main__":
    program.main()
