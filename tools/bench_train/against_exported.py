#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower a program that Python exported trains than the same model of the zoo.

    ./bazelw build //tools:train
    python3 tools/bench_train/against_exported.py --rounds 7

Needs torch 2.13, torchvision and transformers. Exports each model, and trains both in turns on one rank; prints the
median samples a second of each, and the median over the rounds of exported / of the zoo.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


def resnet18():
    import torchvision

    model = torchvision.models.resnet18(num_classes=10)
    return model, (torch.randn(4, 3, 64, 64),)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=256, n_positions=128, n_embd=128, n_layer=4, n_head=4, embd_pdrop=0, resid_pdrop=0,
                        activation_function="gelu_pytorch_tanh",
                        attn_pdrop=0)
    return Logits(GPT2LMHeadModel(config)), (torch.randint(256, (4, 128)),)


def mlp():
    layers = [torch.nn.Flatten(), torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)]
    return torch.nn.Sequential(*layers), (torch.randn(4, 1, 28, 28),)


# Model, its section in a config, dataset, batch size and steps per turn.
CASES = {
    "resnet18": (resnet18, "{name: resnet18, stem: imagenet}", "{name: random_images, side: 64, classes: 10}", 16, 24),
    "gpt": (gpt2, "{name: gpt, layers: 4, heads: 4, width: 128}",
            "{name: random_tokens, vocabulary: 256, context: 128}", 8, 60),
    "mlp": (mlp, "{name: mlp, hidden: [128]}", "{name: random_images, channels: 1, side: 28, classes: 10}", 64, 400),
}


def rate(program, folder, model, dataset, batch, steps):
    settings = [f"model={model}", f"dataset={dataset}", f"train.global_batch_size={batch}", f"train.max_steps={steps}",
                "train.epochs=1000", "launch.ranks=1", "strategy=single", "optimizer={name: sgd, lr: 0.001}",
                "evaluate.every_epochs=0", f"watch.every_steps={steps // 4}", "expect={}"]
    command = [program, f"--config={ROOT}/configs/quickstart.yaml", f"--run_dir={folder}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stdout}")
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    rates = [line["samples_per_second"] for line in lines if line["split"] == "train"]
    return statistics.median(rates[1:])  # the first includes one-time work


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--train", type=pathlib.Path, default=ROOT / "bazel-bin/tools/train")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in arguments.only or CASES:
            make, section, dataset, batch, steps = CASES[name]
            model, inputs = make()
            batch_dimension = ({0: torch.export.Dim("batch", min=2)},)
            torch.export.save(torch.export.export(model, inputs, dynamic_shapes=batch_dimension, strict=False),
                              folder / f"{name}.pt2")
            sections = [section, f"{{name: exported, file: {folder}/{name}.pt2}}"]
            rates = ([], [])
            for turn in range(2 * arguments.rounds):
                which = (turn + turn // 2) % 2  # zoo, exported, exported, zoo
                rates[which].append(rate(arguments.train, folder / f"{name}{turn}", sections[which], dataset, batch, steps))
            ratio = statistics.median(exported / zoo for zoo, exported in zip(*rates))
            print(f"{name}: zoo {statistics.median(rates[0]):.0f} samples/s, exported {statistics.median(rates[1]):.0f}, "
                  f"ratio {ratio:.3f}", flush=True)


main()
