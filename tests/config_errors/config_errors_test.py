#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the exact output of train for wrong and for right configs and command lines.

The expected texts are the .golden files next to this one. To rewrite them, and then review the difference:

    bazel run //tests/config_errors:config_errors_test -- --rewrite
"""

import os
import pathlib
import re
import sys
import unittest

import program
from program import QUICKSTART, ProgramTest

HERE = pathlib.Path("tests/config_errors")


class ConfigErrors(ProgramTest):
    rewrite = False

    def assert_golden(self, name, text):
        # Rewriting follows the link to the source.
        golden = program.ROOT / HERE / f"{name}.golden"
        if self.rewrite:
            pathlib.Path(os.path.realpath(golden)).write_text(text)
        self.assertEqual(golden.read_text(), text)

    def assert_refused(self, golden, *arguments, **options):
        """Expects status 2, no run folder, and a message for every mistake."""
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

    def test_folder_instead_of_a_file(self):
        self.assert_refused("folder", "--config=configs", cwd=program.ROOT)

    def test_a_fifo_and_a_device_are_not_read(self):
        os.mkfifo(self.folder / "pipe")
        for path in ("pipe", "/dev/zero"):
            with self.subTest(path):
                process = self.start(f"--config={path}")
                self.assertEqual(2, process.wait(), process.text())
                self.assertEqual(f"cannot read the config: {path}: is not a regular file; write the config to one\n", process.err)

    def test_names_that_cannot_be_part_of_a_folders_name(self):
        for name, why in ((r'"\0"', "contains a NUL character"), ("a/b", "letters, digits"), ("x" * 101, "letters, digits")):
            with self.subTest(name):
                (self.folder / "name.yaml").write_text(f"model: lenet\nname: {name}\n")
                process = self.start("--config=name.yaml")
                self.assertEqual(2, process.wait(), process.text())
                self.assertIn("name.yaml:2:7: name: ", process.err)
                self.assertIn(why, process.err)
                self.assertFalse((self.folder / "runs").exists())

    def test_a_checkpoint_that_is_not_there(self):
        for path in ("/nope", "Auto"):
            process = self.start(f"--config={QUICKSTART}", "--resume", path)
            self.assertEqual(2, process.wait(), process.text())
            self.assertIn(f'--set checkpoint.resume={path}: checkpoint.resume: "{path}" does not exist', process.err)
        self.assertIn('did you mean "auto"?', process.err)
        (self.folder / "resume.yaml").write_text("model: lenet\ncheckpoint:\n  resume: /nope\n")
        process = self.start("--config=resume.yaml")
        self.assertEqual(2, process.wait(), process.text())
        self.assertIn('resume.yaml:3:11: checkpoint.resume: "/nope" does not exist', process.err)
        self.assertFalse((self.folder / "runs").exists())

    def test_other_hosts_without_ssh(self):
        (self.folder / "hosts.yaml").write_text("model: lenet\nlaunch:\n  ranks: 2\n  hosts: [192.0.2.1, 192.0.2.2]\n")
        process = self.start("--config=hosts.yaml", environment={"PATH": "/no/such/folder"})
        self.assertEqual(2, process.wait(), process.text())
        self.assertTrue(process.err.startswith("hosts.yaml:4:3: launch.hosts: mpirun starts ranks on 192.0.2.1 through ssh"), process.err)
        self.assertFalse((self.folder / "runs").exists())

    def test_mistakes_that_only_ranks_find_are_named_with_their_line(self):
        (self.folder / "meters.yaml").write_text("model: lenet\ndataset: {name: digits, train_samples: 64}\nevaluate:\n  meters:\n  - meter: {name: class_error, k: 999}\n")
        process = self.start("--config=meters.yaml", "--run_dir=run")
        self.assertEqual(2, process.wait(), process.text())
        self.assertIn("meters.yaml:5:5: evaluate.meters[0]: class_error: k is 999, but there are 10 classes", process.err)

    def test_unknown_flag(self):
        self.assert_refused("unknown_flag", "--cofnig=x.yaml")

    def test_flag_for_a_key(self):
        self.assert_refused("flag_for_a_key", f"--config={QUICKSTART}", "--lr", "0.1")

    def test_stray_argument(self):
        self.assert_refused("stray_argument", f"--config={QUICKSTART}", "other.yaml")

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

    def test_print_config_escapes_control_characters(self):
        process = self.start(f"--config={QUICKSTART}", "--set=dataset.root=/data/\u202egnp.exe", "--print_config")
        self.assertEqual(0, process.wait(), process.text())
        self.assertNotIn("\u202e", process.out)
        self.assertIn("\\u202egnp.exe", process.out)

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

    def test_help_config_fits_a_terminal(self):
        process = self.start("--help_config")
        self.assertEqual((0, ""), (process.wait(), process.err))
        self.assertEqual([], [line for line in process.out.splitlines() if len(line) > 100])

    def test_help_config_of_one_section(self):
        for section, has in (("train", ["train:", "  epochs"]), ("strategy.gossip", ["name: gossip"]), ("train.epochs", ["epochs"])):
            process = self.start("--help_config", section)
            self.assertEqual((0, ""), (process.wait(), process.err))
            lines = process.out.splitlines()
            self.assertTrue(lines[0].startswith("KEY"), lines[0])
            self.assertTrue(lines[1].startswith(has[0]), lines[1])
            for start in has:
                self.assertTrue(any(line.startswith(start) for line in lines), process.out)
            self.assertNotIn("optimizer:", process.out)
        process = self.start("--help_config", "trian")
        self.assertEqual((2, ""), (process.wait(), process.out))
        self.assertEqual('a config has no section or key "trian" (did you mean "train"?)\n', process.err)

    def test_help(self):
        for flag in ("--help", "-h"):
            process = self.start(flag)
            self.assertEqual((0, ""), (process.wait(), process.err))
            flags = ["--config", "--help", "--help_config", "--init_method", "--join", "--print_config", "--rank", "--ranks",
                     "--resume", "--run_dir", "--set", "--version", "--world_size"]
            self.assertEqual(flags, re.findall(r"^  (--\w+)", process.out, re.M))
            self.assertNotIn(".cc", process.out)


if __name__ == "__main__":
    ConfigErrors.rewrite = "--rewrite" in sys.argv
    unittest.main(argv=[word for word in sys.argv if word != "--rewrite"], verbosity=2)
