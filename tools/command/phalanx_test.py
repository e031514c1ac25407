#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the program phalanx: its commands under all their names, its help, and completion in shells."""

import os
import re
import shutil
import subprocess
import unittest

from program import DEADLINE, QUICKSTART, ROOT, SHORT, TRAIN, ProgramTest, mpirun

PHALANX = str(ROOT / "tools/phalanx")
EVAL = str(ROOT / "tools/eval/eval")
COMMANDS = {"bench", "bench_kernels", "bench_train", "chaos", "completion", "dashboard", "data", "diff_runs", "doctor",
            "download", "eval", "generate", "history", "list", "new", "plan", "ps", "regress", "replay", "report", "sample",
            "schedule", "simulate", "top", "train", "tune", "virtual_cluster", "weights"}
SHORT_RUN = [f"{key}={value}" for key, value in SHORT.items()]


class PhalanxTest(ProgramTest):
    def phalanx(self, *words, status=0, command=(PHALANX,)):
        """Returns standard output and standard error."""
        process = self.start(*words, command=command)
        self.assert_status(status, process)
        return process.out, process.err

    def listed(self):
        """Returns {name: purpose} of the commands that --help lists."""
        return dict(re.findall(r"^  (\w+)  +(\S.*)$", self.phalanx("--help")[0].partition(":\n")[2], re.M))


class Commands(PhalanxTest):
    def test_help_lists_all_of_them(self):
        self.assertEqual(COMMANDS, set(self.listed()))
        self.assertEqual([], [line for line in self.phalanx("--help")[0].splitlines() if len(line) > 120])

    def test_each_has_help_that_begins_with_its_purpose(self):
        for name, purpose in self.listed().items():
            with self.subTest(name):
                out, err = self.phalanx(name, "--help")
                self.assertEqual("", err)
                self.assertTrue(out.startswith(f"phalanx {name}: {purpose}\n"), out)
                self.assertIn("  --help ", out)

    def test_version(self):
        self.assertRegex(self.phalanx("--version")[0], r"^phalanx version [\d.]+")
        self.assertRegex(self.phalanx("train", "--version")[0], r"^phalanx train version [\d.]+")

    def test_an_unknown_one_is_refused_with_the_nearest(self):
        self.assertEqual(("", 'unknown command "trian", did you mean phalanx train? See phalanx --help\n'),
                         self.phalanx("trian", status=2))

    def test_without_a_name_help_goes_to_standard_error(self):
        out, err = self.phalanx(status=2)
        self.assertEqual("", out)
        self.assertIn("  train ", err)

    def test_the_name_may_be_the_name_of_a_link(self):
        link = self.folder / "list"
        link.symlink_to(os.path.realpath(PHALANX))
        self.assertEqual(self.phalanx("list", "models")[0], self.phalanx("models", command=(str(link),))[0])
        self.assertRegex(self.phalanx("--version", command=(TRAIN,))[0], r"^train version [\d.]+")
        self.assertTrue(self.phalanx("--help", command=(EVAL,))[0].startswith("eval: "))
        self.assertEqual(os.path.realpath(PHALANX), os.path.realpath(EVAL), "one executable")


class Training(PhalanxTest):
    def train(self, *words, command=(PHALANX, "train")):
        self.phalanx(QUICKSTART, *SHORT_RUN, f"--run_dir={self.folder}/run", *words, command=command)
        return self.run_folder().summary

    def test_config_and_overrides_need_no_flags(self):
        printed, _ = self.phalanx("train", QUICKSTART, "optimizer.lr=0.125", "--print_config")
        self.assertIn("lr: 0.125", printed)
        self.assertEqual(printed, self.phalanx(f"--config={QUICKSTART}", "--set", "optimizer.lr=0.125", "--print_config",
                                               command=(TRAIN,))[0])

    def test_a_wrong_argument_is_named(self):
        for words, message in ((["train", QUICKSTART, "optimizer.lrr=1"], "optimizer.lrr=1"),
                               (["train", "no.yaml"], "cannot read the config: no.yaml"),
                               (["train", QUICKSTART, "other.yaml"], 'unexpected argument "other.yaml"'),
                               (["train"], "no config: phalanx train --config FILE"),
                               (["train", QUICKSTART, "--lr", "1"], "did you mean --set optimizer.lr=1?")):
            with self.subTest(words):
                self.assertIn(message, self.phalanx(*words, status=2)[1])

    def test_ranks_are_forks(self):
        self.assertEqual(2, self.train()["ranks"])

    def test_ranks_are_started_by_mpirun(self):
        """mpirun starts the executable again, as train."""
        self.assertEqual(2, self.train("launch.with=mpi")["ranks"])

    def test_a_launcher_may_start_it(self):
        self.assertEqual(2, self.train(command=(*mpirun(2), PHALANX, "train"))["ranks"])

    def test_a_launcher_may_start_a_link(self):
        self.assertEqual(2, self.train(command=(*mpirun(2), TRAIN))["ranks"])


class Completion(PhalanxTest):
    def complete(self, *words):
        """Returns what bash suggests for the last word."""
        line = " ".join(f"'{word}'" for word in words)
        script = (f'eval "$({PHALANX} completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; '
                  f'_phalanx {PHALANX}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=DEADLINE, check=True)
        self.assertEqual("", done.stderr)
        return done.stdout.split()

    def test_the_script_is_valid(self):
        for shell in ("bash", "zsh"):
            script, _ = self.phalanx("completion", shell)
            for name in COMMANDS:
                self.assertIn(name, script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=DEADLINE)
                self.assertEqual((0, ""), (done.returncode, done.stderr), shell)
        self.assertIn("name one shell", self.phalanx("completion", "fish", status=2)[1])

    def test_commands(self):
        self.assertEqual(["train"], self.complete("phalanx", "tr"))
        self.assertEqual(sorted(COMMANDS), sorted(self.complete("phalanx", "")))

    def test_flags(self):
        self.assertEqual(["--print_config"], self.complete("phalanx", "train", "--print"))
        self.assertEqual(["--predictions"], self.complete("phalanx", "eval", "--pre"))
        self.assertEqual(["--json"], self.complete("phalanx", "doctor", "--js"))

    def test_keys_after_a_config(self):
        self.assertIn("optimizer.lr=", self.complete("phalanx", "train", "a.yaml", "optimizer.l"))
        self.assertEqual([], self.complete("phalanx", "train", "optimizer.l"), "a file is expected")
        self.assertEqual([], self.complete("phalanx", "train", "a.yaml", "--run_dir", "ru"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
