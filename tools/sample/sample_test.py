#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that sample draws what the model of a run generates from noise."""

import struct
import unittest
import zlib

from program import ROOT, ProgramTest, sets

SAMPLE = str(ROOT / "tools/sample/sample")
DIGITS = "{name: with_noise, size: 8, of: {name: digits, train_samples: 512, test_samples: 64, side: 16}}"
COMMON = {"launch.ranks": 1, "evaluate.every_epochs": 0, "schedule": "constant", "expect": "{}",
          "optimizer": "{name: adam, lr: 0.002}"}
VAE = {"model": "{name: vae, hidden: [32]}", "dataset": DIGITS, "task": "{name: variational, likelihood: gaussian}"}
DCGAN = {"model": "{name: dcgan, width: 4}", "dataset": DIGITS, "task": "adversarial"}


def read_png(path):
    """Returns (width, height, rows of bytes) of a gray image."""
    data, place, pixels, size = path.read_bytes(), 8, b"", None
    assert data.startswith(b"\x89PNG")
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place:place + 8])
        body = data[place + 8:place + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            pixels += body
        place += 12 + length
    return size, zlib.decompress(pixels)


class Sample(ProgramTest):
    def sample(self, *arguments, status=0):
        process = self.start(*arguments, command=[SAMPLE])
        self.assert_status(status, process)
        return process

    def train_on(self, sections, steps, run="run"):
        self.assert_status(0, self.train(*sets(COMMON, sections, {"train.max_steps": steps}), run=run))

    def test_draws_a_sheet_of_samples(self):
        for sections, run in ((VAE, "vae"), (DCGAN, "dcgan")):
            self.train_on(sections, 4, run)
            process = self.sample(f"--run={run}", "--samples=6", "--columns=4", "--zoom=3")
            self.assertIn("6 samples in samples.png", process.out)
            (width, height, depth, color), pixels = read_png(self.folder / "samples.png")
            self.assertEqual((3 * (4 * 18 - 2), 3 * (2 * 18 - 2), 8, 0), (width, height, depth, color), "gray")
            self.assertGreater(len(set(pixels)), 4)

    def test_draws_depend_on_the_seed(self):
        self.train_on(VAE, 1)
        pictures = []
        for seed in (1, 1, 2):
            self.sample("--run=run", f"--out=seed{seed}.png", f"--seed={seed}")
            pictures.append((self.folder / f"seed{seed}.png").read_bytes())
        self.assertEqual(pictures[0], pictures[1])
        self.assertNotEqual(pictures[0], pictures[2])

    def test_refuses_what_it_cannot_draw(self):
        self.train_on(VAE, 1)
        for argument, status, error in (("--samples=0", 2, "--samples: must be from 1 to 10000"),
                                        ("--zoom=-1", 2, "--zoom: must be from 1 to 10000"),
                                        ("--set=model.hidden=[8]", 1, "does not fit the config's model"),
                                        ("--out=no/such.png", 1, "no/such.png")):
            self.assertIn(error, self.sample("--run=run", argument, status=status).err)
        self.train_on({"model": "mlp", "dataset": "{name: digits, train_samples: 64, test_samples: 64}"}, 1, "mlp")
        self.assertIn("model mlp does not generate samples, as these do: dcgan, vae",
                      self.sample("--run=mlp", status=2).err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
