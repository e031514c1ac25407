#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .pt files next to it, with a Python that has torch: python3 make_torch_files.py"""

import os
import pathlib
from collections import OrderedDict

import torch

HERE = pathlib.Path(__file__).parent


class Shell:
    """A pickle of it calls os.system when it is loaded."""

    def __reduce__(self):
        return (os.system, ("touch executed",))


def weights():
    """Values k / 4 for element k: of several dtypes, transposed, and a view of a part of another's storage."""
    base = torch.arange(12, dtype=torch.float32) / 4
    return OrderedDict([
        ("fc.weight", torch.nn.Parameter(base.reshape(3, 4))),
        ("fc.turned", base.reshape(3, 4).t()),
        ("fc.tail", base[8:10]),
        ("half", (torch.arange(3) / 4).half()),
        ("brain", (torch.arange(3) / 4).bfloat16()),
        ("double", torch.arange(3, dtype=torch.float64) / 4),
        ("steps", torch.tensor(7)),
        ("none", torch.empty(0, 2)),
    ])


def save(name, value, **options):
    torch.save(value, HERE / name, **options)


model = torch.nn.Sequential(torch.nn.Linear(2, 1))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[1.0, 2.0]]))
    model[0].bias.fill_(3)
save("state_dict.pt", weights())
save("nested.pt", {"epoch": 3, "lr": 0.1, "state_dict": model.state_dict(),
                   "optimizer": {"state": {}, "groups": [1, (2, None), True]}})
save("extra.pt", {"a": torch.ones(2), "layer._extra_state": {"scale": 2.0}})
save("shell.pt", {"a": torch.ones(1), "b": Shell()})
save("legacy.pt", {"a": torch.ones(1)}, _use_new_zipfile_serialization=False)
