# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's DistributedDataParallel or model parallelism, or PyTorch in one process, that is measured in
turns (turns.h): python -c SOURCE JOB; JOB is JSON.

The training loop is a fast and simple one: samples in memory, batches by indexing, no DataLoader, and no metric except
the loss.
"""
import json
import os
import signal
import sys
import time
import warnings

warnings.simplefilter("ignore")  # standard error must contain errors only

import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel


def load(job):
    """Returns inputs and targets, mapped into memory as in Phalanx's ranks."""
    count, sample, text = job["samples"], job["input"], job["text"]
    def read(name, shape, dtype):
        return torch.from_file(job[name], shared=True, size=math.prod(shape), dtype=dtype).view(shape)
    inputs = read("inputs", [count, *sample], torch.int64 if text else torch.float32)
    return inputs, read("targets", [count, sample[0]] if text else [count], torch.int64)


def batches(job, inputs, targets):
    """Yields this rank's shares of the global batches, epoch after epoch; or whole batches if all ranks need the same
    samples."""
    rank, size, batch = job["rank"], job["size"], job["batch"]
    if job["options"][:1] in (["tensor"], ["pipe"]):
        rank, size, batch = 0, 1, batch * size
    epoch = 0
    while True:
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(epoch))
        for start in range(0, len(order) - batch * size + 1, batch * size):
            indices = order[start + rank * batch:start + (rank + 1) * batch]
            yield inputs[indices], targets[indices]
        epoch += 1


def distributed(model, job):
    options = job["options"]
    if options[:1] == ["process"]:
        return model
    if options[:1] == ["tensor"]:
        return divide_by_tensor(model, job["size"])
    if options[:1] == ["fsdp2"]:
        return shard_fully(model, job["size"])
    if options[:1] == ["pipe"]:
        return Stages(model, job["rank"], job["size"])
    # PowerSGD's hook exchanges a bucket in several steps, each launched by a callback of the one before. With several
    # buckets, ranks sometimes launch these steps in different orders, and gloo fails. So everything is in one bucket
    # (size in MB).
    model = DistributedDataParallel(model, bucket_cap_mb=10_000 if "powersgd" in options else None)
    if "powersgd" in options:
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return model


class Training:
    def __init__(self, job):
        self.channels_last = "channels_last" in job["options"]
        torch.manual_seed(1)
        model = make_model(job["model"], job["input"], job["classes"], job["options"])
        if self.channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.model = distributed(model, job)
        self.stages = self.model if isinstance(self.model, Stages) else None
        parameters = list((self.stages.model if self.stages else self.model).parameters())
        # A fused update accepts only tensors of one kind per call.
        groups = [[p for p in parameters if isinstance(p, DTensor) == divided] for divided in (False, True)]
        self.optimizer = torch.optim.SGD([{"params": group} for group in groups if group], lr=job["learning_rate"],
                                         momentum=0.9)
        self.batches = batches(job, *load(job))

    def step(self):
        """Returns the loss, and the seconds that backward took."""
        inputs, targets = next(self.batches)
        if self.channels_last:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        self.optimizer.zero_grad()
        if self.stages:
            start = time.perf_counter()
            loss = self.stages.step(inputs, targets)
            seconds = time.perf_counter() - start
            self.optimizer.step()
            return loss.item(), seconds
        loss = F.cross_entropy(self.model(inputs).flatten(0, -2), targets.flatten())
        start = time.perf_counter()
        loss.backward()
        seconds = time.perf_counter() - start
        self.optimizer.step()
        return loss.item(), seconds

    def run(self, steps):
        start = time.perf_counter()
        losses, backwards = zip(*(self.step() for _ in range(steps)))
        return {"seconds": time.perf_counter() - start, "backward": sum(backwards), "losses": losses}


def main():
    job = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a traceback
    torch.set_num_threads(job["threads"])
    if job["options"][:1] != ["process"]:
        dist.init_process_group("gloo", init_method="file://" + job["store"], rank=job["rank"], world_size=job["size"])
    training = Training(job)
    print("ready", flush=True)
    for line in sys.stdin:
        word, steps = line.split()
        assert word == "run", line
        print(json.dumps(training.run(int(steps))), flush=True)
    os._exit(0)  # tearing Gloo down waits for peers


main()
