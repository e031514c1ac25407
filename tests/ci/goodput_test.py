#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tools/dev/goodput kills ranks of jobs that take turns, and reports what these say. Scripts take the place of
training and of torchrun."""

import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent

# A launcher whose two ranks sleep, and which has another child, which must not be killed. It goes on without a rank that is
# killed, replaces it, or starts all of them again, as it is told, and counts what it has lost. It ends after two losses, or, if
# it is told nothing of the kind, after some time.
TRAIN = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys, time
words = sys.argv[1:]
settings = dict(word[len("--set="):].split("=", 1) for word in words if word.startswith("--set="))
run = pathlib.Path(words[words.index("--run_dir") + 1])
if settings.get("model") == "none":
    sys.exit("there is no such model")
run.mkdir()
with open("CALLS", "a") as calls:
    calls.write(json.dumps(settings) + "\\n")
(run / "logs").mkdir()
start = lambda: subprocess.Popen(["sleep", "20"], stdout=open(run / "logs/rank0.log", "a"))
ranks, lost, returned, restarts, other_child = [start(), start()], 0, 0, 0, subprocess.Popen(['sleep', '20'])
end = time.monotonic() + (20 if "launch.restarts" in settings else 0.5)
(run / "metrics.jsonl").write_text("{}\\n")
while time.monotonic() < end and lost + restarts < 2:
    time.sleep(0.01)
    for rank in [rank for rank in ranks if rank.poll() is not None]:
        assert rank.returncode == -9, rank.returncode
        ranks.remove(rank)
        if "faults.on_lost_rank" in settings and ranks:
            lost += 1
            if settings["faults.on_lost_rank"] == "replace":
                returned += 1
                ranks.append(start())
        elif "launch.restarts" in settings:
            restarts += 1
            for other in ranks:
                other.kill()
                other.wait()
            ranks = [start(), start()]
        else:
            sys.exit("rank failed")
assert other_child.poll() is None
for rank in [*ranks, other_child]:
    rank.kill()
    rank.wait()
(run / "summary.json").write_text(json.dumps({"goodput": 1 - 0.1 * lost - 0.2 * restarts, "restarts": restarts, "steps": 7,
                                              "lost_ranks": [{}] * lost, "returned_ranks": [{}] * returned}))
"""


# A Python with a torchrun that ends with its only rank, which ends by itself after a while.
TORCHRUN = """#!/usr/bin/env python3
import os, pathlib, subprocess, sys
if sys.argv[1] == "-c":
    sys.exit(0)
folder = pathlib.Path(sys.argv[-3])
rank = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(2)", "elastic_peer.py"])
(folder / "training").write_text("it trains")
if rank.wait() != 0:
    sys.exit("no restarts are left")
"""


class Goodput(unittest.TestCase):
    def measure(self, *words, python="/bin/false"):
        """Returns the ended script, the settings of the jobs that it has started, and their figures."""
        with tempfile.TemporaryDirectory() as folder:
            calls, train, figures = (pathlib.Path(folder) / name for name in ("calls", "train", "figures"))
            train.write_text(TRAIN.replace("CALLS", str(calls)))
            train.chmod(0o755)
            done = subprocess.run([ROOT / "tools/dev/goodput", f"--train={train}", f"--python={python}", f"--json={figures}",
                                   *words], capture_output=True, text=True, check=False)
            lines = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
            return done, lines, json.loads(figures.read_text()) if figures.exists() else {}

    def test_ranks_are_killed_and_jobs_take_turns(self):
        done, calls, figures = self.measure("--every=0.6", "--rounds=2", "--steps=7", "--set=model=mlp")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({"undisturbed": [0, 0], "replace": [2, 2], "shrink": [2, 2], "restart": [2, 2]},
                         {name: [job["failures"] for job in jobs] for name, jobs in figures.items()})
        self.assertEqual([(2, 2, 0)] * 2,
                         [(job["lost_ranks"], job["returned_ranks"], job["restarts"]) for job in figures["replace"]])
        # One of the two ranks may be lost. When the other one is lost as well, the job is started again.
        self.assertEqual([(1, 1)] * 2, [(job["lost_ranks"], job["restarts"]) for job in figures["shrink"]])
        self.assertEqual([(0, 2)] * 2, [(job["lost_ranks"], job["restarts"]) for job in figures["restart"]])
        order = [call.get("faults.on_lost_rank", "restart" if "launch.restarts" in call else "none") for call in calls]
        self.assertEqual(["none", "replace", "shrink", "restart", "replace", "shrink", "restart", "none"], order)
        self.assertEqual({("mlp", "7", "500")},
                         {(call["model"], call["train.max_steps"], call["checkpoint.every_steps"]) for call in calls})
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "|" in line]
        self.assertIn("a failure every 0.6 s", rows[0][0])
        self.assertEqual([["undisturbed", "0", "100.0 %"], ["replace", "2", "80.0 %"], ["shrink", "2", "70.0 %"],
                          ["restart", "2", "60.0 %"]], [[row[0], row[2], row[3]] for row in rows[2:]])
        self.assertRegex(rows[3][4], r"^\d+\.\d %$")
        self.assertIn("torchrun is not measured: /bin/false has no PyTorch", done.stdout)

    def test_torchrun_that_does_not_survive_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "python"
            python.write_text(TORCHRUN)
            python.chmod(0o755)
            done, _, figures = self.measure("--every=0.6", "--rounds=1", "--steps=7", python=python)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIsNone(figures["torchrun"][0]["seconds"])
        self.assertEqual(1, figures["torchrun"][0]["failures"])
        self.assertRegex(done.stdout, r"\| torchrun, undisturbed \| \d+\.\d \| 0 \|  \|  \|\n\| torchrun \|  \| 1 \|  \|  \|\n")
        self.assertIn("torchrun: 1 of 1 jobs did not complete. ", done.stdout)
        self.assertIn("failed with status 1, after 1 failures: no restarts are left", done.stdout)

    def test_a_job_that_fails_or_hangs_ends_the_measurement(self):
        done, _, _ = self.measure("--set=model=none")
        self.assertEqual(1, done.returncode)
        self.assertIn("failed with status 1, after 0 failures: there is no such model", done.stderr)
        done, _, _ = self.measure("--limit=0.2")
        self.assertEqual(1, done.returncode)
        self.assertIn("hung for 0.2 s", done.stderr)
        self.assertIn("two ranks or more", self.measure("--ranks=1")[0].stderr)
        self.assertIn("run ./bazelw build //tools:train", self.measure("--train=/no/such/program")[0].stderr)


if __name__ == "__main__":
    unittest.main()
