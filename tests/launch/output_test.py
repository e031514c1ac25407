#!/usr/bin/env python3
"""What a run says, on terminals and in pipes, and what it leaves for scripts."""

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

    def test_relative_paths_are_the_callers(self):
        # As `bazel run` does: the program starts elsewhere and is told where its user is.
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


class Speech(ProgramTest):
    def test_pipe(self):
        process = self.train(*sets(SHORT, {"train.epochs": 3, "evaluate.every_epochs": 1, "train.max_steps": 0}))
        self.assert_status(0, process)
        self.assert_plain(process.out, 3)

    def assert_plain(self, text, epochs):
        self.assertNotIn("\033", text)
        self.assertNotIn("\r", text)
        lines = text.splitlines()
        for epoch in range(1, epochs + 1):
            self.assertEqual(1, sum(line.startswith(f"epoch {epoch}/{epochs}  ") and "  test  " in line for line in lines),
                             text)
        self.assertEqual(len(lines), len(set(lines)), text)

    def test_silent_when_asked(self):
        process = self.train(*sets(SHORT, {"watch.progress": "false"}))
        self.assert_status(0, process)
        self.assertEqual("", process.out)

    def on_terminal(self, columns, *settings):
        """What a terminal of so many columns gets."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.train(*settings, stdout=theirs, run=f"columns{columns}")
        os.close(theirs)
        text = b""
        end = time.monotonic() + program.DEADLINE
        while time.monotonic() < end and select.select([ours], [], [], program.DEADLINE)[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:  # nobody has the other side open any more
                break
        os.close(ours)
        self.assert_status(0, process)
        return text.decode()

    # Long enough to be drawn a few times.
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


class SpeechMpi(Speech):
    drawn = Speech.drawn + ["--set=launch.with=mpi"]

    def test_pipe(self):
        settings = sets(SHORT, {"train.epochs": 3, "evaluate.every_epochs": 1, "train.max_steps": 0})
        for name, command, more in (("launched", [program.TRAIN], ["--set=launch.with=mpi"]),
                                    ("by_hand", [*mpirun(2), program.TRAIN], [])):
            with self.subTest(name):
                process = self.train(*settings, *more, command=command, run=name)
                self.assert_status(0, process)
                self.assert_plain(process.out, 3)

    def test_silent_when_asked(self):
        pass


if __name__ == "__main__":
    program.main()
