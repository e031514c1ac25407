#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the reports of the scripts that run programs on devices."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path.cwd()


def load(name):
    """Loads a script as a module."""
    path = str((ROOT / "tools/dev" / name).resolve())
    sys.path.insert(0, os.path.dirname(path))
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def running(stat):
    """Returns true if a process is still running, that is, not a zombie that waits for its parent."""
    try:
        return stat.read_text().split()[2] not in "ZX"
    except OSError:
        return False


checks, bench = load("device_checks"), load("device_bench")


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def suite(self, name, script, deadline=60):
        program = self.folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return checks.Suite(name, str(program), deadline)

    def check(self, *suites, **options):
        """Returns the exit status, the printed text, and the results."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = checks.check(suites, "abacus", json_file=self.folder / "json", **options)
        return status, printed.getvalue(), json.loads((self.folder / "json").read_text())["suites"]

    def test_all_pass(self):
        suites = [self.suite(name, 'echo "[  PASSED  ] 3 tests."') for name in ("a", "b")]
        status, printed, outcomes = self.check(*suites)
        self.assertEqual(0, status)
        self.assertIn("2 of 2 suites passed on abacus", printed)
        self.assertEqual([("a", "passed", 3), ("b", "passed", 3)],
                         [(one["suite"], one["result"], one["passed"]) for one in outcomes])

    def test_the_device_is_in_the_environment(self):
        _, _, (outcome,) = self.check(self.suite("a", "echo on $PHALANX_TEST_DEVICE"))
        self.assertEqual("on abacus\n", outcome["output"])

    def test_the_whole_output_of_a_suite_is_kept_on_request(self):
        self.check(self.suite("a", 'seq 1000; echo "[  PASSED  ] 3 tests."'), logs=self.folder / "new/logs")
        lines = (self.folder / "new/logs/a.log").read_text().splitlines()
        self.assertEqual(["1", "[  PASSED  ] 3 tests."], [lines[0], lines[-1]])

    def test_cases_that_fail_or_are_skipped_are_named(self):
        script = """cat <<END
[  FAILED  ] A.fails/1, where GetParam() = 3 (5 ms)
[  SKIPPED ] B.skips (0 ms)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] B.skips
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.fails/1, where GetParam() = 3
END
exit 1"""
        status, printed, (outcome,) = self.check(self.suite("a", script))
        self.assertEqual((1, "failed", ["A.fails/1"], ["B.skips"]),
                         (status, outcome["result"], outcome["failed"], outcome["skipped"]))
        self.assertIn("--- a failed, status 1", printed)
        self.assertIn("0 of 1 suites passed", printed)

    def test_after_a_suite_that_crashes_the_next_one_runs(self):
        status, _, outcomes = self.check(self.suite("a", "kill -SEGV $$"), self.suite("b", 'echo "[  PASSED  ] 3 tests."'))
        self.assertEqual((1, ["failed", "passed"]), (status, [one["result"] for one in outcomes]))

    def test_a_suite_without_cases_fails(self):
        status, _, (outcome,) = self.check(self.suite("a", 'echo "[  PASSED  ] 0 tests."'))
        self.assertEqual((1, "failed"), (status, outcome["result"]))

    def endless(self, **options):
        """A suite that starts a rank and writes its process id."""
        written = f"echo $! > {self.folder}/new; mv {self.folder}/new {self.folder}/rank"
        return self.suite("a", f"sleep 1000 & {written}; wait", **options)

    def assert_rank_ends(self):
        rank = pathlib.Path("/proc", (self.folder / "rank").read_text().strip(), "stat")
        end = time.monotonic() + 60
        while running(rank) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(running(rank))

    def test_a_suite_that_takes_too_long_is_ended_with_its_ranks(self):
        status, _, (outcome,) = self.check(self.endless(deadline=3))
        self.assertEqual((1, "timed out"), (status, outcome["result"]))
        self.assert_rank_ends()

    def test_a_suite_that_is_interrupted_is_ended_with_its_ranks(self):
        def interrupt():
            end = time.monotonic() + 50
            while not (self.folder / "rank").exists() and time.monotonic() < end:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            self.check(self.endless())
        thread.join()
        self.assert_rank_ends()

    def test_there_is_a_deadline_for_all_suites_together(self):
        _, _, outcomes = self.check(self.suite("a", "sleep 1000"), self.suite("b", "sleep 1000"), longest=0.5)
        self.assertEqual(["timed out", "timed out"], [one["result"] for one in outcomes])

    def test_all_suites_take_less_than_eight_minutes(self):
        self.assertLess(checks.device_programs.LONGEST_START + checks.LONGEST, 8 * 60)
        self.assertLessEqual(max(suite.deadline for suite in checks.SUITES), checks.LONGEST)

    def test_the_bundle_has_the_programs_of_all_suites(self):
        build = (ROOT / "tools/dev/bundle/BUILD.bazel").read_text()
        for suite in checks.SUITES:
            self.assertIn('"//{}:{}"'.format(*suite.program.rsplit("/", 1)), build)


class Bench(unittest.TestCase):
    def comparison(self, case, **seconds):
        """Returns a comparison after its rounds, in which steps took the given seconds."""
        comparison = bench.Comparison.__new__(bench.Comparison)
        comparison.case, comparison.runs_with = case, {"torch": "2.13.0", "device": "a fake"}
        comparison.seconds = {name.replace("_", "."): steps for name, steps in seconds.items()}
        return comparison

    def test_rates_and_ratios_are_medians_over_rounds(self):
        comparison = self.comparison(bench.LENET, Phalanx=[0.1, 0.2, 0.4], eager=[0.3, 0.5, 0.4], torch_compile=[0.1, 0.1, 0.4])
        row = comparison.row()
        self.assertAlmostEqual(2.5, row["ratio"]["eager"])  # median of 3, 2.5 and 1
        self.assertAlmostEqual(1, row["ratio"]["torch.compile"])  # median of 1, 0.5 and 1
        self.assertTrue(row["target"]["met"])
        self.assertEqual("| LeNet, MNIST, 64, samples | 320 | 160 | 640 | 2.50 | 1.00 | 1.5 x eager: met |",
                         bench.markdown([row]).splitlines()[-1])

    def test_a_target_is_missed_or_not_measured(self):
        gpt = bench.CASES[-1]
        rows = [self.comparison(gpt, Phalanx=[1.0], eager=[2.0], torch_compile=[0.9]).row(),
                self.comparison(gpt, Phalanx=[1.0], eager=[2.0]).row()]
        first, second = bench.markdown(rows).splitlines()[-2:]
        self.assertIn("16, tokens | 16,384 | 8,192 | 18,204 | 2.00 | 0.90 | 1 x torch.compile: missed |", first)
        self.assertIn("| 16,384 | 8,192 | - | 2.00 | - | 1 x torch.compile: not measured |", second)

    def test_the_gpt_has_124_million_parameters(self):
        layers, width, _ = bench.CASES[-1].sizes
        embeddings = (bench.CASES[-1].classes + bench.CASES[-1].sample[0]) * width
        self.assertEqual(124, (embeddings + layers * (12 * width * width + 13 * width) + 2 * width) // 1_000_000)

    def test_wrong_arguments_are_refused(self):
        for flag in ("--rounds=0", "--seconds=0", "--only=alexnet"):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
                sys.argv = ["device_bench", flag]
                bench.parse()
            self.assertEqual(2, ended.exception.code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
