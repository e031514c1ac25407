#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a killed rank soon ends its job, with one report that names the rank, and that a killed launcher ends its
ranks."""

import os
import signal
import time

import program
from program import ENDLESS, ProgramTest, becomes_true, free_port, mpirun, processes, sets, torchrun

SOON = 5  # seconds, as promised


class Death(ProgramTest):
    way = {}

    def start_training(self, ranks=2):
        process = self.train(*sets(ENDLESS, self.way, {"launch.ranks": ranks}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        return process, run

    def kill_rank(self, rank, ranks=2):
        process, run = self.start_training(ranks)
        os.kill(self.rank_process(run, rank), signal.SIGKILL)
        killed = time.monotonic()
        self.assert_status(3, process)
        took = time.monotonic() - killed
        print(f"rank {rank} of {ranks} killed: the job ended after {took:.2f} s")
        self.assertLess(took, SOON)
        self.assert_framed_once(process, rank, ranks, run.log(rank))
        self.assertTrue(process.err.startswith("┌─"), process.err)
        self.assertIn("It was killed by signal 9 (SIGKILL)", process.err)
        self.assertEqual([], list((run.path / "logs").glob("*.failure")))
        self.assert_nothing_left()

    def kill_launcher(self):
        process, _ = self.start_training()
        self.kill(process)

    def kill(self, process):
        """Kills a launcher whose ranks are training, and expects that everything ends with it."""
        started = set(processes(self.mark)) - {process.pid}
        self.assertGreaterEqual(len(started), 2)
        process.kill()
        killed = time.monotonic()
        self.assertTrue(becomes_true(lambda: not processes(self.mark), SOON), self._describe_processes())
        print(f"launcher killed: the last process ended after {time.monotonic() - killed:.2f} s")
        self.assert_status(128 + signal.SIGKILL, process)
        self.assert_nothing_left()


class Local(Death):
    def test_rank_0(self):
        self.kill_rank(0)

    def test_rank_1(self):
        self.kill_rank(1)

    def test_rank_2_of_4(self):
        self.kill_rank(2, 4)

    def test_launcher(self):
        self.kill_launcher()

    def start_by_script(self, **variables):
        """Starts two ranks in the background of a shell that waits for them."""
        settings = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        marks = " ".join(f"{name}={value}" for name, value in variables.items())
        script = f'for rank in 0 1; do RANK=$rank LOCAL_RANK=$rank {marks} "$@" & done; wait'
        process = self.train(*sets(ENDLESS), command=["sh", "-c", script, "sh", program.TRAIN], environment=settings)
        self.wait_for_training(self.run_folder(), process)
        return process

    def test_torchrun(self):
        self.kill(self.start_by_script(TORCHELASTIC_RUN_ID="none"))

    def test_ranks_outlive_a_script_that_is_no_launcher(self):
        process, run = self.start_by_script(), self.run_folder()
        process.kill()
        process.wait()
        done = len(run.metrics)
        self.assertTrue(becomes_true(lambda: len(run.metrics) >= done + 2), run.log(0).read_text())

    def test_rank_that_hangs_does_not_keep_its_job(self):
        process, run = self.start_training(3)
        os.kill(self.rank_process(run, 2), signal.SIGSTOP)
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        killed = time.monotonic()
        self.assert_status(3, process)
        self.assertLess(time.monotonic() - killed, SOON)
        self.assert_framed_once(process, 1, 3, run.log(1))
        self.assert_nothing_left()

    def test_peer_of_a_rank_that_no_launcher_watches_notices(self):
        port = free_port()
        ranks = [self.train(*sets(ENDLESS), environment=torchrun(rank, 2, port)) for rank in range(2)]
        self.wait_for_training(self.run_folder(), ranks[0])
        ranks[1].kill()
        killed = time.monotonic()
        self.assert_status(1, ranks[0])
        self.assertLess(time.monotonic() - killed, SOON)
        self.assert_framed_once(ranks[0], 0, 2, self.run_folder().log(0))
        self.assertIn("rank 1 ended", ranks[0].err.replace("\n│ ", " "))


class Mpi(Death):
    way = {"launch.with": "mpi"}

    def test_rank_0(self):
        self.kill_rank(0)

    def test_rank_1(self):
        self.kill_rank(1)

    def test_launcher(self):
        self.kill_launcher()

    def test_rank_of_backend_mpi(self):
        self.way = {"backend": "mpi"}
        self.kill_rank(1)

    def kill_mpirun(self, backend, *wrapper):
        process = self.train(*sets(ENDLESS, backend=backend), command=[*mpirun(2), *wrapper, program.TRAIN])
        self.wait_for_training(self.run_folder(), process)
        self.kill(process)

    def test_mpirun_started_by_hand(self):
        self.kill_mpirun("auto")

    def test_mpirun_started_by_hand_for_backend_mpi(self):
        self.kill_mpirun("mpi")

    def test_mpirun_whose_ranks_are_started_by_a_script(self):
        self.kill_mpirun("auto", "sh", "-c", '"$@"; exit $?', "sh")

    def ranks(self):
        """Returns the processes of this test that run train, from their first instruction on."""
        def runs_train(pid):
            try:
                return os.path.samefile(f"/proc/{pid}/exe", program.TRAIN)
            except OSError:
                return False
        return [pid for pid in processes(self.mark) if runs_train(pid)]

    def test_mpirun_killed_while_its_ranks_start(self):
        for seconds in (0, 0.3, 0.6, 0.9, 1.2, 1.5):
            with self.subTest(seconds=seconds):
                process = self.train(*sets(ENDLESS), command=[*mpirun(2), program.TRAIN], run=f"after{seconds}")
                self.assertTrue(becomes_true(lambda: len(self.ranks()) >= 2), process.text())
                time.sleep(seconds)
                process.kill()
                self.assertEqual(128 + signal.SIGKILL, process.wait())
                # A rank checks for its launcher only after it has loaded LibTorch.
                self.assertTrue(becomes_true(lambda: not processes(self.mark), 4 * SOON), self._describe_processes())
                self.assert_nothing_left()

    def test_rank_of_a_job_that_mpirun_started_by_hand(self):
        process = self.train(*sets(ENDLESS), command=[*mpirun(2), program.TRAIN])
        self.wait_for_training(self.run_folder(), process)
        os.kill(self.rank_process(self.run_folder(), 1), signal.SIGKILL)
        killed = time.monotonic()
        self.assertNotEqual(0, process.wait())
        self.assertLess(time.monotonic() - killed, SOON)
        self.assertLessEqual(process.err.count("┌─"), 1, process.text())
        self.assert_nothing_left()


if __name__ == "__main__":
    program.main()
