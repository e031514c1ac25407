#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the benchmark between two hosts: what it reads, counts and writes; and all of it if hosts can be made."""

import argparse
import contextlib
import io
import json
import os
import socket
import sys
import threading
import unittest
from unittest import mock

import cluster
import link
import stream
from program import ROOT, ProgramTest

PYTHON = sys.executable
LINES = [{"bytes": 8, "seconds": [3, 1, 2], "sent": 9, "received": 10}, {"bytes": 16, "seconds": [4], "sent": 1, "received": 2}]


def writes(lines, status=0):
    """Returns a command that writes lines of JSON and ends."""
    text = "\n".join(json.dumps(line) for line in lines)
    return [PYTHON, "-c", f"import sys; print({text!r}); sys.exit({status})"], None


class Sizes(unittest.TestCase):
    def test_have_binary_units(self):
        for text, size in (("4096", 4096), ("64KB", 65536), (" 16MB", 16 << 20), ("1GB", 1 << 30)):
            self.assertEqual(size, link.parse_size(text))

    def test_refuse_what_is_not_a_size(self):
        for text in ("", "many", "1.5MB", "-1", "1TB", "1MB2"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "write 4096, 64KB or 16MB"):
                link.parse_size(text)


class Rows(unittest.TestCase):
    def test_are_medians_of_what_the_first_process_writes(self):
        rows = link.rows_of("gloo", [writes(LINES), writes([])])
        self.assertEqual([{"subject": "gloo", "bytes": 8, "seconds": 2, "sent": 9, "received": 10},
                          {"subject": "gloo", "bytes": 16, "seconds": 4, "sent": 1, "received": 2}], rows)

    def test_are_none_where_any_process_fails(self):
        for first, second in ((1, 0), (0, 1)):
            with self.assertRaisesRegex(SystemExit, "link: gloo failed"):
                link.rows_of("gloo", [writes(LINES, first), writes([], second)])

    def test_need_the_mpiexec_of_another_mpi(self):
        with self.assertRaisesRegex(SystemExit, "link: mpich=/nowhere: there is no /nowhere/bin/mpiexec.hydra"):
            link.measure("mpich=/nowhere", None, None)

    def test_leave_no_process_behind(self):
        with link.started([writes([]), ([PYTHON, "-c", "import time; time.sleep(600)"], None)]) as processes:
            self.assertIsNone(processes[1].poll())
        self.assertEqual(-9, processes[1].returncode)

    def test_compare_with_the_stream_and_with_the_least_bytes(self):
        rows = link.compare([{"subject": "stream", "bytes": 100, "seconds": 2, "sent": 100, "received": 100},
                             {"subject": "gloo", "bytes": 100, "seconds": 3, "sent": 110, "received": 150}])
        self.assertEqual([1, 1.5], [row["times_stream"] for row in rows])
        self.assertEqual([1, 1.5], [row["times_least"] for row in rows])

    def test_are_a_table_by_size(self):
        row = {"sent": 5, "received": 7, "times_stream": 1.5, "times_least": 1.25}
        with contextlib.redirect_stdout(io.StringIO()) as table:
            link.print_table([{"subject": "mpi", "bytes": 20, "seconds": 0.25, **row},
                              {"subject": "gloo", "bytes": 3, "seconds": 0.001, **row}])
        self.assertEqual(["| gloo | 3 | 1.00 | 1.50 | 7 | 1.250 |", "| mpi | 20 | 250.00 | 1.50 | 7 | 1.250 |"],
                         table.getvalue().splitlines()[2:])


class Stream(unittest.TestCase):
    def setUp(self):
        self.near, self.far = socket.socketpair()
        self.addCleanup(self.near.close)
        self.addCleanup(self.far.close)

    def test_counts_the_bytes_of_a_round_at_the_interface(self):
        answering = threading.Thread(target=stream.answer, args=(self.far,))
        answering.start()
        counters = iter([1000, 500, 7000, 3500])  # sent and received, before and after
        with mock.patch.object(stream, "counter", lambda *_: next(counters)):
            line = stream.measure(self.near, "any", 300_000, rounds=3)
        self.near.shutdown(socket.SHUT_WR)
        answering.join()
        self.assertEqual((300_000, 3, 2000, 1000), (line["bytes"], len(line["seconds"]), line["sent"], line["received"]))
        self.near.setblocking(False)
        self.assertRaises(BlockingIOError, self.near.recv, 1)  # not a byte more than requested

    def test_says_that_the_other_end_is_gone(self):
        self.far.sendall(bytes(10))
        self.far.shutdown(socket.SHUT_WR)
        before = set(threading.enumerate())
        with self.assertRaisesRegex(SystemExit, "the peer is gone"):
            stream.exchange(self.near, 20)
        for sender in set(threading.enumerate()) - before:
            sender.join()


class Whole(ProgramTest):
    def setUp(self):
        super().setUp()
        # Folders of ip and tc that the PATH of tests lacks.
        patch = mock.patch.dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        patch.start()
        self.addCleanup(patch.stop)

    def refusal(self):
        """Returns why two hosts cannot be made on this machine, or an empty string if they can."""
        return cluster.refusal(hosts=2).rsplit(": ", 1)[-1]

    def test_measures_or_says_what_is_missing(self):
        refusal = self.refusal()
        mpiexec = (ROOT / os.environ["PHALANX_TEST_MPIEXEC"]).resolve()
        others = {"mpich": mpiexec.parents[1]} if mpiexec.name.startswith("mpiexec") else {}  # else it says why not
        subjects = ",".join(["hybrid", *(f"{name}={folder}" for name, folder in others.items())])
        process = self.start("--bytes=64KB", "--rounds=2", f"--subjects={subjects}",
                             f"--json={self.folder}/link.json", command=[str(ROOT / "tools/bench/link/link")], cwd=ROOT)
        if refusal:
            self.assert_status(1, process)
            self.assertIn(refusal, process.err)
            return
        self.assert_status(0, process)
        rows = json.loads((self.folder / "link.json").read_text())["rows"]
        self.assertEqual([(subject, 65536) for subject in ("stream", "hybrid", *others)],
                         [(row["subject"], row["bytes"]) for row in rows])
        for row in rows:
            self.assertGreater(row["seconds"], 0)
            self.assertGreaterEqual(min(row["sent"], row["received"]), 65536, "all bytes were sent over the link")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
