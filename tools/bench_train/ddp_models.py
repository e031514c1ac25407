# SPDX-License-Identifier: Apache-2.0
"""The models that Phalanx trains, in idiomatic PyTorch: the same layers and parameters."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class LeNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        change = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(change + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet18(nn.Module):
    """ResNet-18 with the stem for small images."""

    def __init__(self, channels, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = [(64, 64), (64, 128), (128, 256), (256, 512)]
        self.layers = nn.Sequential(*[nn.Sequential(Residual(a, b, 1 if a == b else 2), Residual(b, b, 1)) for a, b in widths])
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.fc(self.layers(F.relu(self.bn1(self.conv1(x)), inplace=True)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        rows, length, _ = x.shape
        query, key, value = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).chunk(3, 2))
        if self.fused:
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = (query @ key.transpose(2, 3) / math.sqrt(query.size(3))).masked_fill(later, -math.inf)
            seen = scores.softmax(-1) @ value
        return self.c_proj(seen.transpose(1, 2).reshape(rows, length, -1))


class Block(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, heads, fused), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class CharLm(nn.Module):
    """GPT-2 over characters; its last layer shares the weights of the embedding."""

    def __init__(self, classes, context, fused, layers=4, width=128, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(classes, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, fused) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)

    def forward(self, x):
        x = self.wte(x) + self.wpe.weight[:x.size(1)]
        return F.linear(self.ln_f(self.blocks(x)), self.wte.weight)


class Lstm(nn.Module):
    """The language model of PyTorch's word_language_model example, without dropout."""

    def __init__(self, classes, layers=2, width=256):
        super().__init__()
        self.encoder, self.decoder = nn.Embedding(classes, width), nn.Linear(width, classes)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        for weight in (self.encoder.weight, self.decoder.weight):
            nn.init.uniform_(weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0])


def make_model(name, sample, classes, options):
    """Returns the model for samples of this shape."""
    if name == "mlp":
        return mlp()
    if name == "lenet":
        return LeNet(sample[0])
    if name == "resnet18":
        return ResNet18(sample[0], classes)
    if name == "lstm":
        return Lstm(classes)
    if name == "gpt":
        return CharLm(classes, sample[0], True, width=256)
    return CharLm(classes, sample[0], "sdpa" in options)
