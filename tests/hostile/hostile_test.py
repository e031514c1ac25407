#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks every port that a run opens, while its ranks connect and while it trains. The run's result and its time stay,
and its logs have one line of each kind and minute."""

import collections
import re
import socket
import threading
import time

import hostile_peer
import program
from program import SHORT, ProgramTest, becomes_true, free_port, sets

SECRET = "a secret of the tests"
QUICK = ["large", "malformed", "wrong_password", "wrong_secret", "garbage", "replayed", "many"]
LATE = 60  # seconds that a run under attack may take longer, on a loaded machine


class Attacker(threading.Thread):
    """Attacks each port at which the processes listen by all kinds of attacks at the same time, once or again and again."""

    def __init__(self, attacks, again):
        super().__init__(daemon=True)
        self.pids = []
        self.attacks, self.again = attacks, again
        self.finished, self.problems, self.found = {}, [], set()
        self._ends = threading.Event()
        self._threads = []
        self.start()

    def run(self):
        while not self._ends.is_set():
            for address in hostile_peer.listeners(self.pids) - self.found:
                self.found.add(address)
                # A thousand connections may fill the queue of the port, so the others come first.
                for name in self.attacks:
                    wait = 0.5 if name == "many" else 0
                    self._threads.append(threading.Thread(target=self._attack, args=(address, name, wait), daemon=True))
                    self._threads[-1].start()
            time.sleep(0.01)

    def _attack(self, address, name, wait):
        while not self._ends.wait(wait):
            try:
                hostile_peer.ATTACKS[name](address, SECRET.encode())
                self.finished.setdefault(address, set()).add(name)
            except ConnectionRefusedError:
                return  # the port is closed
            except (AssertionError, OSError) as problem:
                self.problems.append(f"{name} of {address}: {problem!r}")
            if not self.again:
                return
            wait = 0.2

    def has_finished(self, address):
        """Returns True if all attacks of the port have been tried."""
        return self.finished.get(address) == set(self.attacks)

    def report(self):
        return f"{self.finished} {self.problems}"

    def end(self):
        self._ends.set()
        for thread in [self, *self._threads]:
            thread.join(program.DEADLINE)


class SlowLink(threading.Thread):
    """A port from which connections are passed on to an address. What clients send arrives late."""

    def __init__(self, address, seconds=0.25):
        super().__init__(daemon=True)
        self.address, self.seconds = address, seconds
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

    @staticmethod
    def _pass_on(source, sink, late):
        try:
            while piece := source.recv(1 << 16):
                time.sleep(late)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()

    def end(self):
        self._listener.close()


class Hostile(ProgramTest):
    def start_rank(self, rank, ranks, port, settings, run):
        # Ranks of different hosts connect by TCP, to servers too.
        return self.train(*sets(SHORT, settings), f"--init_method=tcp://127.0.0.1:{port}", f"--rank={rank}",
                          f"--world_size={ranks}", run=run,
                          environment={"PHALANX_JOB_SECRET": SECRET, "PHALANX_HOST_KEY": f"host {rank}"})

    def assert_trained(self, started, settings, run):
        for process in started:
            self.assert_status(0, process)
        self.assertEqual(settings.get("train.max_steps", 16), self.run_folder(run).summary["steps"])

    def seconds_without_attack(self, ranks, settings):
        begin, port = time.monotonic(), free_port()
        self.assert_trained([self.start_rank(rank, ranks, port, settings, "calm") for rank in range(ranks)], settings, "calm")
        return time.monotonic() - begin

    def assert_logs_are_short(self, started, seconds):
        """Checks that each rank writes at most one line of each kind and minute about strangers, and never the secret."""
        written = collections.Counter()
        for rank, process in enumerate(started):
            # A rank that has not met the others yet has no log.
            text = process.err + self.run_folder("besieged").log(rank).read_text()
            self.assertNotIn(SECRET, text)
            lines = {line for line in text.splitlines()
                     if re.search(r"connection of .* ended: |refused a request of |have to wait: ", line)}
            # Peers that were admitted have proved that they know the secret.
            kinds = collections.Counter(re.sub(r"^.*?: |127\.0\.0\.1:\d+|\(and \d+ more\)", "", line).strip() for line in lines
                                        if not re.search(r"client \d|unknown request|too long", line))
            self.assertLessEqual(max(kinds.values(), default=0), 1 + seconds // 60, text)
            written += kinds
        self.assertTrue(any("does not know the" in line for line in written), written)

    # Rank 2 reaches the store through a slow link, so that the ports at which the others wait for it stay open for a while.
    def test_ports_at_which_ranks_meet(self):
        settings = {"backend": "gloo", "strategy": "all_reduce"}

        def start_others(port):
            link = SlowLink(("127.0.0.1", port))
            self.addCleanup(link.end)
            return [self.start_rank(rank, 3, at, settings, run) for rank, at in ((1, port), (2, link.port))]

        run, port, begin = "calm", free_port(), time.monotonic()
        self.assert_trained([self.start_rank(0, 3, port, settings, run), *start_others(port)], settings, run)
        calm = time.monotonic() - begin

        run, port = "besieged", free_port()
        attacker = Attacker([*QUICK, "slow", "silent"], again=False)
        self.addCleanup(attacker.end)
        started = [self.start_rank(0, 3, port, settings, run)]
        attacker.pids = [started[0].pid]
        store = ("127.0.0.1", port)
        self.assertTrue(becomes_true(lambda: attacker.has_finished(store)), attacker.report())
        begin = time.monotonic()
        started += start_others(port)
        attacker.pids += [process.pid for process in started[1:]]
        self.assert_trained(started, settings, run)
        seconds = time.monotonic() - begin
        self.assertLess(seconds, calm + LATE)
        print(f"{seconds:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems)
        doors = attacker.found - {store}
        # Ranks close these ports once they are connected, and with them the connections of strangers.
        self.assertTrue(any(QUICK[-1] in attacker.finished.get(door, ()) for door in doors), attacker.report())
        self.assertEqual(self.run_folder("calm").weights, self.run_folder("besieged").weights)
        self.assert_logs_are_short(started, seconds)

    def test_ports_of_a_run(self):
        settings = {"backend": "gloo", "roles.server": 1, "strategy": "{ssp: {staleness: 2}}", "train.max_steps": 300,
                    "train.epochs": 1000}
        calm = self.seconds_without_attack(3, settings)
        port, http = free_port(), free_port()
        settings["watch.prometheus.port"] = http
        attacker = Attacker([*QUICK, "slow", "silent"], again=True)
        self.addCleanup(attacker.end)
        begin = time.monotonic()
        started = [self.start_rank(rank, 3, port, settings, "besieged") for rank in range(3)]
        attacker.pids += [process.pid for process in started]
        self.assert_trained(started, settings, "besieged")
        seconds = time.monotonic() - begin
        self.assertLess(seconds, 3 * calm + LATE)
        print(f"{seconds:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems)
        self.assertIn("wrong_password", attacker.finished.get(("127.0.0.1", http), set()), attacker.report())
        servers = [address for address, names in attacker.finished.items()
                   if "wrong_secret" in names and address not in (("127.0.0.1", http), ("127.0.0.1", port))]
        self.assertTrue(servers, attacker.report())
        self.assertLessEqual(len({host for host, _ in attacker.found}), 2, "the loopback address, and one of this host")
        self.assert_logs_are_short(started, seconds)


if __name__ == "__main__":
    program.main()
