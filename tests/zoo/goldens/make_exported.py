#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/exported/: programs of torch.export.save, and their losses in Python.

    python3 tests/zoo/goldens/make_exported.py tests/zoo/exported

Needs torch 2.13 and transformers. Runs twenty steps of gradient descent on inputs and targets that
tests/zoo/exported_test.cc makes with the same formulas; dropout draws the same numbers, because both use LibTorch's
generator.
"""

import re
import sys

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(4 * 4 * 4, 5)

    def forward(self, image):
        x = torch.relu(self.norm(self.conv(image)))
        x = nn.functional.max_pool2d(x, 2)
        with torch.no_grad():
            shift = x.mean()
        return self.fc(self.dropout((x - shift).view(x.shape[0], -1)))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 8)
        self.dropout = nn.Dropout(0.5)
        self.fc2 = nn.Linear(8, 5)

    def forward(self, image):
        return self.fc2(self.dropout(torch.tanh(self.fc1(image.flatten(1)))))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        config = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=2, attn_pdrop=0.0)
        self.model = GPT2LMHeadModel(config)

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


def fill(model):
    """Sets element i to 0.2 sin(1.7 i + k), plus 1 in norms; k is the sum of the bytes of the parameter's name."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            k = sum(name.encode())
            values = 0.2 * torch.sin(1.7 * torch.arange(parameter.numel(), dtype=torch.float64) + k)
            if parameter.dim() == 1 and name.endswith("weight"):
                values += 1
            parameter.copy_(values.view(parameter.shape))


def batch(shape, classes, tokens):
    count = torch.Size(shape).numel()
    if tokens:
        inputs = ((torch.arange(count) * 7) % classes).view(shape)
        return inputs, (inputs + 1) % classes
    inputs = torch.sin(0.37 * torch.arange(count, dtype=torch.float64)).float().view(shape)
    return inputs, torch.arange(shape[0]) % classes


def export(model, inputs, path):
    program = torch.export.export(model, (inputs,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    for module in program.graph_module.modules():
        for node in module.graph.nodes if hasattr(module, "graph") else []:
            trace = node.meta.get("stack_trace")
            if trace:  # its paths belong to the machine that made it
                node.meta["stack_trace"] = re.sub(r'"[^"]*/(torch|transformers|make_exported)', r'"/python/\1', trace)
    program._example_inputs = None
    torch.export.save(program, path)


CASES = [("convnet", ConvNet, (6, 1, 8, 8), 5), ("mlp", Mlp, (6, 1, 8, 8), 5), ("gpt2", Gpt2, (4, 8), 16)]


def main(folder, cases):
    golden = open(f"{folder}/losses.golden", "w")
    for name, make, shape, classes in cases:
        model = make().train()
        fill(model)
        inputs, targets = batch(shape, classes, name == "gpt2")
        export(model, inputs, f"{folder}/{name}.pt2")
        torch.manual_seed(7)
        for _ in range(20):
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits.reshape(-1, classes), targets.reshape(-1))
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad, alpha=0.05)
            print(name, repr(loss.item()), file=golden)
        model.eval()
        with torch.no_grad():
            print(name + "_evaluation", repr(model(inputs).double().square().mean().item()), file=golden)


if __name__ == "__main__":
    main(sys.argv[1], CASES)
