#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each example on 2 to 4 ranks and checks its output and files."""

import random
import re

import program
from program import ROOT, ProgramTest, free_port

FOLDER = ROOT / "examples"
LINES = range(30, 61)


def idx(shape, values):
    """Returns an IDX file of bytes."""
    return bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + bytes(values)


def write_mnist(folder):
    """Writes images of as many digits as MNIST has, which LibTorch requires. They are easy: a bright bar whose row is
    the class, on noise."""
    randomness = random.Random(1)
    noise = [bytes(randomness.randrange(64) for _ in range(784)) for _ in range(50)]
    for split, count in (("train", 60000), ("t10k", 10000)):
        labels = [i % 10 for i in range(count)]
        images = bytearray()
        for i, label in enumerate(labels):
            image = bytearray(noise[randomness.randrange(50)])
            start = 28 * (2 * label + 4) + 4
            image[start:start + 20] = b"\xff" * 20
            images += image
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx([count, 28, 28], images))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx([count], labels))


class RanksTest(ProgramTest):
    def finish(self, process):
        self.assert_status(0, process)
        return process.out

    def run_alone(self, name):
        """Runs an example that starts its ranks itself. Returns its lines, in any order."""
        out = self.finish(self.start(command=[str(FOLDER / name)]))
        self.assert_nothing_left()
        return sorted(out.splitlines())

    def run_ranks(self, name, *arguments, ranks=2):
        """Runs the ranks with the variables of torchrun. Returns the output of rank 0; the others print nothing."""
        port = free_port()
        started = [self.start(*arguments, command=[str(FOLDER / name)],
                              environment=program.torchrun(rank, ranks, port)) for rank in range(ranks)]
        first, *others = [self.finish(process) for process in started]
        self.assertEqual([""] * (ranks - 1), others)
        self.assert_nothing_left()
        return first

    def run_mpi(self, name, ranks=2):
        out = self.finish(self.start(command=[*program.mpirun(ranks), str(FOLDER / name)]))
        self.assert_nothing_left()
        return out

    def numbers(self, pattern, text):
        """Returns the numbers in the groups of each line that matches."""
        found = re.findall(pattern, text, re.M)
        self.assertTrue(found, text)
        return [[float(number) for number in (one if isinstance(one, tuple) else (one,))] for one in found]


class Examples(RanksTest):
    def test_send_receive(self):
        self.assertEqual(["blocking: rank 0 has 1", "blocking: rank 1 has 1",
                          "immediate: rank 0 has 2 and computed 100", "immediate: rank 1 has 2 and computed 100"],
                         self.run_alone("send_receive"))

    def test_groups(self):
        self.assertEqual(["rank 0: all 6, parity 2, outer 3, row 1, column 2",
                          "rank 1: all 6, parity 4, outer -, row 1, column 4",
                          "rank 2: all 6, parity 2, outer -, row 5, column 2",
                          "rank 3: all 6, parity 4, outer 3, row 5, column 4"], self.run_alone("groups"))

    def test_all_reduce_by_hand(self):
        self.assertEqual([f"rank {rank}: the same sums" for rank in range(4)], self.run_alone("all_reduce_by_hand"))

    def test_synchronous_sgd(self):
        """The number of ranks does not change what is learned: the global batch is the same."""
        for ranks in (1, 2):
            losses = self.numbers(r"^epoch \d+: loss ([\d.e-]+)$", self.run_ranks("synchronous_sgd", ranks=ranks))
            self.assertEqual(20, len(losses))
            self.assertLess(losses[-1][0], 0.2)
            self.assertLess(losses[-1][0], losses[0][0] / 2)

    def test_ddp_mnist(self):
        data = self.folder / "mnist"
        data.mkdir()
        write_mnist(data)
        ((epoch, accuracy),) = self.numbers(r"^epoch (\d+): accuracy ([\d.]+)$", self.run_ranks("ddp_mnist", data, 1))
        self.assertEqual(1, epoch)
        self.assertGreater(accuracy, 0.95)
        self.assertGreater((self.folder / "mnist.pt").stat().st_size, 4 * 21840)  # its parameters

    def test_local_sgd(self):
        out = self.run_ranks("local_sgd")
        ((loss,),) = self.numbers(r"^loss ([\d.e-]+)$", out)
        self.assertLess(loss, 0.1)
        ((before, after),) = self.numbers(r"^replicas differ by ([\d.e-]+), after finish\(\) by ([\d.e-]+)$", out)
        self.assertGreater(before, 0)
        self.assertEqual(0, after)

    def test_sharded(self):
        out = self.run_ranks("sharded", self.folder)
        ((loss,),) = self.numbers(r"^loss ([\d.e-]+)$", out)
        self.assertLess(loss, 0.1)
        self.assertIn("from the checkpoint the same", out)
        self.assertEqual(["model.pt", "optimizer.pt.0", "optimizer.pt.1"],
                         sorted(path.name for path in self.folder.glob("*.pt*")))

    def test_parameter_server(self):
        ((error, scale),) = self.numbers(r"^error ([\d.e-]+) of ([\d.]+)$", self.run_ranks("parameter_server"))
        self.assertLess(error, 0.05 * scale)

    def test_mpi_simulation(self):
        ((left, middle, right),) = self.numbers(r"^learned ([\d.]+) ([\d.]+) ([\d.]+)\s*$",
                                                self.run_mpi("mpi_simulation"))
        self.assertAlmostEqual(0.2, left, delta=0.02)
        self.assertAlmostEqual(0.5, middle, delta=0.02)
        self.assertAlmostEqual(0.2, right, delta=0.02)

    def test_reinforcement_learning(self):
        rounds = self.numbers(r"^round \d+: won (\d+) of (\d+)$", self.run_ranks("reinforcement_learning"))
        self.assertEqual(5, len(rounds))
        won, episodes = rounds[-1]
        self.assertGreater(won, 0.9 * episodes)

    def test_statistics(self):
        for text, ranks in ((self.run_mpi("statistics"), 2), (self.run_ranks("statistics", ranks=1), 1)):
            ((count, size, mean, deviation, *_),) = self.numbers(
                r"^(\d+) values of (\d+) ranks: mean ([\d.]+), deviation ([\d.]+), from (-?[\d.]+) to ([\d.]+)\s*$",
                text)
            self.assertEqual((100_000 * ranks * (ranks + 1) / 2, ranks), (count, size))
            self.assertAlmostEqual(5, mean, delta=0.03)
            self.assertAlmostEqual(2, deviation, delta=0.03)
            shares = [share for (share,) in self.numbers(r"^ *\d+ to +\d+ +([\d.]+) %\s*$", text)]
            self.assertAlmostEqual(98.8, sum(shares), delta=0.5)  # within 2.5 deviations
            self.assertEqual(max(shares), max(shares[4:6]))


class Compatibility(RanksTest):
    """Programs of earlier versions compile and run with this one."""

    def test_version_0_1(self):
        out = self.finish(self.start(self.folder, command=[str(ROOT / "tests/examples/api_0_1")]))
        self.assertRegex(out, r"^version \d+\.\d+\.\d+$")
        self.assert_nothing_left()


class Sources(ProgramTest):
    """The examples are what programs outside of this repository can be."""

    def sources(self):
        found = sorted(FOLDER.glob("*.cc"))
        self.assertEqual([name[len("test_"):] for name in dir(Examples) if name.startswith("test_")],
                         [path.stem for path in found])
        return found

    def test_they_are_short(self):
        for path in self.sources():
            self.assertIn(len(path.read_text().splitlines()), LINES, path)

    def test_they_need_only_the_library_and_libtorch(self):
        for path in self.sources():
            for name in re.findall(r"#include\s*(\S+)", path.read_text()):
                with self.subTest(f"{path.name}: {name}"):
                    self.assertRegex(name, r"^<(phalanx/[\w/]+\.h|torch/torch\.h|mpi\.h|\w+)>$")


if __name__ == "__main__":
    program.main()
