#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks ports that Phalanx opens: hostile_peer.py HOST:PORT... [--secret_file FILE]

Each attack is a function of an address. It raises an AssertionError if the port has given a stranger anything but its
greeting, or has let it stay. Attacks that greet return the names of the protocols of which the port has answered the
greeting (wrong_secret), or by which they were admitted (garbage, replayed); the others return nothing.
"""

import argparse
import base64
import contextlib
import dataclasses
import hashlib
import hmac
import os
import pathlib
import random
import re
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
# Longer than the header of a message, so that a parameter server does not wait for more.
HTTP_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: here\r\nUser-Agent: hostile peer of the tests\r\nConnection: close\r\n"


def keyed_hash(secret, *parts):
    """framework/base/keyed_hash.h"""
    return hmac.new(secret, b"".join(b"%d:%s" % (len(part), part) for part in parts), hashlib.sha256).hexdigest().encode()


def random_text():
    """framework/base/keyed_hash.h"""
    return secrets.token_hex(32).encode()


@dataclasses.dataclass
class Greeted:
    """The answer of a port to a greeting."""

    sent: bytes = b""
    answer: bytes = b""
    speaks: bool = False  # the port has answered as one of this protocol does
    admitted: bool = False


class Handshake:
    """The client of a handshake of framework/base/handshake.h."""

    def __init__(self, name, identity, secret, claim=b""):
        self.name, self.secret, self.claim = name, secret, claim
        self.opening, self.server_opening, self.identity = identity + b"?", identity + b"!", identity + claim
        self.beginning = self.opening + random_text() + claim

    def greet(self, connection):
        nonce = random_text()
        hello = self.opening + nonce + self.claim
        send(connection, hello)
        answer = received(connection, len(self.server_opening) + 64)
        if not answer.startswith(self.server_opening):
            return Greeted(answer=answer)
        theirs = answer[len(self.server_opening):]
        proof = keyed_hash(self.secret, b"client", nonce, theirs, self.identity)
        send(connection, proof)
        verdict = received(connection, 64)
        return Greeted(hello + proof, answer + verdict, speaks=True,
                       admitted=verdict == keyed_hash(self.secret, b"server", nonce, theirs, self.identity))


class ServerGreeting:
    """A client of a parameter server, whose handshake consists of messages (framework/ps/protocol/greeting.h)."""

    name = "server"
    header = struct.Struct("<IHBBQIHBBqqqdQQII")
    protocol = 4

    def __init__(self, secret):
        self.secret = secret
        fields = (b"hostile", b"0", random_text()[:16], b"0", b"", b"0", b"0", b"0", b"0", b"0")
        self.identity = b"".join(b"%d:%s," % (len(field), field) for field in fields)
        self.beginning = self.message(random_text())

    @classmethod
    def message(cls, text):
        return cls.header.pack(0x53504850, cls.protocol, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 0, len(text), 0) + text

    def greet(self, connection):
        nonce = random_text()
        send(connection, self.message(nonce))
        answer = received(connection, self.header.size + 64)
        if not answer.startswith(b"PHPS"):
            return Greeted(answer=answer)
        theirs = answer[self.header.size:]
        proof = keyed_hash(self.secret, b"client", nonce, theirs, self.identity)
        greeting = self.message(proof + self.identity)
        send(connection, greeting)
        verdict = received(connection, self.header.size + 64)
        expected = keyed_hash(self.secret, b"server", nonce, theirs, self.identity)
        return Greeted(self.message(nonce) + greeting, answer + verdict, speaks=True,
                       admitted=verdict[self.header.size:] == expected)


class Page:
    """A client of a page, with Digest authentication (framework/base/http/http_authentication.h)."""

    name = "http"
    beginning = HTTP_REQUEST

    def __init__(self, secret, address):
        self.secret, self.address = secret, address

    def greet(self, connection):
        with connected(self.address) as other:  # a connection serves a single request
            send(other, HTTP_REQUEST + b"\r\n")
            challenge = received(other, 1 << 16)
        fields = dict(re.findall(rb'(\w+)="([^"]*)"', challenge))
        if not challenge.startswith(b"HTTP/1.1 401") or b"nonce" not in fields:
            end_of_input(connection)
            return Greeted()
        sent = HTTP_REQUEST + b"Authorization: Digest " + self.credentials(fields) + b"\r\n\r\n"
        send(connection, sent)
        verdict = received(connection, len(b"HTTP/1.1 200"))
        return Greeted(sent, verdict, speaks=True,
                       admitted=verdict.startswith(b"HTTP/1.1 ") and not verdict.endswith(b"401"))

    def credentials(self, challenge):
        def joined_hash(*parts):
            return hashlib.sha256(b":".join(parts)).hexdigest().encode()

        realm, nonce, own = challenge[b"realm"], challenge[b"nonce"], random_text()
        response = joined_hash(joined_hash(b"phalanx", realm, self.secret), nonce, b"00000001", own, b"auth",
                               joined_hash(b"GET", b"/metrics"))
        fields = {b"username": b"phalanx", b"realm": realm, b"nonce": nonce, b"uri": b"/metrics", b"response": response,
                  b"cnonce": own, b"opaque": challenge.get(b"opaque", b"")}
        return (b"algorithm=SHA-256, qop=auth, nc=00000001, " +
                b", ".join(b'%s="%s"' % field for field in fields.items()))


def protocols(secret, address):
    """Returns the clients of all protocols for a port. The rank that the peer of gloo claims to be does not exist, and the
    request of the host that joins has no fields."""
    return [Handshake("store", b"phalanx store 1", secret),
            Handshake("gloo", b"phalanx gloo 1", keyed_hash(secret, b"gloo", b"world"), b"%010d%010d" % (999, 0)),
            Handshake("join", b"phalanx join 1", secret, b"{}".ljust(1024)),  # launch/agents/join_protocol.cc
            ServerGreeting(secret), Page(secret, address)]


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


class StillOpen(AssertionError):
    """A port has not closed the connection of a stranger."""


def assert_ends(connection, answer=b""):
    """Checks that the port says no more than a refusal, and closes the connection."""
    answer += received(connection, 1 << 20)
    connection.settimeout(0)
    try:
        if connection.recv(1) != b"":
            raise StillOpen("it goes on talking")
    except BlockingIOError:
        raise StillOpen("the connection is still open") from None
    except OSError:
        pass  # reset
    # Only clients that are admitted learn that there is no such page.
    refused = re.match(rb"HTTP/1\.[01] 4(?!04)", answer)
    told = answer in (b"", REFUSAL) or refused or is_greeting(answer)
    assert told, f"a stranger was told {answer[:200]}"


def is_greeting(answer):
    """Returns True if the answer has a nonce, and perhaps a refusal, but no proof."""
    for opening in (b"phalanx store 1!", b"phalanx gloo 1!", b"phalanx join 1!"):
        if answer.startswith(opening):
            return answer[len(opening) + 64:] in (b"", REFUSAL)
    return answer.startswith(b"PHPS") and len(answer) == ServerGreeting.header.size + 64


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
    """Sends the good beginnings of all protocols, byte by byte, and no more."""
    with contextlib.ExitStack() as stack:
        links = [(stack.enter_context(connected(address)), protocol.beginning) for protocol in protocols(b"", address)]
        for i in range(100):
            for connection, beginning in links:
                send(connection, beginning[i:i + 1])
            time.sleep(0.02)
        for connection, _ in links:
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
                 b"phalanx join 1?" + noise.randbytes(2000),
                 b"HEAD * HTTP/9\r\nHost:\r\n\r\n", HTTP_REQUEST + b"Authorization: Digest username=\"\r\n\r\n",
                 ServerGreeting.header.pack(0x53504850, ServerGreeting.protocol, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1.0, 0, 1 << 62,
                                            1 << 30, 0)):
        with connected(address) as connection:
            send(connection, text)
            end_of_input(connection)
            assert_ends(connection)


def wrong_secret(address, _):
    spoken = set()
    for protocol in protocols(b"another secret of others", address):
        with connected(address) as connection:
            greeted = protocol.greet(connection)
            assert not greeted.admitted, f"a peer with another secret was admitted by the protocol {protocol.name}"
            assert_ends(connection, greeted.answer)
        spoken |= {protocol.name} if greeted.speaks else set()
    return spoken


def wrong_password(address, _):
    """Asks for a page without, and with wrong credentials."""
    for credentials in (b"", b"Bearer " + b"0" * 64, b"Basic " + base64.b64encode(b"phalanx:another secret")):
        with connected(address) as connection:
            send(connection, HTTP_REQUEST + b"Authorization: " + credentials + b"\r\n\r\n")
            assert_ends(connection)


def garbage(address, secret):
    """Begins as a peer that knows the secret, and goes on with garbage."""
    admitted = set()
    for protocol in protocols(secret, address):
        with connected(address) as connection:
            greeted = protocol.greet(connection)
            send(connection, random.Random(2).randbytes(100_000))
            received(connection, 1 << 20)
        admitted |= {protocol.name} if greeted.admitted else set()
    return admitted


def replayed(address, secret):
    """Sends a greeting again with which a peer was admitted."""
    tried = set()
    for protocol in protocols(secret, address):
        with connected(address) as connection:
            greeted = protocol.greet(connection)
        if not greeted.admitted:
            continue
        with connected(address) as connection:
            send(connection, greeted.sent)
            assert_ends(connection)
        tried.add(protocol.name)
    return tried


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


# Attacks by kind. Attacks in `NEED_A_SECRET` know the secret of the job.
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
            links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
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
