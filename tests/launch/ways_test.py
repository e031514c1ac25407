#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks connect however they are started, and learn the same."""

import program
from program import QUICKSTART, SHORT, ProgramTest, RunFolder, becomes_true, free_port, mpiexec, mpirun, sets, torchrun


class Way(ProgramTest):
    def assert_trains(self, process, ranks, run="run"):
        self.assert_status(0, process)
        folder = self.run_folder(run)
        self.assertEqual((ranks, 16, False), tuple(folder.summary[key] for key in ("ranks", "steps", "stopped")))
        self.assertEqual("", process.err)
        self.assertEqual(1, process.out.count("  test  "), process.out)
        for rank in range(ranks if "inproc" not in run else 1):
            self.assertTrue(folder.log(rank).exists(), rank)
        self.assert_nothing_left()

    def assert_connects_by(self, backend, run="run"):
        self.assertIn(f"connects by {backend}", self.run_folder(run).log(0).read_text())


class Local(Way):
    def test_shm_2(self):
        self.assert_trains(self.train(*sets(SHORT)), 2)
        self.assert_connects_by("shm")

    def test_shm_4(self):
        self.assert_trains(self.train(*sets(SHORT, {"launch.ranks": 4, "backend": "shm"})), 4)
        self.assert_connects_by("shm")

    def test_inproc_2(self):
        self.assert_trains(self.train(*sets(SHORT, backend="inproc"), run="inproc"), 2, "inproc")

    def test_one_rank(self):
        self.assert_trains(self.train(*sets(SHORT, {"launch.ranks": 1})), 1)

    def test_backend_mpi_without_mpirun_says_what_to_do(self):
        process = self.train(*sets(SHORT, {"backend": "mpi", "launch.with": "local"}))
        self.assert_status(2, process)
        self.assertIn("launch.with: mpi", process.err)


class Joined(Way):
    """Starts ranks as launchers do: one process each, which finds its rank in the environment."""

    def join(self, environments):
        return [self.train(*sets(SHORT), environment=environment) for environment in environments]

    def assert_join(self, processes):
        for process in processes:
            self.assert_status(0, process)
        self.assert_trains(processes[0], len(processes))
        for other in processes[1:]:
            self.assertEqual("", other.text().replace("--- stdout\n", "").replace("--- stderr\n", ""))

    def test_torchrun(self):
        port = free_port()
        self.assert_join(self.join([torchrun(rank, 2, port) for rank in range(2)]))
        self.assert_connects_by("shm")

    def test_torchrun_of_4_whose_rank_0_starts_last(self):
        port = free_port()
        self.assert_join(self.join([torchrun(rank, 4, port) for rank in (3, 1, 2, 0)])[::-1])

    def test_torchrun_of_one(self):
        self.assert_join(self.join([torchrun(0, 1, free_port())]))

    def by_hand(self, rank, size, port, **more):
        """Returns the variables that a script sets on hosts whose address does not tell that they are the same: 0.0.0.0
        is not a loopback address."""
        return torchrun(rank, size, port, **{"MASTER_ADDR": "0.0.0.0", "LOCAL_WORLD_SIZE": None, **more})

    def test_ranks_that_do_not_know_how_many_share_their_host(self):
        port = free_port()
        self.assert_join(self.join([self.by_hand(rank, 2, port) for rank in range(2)]))
        self.assert_connects_by("shm")

    def test_ranks_that_know_nothing_of_their_hosts(self):
        port = free_port()
        self.assert_join(self.join([self.by_hand(rank, 2, port, LOCAL_RANK=None) for rank in range(2)]))
        self.assert_connects_by("shm")

    def test_ranks_that_do_not_know_how_many_share_each_of_two_hosts(self):
        port = free_port()
        self.assert_join(self.join([self.by_hand(rank, 3, port, PHALANX_HOST_KEY=f"host {rank // 2}",
                                                 LOCAL_RANK=str(rank % 2)) for rank in range(3)]))
        self.assert_connects_by("hybrid")

    def by_flags(self, rank, size, url):
        return self.train(*sets(SHORT), f"--init_method={url}", f"--rank={rank}", f"--world_size={size}")

    def test_ranks_that_flags_tell_where_to_meet(self):
        port = free_port()
        self.assert_join([self.by_flags(rank, 2, f"tcp://localhost:{port}") for rank in range(2)])
        self.assert_connects_by("shm")

    def test_ranks_that_meet_in_a_file(self):
        self.assert_join([self.by_flags(rank, 3, f"file://{self.temporary}/store") for rank in range(3)])
        self.assert_connects_by("shm")

    def test_ranks_whose_flags_say_only_a_part(self):
        alone = self.train(*sets(SHORT), "--init_method=tcp://localhost:29500")
        self.assert_status(2, alone)
        self.assertIn("init_method tcp://localhost:29500: the rank of this process is unknown; give rank and "
                      "world_size", alone.err)
        half = self.train(*sets(SHORT), "--init_method=tcp://localhost:29500", "--rank=0")
        self.assert_status(2, half)
        self.assertIn("rank is given, but world_size is not", half.err)

    def test_two_processes_with_the_same_rank(self):
        port = free_port()
        processes = [self.by_flags(rank, 3, f"tcp://localhost:{port}") for rank in (0, 1, 1)]
        self.assertTrue(becomes_true(lambda: any(not process.running for process in processes[1:])))
        text = "".join(process.err for process in processes[1:])
        self.assertIn("another process has joined as rank 1; give each process a rank of its own", text)

    def slurm(self, rank, size):
        return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_LOCALID": str(rank), "SLURM_NNODES": "1",
                "SLURM_NODEID": "0", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(size),
                "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_TASKS_PER_NODE": str(size), "SLURM_STEP_LAUNCHER_PORT": "41237"}

    def test_step_of_slurm(self):
        self.assert_join(self.join([self.slurm(rank, 2) for rank in range(2)]))
        self.assert_connects_by("shm")

    def test_step_of_slurm_whose_last_start_was_killed(self):
        def stores():
            return [file for file in self.temporary.glob("phalanx-*.store") if file.stat().st_size > 0]
        alone = self.train(*sets(SHORT), environment=self.slurm(0, 2), run="killed")
        self.assertTrue(becomes_true(stores), alone.text())
        alone.kill()
        alone.wait()
        self.assertEqual(1, len(stores()), "what the next start finds")
        self.assert_join(self.join([self.slurm(rank, 2) for rank in range(2)]))
        self.assert_connects_by("shm")

    def test_a_batch_script_of_slurm_is_not_a_rank(self):
        batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "4711"}
        self.assert_trains(self.train(*sets(SHORT), environment=batch), 2)

    def test_a_strategy_for_one_rank_refuses_more(self):
        port = free_port()
        settings = sets(SHORT, {"strategy": "single", "launch.ranks": 1})
        processes = [self.train(*settings, environment=torchrun(rank, 2, port)) for rank in range(2)]
        for process in processes:
            self.assert_status(2, process)
        self.assertEqual(1, sum(process.err.count("single trains on one rank") for process in processes),
                         "".join(process.text() for process in processes))

    def test_ranks_with_different_configs_refuse_to_train_together(self):
        port = free_port()
        processes = [self.train(*sets(SHORT, {"optimizer.lr": 0.01 * (rank + 1)}), environment=torchrun(rank, 2, port))
                     for rank in range(2)]
        for process in processes:
            self.assert_status(2, process)
        said = ("rank 1 was started with a different config than rank 0: optimizer.lr is 0.02 on rank 1 and 0.01 on "
                "rank 0")
        self.assertEqual(1, sum(process.err.count(said) for process in processes),
                         "".join(process.text() for process in processes))

    def test_ranks_with_different_backends_do_not_wait_for_each_other(self):
        port = free_port()
        processes = [self.train(*sets(SHORT, {"backend": backend}), environment=torchrun(rank, 2, port))
                     for rank, backend in enumerate(("shm", "gloo"))]
        for process in processes:
            self.assert_status(2, process)
        self.assertIn("backend is gloo on rank 1 and shm on rank 0", processes[0].err)

    def test_different_processors_of_ranks_are_reported_once(self):
        port = free_port()
        older = {**torchrun(1, 2, port), "ATEN_CPU_CAPABILITY": "default"}
        processes = [self.train(*sets(SHORT), environment=environment) for environment in (torchrun(0, 2, port), older)]
        for process in processes:
            self.assert_status(0, process)
        text = "".join(process.text() for process in processes)
        self.assertRegex(text, r"The processors of the ranks differ \(rank 0: .+, rank 1: .+ DEFAULT\), and so do the last bits")
        self.assertEqual(1, text.count("The processors of the ranks differ"))

    def test_a_contradiction_names_the_variable(self):
        process = self.train(*sets(SHORT), environment={**torchrun(0, 2, 1), "RANK": "2"})
        self.assert_status(2, process)
        self.assertIn("RANK=2 is not below WORLD_SIZE=2", process.err)


class Mpi(Way):
    def test_launched(self):
        self.assert_trains(self.train(*sets(SHORT, {"launch.with": "mpi"})), 2)
        self.assert_connects_by("shm")

    def test_launched_for_backend_mpi(self):
        self.assert_trains(self.train(*sets(SHORT, backend="mpi")), 2)
        self.assert_connects_by("mpi")

    def test_launched_with_options_and_variables(self):
        levels = "{levels: [pair], keys: {pair: {variable: PAIR_OF_TEST}}}"
        process = self.train(*sets(SHORT, {"launch.with": "mpi", "launch.mpirun_options": "[--tag-output]",
                                           "launch.pass_variables": "[PAIR_*]", "framework.topology": levels}),
                             environment={"PAIR_OF_TEST": "a"})
        self.assert_trains(process, 2)
        self.assertIn("[1,0]<stdout>", process.out)

    def test_a_variable_that_is_not_set_is_refused(self):
        process = self.train(*sets(SHORT, {"launch.with": "mpi", "launch.pass_variables": "[NOT_SET_IN_TEST]"}))
        self.assert_status(2, process)
        self.assertIn("launch.pass_variables: NOT_SET_IN_TEST is not set", process.words)
        self.assertFalse((self.folder / "run").exists())

    def test_32_ranks_start_and_stop(self):
        few = {"launch.ranks": 32, "launch.threads": 1, "dataset.train_samples": 128, "dataset.test_samples": 64,
               "train.max_steps": 2}
        process = self.train(*sets(SHORT, few, backend="mpi"))
        self.assert_status(0, process, 300)
        summary = self.run_folder().summary
        self.assertEqual((32, 2, False), tuple(summary[key] for key in ("ranks", "steps", "stopped")))
        self.assertEqual("", process.err)
        self.assert_nothing_left()

    def test_joined_by_hand(self):
        for backend, chosen in (("auto", "shm"), ("mpi", "mpi")):
            with self.subTest(backend=backend):
                process = self.train(*sets(SHORT, backend=backend), command=[*mpirun(2), program.TRAIN], run=backend)
                self.assert_trains(process, 2, backend)
                self.assert_connects_by(chosen, backend)

    def test_joined_by_hand_chooses_one_folder(self):
        self.assert_status(0, self.start(f"--config={QUICKSTART}", *sets(SHORT), command=[*mpirun(2), program.TRAIN]))
        runs = list((self.folder / "runs").iterdir())
        self.assertEqual(1, len(runs), runs)
        self.assertEqual(2, RunFolder(runs[0]).summary["ranks"])


class Hydra(Way):
    """Under the mpiexec of an MPI with the standard ABI of MPI 5.0."""

    def by_hand(self, run, *settings, hosts=(), script=(), status=0):
        command = [mpiexec(), *hosts, "-n", "2", *script, program.TRAIN]
        process = self.train(*sets(SHORT, *settings), command=command, run=run)
        self.assert_status(status, process)
        return process

    def test_joined_by_hand(self):
        for backend, chosen in (("auto", "shm"), ("mpi", "mpi"), ("gloo", "gloo"), ("hybrid", "hybrid")):
            with self.subTest(backend=backend):
                self.assert_trains(self.by_hand(backend, {"backend": backend}), 2, backend)
                self.assert_connects_by(chosen, backend)

    def test_ranks_that_believe_to_be_on_two_hosts_meet_through_mpi(self):
        """MPICH's mpiexec takes the two names for two hosts, Intel MPI's does not."""
        script = ("sh", "-c", 'PHALANX_HOST_KEY=$PMI_RANK exec "$@"', "sh")
        for backend in ("gloo", "hybrid"):
            with self.subTest(backend=backend):
                self.by_hand(backend, {"backend": backend}, hosts=("-hosts", "localhost,127.0.0.1"), script=script)
                self.assert_connects_by(backend, backend)

    def test_launched(self):
        home = {"MPI_HOME": str(mpiexec().parent.parent)}
        for backend, chosen in (("auto", "shm"), ("mpi", "mpi")):
            with self.subTest(backend=backend):
                process = self.train(*sets(SHORT, {"launch.with": "mpi"}, backend=backend), environment=home, run=backend)
                self.assert_trains(process, 2, backend)
                self.assert_connects_by(chosen, backend)
                self.assertIn("mpiexec", self.run_folder(backend).log(1).read_text())

    def test_learns_the_same_as_without_mpi(self):
        self.by_hand("mpi", {"backend": "mpi"})
        self.assert_status(0, self.train(*sets(SHORT, backend="shm"), run="shm"))
        self.assertEqual(self.run_folder("shm").weights, self.run_folder("mpi").weights)


class Equal(ProgramTest):
    """A run depends only on its config, not on what started it."""

    def weights(self, run, *settings, config=QUICKSTART):
        self.assert_status(0, self.train(*settings, config=config, run=run))
        return self.run_folder(run).weights

    def test_config_of_the_run_folder_reproduces_the_run(self):
        first = self.weights("first", *sets(SHORT))
        again = self.weights("again", config=self.run_folder("first").config)
        self.assertEqual(first, again)
        self.assertEqual(self.run_folder("first").config.read_text(), self.run_folder("again").config.read_text())

    def test_hosts_are_distinguished_by_their_keys(self):
        """Compares four processes that believe to be on two hosts with four ranks in two groups that the config
        names."""
        levels = {"launch.ranks": 4, "strategy": "{intra: all_reduce, inter: {local_sgd: {every: 5}}}"}
        grouped = self.weights("grouped", *sets(SHORT, levels, {"strategy.ranks_per_group": 2}))
        port = free_port()
        processes = [self.train(*sets(SHORT, levels), run="keys",
                                environment=torchrun(rank, 4, port, PHALANX_HOST_KEY=f"host {rank // 2}"))
                     for rank in range(4)]
        for process in processes:
            self.assert_status(0, process)
        self.assertEqual(grouped, self.run_folder("keys").weights)
        self.assertNotEqual(grouped, self.weights("one host", *sets(SHORT, levels)))

    def test_levels_of_the_config_divide_the_ranks(self):
        levels = {"launch.ranks": 4, "strategy": "{intra: all_reduce, inter: {local_sgd: {every: 5}}}"}
        pairs = {"framework.topology": "{levels: [pair], keys: {pair: {ranks: 2}}}", "strategy.level": "pair"}
        self.assertEqual(self.weights("grouped", *sets(SHORT, levels, {"strategy.ranks_per_group": 2})),
                         self.weights("pairs", *sets(SHORT, levels, pairs)))

    def test_threads_and_processes_learn_the_same(self):
        self.assertEqual(self.weights("threads", *sets(SHORT, backend="inproc")),
                         self.weights("processes", *sets(SHORT, backend="shm")))


if __name__ == "__main__":
    program.main()
