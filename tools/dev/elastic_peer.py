# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's DistributedDataParallel under torchrun, which tools/dev/goodput disturbs:

    torchrun ... elastic_peer.py FOLDER STEPS CHECKPOINT_EVERY

Trains a network like LeNet on random images of 28 x 28 in batches of 64, and continues from the newest checkpoint in the
folder. Rank 0 writes the file `training` there once the first step is done.
"""

import datetime
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GLOBAL_BATCH = 64
TIMEOUT = datetime.timedelta(seconds=10)  # instead of 30 minutes


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def save(path, model, optimizer, step):
    temporary = path.with_suffix(".tmp")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, temporary)
    os.replace(temporary, path)


def main(folder, steps, checkpoint_every):
    dist.init_process_group("gloo", timeout=TIMEOUT)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // size))
    torch.manual_seed(1)
    model = DistributedDataParallel(lenet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    images, labels = torch.randn(4096, 1, 28, 28), torch.randint(10, (4096,))
    path, first = folder / "checkpoint.pt", 0
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    share = GLOBAL_BATCH // size
    for step in range(first, steps):
        begin = (step * GLOBAL_BATCH + rank * share) % len(images)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[begin:begin + share]), labels[begin:begin + share]).backward()
        optimizer.step()
        if rank == 0 and step == first:
            (folder / "training").write_text("it trains\n")
        if rank == 0 and (step + 1) % checkpoint_every == 0:
            save(path, model, optimizer, step + 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
