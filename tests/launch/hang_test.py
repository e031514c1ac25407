#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a hanging rank is named on the console while the others wait for it, and by the error that finally ends
the job."""

import json
import os
import re
import signal

import program
from program import ENDLESS, ProgramTest, becomes_true, free_port, sets, torchrun

WARNED = (r"{waits} waited \d+ s in [a-z_ ]+ #\d+ of world( \([^\n]*\))? for rank {hangs}, which has not come: its process "
          r"{process} on [^\n]+ is stopped \(SIGSTOP\), [a-z ]+ (of|after) step \d+[^\n]*\n")


class Hang(ProgramTest):
    ways = ()

    def start_training(self, way, ranks=2, **more):
        name = f"run{self._count}"
        process = self.train(*sets(ENDLESS, way, {"launch.ranks": ranks, **more}), run=name)
        run = self.run_folder(name)
        self.wait_for_training(run, process)
        return process, run

    def wait_for_console(self, process, pattern):
        self.assertTrue(becomes_true(lambda: re.search(pattern, process.err) or not process.running))
        self.assertRegex(process.err, pattern)

    def assert_told(self, way, hangs, ranks):
        process, run = self.start_training(way, ranks, **{"framework.warn_after": 1})
        hung = self.rank_process(run, hangs)
        os.kill(hung, signal.SIGSTOP)
        others = [rank for rank in range(ranks) if rank != hangs]
        # One of two ranks may have received its data from the other before that one hung, and wait in a later
        # operation.
        waits = "(" + "|".join([*(f"rank {rank} has" for rank in others), f"ranks {', '.join(map(str, others))} have"]) + ")"
        warned = WARNED.format(waits=waits, hangs=hangs, process=hung)
        self.wait_for_console(process, warned)
        dump = json.loads((run.path / "logs/hang.json").read_text())
        self.assertRegex(dump["sentence"] + "\n", warned)
        self.assertEqual("stopped", dump["ranks"][hangs]["state"])
        os.kill(hung, signal.SIGCONT)
        goes_on = rf"rank \d continues after \d+ s in \w+ #\d+ of world\n"
        self.wait_for_console(process, goes_on)
        process.interrupt()
        self.assert_status(130, process)
        self.assertRegex(process.err, f"^{warned}{goes_on}Stopping after this step.*\n$")
        for pattern in ("*.waiting", "*.process", "*.picture"):
            self.assertEqual([], list((run.path / "logs").glob(pattern)))

    def assert_cause(self, way, cause):
        process, run = self.start_training(way, **{"framework.warn_after": 1, "framework.timeout": 3})
        hung = self.rank_process(run, 1)
        os.kill(hung, signal.SIGSTOP)
        self.assert_status(1, process)
        self.assert_framed_once(process, 0, 2, run.log(0))
        self.assertIn(cause, process.words)
        warned = WARNED.format(waits="rank 0 has", hangs=1, process=hung)
        self.assertRegex(process.err, "^" + warned + "┌─")
        self.assertRegex(process.words.partition("┌─")[2], warned.removesuffix(r"\n"), "the error must have the sentence too")

    def test_rank_is_named_while_others_wait(self):
        for way in self.ways:
            with self.subTest(**way):
                self.assert_told(way, hangs=2, ranks=3)

    def test_rank_0_is_named_by_another(self):
        self.assert_told(self.ways[0], hangs=0, ranks=2)


class Local(Hang):
    ways = ({"backend": "auto"}, {"backend": "gloo"}, {"backend": "hybrid"})

    def test_time_out_names_the_rank_that_did_not_come(self):
        for way in self.ways:
            with self.subTest(**way):
                self.assert_cause(way, "s for rank 1, which did not come")

    def test_no_warning_where_none_is_wanted(self):
        process, run = self.start_training({}, **{"framework.warn_after": 0, "framework.timeout": 3})
        os.kill(self.rank_process(run, 1), signal.SIGSTOP)
        self.assert_status(1, process)
        self.assertTrue(process.err.startswith("┌─"), process.err)

    def test_rank_that_no_launcher_watches_is_named(self):
        port = free_port()
        ranks = [self.train(*sets(ENDLESS, {"framework.warn_after": 1}), environment=torchrun(rank, 2, port))
                 for rank in range(2)]
        self.wait_for_training(self.run_folder(), ranks[0])
        ranks[1].kill(signal.SIGSTOP)
        self.wait_for_console(ranks[0], WARNED.format(waits="rank 0 has", hangs=1, process=ranks[1].pid))
        ranks[0].interrupt()
        self.wait_for_console(ranks[0], "Stopping after this step; press Ctrl-C again to end it now\n")
        ranks[1].kill(signal.SIGCONT)
        ranks[1].interrupt()
        for rank in ranks:
            self.assert_status(130, rank)


class Mpi(Hang):
    ways = ({"backend": "mpi"}, {"launch.with": "mpi", "backend": "hybrid"})

    def test_time_out_names_the_operation_without_consequential_errors(self):
        # Overlapping operations fail together; it is a matter of chance which of them is waited for first.
        self.assert_cause({"backend": "mpi", "strategy": "overlapped"}, "s for ranks that did not come")


del Hang, program.ProgramTest  # not tests themselves

if __name__ == "__main__":
    program.main()
