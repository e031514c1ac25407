#!/usr/bin/env python3
"""LeNet learns MNIST to 97.5 % in 8 epochs, with 1, 2 and 4 ranks, over every backend, each time to the same accuracy;
and with every strategy that has a config to what that config expects, 97 % at least.

Needs the four IDX files, in the folder that PHALANX_MNIST names:

    bazel test --config=nightly --test_env=PHALANX_MNIST=/data/mnist //tests/end_to_end:mnist_test
"""

import os

import program
from program import ProgramTest, sets

# Taken when it is imported: tests give programs no PHALANX_ variables of others.
MNIST = os.environ.get("PHALANX_MNIST", "")


class Mnist(ProgramTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(MNIST, "PHALANX_MNIST is not set. It names the folder with MNIST's four IDX files: "
                               "--test_env=PHALANX_MNIST=/data/mnist")

    def test_reaches_97_5_percent(self):
        accuracies = {}
        for backend in ("inproc", "shm", "mpi"):
            for ranks in (1, 2, 4):
                with self.subTest(backend=backend, ranks=ranks):
                    run = f"{backend}{ranks}"
                    settings = sets({"dataset.root": MNIST, "backend": backend, "launch.ranks": ranks})
                    process = self.train(*settings, config=program.ROOT / "configs/mnist_allreduce.yaml", run=run)
                    self.assert_status(0, process, 300)
                    summary = self.run_folder(run).summary
                    self.assertEqual(ranks, summary["ranks"])
                    accuracies[run] = summary["test"]["accuracy"]
                    print(f"{run}: {accuracies[run]:.4f} in {summary['train_seconds']:.1f} s")
                    self.assertGreaterEqual(accuracies[run], 0.975)
        self.assertLess(max(accuracies.values()) - min(accuracies.values()), 0.005, accuracies)

    def test_every_strategy_reaches_what_its_config_expects(self):
        configs = sorted((program.ROOT / "configs").glob("mnist_*.yaml"))
        self.assertGreaterEqual(len(configs), 7)
        for config in configs:
            with self.subTest(config.stem):
                process = self.train(*sets({"dataset.root": MNIST}), config=config, run=config.stem)
                self.assert_status(0, process, 300)
                summary = self.run_folder(config.stem).summary
                accuracy = summary["test"]["accuracy"]
                print(f"{config.stem}: {accuracy:.4f} in {summary['train_seconds']:.1f} s, {summary['strategy']}")
                self.assertGreaterEqual(accuracy, 0.97)


if __name__ == "__main__":
    program.main()
