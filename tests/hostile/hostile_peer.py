#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks ports that Phalanx opens: hostile_peer.py HOST:PORT... [--secret_file FILE]

Each attack is a function of an address. It returns nothing, and raises an AssertionError if the port has given a
stranger anything but its greeting, or has let it stay.
"""

import argparse
import base64
import contextlib
import hashlib
import hmac
import os
import pathlib
import random
import resource
import secrets
import select
import socket
import struct
import sys
import time

MANY = 1000  # connections of the attack of that name
TIMEOUT = 30  # seconds within which a port must do what is expected of it
REFUSAL = b"-" * 64
HTTP_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"


def keyed_hash(secret, *parts):
    """framework/base/keyed_hash.h"""
    return hmac.new(secret, b"".join(b"%d:%s" % (len(part), part) for part in parts), hashlib.sha256).hexdigest().encode()


class Protocol:
    """A handshake of framework/base/handshake.h."""

    def __init__(self, name, secret, claim=b""):
        self.opening, self.answer = name + b"?", name + b"!"
        self.identity, self.secret, self.claim = name + claim, secret, claim

    def hello(self, nonce):
        return self.opening + nonce + self.claim

    def proof(self, nonce, answer):
        return keyed_hash(self.secret, b"client", nonce, answer[len(self.answer):], self.identity)


def protocols(secret):
    """Returns the handshakes of the ports that have one. The ranks that a peer of gloo claims to be do not exist."""
    return [Protocol(b"phalanx store 1", secret),
            Protocol(b"phalanx gloo 1", keyed_hash(secret, b"gloo", b"world"), b"%010d%010d" % (999, 0))]


def connected(address):
    return socket.create_connection(address, TIMEOUT)


def send(connection, text):
    """Sends as much as the peer takes. Returns False if it has closed the connection."""
    try:
        connection.sendall(text)
        return True
    except OSError:
        return False


def received(connection, most, seconds=TIMEOUT):
    """Returns what arrives before the end of the connection or the time, at most so many bytes."""
    text, end, poll = b"", time.monotonic() + seconds, select.poll()
    poll.register(connection, select.POLLIN)
    while len(text) < most and poll.poll(max(0, 1000 * (end - time.monotonic()))):
        try:
            piece = connection.recv(most - len(text))
        except OSError:
            break
        if not piece:
            break
        text += piece
    return text


def assert_ends(connection, answer=b""):
    """Checks that the port says no more than a refusal, and closes the connection."""
    answer += received(connection, 1 << 20)
    connection.settimeout(0)
    try:
        rest = connection.recv(1)
        assert rest == b"", "the connection is still open"
    except BlockingIOError:
        raise AssertionError("the connection is still open") from None
    except OSError:
        pass  # reset
    told = answer in (b"", REFUSAL) or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")) or is_greeting(answer)
    assert told, f"a stranger was told {answer[:200]}"


def is_greeting(answer):
    """Returns True if the answer has a nonce, and perhaps a refusal, but no proof."""
    for protocol in protocols(b""):
        if answer.startswith(protocol.answer):
            return answer[len(protocol.answer) + 64:] in (b"", REFUSAL)
    return answer.startswith(b"PHPS") and len(answer) == 80 + 64


def greet(connection, protocol):
    """Greets with a proof. Returns what was sent, and the verdict; an empty one if the port has another protocol."""
    nonce = secrets.token_hex(32).encode()
    send(connection, protocol.hello(nonce))
    answer = received(connection, len(protocol.answer) + 64)
    if not answer.startswith(protocol.answer):
        return b"", b""
    sent = protocol.proof(nonce, answer)
    send(connection, sent)
    return protocol.hello(nonce) + sent, received(connection, 64)


def end_of_input(connection):
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the peer has already closed it


def silent(address, _):
    """Holds connections until they are closed, and longer than a port waits for a greeting."""
    with contextlib.ExitStack() as stack:
        for connection in [stack.enter_context(connected(address)) for _ in range(20)]:
            assert_ends(connection)


def slow(address, _):
    """Sends a good beginning, byte by byte."""
    with connected(address) as connection:
        for i in range(100):
            if not send(connection, b"phalanx store 1?"[i % 16:i % 16 + 1]):
                break
            time.sleep(0.02)
        assert_ends(connection)


def large(address, _):
    """Sends more than any greeting has."""
    for text in (b"\0" * (4 << 20), b"GET /" + b"x" * (4 << 20)):
        with connected(address) as connection:
            send(connection, text)


def malformed(address, _):
    noise = random.Random(1)
    for text in (b"\n", b"GET / HTTP/1.0\r\n\r\n", noise.randbytes(500), struct.pack("<QQQQQQ", 48, 0, 0, 0, 0, 0),
                 b"phalanx store 1?" + noise.randbytes(128), b"phalanx gloo 1?" + noise.randbytes(200),
                 b"HEAD * HTTP/9\r\nHost:\r\n\r\n", HTTP_REQUEST + b"Authorization: Digest username=\"\r\n\r\n",
                 struct.pack("<IHBBQIHBBqqqdQQII", 0x53504850, 3, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 1 << 62, 1 << 30, 0)):
        with connected(address) as connection:
            send(connection, text)
            end_of_input(connection)
            assert_ends(connection)


def wrong_secret(address, _):
    for protocol in protocols(b"another secret of others"):
        with connected(address) as connection:
            _, verdict = greet(connection, protocol)
            assert verdict in (b"", REFUSAL), verdict
            assert_ends(connection)
    # Parameter servers frame their handshake as messages.
    header = struct.Struct("<IHBBQIHBBqqqdQQII")
    with connected(address) as connection:
        for text in (secrets.token_hex(32).encode(), secrets.token_hex(32).encode() + b"3:job,"):
            send(connection, header.pack(0x53504850, 3, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 0, len(text), 0) + text)
        assert_ends(connection)


def wrong_password(address, _):
    """Asks for a page without, and with wrong credentials."""
    for credentials in (b"", b"Bearer " + b"0" * 64, b"Basic " + base64.b64encode(b"phalanx:another secret")):
        with connected(address) as connection:
            send(connection, HTTP_REQUEST + b"Authorization: " + credentials + b"\r\n\r\n")
            assert_ends(connection)


def garbage(address, secret):
    """Begins as a peer that knows the secret, and goes on with garbage."""
    for protocol in protocols(secret):
        with connected(address) as connection:
            greet(connection, protocol)
            send(connection, random.Random(2).randbytes(100_000))
            received(connection, 1 << 20)


def replayed(address, secret):
    """Sends a greeting again with which a peer was admitted."""
    for protocol in protocols(secret):
        with connected(address) as connection:
            sent, verdict = greet(connection, protocol)
        if not verdict:
            continue
        assert verdict != REFUSAL, "the recorded greeting must be a good one"
        with connected(address) as connection:
            send(connection, sent)
            answer = received(connection, len(protocol.answer) + 64 + 64)
            assert answer.endswith(REFUSAL), answer
            assert_ends(connection)


def many(address, _):
    """Opens a great many connections, and leaves them to the port."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    connections = []
    for _ in range(min(MANY, most - 100)):
        connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        connection.setblocking(False)
        connection.connect_ex(address)
        connections.append(connection)
    time.sleep(2)
    for connection in connections:
        connection.close()


# Attacks by kind. Those of `NEED_A_SECRET` know the secret of the job.
ATTACKS = {attack.__name__: attack for attack in (large, malformed, wrong_password, wrong_secret, garbage, replayed, slow, many, silent)}
NEED_A_SECRET = {"garbage", "replayed"}


def listening_lines(name):
    """Returns the lines of listening sockets. They come first; there may be many others."""
    lines = []
    with open(f"/proc/net/{name}", encoding="ascii") as file:
        next(file)
        for line in file:
            if line.split()[3] != "0A":
                break
            lines.append(line)
    return lines


def listeners(pids):
    """Returns the addresses of TCP at which the processes listen."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
        except OSError:
            continue  # the process has ended
        inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    found = set()
    for name, family, any_address, local in (("tcp", socket.AF_INET, "0.0.0.0", "127.0.0.1"),
                                             ("tcp6", socket.AF_INET6, "::", "::1")):
        for line in listening_lines(name):
            fields = line.split()
            if fields[9] not in inodes:
                continue
            words, port = fields[1].split(":")
            binary = b"".join(struct.pack("=I", int(words[i:i + 8], 16)) for i in range(0, len(words), 8))
            host = socket.inet_ntop(family, binary)
            found.add((local if host == any_address else host, int(port, 16)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT")
    parser.add_argument("--secret_file", help="file with the job's secret, for the attacks that need it")
    arguments = parser.parse_args()
    secret = pathlib.Path(arguments.secret_file).read_bytes().split(b"\n")[0].strip() if arguments.secret_file else None
    failed = 0
    for text in arguments.addresses:
        host, _, port = text.rpartition(":")
        for name, attack in ATTACKS.items():
            if name in NEED_A_SECRET and secret is None:
                continue
            begin = time.monotonic()
            try:
                attack((host.strip("[]"), int(port)), secret)
                verdict = "ok"
            except AssertionError as problem:
                verdict = f"FAILED: {problem}"
                failed += 1
            print(f"{text} {name}: {verdict} ({time.monotonic() - begin:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
