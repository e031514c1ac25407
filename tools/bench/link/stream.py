# SPDX-License-Identifier: Apache-2.0
"""Measures the capacity of the link: one TCP connection that carries the same bytes in both directions at once.

stream.py serve ADDRESS
stream.py connect ADDRESS INTERFACE BYTES,BYTES ROUNDS     writes for each size what rank.cc writes
"""

import json
import socket
import sys
import threading
import time

PORT = 29600


def exchange(connection, bytes_each_way):
    """Sends and receives the given number of bytes at the same time."""
    sender = threading.Thread(target=connection.sendall, args=(bytes(bytes_each_way),))
    sender.start()
    left = bytes_each_way
    buffer = memoryview(bytearray(1 << 18))
    while left > 0:
        received = connection.recv_into(buffer, min(left, len(buffer)))
        if received == 0:
            raise SystemExit("stream: the peer is gone")
        left -= received
    sender.join()


def answer(connection):
    """Serves the other end of measure(), until that end closes."""
    while header := connection.recv(8, socket.MSG_WAITALL):
        connection.sendall(header)  # begin
        exchange(connection, int.from_bytes(header, "little"))


def serve(address):
    with socket.create_server((address, PORT)) as server:
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer(connection)


def begin(connection, bytes_each_way):
    """Returns when the other end is about to exchange the given number of bytes, and so has received all earlier
    ones."""
    connection.sendall(bytes_each_way.to_bytes(8, "little"))
    connection.recv(8, socket.MSG_WAITALL)


def connect(address):
    for _ in range(100):
        try:
            return socket.create_connection((address, PORT), timeout=60)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"stream: nothing listens at {address}")


def counter(interface, name):
    with open(f"/sys/class/net/{interface}/statistics/{name}", encoding="ascii") as file:
        return int(file.read())


def measure(connection, interface, size, rounds):
    seconds = []
    before = counter(interface, "tx_bytes"), counter(interface, "rx_bytes")
    for _ in range(rounds):
        begin(connection, size)
        start = time.perf_counter()
        exchange(connection, size)
        seconds.append(time.perf_counter() - start)
    begin(connection, 0)  # counts the last bytes sent too
    after = counter(interface, "tx_bytes"), counter(interface, "rx_bytes")
    return {"bytes": size, "seconds": seconds, "sent": (after[0] - before[0]) // rounds,
            "received": (after[1] - before[1]) // rounds}


def main():
    if sys.argv[1] == "serve":
        return serve(sys.argv[2])
    _, _, address, interface, sizes, rounds = sys.argv
    with connect(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        measure(connection, interface, 1 << 20, 3)  # opens the TCP windows
        for size in sizes.split(","):
            print(json.dumps(measure(connection, interface, int(size), int(rounds))), flush=True)


if __name__ == "__main__":
    main()
