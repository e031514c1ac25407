#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks of several hosts find each other: under mpirun, by flags, on hosts with several interfaces, and with
IPv6 alone. The hosts belong to a virtual cluster."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import program
from program import QUICKSTART, ROOT, SHORT, TRAIN, ProgramTest, sets

sys.path.insert(0, str(ROOT / "tools/virtual_cluster"))
import cluster

RANKS, PER_HOST, PORT = 4, 2, 29500
SMALL = {**SHORT, "launch.threads": 1}


def refusal(**options):
    """Returns why this machine has no such hosts, or an empty string if it can have them."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where ip is
    try:
        with cluster.Cluster(2, **options):
            return ""
    except SystemExit as problem:
        return str(problem)


REFUSAL = refusal()
REFUSAL_OF_IPV6 = REFUSAL or refusal(ipv6=True)


class OnHosts(ProgramTest):
    ipv6 = False

    def setUp(self):
        super().setUp()
        self.cluster = cluster.Cluster(2, ipv6=self.ipv6)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def shell(self, host, script):
        done = subprocess.run(self.cluster.command(host, ["sh", "-ec", script]), capture_output=True, text=True,
                              check=False)
        self.assertEqual(0, done.returncode, done.stderr)

    def start_on(self, host, *arguments, command=(TRAIN,), **options):
        return self.start(command=self.cluster.command(host, [*command, f"--config={QUICKSTART}",
                                                              f"--run_dir={self.folder}/run", *arguments]), **options)

    def start_rank(self, rank, url, *arguments, **variables):
        return self.start_on(rank // PER_HOST, f"--init_method={url}", f"--rank={rank}", f"--world_size={RANKS}",
                             *arguments, environment=variables)

    def start_all(self, url, settings, **variables):
        return [self.start_rank(rank, url, *sets(SMALL, settings), **variables) for rank in range(RANKS)]

    def assert_trained(self, processes, backend):
        for process in processes:
            self.assert_status(0, process)
        run = self.run_folder()
        self.assertEqual((RANKS, 16), (run.summary["ranks"], run.summary["steps"]))
        for rank in range(RANKS):
            host = f"node{rank // PER_HOST + 1}"
            self.assertRegex(run.log(rank).read_text(),
                             f"rank {rank} of {RANKS} on {host}, started by [^,]+, connects by {backend}")

    def flags(self, host=None):
        address = host or self.cluster.addresses[0]
        return f"tcp://[{address}]:{PORT}" if ":" in address else f"tcp://{address}:{PORT}"


@unittest.skipIf(REFUSAL, REFUSAL)
class Flags(OnHosts):
    def test_auto_is_hybrid(self):
        self.assert_trained(self.start_all(self.flags("node1"), {}), "hybrid")

    def test_a_missing_rank_is_named(self):
        processes = [self.start_rank(rank, self.flags(), *sets(SMALL, {"framework.timeout": 10})) for rank in (0, 1, 2)]
        self.assert_status(1, processes[0])
        self.assertIn(f"TCP store 10.213.0.1:{PORT}: waited 10 s, but only 3 of 4 ranks have joined; rank 3 is missing",
                      processes[0].err)

    def test_a_missing_rank_0_is_looked_for_through_an_interface(self):
        process = self.start_rank(2, self.flags(), *sets(SMALL, {"framework.timeout": 2}))
        self.assert_status(1, process)
        self.assertIn(f"TCP store 10.213.0.1:{PORT}: cannot reach it", process.err)
        self.assertIn("it was looked for at 10.213.0.1 through eth0 (10.213.0.2)", process.err)


@unittest.skipIf(REFUSAL, REFUSAL)
class Interfaces(OnHosts):
    """Each host has a second interface that leads nowhere, to whose address its name resolves."""

    def setUp(self):
        super().setUp()
        names = self.folder / "hosts"
        names.write_text("127.0.0.1 localhost\n192.168.99.1 node1\n192.168.99.2 node2\n")
        for host in range(2):
            self.shell(host, f"ip link add aside0 type veth peer name aside1; ip link set aside1 up\n"
                             f"ip address add 192.168.99.{host + 1}/24 dev aside0; ip link set aside0 up\n"
                             f"mount --bind {names} /etc/hosts")

    def test_ranks_use_the_one_of_the_route_to_rank_0(self):
        for backend in ("gloo", "auto"):
            with self.subTest(backend):
                processes = self.start_all(self.flags(), {"backend": backend, "framework.timeout": 30})
                self.assert_trained(processes, "gloo" if backend == "gloo" else "hybrid")
                self.run_folder().path.rename(self.folder / backend)

    def test_servers_listen_on_the_one_of_the_route_to_rank_0(self):
        served = {"roles.server": 1, "strategy": "{ssp: {staleness: 2}}", "framework.timeout": 30,
                  "framework.interface": "10.213.0.0/24"}
        processes = self.start_all(self.flags(), served)
        for process in processes:
            self.assert_status(0, process)
        self.assertEqual(RANKS - 1, self.run_folder().summary["ranks"])

    def test_a_wrong_one_is_printed_when_connecting_fails(self):
        processes = self.start_all(self.flags(), {"backend": "gloo", "framework.interface": "aside0",
                                                  "framework.timeout": 5})
        for process in processes:
            self.assertNotEqual(0, process.wait())
        text = " ".join(process.words for process in processes)
        self.assertRegex(text, r"rank \d cannot be reached at 192\.168\.99\.\d:\d+ \(.*?\); this rank is at "
                               r"192\.168\.99\.\d of aside0, set as aside0; check .*framework\.interface")

    def test_one_that_a_host_does_not_have_is_refused(self):
        self.shell(1, "ip link set aside0 down; ip link set aside0 name other0; ip link set other0 up")
        processes = self.start_all(self.flags(), {"backend": "gloo", "framework.interface": "aside0",
                                                  "framework.timeout": 5})
        self.assert_status(2, processes[2])
        self.assertIn('node2 has no network interface "aside0" that is up and has an address; it has ',
                      processes[2].err)


@unittest.skipIf(REFUSAL_OF_IPV6, REFUSAL_OF_IPV6)
class Ipv6(OnHosts):
    ipv6 = True

    def test_ranks_connect(self):
        for backend in ("gloo", "auto"):
            with self.subTest(backend):
                processes = self.start_all(self.flags(), {"backend": backend})
                self.assert_trained(processes, "gloo" if backend == "gloo" else "hybrid")
                self.run_folder().path.rename(self.folder / backend)

    def test_names_and_a_secret_work(self):
        processes = self.start_all(self.flags("node1"), {}, PHALANX_JOB_SECRET="a secret of the tests")
        self.assert_trained(processes, "hybrid")

    def test_servers_are_reached(self):
        processes = self.start_all(self.flags(), {"roles.server": 1, "strategy": "{ssp: {staleness: 2}}"})
        for process in processes:
            self.assert_status(0, process)

    def test_doctor_finds_the_address_and_what_works(self):
        program = str(ROOT / "tools/doctor/doctor")
        process = self.start(command=self.cluster.command(0, [program, f"--json={self.folder}/found.json"]))
        self.assert_status(0, process)
        found = json.loads((self.folder / "found.json").read_text())
        self.assertTrue(found["capabilities"]["address"].startswith("fd13:213::1 of eth0, "), found["capabilities"])
        for backend in ("inproc", "shm", "gloo"):
            self.assertEqual({"ok"}, {row["status"] for row in found["operations"] if row["backend"] == backend},
                             process.out)

    def test_ranks_of_one_host_connect(self):
        for backend in ("shm", "gloo"):
            with self.subTest(backend):
                process = self.start_on(0, *sets(SMALL, {"backend": backend}))
                self.assert_status(0, process)
                self.run_folder().path.rename(self.folder / backend)


@unittest.skipIf(REFUSAL, REFUSAL)
class Mpi(OnHosts):
    def path(self):
        mpirun = pathlib.Path(os.path.realpath(ROOT / os.environ["MPIRUN"])).parent
        return {"PATH": f"{mpirun}:{os.environ['PATH']}"}

    def test_auto_is_hybrid_over_mpi(self):
        settings = {"launch.ranks": RANKS, "launch.hosts": f"[node1:{PER_HOST}, node2:{PER_HOST}]"}
        self.assert_trained([self.start_on(0, *sets(SMALL, settings), environment=self.path())], "hybrid")

    def test_gloo_meets_through_mpi(self):
        settings = {"launch.ranks": RANKS, "launch.hosts": f"[node1:{PER_HOST}, node2:{PER_HOST}]", "backend": "gloo"}
        self.assert_trained([self.start_on(0, *sets(SMALL, settings), environment=self.path())], "gloo")
        log = self.run_folder().log(3).read_text()
        self.assertRegex(log, r"rank 0 hosts a store for all ranks at 10\.213\.0\.1:\d+")
        self.assertIn("its peers reach it at 10.213.0.2 of eth0, the route to 10.213.0.1", log)
        self.assertIn("its peers reach it at 10.213.0.1 of eth0, the route to 10.213.0.2",
                      self.run_folder().log(0).read_text())

    def test_gloo_meets_through_mpi_if_mpirun_is_called_by_hand(self):
        mpirun = [*program.mpirun(RANKS), "--host", f"node1:{PER_HOST},node2:{PER_HOST}", TRAIN]
        process = self.start_on(0, *sets(SMALL, backend="gloo"), command=mpirun, environment=self.path())
        self.assert_trained([process], "gloo")


if __name__ == "__main__":
    program.main()
