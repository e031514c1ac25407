#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the configs of larger models on a small dataset of the same form. Without data, they must say what to get."""

import math

import program
from program import ProgramTest, sets

LITTLE = {"train.max_steps": 12, "watch.every_steps": 1, "evaluate.every_epochs": 0, "train.epochs": 12,
          "expect": "{}"}


class Workload(ProgramTest):
    def train_little(self, name, settings):
        process = self.train(*sets(LITTLE, settings), config=program.ROOT / f"configs/{name}.yaml")
        self.assert_status(0, process, 120)
        losses = [line["loss"] for line in self.run_folder().metrics if line["split"] == "train"]
        self.assertEqual(12, len(losses))
        self.assertTrue(all(map(math.isfinite, losses)), losses)
        self.assertLess(losses[-1], 0.8 * losses[0], losses)
        self.assertEqual(2, self.run_folder().summary["ranks"])
        return self.run_folder().summary

    def assert_explained(self, name, missing):
        process = self.train(config=program.ROOT / f"configs/{name}.yaml", environment={"PHALANX_DATA": "/nowhere"})
        self.assert_status(1, process)
        self.assertEqual(1, process.err.count("files are missing from"), process.err)
        for text in missing:
            self.assertIn(text, process.err)


class Cifar10ResNet18(Workload):
    def test_trains(self):
        # Images of a single color, which is the class.
        folder = self.folder / "cifar10"
        folder.mkdir()
        for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
            records = [bytes([label]) + bytes([25 * label]) * 3072 for label in (0, 3, 6, 9)]
            (folder / f"{name}.bin").write_bytes(b"".join(records))
        # The config's learning rate needs a warm-up as long as the config's.
        self.train_little("cifar10_resnet18", {"dataset.root": folder, "train.global_batch_size": 10,
                                               "schedule.warmup_steps": 0, "optimizer.lr": 0.02})
        weights = self.run_folder().weights
        for name in (b'"layer2.0.downsample.0.weight"', b'"layer4.1.bn2.running_var"', b'"fc.bias"'):
            self.assertIn(name, weights)

    def test_says_what_is_missing(self):
        self.assert_explained("cifar10_resnet18",
                              ["/nowhere/cifar10", "data_batch_1.bin", "test_batch.bin", "https://"])


class TextCharLm(Workload):
    def test_trains(self):
        text = self.folder / "text.txt"
        text.write_text("the quick brown fox jumps over the lazy dog. " * 200)
        summary = self.train_little("text_char_lm", {"dataset.file": text, "schedule.warmup_steps": 0,
                                                     "dataset.train_share": 0.8})
        self.assertLessEqual(summary["test"]["accuracy"], 1)
        self.assertIn(b'"transformer.h.3.attn.c_attn.weight"', self.run_folder().weights)

    def test_says_what_is_missing(self):
        self.assert_explained("text_char_lm", ["/nowhere/text", "input.txt", "https://"])


if __name__ == "__main__":
    program.main()
