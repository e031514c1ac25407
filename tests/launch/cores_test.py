#!/usr/bin/env python3
"""E4: each rank keeps to the cores that launch.bind_to says, with all of its threads."""

import os
import pathlib
import re
import signal

import program
from program import ENDLESS, SHORT, ProgramTest, free_port, mpirun, sets

CORES = os.sched_getaffinity(0)


def cores_of_threads(pid):
    """The cores that each thread of a process may use."""
    return [os.sched_getaffinity(int(task.name)) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


class Cores(ProgramTest):
    def said(self, rank, run="run"):
        """The threads and cores of a rank, as its log has it; None: it keeps to none."""
        log = self.run_folder(run).log(rank).read_text()
        found = re.search(r"computes with (\d+) threads?(?:, bound to cores ([\d,]+))?\n", log)
        return int(found[1]), found[2] and {int(core) for core in found[2].split(",")}

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

    def test_cores_that_are_taken_away_are_no_ranks(self):
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
        text = " ".join(process.err.replace("│", " ").split())  # lines are broken where the host's name has it
        self.assertIn("launch.bind_to: core, on ", text)
        self.assertIn("too few cores for 2 ranks (1); start fewer ranks there, or take launch.bind_to: none", text)

    def test_ranks_of_another_launcher(self):
        self.need_cores(2)
        port = free_port()
        processes = [self.train(*sets(SHORT, {"launch.bind_to": "core"}), environment={
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}) for rank in range(2)]
        for process in processes:
            self.assert_status(0, process)
        self.assert_own_cores()


class Mpi(Cores):
    def test_each_rank_has_its_own_cores(self):
        self.need_cores(2)
        self.assert_status(0, self.train(*sets(SHORT, {"launch.bind_to": "core", "launch.with": "mpi"})))
        self.assert_own_cores()

    def test_what_mpirun_has_bound_stays(self):
        """Each rank computes with as many threads as it has cores."""
        self.need_cores(2)
        command = [word for word in mpirun(2) if word != "--oversubscribe"]
        command[command.index("none")] = "core"
        self.assert_status(0, self.train(*sets(SHORT), command=[*command, program.TRAIN]))
        threads, cores = self.said(0)
        self.assertIsNone(cores)
        self.assertLessEqual(threads, len(CORES) // 2)


if __name__ == "__main__":
    program.main()
