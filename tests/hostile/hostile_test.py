#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks every port that a run opens, while its ranks connect and while it trains. The run's result and its time stay,
and its logs have one line of each kind."""

import re
import shutil
import signal
import threading
import time

import hostile_peer
import program
from program import SHORT, ProgramTest, becomes_true, free_port, sets

SECRET = "a secret of the tests"
QUICK = ["large", "malformed", "wrong_secret", "garbage", "replayed", "many"]
LATE = 30  # seconds that a run under attack may take longer, on a loaded machine


class Attacker(threading.Thread):
    """Attacks each port at which the processes listen, by all kinds of attacks: once and all at the same time, or again and
    again, one after the other."""

    def __init__(self, attacks, again):
        super().__init__(daemon=True)
        self.pids = []
        self.attacks, self.again = attacks, again
        self.finished, self.problems, self.found = {}, [], set()
        self.on_port = lambda address: None
        self.hurry = False  # looks for ports all the time
        self._ends = threading.Event()
        self._threads = []
        self.start()

    def run(self):
        while not self._ends.is_set():
            for address in hostile_peer.listeners(self.pids) - self.found:
                self.found.add(address)
                self.on_port(address)
                # A thousand connections may fill the queue of the port, so the others come first.
                for names in [self.attacks] if self.again else [[name] for name in self.attacks if name != "many"]:
                    self._threads.append(threading.Thread(target=self._attack, args=(address, names), daemon=True))
                    self._threads[-1].start()
                if not self.again:
                    self._threads.append(threading.Timer(0.5, self._attack, (address, ["many"])))
                    self._threads[-1].start()
            time.sleep(0 if self.hurry else 0.01)

    def _attack(self, address, names):
        while True:
            for name in names:
                try:
                    hostile_peer.ATTACKS[name](address, SECRET.encode())
                    self.finished.setdefault(address, set()).add(name)
                except ConnectionRefusedError:
                    return  # the port is closed
                except (AssertionError, OSError) as problem:
                    self.problems.append(f"{name} of {address}: {problem!r}")
                if self._ends.is_set():
                    return
            if not self.again:
                return

    def has_finished(self, address):
        """Returns True if all attacks of the port have been tried."""
        return self.finished.get(address) == set(self.attacks)

    def report(self):
        return f"{self.finished} {self.problems}"

    def end(self):
        self._ends.set()
        for thread in [self, *self._threads]:
            thread.join(program.DEADLINE)


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

    def assert_logs_are_short(self, started):
        """Checks that each rank writes at most one line of each kind about strangers, and never the secret."""
        written = []
        for rank, process in enumerate(started):
            # A rank that has not met the others yet has no log.
            text = process.err + self.run_folder("besieged").log(rank).read_text()
            self.assertNotIn(SECRET, text)
            lines = {line for line in text.splitlines()
                     if re.search(r"connection of .* ended: |refused a request of |have to wait: ", line)}
            # Peers that were admitted have proved that they know the secret.
            lines = [re.sub(r"^.*?: |127\.0\.0\.1:\d+|\(and \d+ more\)", "", line).strip() for line in lines
                     if not re.search(r"client \d|unknown request|too long", line)]
            self.assertEqual(sorted(set(lines)), sorted(lines), text)
            written += lines
        self.assertTrue(any("does not know the" in line for line in written), written)

    def besiege_doors(self, attacker, settings):
        """Runs three ranks, which are stopped for a second as soon as one of them listens for the others, so that strangers
        connect before ranks do. Returns the ranks, the time and the ports, of which there are none if they were open too
        shortly."""
        port, doors = free_port(), []
        store = ("127.0.0.1", port)
        started = [self.start_rank(0, 3, port, settings, "besieged")]
        attacker.pids = [started[0].pid]
        self.assertTrue(becomes_true(lambda: attacker.has_finished(store)), attacker.report())

        def on_port(address):
            if not doors:
                self.signal(started, signal.SIGSTOP)
            doors.append(address)

        attacker.on_port, attacker.hurry = on_port, True
        begin = time.monotonic()
        started += [self.start_rank(rank, 3, port, settings, "besieged") for rank in (1, 2)]
        attacker.pids += [process.pid for process in started[1:]]
        becomes_true(lambda: doors or not started[0].running)
        attacker.hurry = False
        time.sleep(1 if doors else 0)  # for strangers to connect
        self.signal(started, signal.SIGCONT)
        self.assert_trained(started, settings, "besieged")
        return started, time.monotonic() - begin, doors

    @staticmethod
    def signal(started, number):
        for process in started:
            if process.running:
                process.kill(number)

    def test_ports_at_which_ranks_meet(self):
        settings = {"backend": "gloo", "strategy": "all_reduce"}
        calm = self.seconds_without_attack(3, settings)
        attacker = Attacker([*QUICK, "slow", "silent"], again=False)
        self.addCleanup(attacker.end)
        for _ in range(5):
            started, seconds, doors = self.besiege_doors(attacker, settings)
            if doors:
                break
            shutil.rmtree(self.run_folder("besieged").path)
        self.assertTrue(doors, "ranks were never seen to listen for each other")
        self.assertLess(seconds, calm + LATE)
        print(f"{seconds:.1f} s, of which ranks were stopped for 1 s; {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems)
        # Ranks close the port once they are connected; the first connection of each attack was made before.
        self.assertTrue(any(door in attacker.finished for door in doors), attacker.report())
        self.assertEqual(self.run_folder("calm").weights, self.run_folder("besieged").weights)
        self.assert_logs_are_short(started)

    def test_ports_of_a_run(self):
        settings = {"backend": "gloo", "roles.server": 1, "strategy": "{ssp: {staleness: 2}}", "train.max_steps": 800,
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
        self.assertLess(time.monotonic() - begin, 2 * calm + LATE)
        print(f"{time.monotonic() - begin:.1f} s, {calm:.1f} s without an attack")
        attacker.end()
        self.assertEqual([], attacker.problems)
        self.assertIn("wrong_secret", attacker.finished.get(("127.0.0.1", http), set()), attacker.report())
        attacked = [address for address, names in attacker.finished.items() if "wrong_secret" in names]
        self.assertGreaterEqual(len(attacked), 2, f"metrics and servers: {attacker.report()}")
        self.assertLessEqual(len({host for host, _ in attacker.found}), 2, "the loopback address, and one of this host")
        self.assert_logs_are_short(started)


if __name__ == "__main__":
    program.main()
