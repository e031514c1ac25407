# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of device_bench: python3 device_peer.py JOB trains a model on demand; JOB is JSON.

It first prints the versions that it runs with, as a line of JSON. Then it answers each line "run STEPS" with the
seconds that the steps took and the last loss. The training loop is a fast and simple one: all samples are in the memory
of the device, a batch is taken by indexing there, there is no DataLoader and there are no metrics, and no loss is read
before the end of a run.
"""

import json
import pathlib
import sys
import time
import warnings

warnings.simplefilter("ignore")  # standard error is for errors
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench_train"))

import torch
from ddp_models import CharLm, LeNet, ResNet18, mlp
from torch.nn import functional as F


def make_model(job):
    if job["model"] == "mlp":
        return mlp()
    if job["model"] == "lenet":
        return LeNet(1)
    if job["model"] == "resnet18":
        return ResNet18(3, job["classes"])
    layers, width, heads = job["sizes"]
    return CharLm(job["classes"], job["sample"][0], True, layers, width, heads)


def make_samples(job, device):
    """Returns inputs and targets."""
    count, sample, classes = job["samples"], job["sample"], job["classes"]
    generator = torch.Generator(device).manual_seed(1)
    if job["model"] == "gpt":
        tokens = torch.randint(classes, (count, sample[0] + 1), generator=generator, device=device)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    images = torch.randn(count, *sample, generator=generator, device=device)
    if job["channels_last"]:
        images = images.contiguous(memory_format=torch.channels_last)
    return images, torch.randint(classes, (count,), generator=generator, device=device)


def make_optimizer(job, parameters):
    if job["optimizer"] == "adamw":
        return torch.optim.AdamW(parameters, lr=job["learning_rate"], fused=True)
    return torch.optim.SGD(parameters, lr=job["learning_rate"], momentum=0.9, fused=True)


class Training:
    def __init__(self, job):
        self.job, self.device = job, torch.device(job["device"])
        torch.backends.cudnn.benchmark = True  # shapes never change
        torch.manual_seed(1)
        model = make_model(job).to(self.device)
        if job["channels_last"]:
            model = model.to(memory_format=torch.channels_last)
        self.optimizer = make_optimizer(job, model.parameters())
        self.inputs, self.targets = make_samples(job, self.device)
        self.batches = self.indices()

        def loss_of(inputs, targets):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=job["bf16"]):
                return F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())

        self.loss_of = torch.compile(loss_of) if job["compile"] else loss_of

    def indices(self):
        """Yields the indices of one batch after the other, in a different order for each epoch."""
        batch = self.job["batch"]
        while True:
            order = torch.randperm(len(self.inputs), device=self.device)
            for start in range(0, len(order) - batch + 1, batch):
                yield order[start:start + batch]

    def step(self):
        chosen = next(self.batches)
        self.optimizer.zero_grad()
        loss = self.loss_of(self.inputs[chosen], self.targets[chosen])
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        last = loss.item()  # waits for the device
        return {"seconds": time.perf_counter() - begin, "loss": last}


def main():
    job = json.loads(sys.argv[1])
    training = Training(job)
    device = torch.cuda.get_device_name(training.device) if training.device.type == "cuda" else "CPU"
    print(json.dumps({"torch": torch.__version__, "device": device}), flush=True)
    for line in sys.stdin:
        word, steps = line.split()
        assert word == "run", line
        print(json.dumps(training.run(int(steps))), flush=True)


main()
