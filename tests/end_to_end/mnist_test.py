#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains LeNet on MNIST to 97.5 % in 8 epochs, with 1, 2 and 4 ranks, on every backend, each time to the same accuracy.

Needs the four IDX files in mnist/, in the folder that PHALANX_TEST_DATA names:

    bazel test --config=nightly --test_env=PHALANX_TEST_DATA=/data //tests/end_to_end:mnist_test
"""

import os

import program
from program import ProgramTest, sets

# Read at import: tests do not pass other PHALANX_ variables to programs.
DATA = os.environ.get("PHALANX_TEST_DATA", "")


class Mnist(ProgramTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(DATA, "PHALANX_TEST_DATA is not set. It names the folder with mnist/ and its four IDX files: "
                              "--test_env=PHALANX_TEST_DATA=/data")

    def test_reaches_97_5_percent(self):
        accuracies = {}
        for backend in ("inproc", "shm", "mpi"):
            for ranks in (1, 2, 4):
                with self.subTest(backend=backend, ranks=ranks):
                    run = f"{backend}{ranks}"
                    settings = sets({"dataset.root": f"{DATA}/mnist", "backend": backend, "launch.ranks": ranks})
                    process = self.train(*settings, config=program.ROOT / "configs/mnist_allreduce.yaml", run=run)
                    self.assert_status(0, process, 300)
                    summary = self.run_folder(run).summary
                    self.assertEqual(ranks, summary["ranks"])
                    accuracies[run] = summary["test"]["accuracy"]
                    print(f"{run}: {accuracies[run]:.4f} in {summary['train_seconds']:.1f} s")
                    self.assertGreaterEqual(accuracies[run], 0.975)
        self.assertLess(max(accuracies.values()) - min(accuracies.values()), 0.005, accuracies)


if __name__ == "__main__":
    program.main()
