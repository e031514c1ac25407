#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the same data with Phalanx's loader and with PyTorch's DataLoader, in turns, and prints a table.

    ./bazelw build //tools:data
    python3 tools/data/against_torch.py --mnist data/mnist --cifar data/cifar10/cifar-10-batches-bin

needs torch, torchvision and Pillow. Each round measures Phalanx with and without batches gathered ahead, and then
DataLoader with each number of workers, all on the same cores, from a warm start: what is measured begins when the first
batches are there. The table has medians of the rounds, of each system with the settings that are best. Consumers do nothing with the batches.
"""

import argparse
import gzip
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy
import PIL.Image
import torch
import torchvision
from torchvision.transforms import v2

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Pictures(torch.utils.data.Dataset):
    """Images in memory as in torchvision's datasets of small images: an array whose items become PIL images."""

    def __init__(self, pixels, labels, transform):
        self.pixels, self.labels, self.transform = pixels, labels, transform

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.transform(PIL.Image.fromarray(self.pixels[index])), int(self.labels[index])


class Tokens(torch.utils.data.Dataset):
    """A memory-mapped file of tokens, as nanoGPT reads it."""

    def __init__(self, path, context):
        self.tokens, self.context = numpy.memmap(path, dtype=numpy.uint16, mode="r"), context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index):
        begin = index * self.context
        window = torch.from_numpy(self.tokens[begin:begin + self.context + 1].astype(numpy.int64))
        return window[:-1], window[1:]


def transforms(*first, mean, deviation):
    return v2.Compose([*first, v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, deviation)])


def idx(path):
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    shape = numpy.frombuffer(data, ">u4", data[3], 4)
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).reshape(shape)


def one_of(folder, name):
    return next(path for path in (folder / name, folder / (name + ".gz")) if path.exists())


def mnist(options, _):
    pixels = idx(one_of(options.mnist, "train-images-idx3-ubyte"))
    labels = idx(one_of(options.mnist, "train-labels-idx1-ubyte"))
    transform = transforms(mean=[0.1307], deviation=[0.3081])
    floats = (torch.from_numpy(pixels.copy())[:, None].float() / 255 - 0.1307) / 0.3081
    config = f"dataset={{name: mnist, root: {options.mnist.resolve()}}}"
    yield "MNIST", config, Pictures(pixels, labels, transform), 64, 1_000_000
    yield ("MNIST, floats in memory (TensorDataset)", config,
           torch.utils.data.TensorDataset(floats, torch.from_numpy(labels.astype(numpy.int64))), 64, 1_000_000)


def cifar(options, _):
    records = numpy.concatenate([numpy.fromfile(path, numpy.uint8).reshape(-1, 3073)
                                 for path in sorted(options.cifar.glob("data_batch_*.bin"))])
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()
    transform = transforms(v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip(),
                           mean=[0.4914, 0.4822, 0.4465], deviation=[0.2470, 0.2435, 0.2616])
    yield ("CIFAR-10, crop and flip", f"dataset={{name: cifar10, augment: true, root: {options.cifar.resolve()}}}",
           Pictures(pixels, records[:, 0], transform), 128, 300_000)


def images(options, folder):
    """Writes images of 320 x 256 pixels, which are enlarged from CIFAR-10 and so as smooth as photographs."""
    root = folder / "images"
    records = numpy.fromfile(next(options.cifar.glob("test_batch.bin")), numpy.uint8).reshape(-1, 3073)[:600]
    for i, record in enumerate(records):
        path = root / ("train" if i < 512 else "test") / f"{record[0]}"
        path.mkdir(parents=True, exist_ok=True)
        (root / "test" / f"{record[0]}").mkdir(parents=True, exist_ok=True)
        picture = PIL.Image.fromarray(record[1:].reshape(3, 32, 32).transpose(1, 2, 0).copy())
        picture.resize((320, 256), PIL.Image.Resampling.BICUBIC).save(path / f"{i}.jpg", quality=90)
    transform = transforms(v2.RandomResizedCrop(64), v2.RandomHorizontalFlip(),
                           mean=[0.485, 0.456, 0.406], deviation=[0.229, 0.224, 0.225])
    dataset = torchvision.datasets.ImageFolder(root / "train", transform)
    config = f"dataset={{name: image_folder, root: {root}, side: 64"
    yield "JPEG of 320 x 256, random crop resized to 64", config + "}", dataset, 64, 4096
    yield "the same, decoded at half its size (`decode_side: 128`)", config + ", decode_side: 128}", dataset, 64, 4096


def tokens(_, folder):
    root = folder / "tokens"
    root.mkdir()
    generator = numpy.random.default_rng(1)
    for name, count in (("train.bin", 20_000_000), ("val.bin", 10_000)):
        generator.integers(0, 50257, count, dtype=numpy.uint16).tofile(root / name)
    config = f"dataset={{name: tokens, root: {root}, context: 1024}}"
    yield "tokens, 1,024 a sample", config, Tokens(root / "train.bin", 1024), 16, 100_000


def of_phalanx(options, config, batch, samples, prefetch):
    out = subprocess.run(
        [options.program, "speed", f"--config={ROOT}/configs/quickstart.yaml", f"--samples={samples}",
         "--set", config, "--set", f"train.global_batch_size={batch}",
         "--set", f"loader={{prefetch: {prefetch}, threads: {options.threads if prefetch else 0}}}"],
        capture_output=True, text=True, check=True).stdout
    return float(re.search(r": (\d+) samples/s", out)[1])


def of_torch(dataset, batch, workers, seconds):
    loader = torch.utils.data.DataLoader(dataset, batch, shuffle=True, num_workers=workers, drop_last=True,
                                         persistent_workers=workers > 0)
    read, start = 0, None
    while True:
        for index, data in enumerate(loader):
            if start is None:
                if index == 2:
                    start = time.perf_counter()
                continue
            read += len(data[0])
            if time.perf_counter() - start > seconds:
                return read / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "bazel-bin/tools/data/data")
    parser.add_argument("--mnist", type=pathlib.Path, help="folder of the IDX files")
    parser.add_argument("--cifar", type=pathlib.Path, help="folder of the files of the binary version")
    parser.add_argument("--only", default="mnist,cifar,images,tokens")
    parser.add_argument("--workers", default="0,1,2,4", help="numbers of DataLoader's workers to try")
    parser.add_argument("--threads", type=int, default=2, help="threads of Phalanx's loader")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="duration of each measurement of DataLoader")
    options = parser.parse_args()
    workers = [int(number) for number in options.workers.split(",")]
    print("| data | Phalanx | DataLoader | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for kind in options.only.split(","):
            for title, config, dataset, batch, samples in globals()[kind](options, pathlib.Path(name)):
                ours, theirs = {0: [], 4: []}, {number: [] for number in workers}
                for _ in range(options.rounds):
                    for prefetch, speeds in ours.items():
                        speeds.append(of_phalanx(options, config, batch, samples, prefetch))
                    for number in workers:
                        theirs[number].append(of_torch(dataset, batch, number, options.seconds))
                ahead = max(ours, key=lambda prefetch: statistics.median(ours[prefetch]))
                mine = statistics.median(ours[ahead])
                best = max(workers, key=lambda number: statistics.median(theirs[number]))
                other = statistics.median(theirs[best])
                print(f"| {title}, batches of {batch} | {mine:,.0f} ({ahead} ahead) | {other:,.0f} ({best} workers) | {mine / other:.1f}x |",
                      flush=True)


if __name__ == "__main__":
    main()
