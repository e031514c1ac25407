#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/losses.golden: the results of PyTorch 2.13 and torchvision 0.28 for losses.

    python3 tests/zoo/goldens/make_losses.py > tests/zoo/losses.golden

A line has, separated by tabs:
  1  the loss's section
  2  the shape of the output: waves(...) in float64
  3  the targets: "classes K", element i is (7 i + i // 3) mod K; or "values", element i is (i % 3) / 2
  4  the loss
  5  the sum over all elements j of its gradient with respect to output j, times cos(j)
"""

import math

import torch
from torch.nn import functional
from torchvision.ops import sigmoid_focal_loss


def waves(*sizes):
    return torch.sin(0.37 * torch.arange(math.prod(sizes), dtype=torch.float64)).float().double().view(sizes)


def classes(count, *sizes):
    i = torch.arange(math.prod(sizes))
    return ((7 * i + i // 3) % count).view(sizes)


def values(*sizes):
    return (torch.arange(math.prod(sizes)) % 3 / 2).double().view(sizes)


def focal_of_classes(output, target, gamma, alpha=None):
    """Returns the mean of (1 - p)^gamma times the cross entropy of each target."""
    entropy = functional.cross_entropy(output.flatten(0, -2), target.flatten(), reduction="none")
    weight = 1 if alpha is None else torch.tensor(alpha, dtype=torch.float64)[target.flatten()]
    return (weight * (1 - torch.exp(-entropy)) ** gamma * entropy).mean()


def contrastive(output, target, margin):
    distance = functional.pairwise_distance(output[:, 0], output[:, 1])
    same = target[:, 0] == target[:, 1]
    return torch.where(same, distance ** 2, functional.relu(margin - distance) ** 2).mean() / 2


def squared(a, b):
    return ((a - b) ** 2).sum(-1)


def triplet(output, target, margin, distance):
    return functional.triplet_margin_with_distance_loss(*output.unbind(1), distance_function=distance, margin=margin)


def batch_hard(output, target, margin, distance):
    """Uses each embedding as anchor, in loops over all others."""
    output, target = output.flatten(0, -2), target.flatten()
    costs = []
    for i, anchor in enumerate(output):
        far = [distance(anchor, output[j]) for j in range(len(target)) if j != i and target[j] == target[i]]
        near = [distance(anchor, output[j]) for j in range(len(target)) if target[j] != target[i]]
        if far and near:
            costs.append(functional.relu(max(far) - min(near) + margin))
        else:
            costs.append(output.new_zeros(()))
    return torch.stack(costs).mean()


def losses():
    yield ("{name: focal, alpha: [0.25]}", (4, 5), "values",
           lambda o, t: sigmoid_focal_loss(o, t, alpha=0.25, gamma=2, reduction="mean"))
    yield ("{name: focal, gamma: 0.7}", (6,), "values",
           lambda o, t: sigmoid_focal_loss(o, t, alpha=-1, gamma=0.7, reduction="mean"))
    yield "focal", (5, 4), "classes 4", lambda o, t: focal_of_classes(o, t, 2)
    yield ("{name: focal, gamma: 3, alpha: [0.1, 0.5, 1]}", (2, 6, 3), "classes 3",
           lambda o, t: focal_of_classes(o, t, 3, [0.1, 0.5, 1]))
    yield "contrastive", (6, 2, 4), "classes 2", lambda o, t: contrastive(o, t, 1)
    yield "{name: contrastive, margin: 2.5}", (6, 2, 4), "classes 2", lambda o, t: contrastive(o, t, 2.5)
    yield ("{name: triplet, distance: euclidean, margin: 1}", (5, 3, 4), "classes 3",
           lambda o, t: functional.triplet_margin_loss(*o.unbind(1), margin=1))
    yield "{name: triplet, margin: 1.5}", (5, 3, 4), "classes 3", lambda o, t: triplet(o, t, 1.5, squared)
    yield ("{name: triplet, mining: batch_hard, distance: euclidean, margin: 0.5}", (9, 4), "classes 4",
           lambda o, t: batch_hard(o, t, 0.5, functional.pairwise_distance))
    yield ("{name: triplet, mining: batch_hard}", (4, 2, 3), "classes 3",
           lambda o, t: batch_hard(o, t, 0.2, squared))


def main():
    for section, shape, kind, loss_of in losses():
        output = waves(*shape).requires_grad_()
        if kind == "values":
            target = values(*shape)
        else:
            target = classes(int(kind.split()[1]), *shape[:-1])
        loss = loss_of(output, target)
        loss.backward()
        gradient = (output.grad.flatten() * torch.cos(torch.arange(output.numel(), dtype=torch.float64))).sum()
        print(section, ",".join(map(str, shape)), kind, f"{loss.item():.12g}", f"{gradient.item():.12g}", sep="\t")


if __name__ == "__main__":
    main()
