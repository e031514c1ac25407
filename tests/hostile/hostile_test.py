#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks every port that a run opens, while its ranks connect and while it trains, and the ports of programs that outlive
a run. The run's result and its time stay, and the logs have one line of each kind and minute."""

import collections
import re
import signal
import socket
import sys
import threading
import time
import unittest
import unittest.mock

import hostile_peer
import program
from program import ROOT, SHORT, ProgramTest, becomes_true, free_port, sets

sys.path.insert(0, str(ROOT / "tools/regress/site"))
import example_nights  # noqa: E402

PS = str(ROOT / "tools/ps/ps")
DASHBOARD = str(ROOT / "tools/dashboard/dashboard")
SECRET = "a secret of the tests"
QUICK = ["large", "malformed", "wrong_password", "wrong_secret", "garbage", "replayed", "many"]
ALL = [*QUICK, "slow", "silent"]
# A run that is long enough to be attacked.
LONG = {"train.max_steps": 300, "train.epochs": 1000}
LATE = 60  # seconds that a run under attack may take longer, on a loaded machine


class Attacker(threading.Thread):
    """Attacks each port at which the processes listen by all kinds of attacks at the same time, once or again and again."""

    def __init__(self, again):
        super().__init__(daemon=True)
        self.pids = []
        self.again = again
        self.finished, self.found = {}, set()
        self._reached, self._problems = {}, []
        self._ends = threading.Event()
        self._threads = []
        self.start()

    def run(self):
        while not self._ends.is_set():
            for address in hostile_peer.listeners(self.pids) - self.found:
                self.found.add(address)
                for name in ALL:
                    self._threads.append(threading.Thread(target=self._attack, args=(address, name), daemon=True))
                    self._threads[-1].start()
            time.sleep(0.01)

    def _attack(self, address, name):
        # A thousand connections may displace others, so the other attacks come first.
        if name == "many" and self.again:
            self._ends.wait(0.5)
        elif name == "many":
            while not self.has_finished(address, QUICK[:-1]) and not self._ends.wait(0.02):
                pass
        while not self._ends.is_set():
            try:
                protocols = hostile_peer.ATTACKS[name](address, SECRET.encode())
                self._reached.setdefault((address, name), set()).update(protocols or ())
                self.finished.setdefault(address, set()).add(name)
            except ConnectionRefusedError:
                return  # the port is closed
            except (AssertionError, OSError) as problem:
                self._problems.append((address, name, problem))
            if not self.again:
                return
            self._ends.wait(0.2)

    def has_finished(self, address, attacks):
        """Returns True if these attacks of the port have been tried."""
        return self.finished.get(address, set()) >= set(attacks)

    def reached(self, address, attack):
        """Returns the names of the protocols that the port has spoken in the attack, as hostile_peer returns them."""
        return self._reached.get((address, attack), set())

    def speaks(self, address):
        return set().union(*(protocols for (other, _), protocols in list(self._reached.items()) if other == address))

    def problems(self, gloo=frozenset()):
        """Returns what went wrong. While a rank does not accept connections at one of the ports `gloo`, they stay in the queue
        of the system, which may be full, so these ports may leave strangers unanswered."""
        unanswered = (hostile_peer.StillOpen, TimeoutError)
        return [f"{name} of {address}: {problem!r}" for address, name, problem in self._problems
                if not isinstance(problem, unanswered) or address not in gloo]

    def report(self):
        return f"{self.finished} {self._reached} {self._problems}"

    def end(self):
        self._ends.set()
        for thread in [self, *self._threads]:
            thread.join(program.DEADLINE)


class SlowLink(threading.Thread):
    """A port from which connections are passed on to an address. What clients send arrives late. A text that contains `hold`
    and all that follow it arrive only after go_on()."""

    def __init__(self, address, hold=b"", seconds=0.25):
        super().__init__(daemon=True)
        self.address, self.seconds = address, seconds
        self._hold, self._goes_on = hold, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return  # end()
            try:
                server = socket.create_connection(self.address)
            except OSError:
                client.close()  # which will try again
                continue
            for source, sink, late in ((client, server, self.seconds), (server, client, 0)):
                threading.Thread(target=self._pass_on, args=(source, sink, late), daemon=True).start()

    def go_on(self):
        self._goes_on.set()

    def _pass_on(self, source, sink, late):
        try:
            while piece := source.recv(1 << 16):
                time.sleep(late)
                if late and self._hold and self._hold in piece:
                    self._goes_on.wait()
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()

    def end(self):
        self._listener.close()


class Problems(unittest.TestCase):
    """The judgement of the attacker."""

    def problems_of(self, attack, **ports):
        attacker = Attacker(again=False)
        self.addCleanup(attacker.end)
        with unittest.mock.patch.dict(hostile_peer.ATTACKS, {"silent": attack}):
            attacker._attack(("127.0.0.1", 7), "silent")  # pylint: disable=protected-access
        return attacker.problems(**ports)

    def test_a_port_that_never_answers_is_one_unless_it_is_gloos(self):
        for problem in (hostile_peer.StillOpen("the connection is still open"), TimeoutError("timed out")):
            attack = unittest.mock.Mock(side_effect=problem)
            self.assertEqual([f"silent of ('127.0.0.1', 7): {problem!r}"], self.problems_of(attack))
            self.assertEqual(1, len(self.problems_of(attack, gloo={("127.0.0.1", 8)})))
            self.assertEqual([], self.problems_of(attack, gloo={("127.0.0.1", 7)}))

    def test_a_port_of_gloo_must_not_tell_anything(self):
        attack = unittest.mock.Mock(side_effect=AssertionError("a stranger was told x"))
        self.assertEqual(1, len(self.problems_of(attack, gloo={("127.0.0.1", 7)})))


class Hostile(ProgramTest):
    def start_rank(self, rank, ranks, port, settings, run):
        # Ranks of different hosts connect by TCP, to servers too.
        return self.train(*sets(SHORT, settings), f"--init_method=tcp://127.0.0.1:{port}", f"--rank={rank}",
                          f"--world_size={ranks}", run=run,
                          environment={"PHALANX_JOB_SECRET": SECRET, "PHALANX_HOST_KEY": f"host {rank}"})

    def attacker(self, again):
        attacker = Attacker(again)
        self.addCleanup(attacker.end)
        return attacker

    def assert_trained(self, started, settings, run):
        for process in started:
            self.assert_status(0, process)
        self.assertEqual(settings.get("train.max_steps", 16), self.run_folder(run).summary["steps"])

    def seconds_without_attack(self, ranks, settings):
        begin, port = time.monotonic(), free_port()
        self.assert_trained([self.start_rank(rank, ranks, port, settings, "calm") for rank in range(ranks)], settings, "calm")
        return time.monotonic() - begin

    def assert_logs_are_short(self, texts, seconds):
        """Checks that each program writes at most one line of each kind and minute about strangers, and never the secret."""
        written = collections.Counter()
        for text in texts:
            self.assertNotIn(SECRET, text)
            lines = {line for line in text.splitlines()
                     if re.search(r"connection of .* ended: |refused a request of |have to wait: ", line)}
            # Peers that were admitted have proved that they know the secret.
            kinds = collections.Counter(re.sub(r"^.*?: |127\.0\.0\.1:\d+|\(and \d+ more\)", "", line).strip() for line in lines
                                        if not re.search(r"client \d|unknown request|too long", line))
            self.assertLessEqual(max(kinds.values(), default=0), 1 + seconds // 60, text)
            written += kinds
        self.assertTrue(any("does not know the" in line for line in written), written)

    def assert_logs_of_ranks_are_short(self, started, seconds):
        # A rank that has not met the others yet has no log.
        self.assert_logs_are_short([process.err + self.run_folder("besieged").log(rank).read_text()
                                    for rank, process in enumerate(started)], seconds)

    # Rank 2 reaches the store through a slow link. When all ranks have said at which ports they wait, but rank 2 does
    # not know the others' ports yet, it has to wait until these have been attacked.
    def test_ports_at_which_ranks_meet(self):
        settings = {"backend": "gloo", "strategy": "all_reduce"}

        def start_others(port, hold=b""):
            link = SlowLink(("127.0.0.1", port), hold)
            self.addCleanup(link.end)
            return link, [self.start_rank(rank, 3, at, settings, run) for rank, at in ((1, port), (2, link.port))]

        run, port, begin = "calm", free_port(), time.monotonic()
        self.assert_trained([self.start_rank(0, 3, port, settings, run), *start_others(port)[1]], settings, run)
        calm = time.monotonic() - begin

        run, port = "besieged", free_port()
        attacker = self.attacker(again=False)
        started = [self.start_rank(0, 3, port, settings, run)]
        attacker.pids = [started[0].pid]
        store = ("127.0.0.1", port)
        self.assertTrue(becomes_true(lambda: attacker.has_finished(store, ALL)), attacker.report())
        begin = time.monotonic()
        link, others = start_others(port, hold=b"gloo/0")
        started += others
        attacker.pids += [process.pid for process in others]
        # Gloo's own sockets are attacked, too.
        attacked = becomes_true(lambda: [door for door in attacker.found - {store} if attacker.has_finished(door, QUICK) and
                                         attacker.reached(door, "wrong_secret")])
        link.go_on()
        self.assertTrue(attacked, attacker.report())
        self.assert_trained(started, settings, run)
        seconds = time.monotonic() - begin
        self.assertLess(seconds, calm + LATE)
        print(f"{seconds:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems(gloo=attacker.found - {store}))
        for address, protocol in ((store, "store"), (attacked[0], "gloo")):
            for attack in ("wrong_secret", "garbage", "replayed"):
                with self.subTest(attack, protocol=protocol):
                    self.assertEqual({protocol}, attacker.reached(address, attack), attacker.report())
        self.assertEqual(self.run_folder("calm").weights, self.run_folder("besieged").weights)
        self.assert_logs_of_ranks_are_short(started, seconds)

    # Ranks of different hosts are connected by gloo below hybrid.
    def test_ports_of_a_run(self):
        settings = {"backend": "hybrid", "roles.server": 1, "strategy": "{ssp: {staleness: 2}}", **LONG}
        calm = self.seconds_without_attack(3, settings)
        port, http = free_port(), free_port()
        settings["watch.prometheus.port"] = http
        attacker = self.attacker(again=True)
        begin = time.monotonic()
        started = [self.start_rank(rank, 3, port, settings, "besieged") for rank in range(3)]
        attacker.pids += [process.pid for process in started]
        self.assert_trained(started, settings, "besieged")
        seconds = time.monotonic() - begin
        self.assertLess(seconds, 3 * calm + LATE)
        print(f"{seconds:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        page = ("127.0.0.1", http)
        servers = {door for door in attacker.found if "server" in attacker.speaks(door)}
        self.assertEqual([], attacker.problems(gloo=attacker.found - {("127.0.0.1", port), page} - servers))
        self.assertTrue(attacker.has_finished(page, ["wrong_password"]), attacker.report())
        # The secret of the servers is drawn by the ranks.
        self.assertTrue([door for door in attacker.found if attacker.reached(door, "wrong_secret") == {"server"}], attacker.report())
        self.assertLessEqual(len({host for host, _ in attacker.found}), 2, "the loopback address, and one of this host")
        self.assert_logs_of_ranks_are_short(started, seconds)

    def test_port_at_which_hosts_join(self):
        settings = {"launch.ranks": 2, "backend": "gloo", "strategy": "all_reduce", "faults.on_lost_rank": "replace",
                    "faults.max_ranks": 3, **LONG}

        def train(run):
            return self.train(*sets(SHORT, settings, name=run), run=run, environment={"PHALANX_JOB_SECRET": SECRET})

        begin = time.monotonic()
        self.assert_trained([train("calm")], settings, "calm")
        calm = time.monotonic() - begin
        attacker, begin = self.attacker(again=True), time.monotonic()
        process = train("besieged")
        attacker.pids = [process.pid]  # of the launcher; its ranks have others
        self.assert_trained([process], settings, "besieged")
        seconds = time.monotonic() - begin
        self.assertLess(seconds, 3 * calm + LATE)
        print(f"{seconds:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems())
        self.assertEqual(1, len(attacker.found), attacker.report())
        door = attacker.found.pop()
        for attack in ("wrong_secret", "garbage"):
            with self.subTest(attack):
                self.assertEqual({"join"}, attacker.reached(door, attack), attacker.report())
        self.assertEqual(2, self.run_folder("besieged").summary["ranks"])
        self.assertEqual(self.run_folder("calm").weights, self.run_folder("besieged").weights)
        self.assert_logs_are_short([process.err + process.out], seconds)

    def test_ports_of_programs_that_outlive_a_run(self):
        secret = self.folder / "secret"
        secret.write_text(SECRET + "\n")
        secret.chmod(0o600)
        example_nights.fill(self.folder / "nightly", nights=1, cases=2, light=True)
        doors = {name: ("127.0.0.1", free_port()) for name in ("server", "http")}
        address = "127.0.0.1:{}".format(doors["server"][1])
        server = self.start(f"--listen={address}", f"--secret_file={secret}", command=[PS])
        dashboard = self.start("nightly", f"--port={doors['http'][1]}", command=[DASHBOARD],
                               environment={"PHALANX_JOB_SECRET": SECRET})
        for process, text in ((server, "ready at"), (dashboard, "Dashboard at")):
            self.assertTrue(becomes_true(lambda: text in process.out or not process.running), process.text())
        settings = {"launch.ranks": 2, "strategy": "{downpour: {}}", "roles.servers_at": f'["{address}"]',
                    "roles.secret_file": secret, **LONG, "train.max_steps": 100}

        def train(run):
            begin = time.monotonic()
            self.assert_trained([self.train(*sets(SHORT, settings, name=run), run=run)], settings, run)
            return time.monotonic() - begin

        calm = train("calm")
        attacker, begin = self.attacker(again=True), time.monotonic()
        attacker.pids = [server.pid, dashboard.pid]
        self.assertTrue(becomes_true(lambda: all(attacker.has_finished(door, QUICK) for door in doors.values())), attacker.report())
        besieged = train("besieged")
        self.assertLess(besieged, 3 * calm + LATE)
        print(f"{besieged:.1f} s, {calm:.1f} s without an attack")
        for process in (server, dashboard):
            process.kill(signal.SIGTERM)
            self.assert_status(0, process)
        attacker.end()
        self.assertEqual([], attacker.problems())
        for protocol, door in doors.items():
            for attack in ("wrong_secret", "garbage", "replayed"):
                with self.subTest(attack, protocol=protocol):
                    self.assertEqual({protocol}, attacker.reached(door, attack), attacker.report())
        self.assert_logs_are_short([server.err + server.out, dashboard.err], time.monotonic() - begin)


if __name__ == "__main__":
    program.main()
