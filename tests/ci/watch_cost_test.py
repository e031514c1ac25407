#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tools/dev/watch_cost compares watched and unwatched runs in turns. A script takes the place of training."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent

# Trains at 20,000 samples per second, slower by COST percent if it is watched, and notes how it was called.
TRAIN = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
settings = dict(word[len("--set="):].split("=", 1) for word in words if word.startswith("--set="))
run = pathlib.Path(words[words.index("--run_dir") + 1])
with open("CALLS", "a") as calls:
    calls.write(json.dumps(settings) + "\\n")
if settings.get("model") == "none":
    sys.exit("there is no such model")
watched = settings.get("framework.warn_after") != "0"
run.mkdir()
with open(run / "metrics.jsonl", "w") as file:
    for window in range(int(settings["train.max_steps"]) // int(settings["watch.every_steps"])):
        speed = 20000 / (1 + watched * COST / 100) if window > 0 else 1  # the first steps are slow
        for split in ("train", "test"):
            file.write(json.dumps({"split": split, "samples_per_second": speed if split == "train" else 7}) + "\\n")
"""


class WatchCost(unittest.TestCase):
    def measure(self, *words, cost=0.25, rounds=3):
        """Returns the ended script, and the settings of the runs that it has started."""
        with tempfile.TemporaryDirectory() as folder:
            calls, train = pathlib.Path(folder) / "calls", pathlib.Path(folder) / "train"
            train.write_text(TRAIN.replace("COST", str(cost)).replace("CALLS", str(calls)))
            train.chmod(0o755)
            done = subprocess.run([ROOT / "tools/dev/watch_cost", f"--rounds={rounds}", "--steps=200", f"--train={train}", *words],
                                  capture_output=True, text=True, check=False)
            lines = calls.read_text().splitlines() if calls.exists() else []
        return done, lines

    def test_a_row_for_each_system(self):
        done, calls = self.measure()
        self.assertEqual(0, done.returncode, done.stderr)
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()][2:]
        self.assertEqual([["not watched", "20000", "", ""],
                          ["watched", "19950", "+0.25", "+0.25 to +0.25"],
                          ["watched, a verdict after 2 s", "19950", "+0.25", "+0.25 to +0.25"]], rows)
        self.assertEqual(9, len(calls))

    def test_each_round_begins_with_another_system(self):
        _, calls = self.measure()
        unwatched = [number for number, call in enumerate(calls) if '"framework.warn_after": "0"' in call]
        self.assertEqual([0, 5, 7], unwatched)
        for number in unwatched:
            self.assertIn('"loader.timeout": "0"', calls[number])
            self.assertIn('"checkpoint.deadline": "0"', calls[number])

    def test_other_systems(self):
        done, calls = self.measure("--system=stop: faults.on_lost_rank=stop framework.warn_after=0",
                                   "--system=shrink: faults.on_lost_rank=shrink", "--limit=0.3")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("| stop | 20000 | | |", done.stdout)
        self.assertIn("| shrink | 19950 | +0.25 | +0.25 to +0.25 |", done.stdout)
        self.assertEqual([True, False, False, True, True, False],
                         ['"faults.on_lost_rank": "stop"' in call for call in calls])
        self.assertIn("needs two systems", self.measure("--system=stop: a=1")[0].stderr)
        self.assertIn("is not NAME: KEY=VALUE", self.measure("--system=a=1")[0].stderr)

    def test_the_limit(self):
        self.assertEqual(0, self.measure("--limit=0.5")[0].returncode)
        self.assertEqual(1, self.measure("--limit=0.5", cost=0.75)[0].returncode)

    def test_changes_of_the_config_and_their_errors(self):
        done, calls = self.measure("--set=model=none")
        self.assertEqual(1, len(calls))
        self.assertEqual(1, done.returncode)
        self.assertIn("failed with status 1: there is no such model", done.stderr)
        self.assertIn("needs a round or more", self.measure("--steps=50")[0].stderr)


if __name__ == "__main__":
    unittest.main()
