#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/generative.golden: the results of torch.nn for generative models.

    python3 tests/zoo/goldens/make_generative.py > tests/zoo/generative.golden

Fields are separated by tabs. Lines "layout NAME PARAMETER SHAPE" name the parameters. Lines "step NAME LOSS AFTER" have
a loss in float64, and the loss after a step of gradient descent with learning rate 0.01. Lines "count NAME PARAMETERS"
have the number of parameters of the networks of PyTorch's example dcgan.
"""
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

ROWS, SIDE, NOISE = 3, 28, 5


def waves(*sizes):
    """The same as waves() of model_under_test.h."""
    count = torch.Size(sizes).numel()
    return torch.sin(0.37 * torch.arange(count, dtype=torch.float64)).view(sizes)


def fill(model):
    """The same as fill() of model_under_test.h."""
    with torch.no_grad():
        for k, (name, values) in enumerate(model.named_parameters()):
            i = torch.arange(values.numel(), dtype=torch.float64)
            norm = values.dim() == 1 and name.endswith("weight")
            values.copy_((0.2 * torch.sin(1.7 * i + k) + (1 if norm else 0)).view(values.shape))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, 12), nn.ReLU(), nn.Linear(12, 7), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(7, NOISE), nn.Linear(7, NOISE)
        self.decoder = nn.Sequential(nn.Linear(NOISE, 7), nn.ReLU(), nn.Linear(7, 12), nn.ReLU(),
                                     nn.Linear(12, SIDE * SIDE))

    def loss(self, images, noise, likelihood, beta):
        x = self.encoder(images.flatten(1))
        mean, log_variance = self.mean(x), self.log_variance(x)
        code = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
        made = self.decoder(mean + code.stddev * noise).view_as(images)
        if likelihood == "bernoulli":
            misfit = bce(made, images, reduction="sum")
        else:
            misfit = 0.5 * (made - images).square().sum()
        divergence = torch.distributions.kl_divergence(code, torch.distributions.Normal(0.0, 1.0)).sum()
        return (misfit + beta * divergence) / len(images)


class Dcgan(nn.Module):
    """PyTorch's examples/dcgan with `levels` doublings of a square."""

    def __init__(self, width, channels, square, levels, noise):
        super().__init__()
        generator = [nn.ConvTranspose2d(noise, width * 2 ** (levels - 1), square, 1, 0, bias=False)]
        for level in reversed(range(levels)):
            now, out = width * 2 ** level, width * 2 ** (level - 1) if level else channels
            generator += [nn.BatchNorm2d(now), nn.ReLU(), nn.ConvTranspose2d(now, out, 4, 2, 1, bias=False)]
        self.generator = nn.Sequential(*generator, nn.Tanh())
        discriminator = [nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for level in range(1, levels):
            now, out = width * 2 ** (level - 1), width * 2 ** level
            discriminator += [nn.Conv2d(now, out, 4, 2, 1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.2)]
        self.discriminator = nn.Sequential(*discriminator,
                                           nn.Conv2d(width * 2 ** (levels - 1), 1, square, 1, 0, bias=False))

    def loss(self, images, noise, turn):
        made = self.generator(noise[:, :, None, None])
        of_real, of_made = self.discriminator(images).flatten(), self.discriminator(made).flatten()
        ones, zeros = torch.ones(ROWS, dtype=torch.float64), torch.zeros(ROWS, dtype=torch.float64)
        if turn == "generator":
            return bce(of_made, ones)
        return bce(of_real, ones) + bce(of_made, zeros)


def step(name, model, loss):
    model.double()
    fill(model)
    before = loss()
    before.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
    print("step", name, f"{before.item():.9f}", f"{loss().item():.9f}", sep="\t")


def main():
    images, noise = waves(ROWS, 1, SIDE, SIDE), waves(ROWS, NOISE)
    for likelihood, beta in (("bernoulli", 1), ("gaussian", 0.5)):
        vae = Vae()
        step(f"vae {likelihood}", vae, lambda: vae.loss(images, noise, likelihood, beta))
    for turn in ("discriminator", "generator"):
        dcgan = Dcgan(4, 1, 7, 2, NOISE)
        step(f"dcgan {turn}", dcgan, lambda: dcgan.loss(images, noise, turn))
    for name, model in (("vae", vae), ("dcgan", dcgan)):
        for parameter, values in model.named_parameters():
            print("layout", name, parameter, list(values.shape), sep="\t")
    example = Dcgan(64, 3, 4, 4, 100)
    for part in ("generator", "discriminator"):
        print("count", part, sum(p.numel() for p in getattr(example, part).parameters()), sep="\t")


main()
