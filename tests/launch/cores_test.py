#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that each rank, with all of its threads, stays on the cores that launch.bind_to selects."""

import os
import pathlib
import re
import signal

import program
from program import ENDLESS, SHORT, ProgramTest, free_port, mpirun, sets, torchrun

CORES = os.sched_getaffinity(0)
os.environ.pop("OMP_NUM_THREADS", None)  # set in all other tests


def cores_of_threads(pid):
    """Returns the cores that each thread of a process may use."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found.append(os.sched_getaffinity(int(task.name)))
        except ProcessLookupError:
            pass  # the thread has ended
    return found


def numbers(text):
    """Parses "0-2,5"."""
    ranges = [part.partition("-")[::2] for part in text.split(",")]
    return {number for first, last in ranges for number in range(int(first), int(last or first) + 1)}


class Cores(ProgramTest):
    def said(self, rank, run="run"):
        """Returns the threads and cores of a rank according to its log; the cores are None if it is not bound."""
        log = self.run_folder(run).log(rank).read_text()
        found = re.search(r"computes with (\d+) threads?(?:, bound to cores ([\d,-]+))?\n", log)
        return int(found[1]), found[2] and numbers(found[2])

    def need_cores(self, count):
        if len(CORES) < count:
            self.skipTest(f"this test needs {count} cores, and may use {len(CORES)}")

    def assert_own_cores(self, run="run"):
        (threads, first), (more_threads, second) = self.said(0, run), self.said(1, run)
        self.assertFalse(first & second)
        self.assertEqual(CORES, first | second)
        self.assertEqual((len(first), len(second)), (threads, more_threads))


class Local(Cores):
    def test_ranks_use_any_core(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        self.assertEqual((max(1, len(CORES) // 2), None), self.said(1))

    def test_omp_num_threads_is_respected(self):
        self.need_cores(2)
        alone = {"launch.ranks": 1}
        for text, threads in [("1", 1), ("1,2", 1), ("1000", len(CORES)), ("many", len(CORES))]:
            with self.subTest(text):
                self.assert_status(0, self.train(*sets(SHORT, alone), run=text, environment={"OMP_NUM_THREADS": text}))
                self.assertEqual((threads, None), self.said(0, text))
        self.assert_status(0, self.train(*sets(SHORT, {**alone, "launch.threads": 2}), run="config",
                                         environment={"OMP_NUM_THREADS": "1"}))
        self.assertEqual((2, None), self.said(0, "config"))

    def test_each_rank_has_its_own_cores(self):
        self.need_cores(2)
        process = self.train(*sets(ENDLESS, {"launch.bind_to": "core"}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        for rank in range(2):
            _, cores = self.said(rank)
            found = cores_of_threads(self.rank_process(run, rank))
            self.assertGreater(len(found), 0)
            for one in found:
                self.assertEqual(cores, one)
        self.assert_own_cores()
        process.kill(signal.SIGTERM)
        process.wait()

    def test_ranks_that_are_threads(self):
        self.need_cores(2)
        self.assert_status(0, self.train(*sets(SHORT, {"launch.bind_to": "core", "backend": "inproc"})))
        self.assert_own_cores()

    def test_threads_are_as_many_as_the_config_says(self):
        self.assert_status(0, self.train(*sets(SHORT, {"launch.bind_to": "numa", "launch.threads": 3})))
        threads, cores = self.said(0)
        self.assertEqual(3, threads)
        self.assertTrue(cores and cores <= CORES, cores)

    def test_ranks_use_only_the_cores_that_taskset_allows(self):
        self.need_cores(2)
        one = min(CORES)
        process = self.train(*sets(SHORT, {"launch.bind_to": "numa"}),
                             command=["taskset", "--cpu-list", str(one), program.TRAIN])
        self.assert_status(0, process)
        self.assertEqual([(1, {one})] * 2, [self.said(rank) for rank in range(2)])

    def test_more_ranks_than_cores(self):
        process = self.train(*sets(SHORT, {"launch.bind_to": "core"}),
                             command=["taskset", "--cpu-list", str(min(CORES)), program.TRAIN])
        self.assert_status(2, process)
        self.assertIn("launch.bind_to: core, on ", process.words)
        self.assertIn("too few cores for 2 ranks (1); use launch.bind_to: none", process.words)

    def crowd(self, backend, **more):
        """Starts 33 ranks on one core."""
        settings = {**SHORT, "train.max_steps": 1, "launch.ranks": 33, "backend": backend, **more}
        return self.train(*sets(settings), run=backend, command=["taskset", "--cpu-list", str(min(CORES)), program.TRAIN])

    def test_far_more_ranks_than_cores_are_refused(self):
        for backend in ("auto", "inproc"):
            with self.subTest(backend=backend):
                process = self.crowd(backend)
                self.assert_status(2, process)
                self.assertEqual("--set launch.ranks=33: launch.ranks: 33 ranks on 1 core are more than 32 per core; start "
                                 "at most 32, or set launch.oversubscribe: true\n", process.err)
                self.assertFalse(self.run_folder(backend).path.exists())

    def test_far_more_ranks_than_cores_by_request(self):
        self.assert_status(0, self.crowd("inproc", **{"launch.oversubscribe": "true"}))

    def join(self, **options):
        """Starts two ranks as another launcher does."""
        port = free_port()
        return [self.train(*sets(SHORT, {"launch.bind_to": "core"}), environment=torchrun(rank, 2, port), **options)
                for rank in range(2)]

    def test_ranks_of_another_launcher(self):
        self.need_cores(2)
        if len(CORES) < os.cpu_count():
            self.skipTest("this process may not use all cores")
        for process in self.join():
            self.assert_status(0, process)
        self.assert_own_cores()

    def test_ranks_that_another_launcher_may_have_bound(self):
        self.need_cores(2)
        for process in self.join(command=["taskset", "--cpu-list", str(min(CORES)), program.TRAIN]):
            self.assert_status(2, process)
            self.assertIn(f"has already restricted this rank to cores {min(CORES)}", process.words)


class Mpi(Cores):
    def test_each_rank_has_its_own_cores(self):
        self.need_cores(2)
        self.assert_status(0, self.train(*sets(SHORT, {"launch.bind_to": "core", "launch.with": "mpi"})))
        self.assert_own_cores()

    def test_a_binding_by_mpirun_is_kept(self):
        self.need_cores(2)
        command = mpirun(2)
        command[command.index("none")] = "hwthread"
        process = self.train(*sets(ENDLESS), command=[*command, program.TRAIN])
        run = self.run_folder()
        self.wait_for_training(run, process)
        first, second = (os.sched_getaffinity(self.rank_process(run, rank)) for rank in range(2))
        self.assertFalse(first & second)
        self.assertEqual((1, None), self.said(0))
        process.kill(signal.SIGTERM)
        process.wait()


if __name__ == "__main__":
    program.main()
