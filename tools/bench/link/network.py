# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a link of a given rate, which ranks cannot distinguish from two hosts.

network.py RATE makes them for a program that is not in Python. It writes a line of JSON, {"hosts": [{"enter": words
before a command, "interface": its end of the link}, ...]} or {"missing": why they cannot be made}, and removes them
when its input ends.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

PREFIX = "phalanx-link"
RIGHTS = "this requires root with CAP_NET_ADMIN and CAP_SYS_ADMIN: run it with sudo, or in a container that has both"


def what_is_missing():
    """Returns why no hosts can be made here, if that is known without trying; otherwise an empty string."""
    if os.geteuid() != 0:
        return f"not allowed to create network namespaces; {RIGHTS}"
    absent = [program for program in ("ip", "tc", "unshare") if shutil.which(program) is None]
    return f"no {', '.join(absent)} on PATH; install iproute2 and util-linux" if absent else ""


class TwoHosts:
    """Makes the namespaces and the link on entry, and removes them on exit.

    The link is a veth pair; a token bucket (tbf) shapes what leaves either end. It is full duplex, like an Ethernet
    cable. hosts: names of the two namespaces; interfaces: their ends of the link; addresses, subnet: addresses of the
    ends.
    """

    def __init__(self, rate):
        self.rate = rate
        self.hosts = [f"{PREFIX}-{os.getpid()}-{end}" for end in "ab"]
        self.interfaces = [f"phx{os.getpid()}{end}" for end in "ab"]
        self.addresses = ["10.213.0.1", "10.213.0.2"]
        self.subnet = "10.213.0.0/30"

    def __enter__(self):
        sweep()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def command(self, host, command):
        """Returns the command that runs `command` on host 0 or 1; each host has its own host name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', f"host-{'ab'[host]}", *command]
        return ["ip", "netns", "exec", self.hosts[host], *named]

    def _make(self):
        for host in self.hosts:
            run("ip", "netns", "add", host)
        here, there = self.interfaces
        run("ip", "-n", self.hosts[0], "link", "add", here, "type", "veth", "peer", "name", there, "netns", self.hosts[1])
        for number, (host, interface, address) in enumerate(zip(self.hosts, self.interfaces, self.addresses)):
            run("ip", "-n", host, "address", "add", f"{address}/{self.subnet.split('/')[1]}", "dev", interface)
            run("ip", "-n", host, "link", "set", interface, "up")
            run("ip", "-n", host, "link", "set", "lo", "up")
            # The bucket holds two of the longest packets that TCP hands down. With a smaller one the kernel would split
            # packets, which takes more CPU time than hosts with network cards need. The queue is long enough that
            # nothing is dropped.
            run("tc", "-n", host, "qdisc", "add", "dev", interface, "root", "tbf", "rate", self.rate, "burst", "128kb",
                "limit", "16mb")
            run(*self.command(number, ["true"]))  # fails now if the namespace cannot be entered

    def _remove(self):
        for host in self.hosts:  # the link goes with its ends
            subprocess.run(["ip", "netns", "delete", host], stderr=subprocess.DEVNULL, check=False)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = done.stderr.strip() or f"exit status {done.returncode}"
        hint = f"; {RIGHTS}" if re.search("not permitted|denied", why) else ""
        raise SystemExit(f"link: {' '.join(command)}: {why}{hint}")


def sweep():
    """Removes namespaces of measurements that were killed before they could remove them."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for name, process in re.findall(rf"^({PREFIX}-(\d+)-[ab])\b", listed, re.MULTILINE):
        if not os.path.exists(f"/proc/{process}"):
            subprocess.run(["ip", "netns", "delete", name], check=False)


def main():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))  # runs every clean-up
    if missing := what_is_missing():
        print(json.dumps({"missing": missing}), flush=True)
        return
    with TwoHosts(sys.argv[1]) as hosts:
        entries = [{"enter": hosts.command(host, []), "interface": hosts.interfaces[host]} for host in range(2)]
        print(json.dumps({"hosts": entries}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
