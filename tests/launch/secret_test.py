#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the job's secret reaches each rank, however the ranks are started, and is what admits them."""

import program
from program import QUICKSTART, SHORT, ProgramTest, becomes_true, free_port, mpirun, sets, torchrun

SECRET = "a secret of the tests"
SECRETS = {"PHALANX_JOB_SECRET": SECRET}
USED = "ranks recognize each other by the job's secret"


class Secret(ProgramTest):
    def assert_used(self, processes, ranks=2, run="run"):
        for process in processes:
            self.assert_status(0, process)
            self.assertNotIn(SECRET, process.text())
        for rank in range(ranks):
            text = self.run_folder(run).log(rank).read_text()
            self.assertIn(USED, text)
            self.assertNotIn(SECRET, text)
        for path in self.run_folder(run).path.rglob("*"):
            if path.is_file():
                self.assertNotIn(SECRET.encode(), path.read_bytes(), path)
        self.assert_nothing_left()

    def in_a_file(self, mode=0o600):
        path = self.folder / "job.secret"
        path.write_text(SECRET + "\n")
        path.chmod(mode)
        return {"PHALANX_JOB_SECRET_FILE": str(path)}


class Local(Secret):
    def test_our_launcher_passes_it_on(self):
        for run, variables in (("variable", SECRETS), ("file", self.in_a_file())):
            with self.subTest(run):
                self.assert_used([self.train(*sets(SHORT, backend="gloo"), run=run, environment=variables)], run=run)

    def test_ranks_without_one_say_so(self):
        self.assert_status(0, self.train(*sets(SHORT, backend="gloo")))
        self.assertIn("the job has no secret (PHALANX_JOB_SECRET)", self.run_folder().log(1).read_text())

    def test_a_file_that_others_may_read_is_refused(self):
        process = self.train(*sets(SHORT, backend="gloo"), environment=self.in_a_file(0o644))
        self.assertNotEqual(0, process.wait())
        self.assertIn("can be accessed by users other than its owner", process.words)


class Joined(Secret):
    def join(self, environments, backend="gloo", arguments=lambda rank: ()):
        return [self.train(*sets(SHORT, backend=backend), *arguments(rank), environment=environment)
                for rank, environment in enumerate(environments)]

    def by_url(self, port):
        return lambda rank: (f"--init_method=tcp://127.0.0.1:{port}", f"--rank={rank}", "--world_size=2")

    def test_variables_of_torchrun(self):
        port = free_port()
        self.assert_used(self.join([{**torchrun(rank, 2, port), **SECRETS} for rank in range(2)]))

    def test_flags(self):
        self.assert_used(self.join([self.in_a_file()] * 2, arguments=self.by_url(free_port())))

    def test_a_step_of_slurm(self):
        step = {"SLURM_NTASKS": "2", "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0",
                "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": "2",
                "SLURM_STEP_LAUNCHER_PORT": "41237"}
        self.assert_used(self.join([{**step, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), **SECRETS}
                                    for rank in range(2)]))

    def test_a_rank_with_another_secret_ends_at_once(self):
        first, second = self.join([SECRETS, {"PHALANX_JOB_SECRET": "another secret of others"}],
                                  arguments=self.by_url(free_port()))
        self.assertTrue(becomes_true(lambda: not second.running))
        self.assertNotEqual(0, second.wait())
        self.assertIn("this rank's secret differs from that of rank 0", second.words)
        first.kill()


class Mpi(Secret):
    def test_our_launcher_of_mpi_passes_it_on(self):
        process = self.train(*sets(SHORT, {"launch.with": "mpi", "launch.ranks": 2, "backend": "gloo"}), environment=SECRETS)
        self.assert_used([process])

    def test_mpirun(self):
        process = self.start(*sets(SHORT, backend="gloo"), environment=SECRETS,
                             command=[*mpirun(2), program.TRAIN, f"--config={QUICKSTART}",
                                      f"--run_dir={self.folder}/run"])
        self.assert_used([process])


if __name__ == "__main__":
    program.main()
