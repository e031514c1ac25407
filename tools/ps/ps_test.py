#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a standalone parameter server: jobs train through it, it is killed and started again, and it reports what it
holds."""

import shutil
import signal

import program
from program import ENDLESS, ROOT, SHORT, ProgramTest, becomes_true, free_port, sets

PS = str(ROOT / "tools/ps/ps")


class Ps(ProgramTest):
    def setUp(self):
        super().setUp()
        self.secret = self.folder / "secret"
        self.secret.write_text("nobody knows this secret\n")
        self.secret.chmod(0o600)
        self.address = f"127.0.0.1:{free_port()}"

    def ps(self, *arguments):
        return self.start(f"--secret_file={self.secret}", *arguments, command=[PS])

    def serve(self, *arguments, address=None):
        address = address or self.address
        server = self.ps(f"--listen={address}", *arguments)
        self.assertTrue(becomes_true(lambda: "\n" in server.out or not server.running), server.text())
        self.assertEqual(f"parameter server: ready at {address}\n", server.out, server.text())
        return server

    def settings(self, *more, **values):
        return sets({**SHORT, "launch.ranks": 2, "strategy": "{downpour: {}}",
                     "roles.servers_at": f"[\"{self.address}\"]", "roles.secret_file": self.secret}, *more, **values)

    def status(self):
        process = self.ps(f"--status={self.address}")
        self.assert_status(0, process)
        return process.out


class Serving(Ps):
    def test_two_jobs_and_an_orderly_end(self):
        server = self.serve(f"--checkpoint={self.folder}/kept")
        first = self.train(*self.settings(name="first"), run="first")
        second = self.train(*self.settings(name="second"), run="second")
        for process, run in ((first, "first"), (second, "second")):
            self.assert_status(0, process)
            figures = self.run_folder(run).summary["strategy"]
            self.assertGreater(figures["pulls"], 0)
            self.assertNotIn("lost_updates", figures)
        held = self.status()
        self.assertIn("first: ", held)
        self.assertIn("second: ", held)
        server.kill(signal.SIGTERM)
        self.assert_status(0, server)
        self.assertIn("ending because of SIGTERM", server.out)
        again = self.serve(f"--checkpoint={self.folder}/kept")
        columns = 112  # columns with the held state; the others count since this start
        self.assertEqual([line[:columns] for line in held.splitlines()],
                         [line[:columns] for line in self.status().splitlines()], "it holds the same as before")
        self.assertRegex(held, r"first: .* float32 +\S+ \w+ +\d+ +\d+ +[1-9]\d* +\S+ \w+ +\S+ \w+ +\d+\.\d\d\n")
        again.kill(signal.SIGINT)
        self.assert_status(0, again)

    def test_ends_orderly_when_the_terminal_is_closed(self):
        server = self.serve()
        server.kill(signal.SIGHUP)
        self.assert_status(0, server)
        self.assertIn("ending because of SIGHUP", server.out)

    def test_continues_if_signals_are_ignored(self):
        def ignore():
            for number in (signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        server = self.start(f"--secret_file={self.secret}", f"--listen={self.address}", command=[PS], preexec_fn=ignore)
        self.assertTrue(becomes_true(lambda: "ready" in server.out), server.text())
        server.kill(signal.SIGHUP)
        server.kill(signal.SIGINT)
        self.assertIn("0 tables", self.status())
        server.kill(signal.SIGTERM)
        self.assert_status(0, server)

    def test_a_run_of_the_same_name_starts_again_and_a_lost_checkpoint_is_reported(self):
        server = self.serve(f"--checkpoint={self.folder}/kept", "--every=3600")
        losses = []
        for run in ("one", "two"):
            self.assert_status(0, self.train(*self.settings({"launch.ranks": 1}), run=run))
            losses.append(self.run_folder(run).summary["test"]["loss"])
        self.assertEqual(*losses)
        shutil.rmtree(self.folder / "kept")
        server.kill(signal.SIGTERM)
        self.assert_status(1, server)
        self.assertIn("the last checkpoint could not be written", server.err)

    def test_refuses_bad_usage(self):
        self.secret.chmod(0o644)
        for arguments, message in (((f"--listen={self.address}",), "can be accessed by users other than its owner"),
                                   ((), "ps needs --listen HOST:PORT"),
                                   ((f"--listen={self.address},",), "an address is empty"),
                                   ((f"--listen={self.address}", "--every=0"), "--every must be above 0")):
            process = self.ps(*arguments)
            self.assert_status(2, process)
            self.assertIn(message, process.err)
        self.secret.chmod(0o600)
        for text, message in (("\n", "is empty"), ("  15 characters  \n", "too short")):
            self.secret.write_text(text)
            process = self.ps(f"--listen={self.address}")
            self.assert_status(2, process)
            self.assertIn(message, process.err)
            self.assertIn("openssl rand -hex 32", process.err)

    def test_a_config_that_does_not_fit_is_refused(self):
        for changes, message in (({"roles.server": 1}, "roles.servers_at: servers that belong to no job"),
                                 ({"strategy": "all_reduce"}, "roles.servers_at: all_reduce uses no parameter servers"),
                                 ({"roles.servers_file": "servers"}, "roles.servers_file: the servers are listed either in this file"),
                                 ({"roles.servers_file": "servers", "roles.servers_at": "[]", "roles.replicas": 2},
                                  "roles.replicas: parts that have replicas cannot move to other servers"),
                                 ({"roles.servers_file": "servers", "roles.servers_at": "[]"}, "roles.servers_file: servers: No such file"),
                                 ({"roles.replicas": 2}, "roles.replicas: 2 replicas of each part need at least as many servers"),
                                 ({"roles.secret_file": '""'}, "roles.secret_file: roles.servers_at needs it")):
            process = self.train(*self.settings({"launch.ranks": 2, **changes}))
            self.assert_status(2, process)
            self.assertIn(message, process.err)


class Dying(Ps):
    # Long enough to be killed in the middle, and to continue.
    LONG = {"train.max_steps": 1500, "train.epochs": 10000}

    def test_training_continues_when_the_server_comes_back(self):
        kept = (f"--checkpoint={self.folder}/kept", "--every=0.5")
        server = self.serve(*kept)
        process = self.train(*self.settings(self.LONG))
        run = self.run_folder()
        self.wait_for_training(run, process)
        self.assertTrue(becomes_true(lambda: any((self.folder / "kept").glob("*.json"))))
        steps = len(run.metrics)
        self.assertTrue(becomes_true(lambda: len(run.metrics) > steps + 10), process.text())
        server.kill()
        self.assert_status(128 + signal.SIGKILL, server)
        self.assertTrue(process.running, process.text())
        self.serve(*kept)
        self.assert_status(0, process)
        self.assertEqual(1500, run.summary["steps"])
        self.assertGreater(run.summary["strategy"]["lost_updates"], 0)
        self.assertIn("acknowledged updates are lost", run.log(0).read_text())

    # Embeddings are on servers, dense parameters are all-reduced.
    EMBEDDINGS = {"train.max_steps": 1500, "train.epochs": 10000, "strategy": "all_reduce",
                  "dataset": "{name: clicks, train_samples: 4096, test_samples: 128}",
                  "model": "{name: dlrm, embeddings: {name: servers, rule: adagrad, staleness: 2}}"}

    def embeddings(self, **more):
        everything = sets({"launch.ranks": 2, "roles.servers_at": f"[\"{self.address}\"]",
                           "roles.secret_file": self.secret}, SHORT, self.EMBEDDINGS, more)
        return [one for one in everything if not one.startswith("--set=dataset.")]

    def test_embeddings_continue_when_the_server_comes_back(self):
        kept = (f"--checkpoint={self.folder}/kept", "--every=0.5")
        server = self.serve(*kept)
        process = self.train(*self.embeddings())
        run = self.run_folder()
        self.wait_for_training(run, process)
        self.assertTrue(becomes_true(lambda: any((self.folder / "kept").glob("*.json"))))
        steps = len(run.metrics)
        self.assertTrue(becomes_true(lambda: len(run.metrics) > steps + 10), process.text())
        server.kill()
        self.assertTrue(process.running, process.text())
        self.serve(*kept)
        self.assert_status(0, process)
        self.assertEqual(1500, run.summary["steps"])
        self.assertGreater(run.summary["strategy"]["embedding_lost_updates"], 0)

    def moves(self, *servers):
        """Writes the list of servers for runs."""
        (self.folder / "servers").write_text("# of all runs\n" + "".join(f"{address}\n" for address in servers))

    def move(self, process, run, *servers):
        """Writes the list, and waits until the run has moved."""
        moves = len(self.lines_of_moves(process))
        self.moves(*servers)
        self.assertTrue(becomes_true(lambda: len(self.lines_of_moves(process)) > moves), process.text())
        self.assertIn(f"Moved to {len(servers)} parameter servers ({', '.join(servers)})",
                      self.lines_of_moves(process)[-1])
        steps = len(run.metrics)
        self.assertTrue(becomes_true(lambda: len(run.metrics) > steps + 3), process.text())

    @staticmethod
    def lines_of_moves(process):
        return [line for line in process.out.splitlines() if line.startswith("Moved to")]

    def test_a_run_moves_to_the_servers_that_a_file_lists(self):
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        servers = [self.serve(address=address) for address in addresses]
        self.moves(addresses[0])
        process = self.train(*self.settings(ENDLESS, {"roles.servers_at": "[]", "watch.progress": "true",
                                                      "roles.servers_file": self.folder / "servers"}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        self.move(process, run, *addresses[1:])
        servers[0].kill(signal.SIGTERM)
        self.assert_status(0, servers[0])
        nobody = f"127.0.0.1:{free_port()}"
        for bad, why in ((nobody, nobody), ("nowhere", 'servers:2: "nowhere" is not an address')):
            self.moves(bad)
            self.assertTrue(becomes_true(lambda why=why: why in process.err), process.text())
        self.move(process, run, addresses[2])
        process.kill(signal.SIGTERM)
        self.assert_status(130, process)
        figures = run.summary["strategy"]
        self.assertEqual(2, figures["server_moves"])
        self.assertNotIn("lost_updates", figures)

    def test_embeddings_move_to_other_servers(self):
        other = f"127.0.0.1:{free_port()}"
        server = self.serve()
        self.serve(address=other)
        self.moves(self.address)
        process = self.train(*self.embeddings(**{**{key: ENDLESS[key] for key in ("train.max_steps", "train.epochs")},
                                                 "roles.servers_at": "[]", "watch.progress": "true",
                                                 "roles.servers_file": self.folder / "servers"}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        self.move(process, run, other)
        server.kill()
        process.kill(signal.SIGTERM)
        self.assert_status(130, process)
        self.assertGreater(run.summary["strategy"]["embedding_rows_on_server_0"], 0)

    def test_embeddings_of_a_server_that_stays_away_end_the_run(self):
        server = self.serve()
        process = self.train(*self.embeddings(**{"train.max_steps": 0, "train.epochs": 1000000,
                                                 "framework.timeout": 5}))
        self.wait_for_training(self.run_folder(), process)
        server.kill()
        self.assert_status(3, process, 60)
        self.assertIn(f"parameter server {self.address} is lost: it has not come back within 5 s", process.words)
        self.assert_nothing_left()

    def test_training_continues_with_the_replica_of_a_server_that_stays_away(self):
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        servers = [self.serve(address=address) for address in addresses]
        process = self.train(*self.settings(
            self.LONG, {"roles.servers_at": "[" + ", ".join(f'"{one}"' for one in addresses) + "]", "roles.replicas": 2}))
        run = self.run_folder()
        self.wait_for_training(run, process)
        servers[0].kill()
        self.assert_status(0, process)
        self.assertEqual(1500, run.summary["steps"])
        self.assertNotIn("lost_updates", run.summary["strategy"])
        self.address = addresses[1]
        held = self.status()
        for part in ("0 of 2, leader", "1 of 2, leader"):
            self.assertIn(part, held)

    def test_a_server_that_stays_away_ends_the_run(self):
        server = self.serve()
        process = self.train(*self.settings({key: ENDLESS[key] for key in ("train.max_steps", "train.epochs")},
                                            {"framework.timeout": 5}))
        self.wait_for_training(self.run_folder(), process)
        server.kill()
        self.assert_status(3, process, 60)
        self.assertIn(f"parameter server {self.address} is lost: it has not come back within 5 s", process.words)
        self.assert_nothing_left()


if __name__ == "__main__":
    program.main()
