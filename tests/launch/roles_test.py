#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests ranks that are parameter servers instead of training: they serve, end with the others, and their loss is
noticed."""

import os
import signal

import program
from program import ENDLESS, SHORT, ProgramTest, free_port, mpirun, sets, torchrun

SERVED = {**SHORT, "launch.ranks": 3, "roles.server": 1, "strategy": "{ssp: {staleness: 2}}"}
# Dense parameters are all-reduced; embeddings are on the rank that serves.
EMBEDDINGS = {"launch.ranks": 3, "roles.server": 1, "strategy": "all_reduce",
              "dataset": "{name: clicks, train_samples: 512, test_samples: 128}",
              "model": "{name: dlrm, embeddings: {name: servers, rule: adagrad, staleness: 2}}"}


class Roles(ProgramTest):
    way = {}

    def assert_served(self, process, servers=1, run="run"):
        self.assert_status(0, process)
        folder = self.run_folder(run)
        self.assertEqual((2, 16, False), tuple(folder.summary[key] for key in ("ranks", "steps", "stopped")))
        counted = folder.summary["strategy"]
        self.assertGreater(counted["pulls"], 0)
        self.assertLessEqual(counted["staleness_max"], 2, "the bound of the config")
        histogram = [counted.get(f"pulls_at_staleness_{behind}", 0) for behind in range(3)]
        self.assertEqual(counted["pulls"], sum(histogram))
        self.assertEqual("", process.err)
        self.assert_nothing_left()

    def assert_server(self, log):
        text = log.read_text()
        self.assertIn("this rank is a parameter server of 2 ranks", text)
        self.assertIn("all ranks that train have left", text)


class Local(Roles):
    def test_processes(self):
        self.assert_served(self.train(*sets(SERVED)))
        self.assert_server(self.run_folder().log(2))

    def test_two_servers(self):
        self.assert_served(self.train(*sets(SERVED, {"launch.ranks": 4, "roles.server": 2})), 2)
        self.assert_server(self.run_folder().log(2))
        self.assert_server(self.run_folder().log(3))

    def test_threads(self):
        self.assert_served(self.train(*sets(SERVED, backend="inproc")))

    def test_gloo_on_several_hosts(self):
        port = free_port()
        processes = [self.train(*sets(SERVED, backend="gloo"),
                                environment=torchrun(rank, 3, port, PHALANX_HOST_KEY=f"host {rank}"))
                     for rank in range(3)]
        self.assert_served(processes[0])
        for process in processes[1:]:
            self.assert_status(0, process)
        self.assert_server(self.run_folder().log(2))

    def test_synchronous_servers_learn_what_all_reduce_learns(self):
        losses = []
        for strategy, ranks, servers, mesh in (("all_reduce", 2, 0, "{data: 2}"), ("sync_ps", 2, 1, "{data: 2}"),
                                               ("sync_ps", 4, 1, "{data: 2, pipe: 2}")):
            settings = sets(SERVED, {"strategy": strategy, "launch.ranks": ranks + servers, "roles.server": servers,
                                     "mesh": mesh})
            run = f"{strategy}_on_{ranks}"
            self.assert_status(0, self.train(*settings, run=run))
            losses.append(self.run_folder(run).summary["test"]["loss"])
        for loss in losses:
            self.assertAlmostEqual(losses[0], loss, places=5)

    def test_embeddings_are_served_while_parameters_are_all_reduced(self):
        settings = ({key: value for key, value in SHORT.items() if not key.startswith("dataset")}, EMBEDDINGS,
                    {"checkpoint.every_steps": 8})
        self.assert_status(0, self.train(*sets(*settings)))
        self.assert_server(self.run_folder().log(2))
        counted = self.run_folder().summary["strategy"]
        self.assertGreater(counted["embedding_rows_on_server_0"], 500)
        self.assertLessEqual(counted["embedding_staleness_max"], 2, "the bound of the config")
        self.assertGreaterEqual(counted["embedding_bytes_pulled"], counted["embedding_rows_pulled"] * (8 + 16 * 4))
        # The run resumes on two servers.
        more = {"launch.ranks": 3, "roles.server": 2, "checkpoint.resume": self.checkpoint(8)}
        self.assert_status(0, self.train(*sets(*settings, more), run="resumed"))
        self.assertEqual(16, self.run_folder("resumed").summary["steps"])
        again = self.run_folder("resumed").summary["strategy"]
        self.assertAlmostEqual(counted["embedding_rows_on_server_0"],
                               again["embedding_rows_on_server_0"] + again["embedding_rows_on_server_1"])

    def checkpoint(self, step):
        found = [path for path in (self.folder / "run" / "checkpoints").iterdir() if str(step) in path.name]
        self.assertEqual(1, len(found), found)
        return found[0]

    def test_a_killed_server_is_named(self):
        for served in ({key: SERVED[key] for key in ("launch.ranks", "roles.server", "strategy")}, EMBEDDINGS):
            settings = {key: value for key, value in ENDLESS.items() if "dataset" not in served or "dataset" not in key}
            name = served["strategy"].strip("{").partition(":")[0]
            process = self.train(*sets(settings, served), run=name)
            run = self.run_folder(name)
            self.wait_for_training(run, process)
            os.kill(self.rank_process(run, 2), signal.SIGKILL)
            self.assert_status(3, process)
            self.assert_framed_once(process, 2, 3, run.log(2))
            self.assert_nothing_left()

    def test_a_killed_rank_that_trains_ends_servers_too(self):
        process = self.train(*sets(ENDLESS, {key: SERVED[key] for key in ("launch.ranks", "roles.server", "strategy")}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        self.assert_status(3, process)
        self.assert_framed_once(process, 1, 3, run.log(1))
        self.assert_nothing_left()

    def test_many_more_ranks_than_cores_that_all_serve(self):
        self.assert_status(0, self.train(*sets(SHORT, {"launch.ranks": 24, "train.global_batch_size": 48,
                                                       "train.max_steps": 4, "strategy": "{downpour: {every: 1}}"})))
        self.assertEqual(24, self.run_folder().summary["ranks"])
        self.assert_nothing_left()

    def test_a_server_ends_with_a_training_that_fails(self):
        """Ranks are threads, so that no launcher can end the server for them."""
        process = self.train(*sets(SERVED, {"optimizer.lr": "1e38"}, backend="inproc"))
        self.assert_status(1, process)
        self.assertIn("training has diverged", process.err)
        self.assert_nothing_left()

    def test_roles_that_do_not_fit_are_refused(self):
        for changes, message in (({"roles.server": 3}, "roles.server: 3 of launch.ranks: 3 leaves no rank to train"),
                                 ({"strategy": "all_reduce"}, "roles.server: all_reduce uses no parameter servers")):
            process = self.train(*sets(SERVED, changes))
            self.assert_status(2, process)
            self.assertIn(message, process.err)


class Mpi(Roles):
    def test_launched_for_backend_mpi(self):
        self.assert_served(self.train(*sets(SERVED, backend="mpi")))

    def test_joined_by_hand(self):
        self.assert_served(self.train(*sets(SERVED, backend="mpi"), command=[*mpirun(3), program.TRAIN]))


if __name__ == "__main__":
    program.main()
