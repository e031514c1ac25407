# SPDX-License-Identifier: Apache-2.0
"""Compares push to and pull from a parameter server on another host with the capacity of the link between them.

    bazel run //tools/bench/link:servers -- --rate 1gbit --bytes 1MB,16MB

The hosts belong to a virtual cluster (tools/virtual_cluster/cluster.py). `stream` is one TCP connection that
carries the tensor in one direction. Rounds of both alternate; seconds are medians, and the share of the link is
computed for a push and a pull together.
"""

import argparse
import os
import secrets
import statistics
import subprocess

import cluster
import link

PROGRAM = os.environ.get("PHALANX_LINK_SERVERS", "")
STREAM = """
import socket, sys, time
kind, address, count, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def take(connection, left):
    buffer = memoryview(bytearray(1 << 18))
    while left > 0:
        got = connection.recv_into(buffer, min(left, len(buffer)))
        if got == 0: sys.exit("the peer is gone")
        left -= got
if kind == "serve":
    with socket.create_server((address, 29600)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        for _ in range(rounds + 1):
            take(connection, count)
            connection.sendall(b"x")
else:
    connection = socket.create_connection((address, 29600), timeout=60)
    for turn in range(rounds + 1):
        begin = time.perf_counter()
        connection.sendall(bytes(count))
        take(connection, 1)
        if turn > 0: print(time.perf_counter() - begin)
"""


def outcome(hosts, server, client):
    """Returns the output of `client` on the first host, while `server` runs on the second."""
    with subprocess.Popen(hosts.command(1, server), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
        try:
            if serving.stdout.readline() != "ready\n":
                raise SystemExit(f"link: {server[0]} did not start to serve")
            done = subprocess.run(hosts.command(0, client), stdout=subprocess.PIPE, text=True, check=False,
                                  timeout=link.DEADLINE)
            if done.returncode != 0:
                raise SystemExit(f"link: {client[0]} failed, see above")
            return done.stdout
        finally:
            serving.stdin.close()
            serving.kill()


def main():
    parser = argparse.ArgumentParser(prog="servers", description="push and pull between two hosts, against the link itself")
    parser.add_argument("--rate", default="1gbit", help="rate of the link, in the notation of tc")
    parser.add_argument("--bytes", default="1MB,16MB", type=lambda text: [link.parse_size(s) for s in text.split(",")])
    parser.add_argument("--rounds", default=5, type=int, help="rounds for each size, each with a few pushes and pulls")
    parser.add_argument("--realtime", action="store_true", help="take priority over everything else on this machine")
    options = parser.parse_args()
    if missing := cluster.what_is_missing():
        raise SystemExit(f"link: {missing}")
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    print("| bytes | stream, ms | push, ms | pull, ms | of the link |\n|---|---|---|---|---|")
    with cluster.Cluster(2, options.rate) as hosts:
        there = hosts.addresses[1]
        for size in options.bytes:
            stream, push, pull = [], [], []
            for _ in range(options.rounds):
                words = [str(size), "3"]
                stream += map(float, outcome(hosts, ["python3", "-c", STREAM, "serve", there, *words],
                                             ["python3", "-c", STREAM, "ask", there, *words]).split())
                secret = secrets.token_hex(16)
                line = outcome(hosts, [PROGRAM, f"--serve={there}:29700", f"--secret={secret}"],
                               [PROGRAM, f"--ask={there}:29700", f"--secret={secret}", f"--bytes={size}", "--rounds=3"])
                measured = link.json.loads(line)
                push += measured["push"]
                pull += measured["pull"]
            limit, sent, read = (statistics.median(one) for one in (stream, push, pull))
            print(f"| {size} | {limit * 1e3:.1f} | {sent * 1e3:.1f} | {read * 1e3:.1f} | {2 * limit / (sent + read):.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
