#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares larger models of torchvision and transformers with Python: twenty steps each, to 1e-4.

    ./bazelw build //tests/zoo:exported_test
    python3 tests/zoo/goldens/check_exported.py bazel-bin/tests/zoo/exported_test resnet50

Needs torch 2.13, torchvision and transformers. The test program reads tests/zoo/exported/ below the folder that it is
started in, so the models take the places of the small ones there.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision
from torch import nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import make_exported


class OfImages(nn.Module):
    """Adapts [n, 1, 8, 8] for a model of images [n, 3, 32, 32] with 5 classes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model(nn.functional.interpolate(image, scale_factor=4.0).expand(-1, 3, -1, -1))


class OfTokens(nn.Module):
    def __init__(self, model, **options):
        super().__init__()
        self.model = model
        self.options = options

    def forward(self, tokens):
        return self.model(input_ids=tokens, **self.options).logits


SIZES = dict(vocab_size=16, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
IMAGES = {
    "resnet50": lambda: torchvision.models.resnet50(num_classes=5),
    "vit_b_16": lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, dropout=0.1, num_classes=5),
    "convnext_tiny": lambda: torchvision.models.convnext_tiny(num_classes=5, stochastic_depth_prob=0.0),
}
TOKENS = {
    "gpt2": lambda: OfTokens(GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=32, n_layer=2, n_head=4)),
                             use_cache=False),
    "bert": lambda: OfTokens(BertForMaskedLM(BertConfig(**SIZES))),
    "llama": lambda: OfTokens(LlamaForCausalLM(LlamaConfig(**SIZES, max_position_embeddings=8)), use_cache=False),
}


def main(program, name):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "tests/zoo/exported"
        target.mkdir(parents=True)
        if name in IMAGES:
            case = ("convnet", lambda: OfImages(IMAGES[name]()), (6, 1, 8, 8), 5)
        else:
            case = ("gpt2", TOKENS[name], (4, 8), 16)
        make_exported.main(str(target), [case])
        chosen = f"--gtest_filter=*TrainsAndEvaluatesAsInPython/{case[0]}"
        sys.exit(subprocess.run([os.path.abspath(program), chosen], cwd=folder, check=False).returncode)


main(sys.argv[1], sys.argv[2])
