#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/siamese.golden: the results of PyTorch 2.13 for the siamese network of the zoo.

    python3 tests/zoo/goldens/make_siamese.py > tests/zoo/siamese.golden

A line has, separated by tabs:
  1  the model's section; parameters are filled as by testing::fill(), in float32
  2  the shape of its inputs waves(...), with rows and members
  3  the number of its parameters
  4  embeddings: first number of the first member of the first row, last number of its second member, last of all
  5  the loss: contrastive for pairs, or triplet; embedding i has class (7 i + i // 3) mod 3
  6  the loss after one step of gradient descent with learning rate 0.1
"""

import math

import torch
from torch import nn
from torch.nn import functional

WIDTH = 32


class Siamese(nn.Module):
    def __init__(self, member, channels, hidden, normalize):
        super().__init__()
        self.normalize = normalize
        convolutions, linears = [], []
        for i, out in enumerate(channels):
            convolutions.append(nn.Conv2d(member[0], out, 3, padding=1))
            self.add_module(f"conv{i + 1}", convolutions[-1])
            member = (out, member[1] // 2, member[2] // 2)
        width = math.prod(member)
        for i, out in enumerate([*hidden, WIDTH]):
            linears.append(nn.Linear(width, out))
            self.add_module(f"fc{i + 1}", linears[-1])
            width = out
        self.layers = convolutions, linears

    def encode(self, x):
        convolutions, linears = self.layers
        for convolution in convolutions:
            x = functional.max_pool2d(functional.relu(convolution(x)), 2)
        x = x.flatten(1)
        for linear in linears[:-1]:
            x = functional.relu(linear(x))
        x = linears[-1](x)
        return functional.normalize(x) if self.normalize else x

    def forward(self, x):
        return torch.stack([self.encode(member) for member in x.unbind(1)], 1)


def waves(*sizes):
    return torch.sin(0.37 * torch.arange(math.prod(sizes), dtype=torch.float64)).float().view(sizes)


def fill(model):
    for k, values in enumerate(model.parameters()):
        i = torch.arange(values.numel(), dtype=torch.float64)
        values.data = (0.2 * torch.sin(1.7 * i + k)).view(values.shape).float()


def loss_of(embeddings):
    rows, members, _ = embeddings.shape
    if members == 3:
        def squared(a, b):
            return ((a - b) ** 2).sum(-1)
        return functional.triplet_margin_with_distance_loss(*embeddings.unbind(1), distance_function=squared, margin=0.2)
    i = torch.arange(rows * members)
    classes = ((7 * i + i // 3) % 3).view(rows, members)
    distance = functional.pairwise_distance(embeddings[:, 0], embeddings[:, 1])
    same = classes[:, 0] == classes[:, 1]
    return torch.where(same, distance ** 2, functional.relu(1 - distance) ** 2).mean() / 2


def main():
    for section, shape, fields in (
            ("siamese", (6, 2, 1, 28, 28), {}),
            ("{name: siamese, channels: [4, 6, 8], hidden: []}", (5, 3, 3, 13, 10),
             {"channels": [4, 6, 8], "hidden": []}),
            ("{name: siamese, channels: [], hidden: [12, 7], normalize: false}", (6, 2, 5),
             {"channels": [], "hidden": [12, 7], "normalize": False})):
        model = Siamese(shape[2:], **{"channels": [16, 32], "hidden": [128], "normalize": True, **fields})
        fill(model)
        inputs = waves(*shape)
        embeddings = model(inputs)
        first = loss_of(embeddings)
        first.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
            second = loss_of(model(inputs))
        shown = embeddings[0, 0, 0], embeddings[0, 1, -1], embeddings[-1, -1, -1]
        print(section, ",".join(map(str, shape)), sum(p.numel() for p in model.parameters()),
              ",".join(f"{value.item():.8g}" for value in shown), f"{first.item():.8g}", f"{second.item():.8g}",
              sep="\t")


if __name__ == "__main__":
    main()
