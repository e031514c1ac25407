#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the virtual cluster: its hosts are like machines, and nothing is left of it, however it ends."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from program import QUICKSTART, ROOT, SHORT, TRAIN, ProgramTest, becomes_true, sets

sys.path[:0] = [str(ROOT / "tools/virtual_cluster"), str(ROOT / "tests/readme")]
import cluster
import documents

VIRTUAL_CLUSTER = str(ROOT / "tools/virtual_cluster/virtual_cluster")

# Prints the seconds that it takes to send bytes from one host to another.
RECEIVE = ("import socket; s = socket.create_server(('', 7000)); open('ready', 'w').close(); c = s.accept()[0]\n"
           "while c.recv(1 << 20): pass\nc.send(b'x')")
SEND = """
import pathlib, socket, sys, time
while not pathlib.Path("ready").exists(): time.sleep(0.01)
c = socket.create_connection((sys.argv[1], 7000)); begin = time.monotonic()
c.sendall(bytes(int(sys.argv[2]))); c.shutdown(socket.SHUT_WR); c.recv(1); print(time.monotonic() - begin)
"""

# Calls the command for a cluster of the given name.
FUNCTION = """
virtual_cluster() { local name=$1 action=$2; shift 2; "$0" "$action" "--name=$name" "$@"; }
"""


os.environ["PATH"] += ":/usr/sbin:/sbin"  # where ip and tc are
REFUSAL = cluster.refusal()


class Refusals(ProgramTest):
    def with_programs(self, **scripts):
        """Makes these programs the only ones on PATH."""
        folder = self.folder / "bin"
        folder.mkdir()
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        patch = mock.patch.dict(os.environ, PATH=str(folder))
        patch.start()
        self.addCleanup(patch.stop)

    def command_line(self, *words):
        process = self.start(*words, command=(VIRTUAL_CLUSTER,))
        self.assert_status(2, process)
        return process.err

    def test_name_the_rights_that_are_missing(self):
        with mock.patch.object(os, "geteuid", lambda: 1000):
            self.assertRegex(cluster.what_is_missing(), "root with CAP_NET_ADMIN and CAP_SYS_ADMIN.* sudo")

    def test_name_the_programs_that_are_missing(self):
        self.with_programs(ip="", nsenter="", setpriv="", setsid="")
        with mock.patch.object(os, "geteuid", lambda: 0):
            self.assertEqual("no tc, unshare on PATH; install iproute2 and util-linux", cluster.what_is_missing())

    def test_repeat_what_the_system_says(self):
        programs = {**dict.fromkeys(cluster.PROGRAMS, ""), "unshare": "echo Operation not permitted >&2; exit 1"}
        self.with_programs(**programs)
        with mock.patch.object(os, "geteuid", lambda: 0):
            with self.assertRaisesRegex(SystemExit, "^virtual cluster: Operation not permitted; this requires root"):
                cluster.Cluster(2).__enter__()

    def test_of_names_and_numbers(self):
        with self.assertRaisesRegex(SystemExit, "there can be 1 to 250 hosts, not 251"):
            cluster.Cluster(251)
        with self.assertRaisesRegex(SystemExit, '"../a" cannot be the name of a cluster'):
            cluster.state_file("../a")

    def test_of_command_lines(self):
        for words, message in (([], "name one action: up, down or run"),
                               (["halt"], "name one action: up, down or run"),
                               (["up"], "give the number of hosts"),
                               (["run"], "the command follows two dashes"),
                               (["run", "hostname"], 'unexpected argument "hostname": a command follows two dashes'),
                               (["up", "--hosts=2", "--", "hostname"], "up runs no command")):
            with self.subTest(words):
                self.assertIn(message, self.command_line(*words))


@unittest.skipIf(REFUSAL, REFUSAL)
class Hosts(ProgramTest):
    def setUp(self):
        super().setUp()
        self.name = f"test{os.getpid()}"
        self.addCleanup(cluster.down, {"name": self.name})

    def virtual_cluster(self, action, *words, **options):
        return self.start(action, f"--name={self.name}", *words, command=(VIRTUAL_CLUSTER,), **options)

    def output(self, action, *words, status=0):
        process = self.virtual_cluster(action, *words)
        self.assert_status(status, process)
        return process.out

    def run_on_hosts(self, hosts, script, *options, status=0):
        """Runs a shell script on the first of some new hosts, and returns its output."""
        return self.output("run", f"--hosts={hosts}", *options, "--", "sh", "-ec", script, status=status)

    def processes_of_clusters(self):
        """Returns the processes that are in another PID namespace, in which this test itself is not."""
        def space(process):
            try:
                return os.readlink(f"/proc/{process}/ns/pid")
            except OSError:
                return None  # the process has ended
        return {int(process.name) for process in pathlib.Path("/proc").glob("[0-9]*")
                if space(process.name) not in (None, space("self")) and self.mark in self.environment_of(process)}

    def environment_of(self, process):
        try:
            return (process / "environ").read_text(errors="replace")
        except OSError:
            return ""

    def assert_gone(self):
        self.assertTrue(becomes_true(lambda: not self.processes_of_clusters(), 20), self.processes_of_clusters())

    def test_remain_until_they_are_taken_down(self):
        self.assertEqual(f"cluster {self.name}: node1 10.213.0.1, node2 10.213.0.2\n", self.output("up", "--hosts=2"))
        self.assertEqual("node1\n", self.output("run", "--", "hostname"))
        self.assertEqual("node2\n", self.output("run", "--host=node2", "--", "hostname"))
        self.assertTrue(self.processes_of_clusters())
        again = self.virtual_cluster("up", "--hosts=2")
        self.assert_status(1, again)
        self.assertIn(f"cluster {self.name} is up already; take it down first", again.err)
        missing = self.virtual_cluster("run", "--host=node3", "--", "hostname")
        self.assert_status(1, missing)
        self.assertIn('there is no host "node3": the hosts are node1, node2', missing.err)
        self.assertEqual(f"cluster {self.name}: down\n", self.output("down"))
        self.assertEqual(f"cluster {self.name} is not up\n", self.output("down"))
        self.assert_gone()
        self.assert_nothing_left()

    def test_have_names_addresses_and_files_of_their_own(self):
        (self.folder / "scratch").mkdir()
        (self.folder / "scratch/ours").touch()
        out = self.run_on_hosts(3, "touch scratch/one /dev/shm/one; ls scratch /dev/shm; "
                                "ssh node3 ls $PWD/scratch /dev/shm; cat /etc/hosts; ls /sys/class/net",
                                f"--private={self.folder}/scratch")
        self.assertRegex(out, r"^/dev/shm:\none\n\nscratch:\none\n/dev/shm:\n\n\S+/scratch:\n127.0.0.1 localhost\n")
        self.assertIn("10.213.0.3 node3\n", out)
        self.assertIn("\neth0\nlo\n", out)
        self.assertEqual(["ours"], os.listdir(self.folder / "scratch"))

    def test_are_not_reachable_from_other_clusters(self):
        self.output("up", "--hosts=2")
        self.assertIn("not a host", self.virtual_cluster_of_one("ssh node2 hostname"))
        self.assertNotEqual("", self.virtual_cluster_of_one(
            "python3 -c 'import socket; socket.create_connection((\"10.213.0.2\", 1), 1)'"))

    def virtual_cluster_of_one(self, script):
        process = self.start("run", "--hosts=1", "--", "sh", "-c", script, command=(VIRTUAL_CLUSTER,))
        self.assertNotEqual(0, process.wait())
        return process.err

    def test_have_connections_of_the_given_rate(self):
        count, rate = 2_500_000, 100e6
        (self.folder / "receive.py").write_text(RECEIVE)
        (self.folder / "send.py").write_text(SEND)
        script = f"ssh node2 'cd {self.folder} && python3 receive.py' & python3 send.py node2 {count}; wait"
        seconds = float(self.run_on_hosts(2, script, "--link=100mbit"))
        least = (count - 131072) * 8 / rate  # the bucket is full at first
        self.assertGreaterEqual(seconds, least)
        self.assertLess(seconds, 20 * least)

    def test_run_commands_as_ssh_does(self):
        out = self.run_on_hosts(2, "cd /tmp; export SECRET=1; ssh -x -p 22 root@node2 'hostname; pwd; echo [$SECRET]'; "
                                "ssh 10.213.0.2 'exit 7' || echo $?; ssh node9 true || echo $?")
        self.assertEqual(["node2", os.environ.get("HOME", "/root"), "[]", "7", "255"], out.split())

    @unittest.skipIf(cluster.what_is_missing(sshd=True), cluster.what_is_missing(sshd=True))
    def test_may_run_a_real_sshd(self):
        out = self.run_on_hosts(2, "ssh node2 'hostname; echo $SSH_CONNECTION'", "--sshd")
        self.assertRegex(out, r"^node2\n10\.213\.0\.1 \d+ 10\.213\.0\.2 22\n$")
        self.assert_gone()

    def test_pass_on_statuses_and_signals(self):
        self.run_on_hosts(1, "exit 7", status=7)
        process = self.virtual_cluster("run", "--hosts=1", "--", "sh", "-c",
                                       "trap 'touch ended; exit 5' TERM; touch began; while :; do sleep 0.01; done")
        self.assertTrue(becomes_true((self.folder / "began").exists), process.text())
        process.kill(signal.SIGTERM)
        self.assert_status(5, process)
        self.assertTrue((self.folder / "ended").exists())
        self.assert_gone()

    def test_die_with_the_program_that_made_them(self):
        process = self.virtual_cluster("run", "--hosts=2", "--", "sh", "-c",
                                       "ssh node2 sleep 600 & touch began; sleep 600")
        self.assertTrue(becomes_true((self.folder / "began").exists), process.text())
        process.kill()
        process.wait()
        self.assert_gone()
        self.assert_nothing_left()

    def test_are_gone_if_the_start_is_killed(self):
        for delay in (0.1, 0.2, 0.4):
            process = self.virtual_cluster("up", "--hosts=8")
            time.sleep(delay)  # any moment will do
            process.kill()
            process.wait()
            cluster.down({"name": self.name})  # it may have been up already
            self.assert_gone()

    def test_do_what_the_documents_show(self):
        text = documents.section(ROOT, "docs/nightly.md", "A cluster on one machine")
        blocks = [block for block in documents.shell_blocks(ROOT, "docs/nightly.md")
                  if block.text in text and "regress" not in block.text]
        self.assertEqual(2, len(blocks))
        settings = " ".join(f"'{setting}'" for setting in sets(SHORT, {"launch.threads": 1}))
        for block in blocks:
            script = block.text.replace("./bazelw run //tools:virtual_cluster --", f'virtual_cluster "{self.name}"')
            script = script.replace("bazel-bin/tools/train", f"{TRAIN} {settings}")
            script = script.replace("configs/", f"{ROOT}/configs/")
            process = self.start(command=("bash", "-euo", "pipefail", "-c", FUNCTION + script, VIRTUAL_CLUSTER),
                                 environment={"PATH": self.path_with_mpirun()})
            self.assert_status(0, process)
        self.assertIn("\nnode2\nlo ", process.out)  # of ssh and ip
        self.assertIn("10.213.0.2/24", process.out)

    def path_with_mpirun(self):
        return f"{pathlib.Path(os.path.realpath(ROOT / os.environ['MPIRUN'])).parent}:{os.environ['PATH']}"

    def test_train_together(self):
        settings = sets(SHORT, {"launch.ranks": 4, "launch.threads": 1, "backend": "hybrid",
                                "launch.hosts": "[node1:1, node2:1, node3:1, node4:1]"})
        process = self.virtual_cluster("run", "--hosts=4", "--link=1gbit", "--", TRAIN, f"--config={QUICKSTART}",
                                       f"--run_dir={self.folder}/run", *settings,
                                       environment={"PATH": self.path_with_mpirun()})
        self.assert_status(0, process)
        run = self.run_folder()
        self.assertEqual((4, 16), (run.summary["ranks"], run.summary["steps"]))
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 on node{rank + 1}, started by mpirun, connects by hybrid",
                          run.log(rank).read_text())
        self.assert_gone()


@unittest.skipIf(REFUSAL, REFUSAL)
class HostsOfIpv6(unittest.TestCase):
    def test_have_no_address_of_ipv4(self):
        with cluster.Cluster(2, ipv6=True) as hosts:
            self.assertEqual(["fd13:213::1", "fd13:213::2"], hosts.addresses)
            connect = ("import socket, sys; s = socket.create_server(('::', 7000), family=socket.AF_INET6)\n"
                       "socket.create_connection((sys.argv[1], 7000), 5)")
            run = [sys.executable, "-c", connect]
            self.assertEqual(0, subprocess.run(hosts.command(0, [*run, "node1"]), check=False).returncode)
            self.assertEqual(0, subprocess.run(hosts.command(0, [*run, "localhost"]), check=False).returncode)
            of_ipv4 = subprocess.run(hosts.command(1, ["ip", "-4", "address"]), check=True, capture_output=True)
            self.assertEqual(b"", of_ipv4.stdout)


class Serving(ProgramTest):
    def test_answers_in_json(self):
        """Programs in C++ talk to it: they get hosts, or what is missing."""
        process = self.start("-c", pathlib.Path(cluster.__file__).read_text(),
                             json.dumps({"do": "serve", "hosts": 2, "link": "1gbit"}), command=(sys.executable,))
        if cluster.what_is_missing():
            self.assert_status(0, process)
            self.assertEqual({"missing"}, set(json.loads(process.out)))
        elif not REFUSAL:
            self.assert_status(0, process)
            hosts = json.loads(process.out)["hosts"]
            self.assertEqual(["eth0", "eth0"], [host["interface"] for host in hosts])
            self.assertEqual("nsenter", hosts[0]["enter"][0])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
