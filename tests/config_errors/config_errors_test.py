#!/usr/bin/env python3
"""What train says of configs and command lines that are wrong, word for word, and of those that are right.

The expected texts are the .golden files beside this one. To write them anew, and then read the difference:

    bazel run //tests/config_errors:config_errors_test -- --rewrite
"""

import os
import pathlib
import sys
import unittest

import program
from program import QUICKSTART, ProgramTest

HERE = pathlib.Path("tests/config_errors")


class ConfigErrors(ProgramTest):
    rewrite = False

    def assert_golden(self, name, text):
        # Rewriting goes through the link to the source.
        golden = program.ROOT / HERE / f"{name}.golden"
        if self.rewrite:
            pathlib.Path(os.path.realpath(golden)).write_text(text)
        self.assertEqual(golden.read_text(), text)

    def assert_refused(self, golden, *arguments, **options):
        """Status 2, nothing done, and every mistake told."""
        process = self.start(*arguments, **options)
        self.assertEqual(2, process.wait(), process.text())
        self.assertEqual("", process.out)
        self.assert_golden(golden, process.err)
        self.assertFalse((self.folder / "runs").exists())

    def test_mistakes(self):
        for name in ("mistakes", "syntax", "conflicts"):
            with self.subTest(name):
                self.assert_refused(name, f"--config={HERE / name}.yaml", cwd=program.ROOT)

    def test_overrides(self):
        self.assert_refused("overrides", f"--config={QUICKSTART}", "--set=optimizer.learning_rate=1", "--set=train.epochs=ten",
                            "--set", "launch.ranks=0", "--set=model.name=lene", "--set=nonsense", "--set=optimizer.lr=[")

    def test_missing_file(self):
        self.assert_refused("missing_file", "--config=configs/quikstart.yaml", cwd=program.ROOT)

    def test_folder_for_a_file(self):
        self.assert_refused("folder", "--config=configs", cwd=program.ROOT)

    def test_unknown_flag(self):
        self.assert_refused("unknown_flag", "--cofnig=x.yaml")

    def test_stray_argument(self):
        self.assert_refused("stray_argument", "configs/quickstart.yaml")

    def test_no_arguments(self):
        self.assert_refused("no_arguments")

    def test_unknown_backend(self):
        self.assert_refused("backend", f"--config={QUICKSTART}", "--set=backend=shmm")

    def test_print_config(self):
        process = self.start("--config=configs/quickstart.yaml", "--print_config", cwd=program.ROOT)
        self.assertEqual((0, ""), (process.wait(), process.err))
        self.assert_golden("quickstart", process.out)

    def test_print_config_reads_back(self):
        first = self.start(f"--config={QUICKSTART}", "--print_config")
        first.wait()
        (self.folder / "printed.yaml").write_text(first.out)
        again = self.start("--config=printed.yaml", "--print_config")
        self.assertEqual(0, again.wait(), again.text())
        self.assertEqual(first.out, again.out)

    def test_help_config_has_every_section_and_name(self):
        process = self.start("--help_config")
        self.assertEqual((0, ""), (process.wait(), process.err))
        for section in ("name", "seed", "launch", "backend", "framework", "model", "dataset", "loader", "loss", "optimizer",
                        "schedule", "strategy", "mesh", "train", "evaluate", "checkpoint", "watch", "expect"):
            self.assertRegex(process.out, rf"(?m)^{section}\b")
        for name in ("mlp", "lenet", "mnist", "digits", "cross_entropy", "sgd", "constant", "cosine", "single", "all_reduce"):
            self.assertRegex(process.out, rf"\b{name}\b")
        for backend in ("inproc", "shm", "mpi"):
            self.assertIn(backend, process.out)

    def test_help(self):
        process = self.start("--help")
        self.assertEqual((0, ""), (process.wait(), process.err))
        for flag in ("-config", "-set", "-run_dir", "-print_config", "-help_config"):
            self.assertIn(flag, process.out)


if __name__ == "__main__":
    ConfigErrors.rewrite = "--rewrite" in sys.argv
    unittest.main(argv=[word for word in sys.argv if word != "--rewrite"], verbosity=2)
