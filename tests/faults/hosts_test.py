#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a job of several hosts, which its launcher reaches by ssh, goes on without ranks and hosts that it loses. The
hosts are those of a virtual cluster; the launcher is on the first one."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import program
from program import ENDLESS, ROOT, TRAIN, becomes_true, processes, sets

sys.path[:0] = [str(ROOT / "tests/faults"), str(ROOT / "tools/virtual_cluster")]
import cluster
import shrink_test


def refusal():
    """Returns why this machine has no such hosts, or an empty string if it can have them."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where ip is
    try:
        with cluster.Cluster(2):
            return ""
    except SystemExit as problem:
        return str(problem)


REFUSAL = refusal()


class OnHosts(shrink_test.Shrink):
    way = {"launch.with": "ssh", "launch.hosts": "[node1, node2]"}
    hosts, sshd = 2, False

    def setUp(self):
        super().setUp()
        self.cluster = cluster.Cluster(self.hosts, sshd=self.sshd)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def start(self, *arguments, command=(TRAIN,), **options):
        return super().start(*arguments, command=self.cluster.command(0, list(command)), **options)

    def use(self, **settings):
        self.way = {**self.way, **{key.replace("__", "."): value for key, value in settings.items()}}

    def programs(self, first_rank=None):
        """Returns the processes of the agent whose ranks begin with this one, or the launcher without a number."""
        found = []
        for pid in processes(self.mark):
            process = pathlib.Path(f"/proc/{pid}")
            try:
                variables = process.joinpath("environ").read_bytes().split(b"\0")
                trains = os.path.realpath(process / "exe") == os.path.realpath(TRAIN)
                tidies_up = process.joinpath("comm").read_text() == "phalanx-tidy\n"
            except OSError:
                continue  # it has ended
            orders = [int(text.split(b"=")[1].split()[0]) for text in variables if text.startswith(b"PHALANX_AGENT=")]
            if trains and not tidies_up and orders == ([] if first_rank is None else [first_rank]):
                found.append(pid)
        self.assertTrue(found)
        return found

    def begin_endless(self, ranks, **settings):
        process, run = self.train_with({**ENDLESS, "launch.ranks": ranks, **settings}, base={}), self.run_folder()
        self.wait_for_training(run, process)
        return process, run

    def assert_on(self, host, run, rank):
        self.assertRegex(run.log(rank).read_text(), rf"rank \d of \d on {host}, started by ")

    def interrupt(self, process):
        os.kill(self.first(self.programs()), signal.SIGINT)

    def finish(self, process):
        self.interrupt(process)
        self.assert_status(130, process)
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assert_nothing_left()

    @staticmethod
    def first(pids):
        """Returns the process that has started the others."""
        parents = {pid: int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
        return next(pid for pid in pids if parents[pid] not in pids)

    def assert_nothing_left(self):
        super().assert_nothing_left()
        for host in range(self.hosts):  # each has a /dev/shm of its own
            self.assertEqual(b"", subprocess.check_output(self.cluster.command(host, ["ls", "-A", "/dev/shm"])))

    def begin(self):
        """Starts a job of four ranks. Returns it and its run folder once it trains."""
        process, run = self.train_with({"launch.ranks": 4}, base=shrink_test.LONG), self.run_folder()
        self.wait_for_training(run, process)
        return process, run

    def stop_when_it_goes_on(self, process, run):
        """Stops a job of four ranks that has gone on without the ranks of node2. Returns the step after which it was saved."""
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 2$")
        return self.stop(process, run)

    def assert_went_on(self, process, run, step, lost, why):
        """Checks the end of such a job."""
        self.assert_undisturbed_until(step, run, process)
        self.assertEqual(lost, sorted(one["rank"] for one in run.summary["lost_ranks"]), process.text())
        self.assertEqual(2, run.summary["ranks"])
        self.assertRegex(process.words, "it was on node2, which is lost: " + why)
        self.assert_nothing_left()

    @staticmethod
    def signal_all(pids, what):
        for pid in pids:
            os.kill(pid, what)

    @staticmethod
    def results(run):
        """Returns the state of all files of a run except for its logs."""
        files = [file for file in run.path.rglob("*") if file.is_file() and "logs" not in file.parts]
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    def assert_ends(self, pids):
        """Checks that processes end. One whose parent is stopped remains as a zombie."""
        def ended(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                return True
        self.assertTrue(becomes_true(lambda: all(ended(pid) for pid in pids)))


SILENT = r"the host has been silent for \d+\.\d s"


@unittest.skipIf(REFUSAL, REFUSAL)
class Hosts(OnHosts):
    """The losses of whole hosts, which each backend of several hosts survives."""

    def test_lost_host(self):
        process, run = self.begin()
        os.kill(self.first(self.programs(first_rank=2)), signal.SIGKILL)  # its ranks die with the agent
        step = self.stop_when_it_goes_on(process, run)
        self.assert_went_on(process, run, step, lost=[2, 3], why="the agent there ")


@unittest.skipIf(REFUSAL, REFUSAL)
class RanksOfHosts(OnHosts):
    """The losses of single ranks. By day, each backend runs only those that no other test covers."""

    def test_killed_rank_of_another_host(self):
        self.lose("kill", "it was killed by signal 9 (SIGKILL)", rank=3, ranks=4)

    def test_killed_rank_0_whose_duties_go_to_another_host(self):
        self.use(launch__hosts="[node1:1, node2:2]")
        self.lose("kill", "it was killed by signal 9 (SIGKILL)", rank=0, ranks=3)

    def test_stopped_rank_that_is_alone_on_its_host(self):
        self.use(launch__hosts="[node1:2, node2:1]", faults__lost_after=0.5)
        self.lose("stop", "it was stopped for 0.5 s (faults.lost_after), and was killed", rank=2, ranks=3)

    def test_exception_of_rank_0_after_the_update(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", rank=0, ranks=4, event="on_update")


class Gloo(Hosts):
    """Has the tests of the launcher and its agents, too, which are the same with every backend."""
    way = {**Hosts.way, "backend": "gloo"}
    test_stopped_rank_that_is_alone_on_its_host = RanksOfHosts.test_stopped_rank_that_is_alone_on_its_host

    def test_silent_host(self):
        """Host node2 stops. Its ranks continue when the others have gone on without them, and before their agent does."""
        self.use(launch__hosts="[node2:2, node1:2]")  # so rank 0, which writes the metrics, is lost
        process, run = self.begin()
        stopped = self.programs(first_rank=0)
        agent = self.first(stopped)
        self.signal_all(stopped, signal.SIGSTOP)
        since = time.monotonic()
        self.wait_for(process, "^Training goes on after ")
        print(f"training went on {time.monotonic() - since:.1f} s after its host had become silent")
        step = self.stop_when_it_goes_on(process, run)
        written = self.results(run)
        ranks = [pid for pid in stopped if pid != agent]
        self.signal_all(ranks, signal.SIGCONT)
        self.assert_ends(ranks)
        os.kill(agent, signal.SIGCONT)
        self.assert_ends([agent])
        self.assertEqual(written, self.results(run))
        self.assert_went_on(process, run, step, lost=[0, 1], why=SILENT)

    def test_stopped_launcher(self):
        """Hosts that hear nothing from the launcher end their ranks."""
        process, run = self.train_with({"launch.ranks": 4, "faults.on_lost_rank": "shrink"}, base=ENDLESS), self.run_folder()
        self.wait_for_training(run, process)
        launcher = self.first(self.programs())
        ranks = self.programs(first_rank=0) + self.programs(first_rank=2)
        os.kill(launcher, signal.SIGSTOP)
        self.assert_ends(ranks)
        os.kill(launcher, signal.SIGCONT)
        process.kill(signal.SIGCONT)  # nsenter stops with what it has started
        self.assert_status(3, process)
        self.assertIn("has heard nothing from the launcher for 5.0 s, so it has ended its ranks", process.words)
        self.assertIn("the agent there heard nothing from the launcher for 5.0 s", process.words)
        self.assert_nothing_left()

    def test_lost_launcher(self):
        """Nothing is left but the run folder, from which the job is started again."""
        settings = {**ENDLESS, "faults.on_lost_rank": "shrink", "launch.ranks": 4}
        process, run = self.train_with({}, base=settings), self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.first(self.programs()), signal.SIGKILL)
        self.assertNotEqual(0, process.wait())
        self.assert_nothing_left()

    def test_without_shrink_a_killed_rank_ends_all_hosts(self):
        self.use(faults__on_lost_rank="stop")
        process = self.train_with({"launch.ranks": 4}, environment=self.fault("kill", rank=3))
        self.assert_status(3, process)
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assertIn("┌─ Rank 3 of 4 on node2 failed ─", process.err)
        self.assertIn("It was killed by signal 9 (SIGKILL).", process.words)
        self.assert_nothing_left()

    def test_interrupt(self):
        process, run = self.train_with({"launch.ranks": 4}, base=ENDLESS), self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.first(self.programs()), signal.SIGINT)
        self.assert_status(130, process)
        self.assertIn("To resume, start it again", process.out)
        self.assert_nothing_left()

    def test_host_that_does_not_exist(self):
        self.use(launch__hosts="[node1, node3]")
        process = self.train_with({"launch.ranks": 4})
        self.assert_status(3, process)
        self.assertIn("Could not resolve hostname node3", process.err)
        self.assertIn("The job on node3 failed", process.err)
        self.assertTrue(becomes_true(lambda: not processes(self.mark)))


@unittest.skipIf(REFUSAL or cluster.what_is_missing(sshd=True), REFUSAL or cluster.what_is_missing(sshd=True))
class Cut(OnHosts):
    way = {**OnHosts.way, "backend": "gloo"}
    sshd = True  # a real ssh, whose connection is cut, too

    def test_host_without_a_network(self):
        """The host that is cut off ends its ranks by itself, and the others go on."""
        process, run = self.begin()
        ranks = self.programs(first_rank=2)
        cluster.run(*self.cluster._inside("--pid", "--net"), "ip", "link", "set", "node2", "down")
        self.assert_ends(ranks)
        step = self.stop_when_it_goes_on(process, run)
        self.assert_nothing_left()  # before the hosts are needed again
        cluster.run(*self.cluster._inside("--pid", "--net"), "ip", "link", "set", "node2", "up")
        self.assert_went_on(process, run, step, lost=[2, 3], why=SILENT)


@unittest.skipIf(REFUSAL, REFUSAL)
class Replace(OnHosts):
    """New processes take the places of lost ranks, on their own hosts or on one that is spare."""
    hosts = 3
    way = {**OnHosts.way, "faults.on_lost_rank": "replace"}

    def test_killed_rank_is_replaced_on_its_host(self):
        process, run = self.begin()
        os.kill(self.rank_process(run, 3), signal.SIGKILL)
        self.wait_for(process, r"^Rank 4 takes part in place of rank 3 after \S+ s, after step \d+, with the state of rank 0, "
                               r"on ranks: 4$")
        step = self.stop(process, run)
        self.assert_nothing_left()
        self.assert_on("node2", run, 4)
        self.assert_undisturbed_until(step, run, process)
        self.assertEqual([(4, 3)], [(one["rank"], one["in_place_of"]) for one in run.summary["returned_ranks"]])
        self.assertEqual(4, run.summary["ranks"])

    def test_lost_host_is_replaced_by_a_spare_one(self):
        self.use(launch__hosts="[node1:1, node2:1, node3:1]")
        process, run = self.begin_endless(ranks=2)
        os.kill(self.first(self.programs(first_rank=1)), signal.SIGKILL)
        self.wait_for(process, r"^Rank 2 takes part in place of rank 1 after .* with the state of rank 0, on ranks: 2$")
        self.assert_on("node3", run, 2)
        os.kill(self.rank_process(run, 2), signal.SIGKILL)  # it is replaced on the same host, which has no other rank
        self.wait_for(process, r"^Rank 3 takes part in place of rank 2 after .* with the state of rank 0, on ranks: 2$")
        self.assert_on("node3", run, 3)
        self.finish(process)


class GlooReplace(Replace):
    way = {**Replace.way, "backend": "gloo"}


class HybridReplace(Replace):
    """The newcomer shares memory with the other rank of its host."""
    way = {**Replace.way, "backend": "hybrid"}

    # It is about the launcher, so the same with every backend.
    def test_lost_host_without_a_spare_one(self):
        self.use(launch__hosts="[node1:1, node2:1]")
        process, _ = self.begin_endless(ranks=2)
        os.kill(self.first(self.programs(first_rank=1)), signal.SIGKILL)
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 1$")
        self.wait_for(process, r"^No process takes the place of rank 1 yet: no host has a free slot \(launch.hosts\)$")
        self.finish(process)


del Replace  # has no tests of its own


@unittest.skipIf(REFUSAL, REFUSAL)
class Join(OnHosts):
    """Host node2 joins a job that has begun on node1 alone."""
    way = {"faults.on_lost_rank": "replace", "faults.max_ranks": 4}

    def join(self, run, *flags, secret=None):
        address = run.path.joinpath("join.address").read_text().strip()
        return shrink_test.Shrink.start(self, "--join", address, *flags, command=self.cluster.command(1, [TRAIN]),
                                        environment={"PHALANX_JOB_SECRET_FILE": str(secret or run.path / "join.secret")})

    def test_host_that_joins_and_leaves(self):
        process, run = self.begin_endless(ranks=2)
        self.assertRegex(process.err, r"(?m)^Hosts may join with: PHALANX_JOB_SECRET_FILE=\S+/join.secret train --join "
                                      r"10\.213\.0\.1:\d+$")
        joiner = self.join(run, "--ranks=2")
        for rank in (2, 3):
            self.wait_for(process, rf"^Rank {rank} takes part after \S+ s, after step \d+, with the state of rank 0, on ranks: ")
            self.assert_on("node2", run, rank)
        self.wait_for(process, r" takes part after .* on ranks: 4$")
        self.assertIn(", connects by shm", run.log(0).read_text())  # at the beginning
        self.assertIn(", connects by hybrid", run.log(0).read_text())
        refused = self.join(run)
        self.assert_status(2, refused)
        self.assertIn("the job has 4 ranks, and no more may join (faults.max_ranks: 4)", refused.words)
        joiner.kill()  # the program there gets SIGTERM
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 2$")
        self.assertIn("it was on node2, which is lost: the connection to it broke", process.words)
        self.finish(process)
        self.assertFalse(run.path.joinpath("join.address").exists())
        self.assertFalse(run.path.joinpath("join.secret").exists())

    def test_job_that_ends_while_a_host_has_joined(self):
        process, run = self.begin_endless(ranks=1, backend="gloo")
        joiner = self.join(run)
        self.wait_for(process, r"^Rank 1 takes part after .* with the state of rank 0, on ranks: 2$")
        os.kill(self.first([pid for pid in self.programs() if b"--join" not in self.command_line(pid)]), signal.SIGINT)
        self.assert_status(130, process)
        self.assert_status(130, joiner)
        self.assert_nothing_left()

    @staticmethod
    def command_line(pid):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()

    def test_another_secret(self):
        process, run = self.begin_endless(ranks=2)
        secret = self.folder / "another.secret"
        secret.write_text("another secret, as long as it has to be\n")
        secret.chmod(0o600)
        refused = self.join(run, secret=secret)
        self.assert_status(2, refused)
        self.assertIn("the job has another secret than this process", refused.words)
        self.finish(process)


class Hybrid(Hosts):
    """The ranks of a host share memory, and hosts exchange messages."""
    way = {**Hosts.way, "backend": "hybrid"}
    EVERY, lose_and_compare = shrink_test.Copies.EVERY, shrink_test.Copies.lose_and_compare

    def settings(self, strategy, ranks):
        return {**shrink_test.Copies.settings(self, strategy, ranks), **self.way}

    def test_sharded(self):
        """The copy of the lost state is on the other host."""
        self.lose_and_compare("sharded", rank=3, ranks=4)

    def test_killed_rank_0_whose_duties_go_to_its_neighbour(self):
        """The hosts have different numbers of ranks afterwards. Several hosts are connected in this way by default."""
        self.use(backend="auto")
        self.lose("kill", "it was killed by signal 9 (SIGKILL)", rank=0, ranks=4)
        self.assertIn(", connects by hybrid", self.run_folder().log(0).read_text())

    test_killed_rank_0_whose_duties_go_to_another_host = RanksOfHosts.test_killed_rank_0_whose_duties_go_to_another_host
    test_exception_of_rank_0_after_the_update = RanksOfHosts.test_exception_of_rank_0_after_the_update


class GlooAll(RanksOfHosts):
    way = Gloo.way


class HybridAll(RanksOfHosts):
    way = Hybrid.way
    test_silent_host = Gloo.test_silent_host


if __name__ == "__main__":
    program.main()
