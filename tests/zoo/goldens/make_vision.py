#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/vision.golden: what torchvision 0.28, timm 1.0 and transformers 5.24 say of vision models of the zoo.

    python3 tests/zoo/goldens/make_vision.py > tests/zoo/vision.golden
    python3 tests/zoo/goldens/make_vision.py --layout vgg16    # names and shapes, to compare with by eye

A line has, separated by tabs:
  1  the model's section, of 224 x 224 images and 1000 classes (unet: 64 x 64 pixels of 2)
  2  the number of its parameters
  3  the hash (FNV-1a, 64 bits) of its layout: lines "conv1.weight [64, 3, 7, 7]", parameters first, then buffers
  4  with the initial values of seed 1: the sum over all parameters of their first value
  5  the same of their mean absolute value
  6  a section to compute with, in float64, of 10 classes (unet: 3), with values from fill()
  7  the side of its images waves(2, 3, side, side)
  8  in evaluation, first and last output of the first image, and the last of the second
  9  the loss in training, with targets 0, 1, 2, ... modulo classes
  10 the same after one step of gradient descent with learning rate 0.01
"""

import argparse
import math
import sys

import torch
from torch import nn
import torchvision
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.vision_transformer import VisionTransformer

PERIOD = 4093


class DoubleConv(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(taken, made, 3, padding=1, bias=False), nn.BatchNorm2d(made), nn.ReLU(inplace=True),
            nn.Conv2d(made, made, 3, padding=1, bias=False), nn.BatchNorm2d(made), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(taken, made))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.up = nn.ConvTranspose2d(taken, taken // 2, kernel_size=2, stride=2)
        self.conv = DoubleConv(taken, made)

    def forward(self, x, across):
        x = self.up(x)
        rows, columns = across.size(2) - x.size(2), across.size(3) - x.size(3)
        x = nn.functional.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([across, x], dim=1))


class OutConv(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.conv = nn.Conv2d(taken, made, kernel_size=1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """The network of github.com/milesial/Pytorch-UNet, bilinear=False."""

    def __init__(self, width, classes):
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.down1, self.down2 = Down(width, 2 * width), Down(2 * width, 4 * width)
        self.down3, self.down4 = Down(4 * width, 8 * width), Down(8 * width, 16 * width)
        self.up1, self.up2 = Up(16 * width, 8 * width), Up(8 * width, 4 * width)
        self.up3, self.up4 = Up(4 * width, 2 * width), Up(2 * width, width)
        self.outc = OutConv(width, classes)

    def forward(self, x):
        levels = [self.inc(x)]
        for down in (self.down1, self.down2, self.down3, self.down4):
            levels.append(down(levels[-1]))
        x = levels[4]
        for up, across in zip((self.up1, self.up2, self.up3, self.up4), reversed(levels[:4])):
            x = up(x, across)
        return self.outc(x)


def published(name, **fields):
    return lambda: torchvision.models.get_model(name, weights=None, **fields)


def narrow_classifier(name, hidden):
    """Returns a function that makes the model with 10 classes and without dropout."""
    def make():
        with torch.device("meta"):
            model = torchvision.models.get_model(name, weights=None, num_classes=10, dropout=0)
        linears = [module for module in model.classifier if isinstance(module, nn.Linear)]
        for linear, sizes in zip(linears, [(linears[0].in_features, hidden), (hidden, hidden), (hidden, 10)]):
            linear.in_features, linear.out_features = sizes
            linear.weight, linear.bias = (nn.Parameter(torch.empty(*shape, device="meta"))
                                          for shape in ((sizes[1], sizes[0]), (sizes[1],)))
        return model.to_empty(device="cpu")
    return make


def convnext(width, layers):
    settings = [CNBlockConfig(width << i, width << (i + 1) if i < 3 else None, count)
                for i, count in enumerate(layers)]
    return lambda: ConvNeXt(settings, stochastic_depth_prob=0, layer_scale=1e-6, num_classes=10)


def mixer(**fields):
    def make():
        from timm.models.mlp_mixer import MlpMixer
        return MlpMixer(**fields)
    return make


class HuggingFaceVit(nn.Module):
    """ViTForImageClassification, with parameter names as in its files."""
    NAMES = (("vit.layers.", "vit.encoder.layer."), ("attention.q_proj", "attention.attention.query"),
             ("attention.k_proj", "attention.attention.key"), ("attention.v_proj", "attention.attention.value"),
             ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"),
             ("mlp.fc2", "output.dense"))

    def __init__(self, **fields):
        from transformers import ViTConfig, ViTForImageClassification
        super().__init__()
        self.model = ViTForImageClassification(ViTConfig(**fields))

    def forward(self, images):
        return self.model(images).logits

    def named_parameters(self, *_, **__):
        for name, values in self.model.named_parameters():
            for ours, in_files in self.NAMES:
                name = name.replace(ours, in_files)
            yield name, values


def models():
    """Yields sections, functions that make their models, and the side of images to compute with."""
    yield ("{name: alexnet}", published("alexnet"), "{name: alexnet, hidden: 64, dropout: 0}",
           narrow_classifier("alexnet", 64), 64)
    for size in (11, 13, 16, 19):
        for name in (f"vgg{size}", f"vgg{size}_bn"):
            yield (f"{{name: {name}}}", published(name), f"{{name: {name}, hidden: 64, dropout: 0}}",
                   narrow_classifier(name, 64), 32)
    for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "resnext50_32x4d",
                 "densenet121", "densenet169", "densenet201"):
        side = 64 if name.startswith("dense") else 40
        yield (f"{{name: {name}}}", published(name), f"{{name: {name}, stem: imagenet}}",
               published(name, num_classes=10), side)
    for name in ("mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"):
        yield (f"{{name: {name}}}", published(name), f"{{name: {name}, stem: imagenet, dropout: 0}}",
               published(name, num_classes=10, dropout=0), 40)
    for name in ("efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3"):
        fields = "stem: imagenet, dropout: 0, stochastic_depth: 0"
        yield (f"{{name: {name}}}", published(name), f"{{name: {name}, {fields}}}",
               published(name, num_classes=10, dropout=0, stochastic_depth_prob=0), 40)
    for size, layers in (("tiny", (3, 3, 9, 3)), ("small", (3, 3, 27, 3)), ("base", (3, 3, 27, 3))):
        name = f"convnext_{size}"
        yield (f"{{name: {name}}}", published(name), f"{{name: {name}, width: 24, stochastic_depth: 0}}",
               convnext(24, layers), 64)
    yield ("{name: vit_b_16}", published("vit_b_16"),
           "{name: vit_b_16, patch: 8, layers: 3, heads: 4, width: 48, hidden: 80}",
           lambda: VisionTransformer(32, 8, 3, 4, 48, 80, num_classes=10), 32)
    yield ("{name: vit}", lambda: HuggingFaceVit(num_labels=1000),
           "{name: vit, patch: 8, layers: 3, heads: 4, width: 48, hidden: 80}",
           lambda: HuggingFaceVit(image_size=32, patch_size=8, num_hidden_layers=3, num_attention_heads=4,
                                  hidden_size=48, intermediate_size=80, num_labels=10), 32)
    yield ("{name: mlp_mixer}", mixer(patch_size=16, num_blocks=12, embed_dim=768),
           "{name: mlp_mixer, patch: 8, layers: 3, width: 48, token_hidden: 24, channel_hidden: 96}",
           mixer(num_classes=10, img_size=32, patch_size=8, num_blocks=3, embed_dim=48, mlp_ratio=(0.5, 2.0)), 32)
    yield "{name: unet}", lambda: UNet(64, 2), "{name: unet, width: 8}", lambda: UNet(8, 3), 40


def layout_of(model):
    named = list(model.named_parameters()) + list(model.named_buffers())
    return "".join(f"{name} [{', '.join(map(str, tensor.shape))}]\n" for name, tensor in named)


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def fill(model):
    i = torch.arange(PERIOD)
    base = ((i * i * 2654435761 + i * 40503) % 2**32).double().div(2**32).sub(0.5).mul(math.sqrt(12))
    for k, (name, values) in enumerate(model.named_parameters()):
        start, count = 31 * k % PERIOD, values.numel()
        drawn = base.repeat((start + count) // PERIOD + 1)[start:start + count]
        if values.dim() == 1:
            values.data = drawn * 0.1 + (1 if name.endswith("weight") else 0)
        else:
            values.data = (drawn / math.sqrt(count / values.size(0))).view(values.shape)


def waves(*sizes):
    return torch.sin(0.37 * torch.arange(math.prod(sizes), dtype=torch.float64)).float().view(sizes)


def loss_of(model, images):
    model.train()
    scores = model(images).movedim(1, -1).flatten(0, -2)
    return nn.functional.cross_entropy(scores, torch.arange(scores.size(0)) % scores.size(1))


def computed(model, side):
    for buffer in model.buffers():  # to_empty() leaves them undefined
        buffer.zero_()
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer.fill_(1)
    model.double()
    fill(model)
    images = waves(2, 3, side, side).double()
    with torch.no_grad():
        output = model.eval()(images).flatten(1)
    first = loss_of(model, images)
    first.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    second = loss_of(model, images)
    shown = ",".join(f"{value:.9g}" for value in (output[0, 0], output[0, -1], output[1, -1]))
    return shown, f"{first.item():.9g}", f"{second.item():.9g}"


def line_of(section, make, small_section, make_small, side):
    torch.manual_seed(1)
    model = make()
    parameters = [parameter.detach() for parameter in model.parameters()]
    facts = [section, sum(parameter.numel() for parameter in parameters), f"{fnv(layout_of(model)):016x}",
             f"{sum(parameter.flatten()[0].item() for parameter in parameters):.6g}",
             f"{sum(parameter.abs().mean().item() for parameter in parameters):.6g}"]
    return "\t".join(map(str, facts + [small_section, side, *computed(make_small(), side)]))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--layout", metavar="MODEL")
    wanted = arguments.parse_args().layout
    for model in models():
        if wanted is None:
            print(line_of(*model), flush=True)
        elif model[0] == f"{{name: {wanted}}}":
            sys.stdout.write(layout_of(model[1]()))


if __name__ == "__main__":
    main()
