#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the output of a run on terminals and in pipes, and the files that it leaves for scripts."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import termios
import time

import program
from program import QUICKSTART, SHORT, ProgramTest, mpirun, sets

NUMBER = (int, float)


class Files(ProgramTest):
    def test_metrics(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        metrics = self.run_folder().metrics
        self.assertEqual([4, 8, 12, 16], [line["step"] for line in metrics if line["split"] == "train"])
        self.assertEqual([16], [line["step"] for line in metrics if line["split"] == "test"])
        types = {"step": int, "epoch": int, "split": str, "loss": float, "accuracy": float,
                 "samples_per_second": NUMBER, "seconds": NUMBER}
        for line in metrics:
            for key, kind in types.items():
                self.assertIsInstance(line[key], kind, line)
        self.assertEqual(sorted(line["seconds"] for line in metrics), [line["seconds"] for line in metrics])

    def test_summary(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        summary = self.run_folder().summary
        self.assertEqual(2, summary["ranks"])
        for key in ("train_seconds", "seconds_to_first_step", "samples_per_second"):
            self.assertIsInstance(summary[key], NUMBER)
            self.assertGreater(summary[key], 0)
        self.assertIsInstance(summary["test"]["loss"], float)
        self.assertTrue(0 <= summary["test"]["accuracy"] <= 1)

    def test_everything_in_the_run_folder(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        names = sorted(str(path.relative_to(self.folder / "run")) for path in (self.folder / "run").rglob("*"))
        self.assertEqual([".lock", "config.yaml", "logs", "logs/rank0.log", "logs/rank1.log", "metrics.jsonl",
                          "report.html", "summary.json", "weights.safetensors"], names)

    def test_relative_paths_begin_in_the_folder_of_the_caller(self):
        # As with `bazel run`, the program starts in another folder and is told the folder of its user.
        caller = self.folder / "caller"
        caller.mkdir()
        shutil.copy(QUICKSTART, caller / "mine.yaml")
        process = self.start("--config=mine.yaml", "--run_dir=here", *sets(SHORT), cwd="/",
                             environment={"BUILD_WORKING_DIRECTORY": str(caller)})
        self.assert_status(0, process)
        self.assertEqual(2, self.run_folder("caller/here").summary["ranks"])

    def test_default_run_folder(self):
        for _ in range(2):
            self.assert_status(0, self.start(f"--config={QUICKSTART}", *sets(SHORT)))
        names = [path.name for path in (self.folder / "runs").iterdir()]
        self.assertEqual(2, len(names))
        for name in names:
            self.assertRegex(name, r"^quickstart-\d{8}-\d{6}(-2)?$")


def assert_plain(test, text, epochs):
    test.assertNotIn("\033", text)
    test.assertNotIn("\r", text)
    lines = text.splitlines()
    for epoch in range(1, epochs + 1):
        test.assertEqual(1, sum(line.startswith(f"epoch {epoch}/{epochs}  ") and "  test  " in line for line in lines),
                         text)
    test.assertEqual(len(lines), len(set(lines)), text)


class Speech(ProgramTest):
    def test_pipe(self):
        process = self.train(*sets(SHORT, {"train.epochs": 3, "evaluate.every_epochs": 1, "train.max_steps": 0}))
        self.assert_status(0, process)
        assert_plain(self, process.out, 3)

    def test_without_progress_there_are_the_folder_and_the_result(self):
        process = self.train(*sets(SHORT, {"watch.progress": "false"}))
        self.assert_status(0, process)
        folder = self.folder / "run"
        self.assertRegex(process.out, rf"^Run folder  {folder}\ntest: loss \d\S+, accuracy \d\S+\n"
                                      rf"Done after step 16; everything is in {folder}\n$")

    def test_begins_with_what_is_trained_and_where(self):
        process = self.train(*sets(SHORT))
        self.assert_status(0, process)
        self.assertRegex(process.out, rf"^Run folder  {self.folder}/run\nModel       lenet\nDataset     digits\n"
                                      r"Ranks       2, backend shm\nStrategy    auto\n"
                                      r"Samples     512 training, 128 test\nParameters  61706\n"
                                      r"Selected    strategy \w+\nReady       after \S+ s\n")

    def test_prints_the_mean_loss_of_each_epoch(self):
        # With windows as long as an epoch, the last reading is the same mean.
        process = self.train(*sets(SHORT, {"train.epochs": 2, "train.max_steps": 0, "watch.every_steps": 8}))
        self.assert_status(0, process)
        means = re.findall(r"^epoch (\d)/2  step (\d+)  train  mean loss (\S+)  ", process.out, re.M)
        measured = [(str(line["epoch"] + 1), str(line["step"]), f"{line['loss']:.4f}")
                    for line in self.run_folder().metrics if line["split"] == "train"]
        self.assertEqual(measured, means)

    def test_the_mean_loss_of_an_epoch_spans_a_resume(self):
        settings = sets(SHORT, {"train.epochs": 2, "schedule": "constant", "checkpoint.every_steps": 4})
        whole = self.train(*settings, "--set=train.max_steps=0", run="whole")
        self.assert_status(0, self.train(*settings, "--set=train.max_steps=12", run="parts"))
        resumed = self.train(*settings, "--set=train.max_steps=0", "--resume=auto", run="parts")
        for process in (whole, resumed):
            self.assert_status(0, process)
        means = [re.findall(r"^epoch 2/2  step 16  train  mean loss (\S+)", process.out, re.M)
                 for process in (whole, resumed)]
        self.assertEqual(1, len(means[0]), whole.out)
        self.assertEqual(means[0], means[1], resumed.out)

    def test_names_the_version_of_the_model_that_was_tested(self):
        for setting, labels in (("strategy={name: local_sgd, every: 5}", ["each rank's own model", "final model"]),
                                ("train.ema_decay=0.9", ["moving average"] * 2)):
            with self.subTest(setting):
                run = setting.partition("=")[0]
                process = self.train(*sets(SHORT, {"train.epochs": 2, "train.max_steps": 0, "evaluate.every_epochs": 1}),
                                     "--set=" + setting, run=run)
                self.assert_status(0, process)
                self.assertEqual(labels, re.findall(r"^epoch .*  test \((.*?)\)  loss", process.out, re.M), process.out)


class Unread(ProgramTest):
    """Runs whose output is not read."""

    LONG = sets(SHORT, {"train.max_steps": 0, "train.epochs": 4, "watch.every_steps": 1, "evaluate.every_epochs": 1})
    way = []

    def assert_goes_on(self, stdout, run):
        process = self.train(*self.LONG, *self.way, stdout=stdout, run=run)
        self.assert_status(0, process)
        self.assertEqual(32, self.run_folder(run).summary["steps"])
        self.assertRegex(process.err, r"^(\S+ \S+ WARNING \S+ standard output .*\n)?$")  # warning of the launcher
        self.assertEqual(1, self.run_folder(run).log(0).read_text().count("WARNING"))
        self.assertIn("standard output", self.run_folder(run).log(0).read_text())

    def test_a_reader_that_leaves(self):
        theirs, ours = os.pipe()
        os.close(theirs)
        self.assert_goes_on(ours, "closed")
        os.close(ours)

    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.assert_goes_on(full, "full")

    def test_a_reader_that_does_not_read(self):
        theirs, ours = os.pipe()
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(ours, b"x")
        fcntl.fcntl(ours, fcntl.F_SETFL, 0)
        self.assert_goes_on(ours, "unread")
        os.close(ours)
        os.close(theirs)

    def test_no_standard_output_at_all(self):
        process = self.train(*self.LONG, *self.way, preexec_fn=lambda: os.close(1))
        self.assert_status(0, process)
        self.assertEqual(32, len([line for line in self.run_folder().metrics if line["split"] == "train"]))


class Terminal(ProgramTest):

    def on_terminal(self, columns, *settings):
        """Returns what a terminal with so many columns receives."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.train(*settings, stdout=theirs, run=f"columns{columns}")
        os.close(theirs)
        text = b""
        end = time.monotonic() + program.DEADLINE
        while time.monotonic() < end and select.select([ours], [], [], program.DEADLINE)[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:  # no process has the other end open any more
                break
        os.close(ours)
        self.assert_status(0, process)
        return text.decode()

    # Long enough for the display to be drawn a few times.
    drawn = sets(SHORT, {"dataset.train_samples": 4096, "train.max_steps": 0, "train.epochs": 2})

    def test_terminal(self):
        for columns in (120, 80, 40, 20):
            with self.subTest(columns=columns):
                text = self.on_terminal(columns, *self.drawn)
                drawings = re.findall(r"\r\033\[K([^\r\n]+)", text)
                self.assertGreaterEqual(len(drawings), 2, text)
                for drawing in drawings[:-1]:
                    self.assertLess(len(re.sub(r"\033\[[^a-zA-Z]*[a-zA-Z]", "", drawing)), columns, drawing)
                self.assertTrue(text.endswith("\r\n"), repr(text[-80:]))
                self.assertIn("test  loss", text)
                if columns >= 80:
                    self.assertIn("█", text)


class SpeechMpi(Terminal):
    drawn = Terminal.drawn + ["--set=launch.with=mpi"]

    def test_pipe(self):
        settings = sets(SHORT, {"train.epochs": 3, "evaluate.every_epochs": 1, "train.max_steps": 0})
        for name, command, more in (("launched", [program.TRAIN], ["--set=launch.with=mpi"]),
                                    ("by_hand", [*mpirun(2), program.TRAIN], [])):
            with self.subTest(name):
                process = self.train(*settings, *more, command=command, run=name)
                self.assert_status(0, process)
                assert_plain(self, process.out, 3)

    def test_a_reader_that_leaves(self):
        theirs, ours = os.pipe()
        os.close(theirs)
        process = self.train(*Unread.LONG, "--set=launch.with=mpi", stdout=ours)
        os.close(ours)
        self.assert_status(0, process)
        self.assertEqual(32, self.run_folder().summary["steps"])


if __name__ == "__main__":
    program.main()
