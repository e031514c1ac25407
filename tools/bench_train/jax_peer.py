# SPDX-License-Identifier: Apache-2.0
"""JAX on the CPU in one process, measured in turns (turns.h): python -c SOURCE JOB; JOB is JSON.

The whole step, update included, is one compiled function that reuses the memory of the parameters (donation). Losses
are read at the end of a turn, so that JAX can start the next step while the last one is being computed.
"""
import json
import os
import signal
import sys
import time

import numpy


def load(job):
    """Returns inputs and targets, mapped into memory as in Phalanx's ranks."""
    count, sample, text = job["samples"], job["input"], job["text"]
    def read(name, shape, dtype):
        return numpy.memmap(job[name], dtype, "r", shape=tuple(shape))
    inputs = read("inputs", [count, *sample], numpy.int64 if text else numpy.float32)
    return inputs, read("targets", [count, sample[0]] if text else [count], numpy.int64)


def batches(batch, inputs, targets):
    """Yields the global batches, epoch after epoch. Class numbers are int32, JAX's integer type."""
    def take(values, indices):
        taken = values[indices]
        return taken.astype(numpy.int32) if values.dtype == numpy.int64 else taken
    epoch = 0
    while True:
        order = numpy.random.default_rng(epoch).permutation(len(inputs))
        for start in range(0, len(order) - batch + 1, batch):
            indices = order[start:start + batch]
            yield take(inputs, indices), take(targets, indices)
        epoch += 1


def make_step(model, learning_rate):
    """Returns a step of SGD with momentum 0.9 as PyTorch defines it. It takes (parameters, velocity, inputs, targets)
    and returns the new parameters and velocity, and the loss."""
    def loss_of(parameters, inputs, targets):
        scores = jax.nn.log_softmax(model(parameters, inputs))
        return -jnp.take_along_axis(scores, targets[..., None], -1).mean()

    def step(parameters, velocity, inputs, targets):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, inputs, targets)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, parameters, velocity), velocity, loss

    return jax.jit(step, donate_argnums=(0, 1))


class Training:
    def __init__(self, job):
        self.parameters, model = make_model(job["model"], job["input"], job["classes"])
        self.velocity = jax.tree.map(jnp.zeros_like, self.parameters)
        self.batches = batches(job["batch"], *load(job))
        first = next(batches(job["batch"], *load(job)))
        self.step = make_step(model, job["learning_rate"]).lower(self.parameters, self.velocity, *first).compile()

    def run(self, steps):
        start = time.perf_counter()
        losses = []
        for _ in range(steps):
            self.parameters, self.velocity, loss = self.step(self.parameters, self.velocity, *next(self.batches))
            losses.append(loss)
        losses = [float(loss) for loss in losses]
        jax.block_until_ready(self.parameters)
        return {"seconds": time.perf_counter() - start, "backward": None, "losses": losses}


def main():
    job = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a traceback
    # XLA starts a thread for each core that it may use when it runs its first operation.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:job["threads"]])
    training = Training(job)
    print("ready", flush=True)
    for line in sys.stdin:
        word, steps = line.split()
        assert word == "run", line
        print(json.dumps(training.run(int(steps))), flush=True)
    os._exit(0)


main()
