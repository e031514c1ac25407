#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every file in configs/: two steps on a small dataset of the same form, and at night until the expected result.

The nightly test needs mnist/, cifar10/ and text/, in the form that the datasets of these names read, in the folder that
PHALANX_TEST_DATA names:

    bazel test --config=nightly --test_env=PHALANX_TEST_DATA=/data //tests/end_to_end:nightly_configs_test
"""

import os
import pathlib
import random

import program
from program import ProgramTest, sets

# Read at import: tests do not pass other PHALANX_ variables to programs.
DATA = os.environ.get("PHALANX_TEST_DATA", "")
CONFIGS = sorted((program.ROOT / "configs").glob("*.yaml"))
TWO_STEPS = {"train.max_steps": 2, "schedule": "constant", "expect": "{}"}


def write_idx(path, shape, values):
    """Writes an IDX file of bytes."""
    path.write_bytes(bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + bytes(values))


def write_little_data(folder):
    draw = random.Random(1)
    for name in ("mnist", "cifar10", "text"):
        (folder / name).mkdir(parents=True)
    for split, count in (("train", 256), ("t10k", 64)):
        write_idx(folder / f"mnist/{split}-images-idx3-ubyte", [count, 28, 28], draw.randbytes(count * 784))
        write_idx(folder / f"mnist/{split}-labels-idx1-ubyte", [count], [i % 10 for i in range(count)])
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = [bytes([i % 10]) + draw.randbytes(3072) for i in range(40)]
        (folder / f"cifar10/{name}.bin").write_bytes(b"".join(records))
    (folder / "text/input.txt").write_text("the quick brown fox jumps over the lazy dog.\n" * 600)


class TwoSteps(ProgramTest):
    def test_every_config_trains(self):
        write_little_data(self.folder / "data")
        self.assertGreater(len(CONFIGS), 40)
        for config in CONFIGS:
            with self.subTest(config.stem):
                process = self.train(*sets(TWO_STEPS), config=config, run=config.stem,
                                     environment={"PHALANX_DATA": str(self.folder / "data")})
                self.assert_status(0, process, 120)
                self.assertEqual(2, self.run_folder(config.stem).summary["steps"])


class WholeRuns(ProgramTest):
    def test_every_config_reaches_its_expected_result(self):
        self.assertTrue(pathlib.Path(DATA, "mnist").is_dir(),
                        "PHALANX_TEST_DATA does not name a folder with mnist/, cifar10/ and text/: "
                        "--test_env=PHALANX_TEST_DATA=/data")
        for config in CONFIGS:
            with self.subTest(config.stem):
                process = self.train(config=config, run=config.stem, environment={"PHALANX_DATA": DATA})
                self.assert_status(0, process, 3600)
                summary = self.run_folder(config.stem).summary
                print(f"{config.stem}: {summary['test']} in {summary['train_seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    program.main()
