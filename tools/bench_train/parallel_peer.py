# SPDX-License-Identifier: Apache-2.0
"""Model parallelism in PyTorch: a CharLm that is divided by the DTensor API, FSDP2 or pipelines of PyTorch.

The first option of a job names the method; the default is "ddp".
"""
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


def divide_by_tensor(model, size):
    """Divides heads and features among all ranks. The columns of c_attn are in a different order than in the whole
    model."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cpu", (size,))
    for block in model.blocks:
        block.attn.heads //= size
        parallelize_module(block, mesh, {"attn.c_attn": ColwiseParallel(), "attn.c_proj": RowwiseParallel(),
                                         "mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel()})
    return model


def shard_fully(model, size):
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (size,))
    for module in [*model.blocks, model]:
        fully_shard(module, mesh=mesh)
        module.set_force_sum_reduction_for_comms(True)  # gloo has no mean
    return model


class Stages:
    """A pipeline of equal numbers of blocks, with schedule 1F1B and a separate head on the last stage."""
    MICRO_BATCHES_PER_RANK = 4  # as Phalanx's default

    def __init__(self, model, rank, size):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B
        each = len(model.blocks) // size
        parts = [nn.Sequential(*model.blocks[i * each:(i + 1) * each]) for i in range(size)]
        self.first, self.last = rank == 0, rank == size - 1
        self.source = size - 1
        self.model = FirstStage(model, parts[0]) if self.first else parts[rank]
        if self.last:
            self.model = LastStage(model, self.model)
        stage = PipelineStage(self.model, rank, size, torch.device("cpu"))
        self.schedule = Schedule1F1B(stage, self.MICRO_BATCHES_PER_RANK * size,
                                     loss_fn=lambda scores, targets: F.cross_entropy(scores.flatten(0, -2), targets.flatten()))

    def step(self, inputs, targets):
        """Runs forward and backward. Returns the mean loss on all ranks."""
        losses = []
        arguments = (inputs,) if self.first else ()
        self.schedule.step(*arguments, **({"target": targets, "losses": losses} if self.last else {}))
        loss = torch.stack(losses).mean().detach() if self.last else torch.zeros(())
        dist.broadcast(loss, self.source)
        return loss


class FirstStage(nn.Module):
    def __init__(self, model, blocks):
        super().__init__()
        self.wte, self.wpe, self.blocks = model.wte, model.wpe, blocks

    def forward(self, x):
        return self.blocks(self.wte(x) + self.wpe.weight[:x.size(1)])


class LastStage(nn.Module):
    def __init__(self, model, blocks):
        super().__init__()
        self.blocks, self.ln_f, self.head = blocks, model.ln_f, nn.Linear(*reversed(model.wte.weight.shape), bias=False)

    def forward(self, x):
        return self.head(self.ln_f(self.blocks(x)))
