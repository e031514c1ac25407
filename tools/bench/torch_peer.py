# SPDX-License-Identifier: Apache-2.0
"""The process next to a rank that measures torch.distributed with gloo: python torch_peer.py RANK SIZE INIT_METHOD.

Prints "ready VERSION", then obeys the commands of peer_subject.h, one per line on standard input, until the input
ends. All memory is private. Operations, buffers and timed sections are the same as for the other subjects
(operation.h). An error ends the process.
"""
import os
import sys
import time
import warnings

# Names change between versions of PyTorch; standard error must contain errors only.
warnings.simplefilter("ignore", FutureWarning)

import torch
import torch.distributed as dist

ROOT = 0


def collective(op, rank, size, whole, part):
    """Returns a function that runs one blocking operation on its own buffers."""
    tensor = torch.zeros(whole)
    if op in ("all_gather", "reduce_scatter", "gather", "scatter"):
        other = torch.zeros(part)
        parts = list(tensor.chunk(size)) if rank == ROOT else None
    return {
        "all_reduce": lambda: dist.all_reduce(tensor),
        "broadcast": lambda: dist.broadcast(tensor, ROOT),
        "reduce": lambda: dist.reduce(tensor, ROOT),
        "all_gather": lambda: dist.all_gather_into_tensor(tensor, other),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(other, tensor),
        "gather": lambda: dist.gather(other, parts, ROOT),
        "scatter": lambda: dist.scatter(other, parts, ROOT),
        "all_to_all": all_to_all(op, tensor),
        "send_recv": lambda: round_trip(tensor, rank, size),
        "barrier": dist.barrier,
    }[op]


def all_to_all(op, tensor):
    output = torch.zeros_like(tensor) if op == "all_to_all" else None
    return lambda: dist.all_to_all_single(output, tensor)


def round_trip(tensor, rank, size):
    partner = rank ^ 1
    if partner >= size:
        return
    if rank < partner:
        dist.send(tensor, partner)
    dist.recv(tensor, partner)
    if rank > partner:
        dist.send(tensor, partner)


def timed(operation, repeats):
    """Returns the seconds that all repeats take together."""
    start = time.perf_counter()
    for _ in range(repeats):
        operation()
    return time.perf_counter() - start


def timed_launches(tensor, repeats):
    """Returns the seconds that the launches take, without the waits."""
    total = 0
    for _ in range(repeats):
        start = time.perf_counter()
        work = dist.all_reduce(tensor, async_op=True)
        total += time.perf_counter() - start
        work.wait()
    return total


def prepare(op, rank, size, whole, part):
    """Returns a function that takes the number of repeats and returns their total seconds."""
    if op == "launch":
        tensor = torch.zeros(whole)
        return lambda repeats: timed_launches(tensor, repeats)
    operation = collective(op, rank, size, whole, part)
    share = 0.5 if op == "send_recv" else 1
    return lambda repeats: share * timed(operation, repeats)


def serve(rank, size):
    trials = {}
    for line in sys.stdin:
        word, number, *rest = line.split()
        answer = "ok"
        if word == "prepare":
            trials[number] = prepare(rest[0], rank, size, int(rest[1]), int(rest[2]))
        elif word == "run":
            repeats = int(rest[0])
            dist.barrier()
            answer = trials[number](repeats) / repeats * 1e6
        else:
            del trials[number]
        print(answer, flush=True)


def main():
    rank, size, init_method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=init_method, rank=rank, world_size=size)
    print("ready", torch.__version__, flush=True)
    serve(rank, size)
    os._exit(0)  # tearing Gloo down waits for peers


main()
