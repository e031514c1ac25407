# SPDX-License-Identifier: Apache-2.0
"""Measures training with two ranks, one of which is slow: always, or from time to time.

    bazel run //tools/bench/uneven -- --rounds 3

There are three ranks: two that train, and a parameter server. A rank is slowed down by stopping its process (SIGSTOP)
for all but `--speed` of every 0.3 seconds. With `--pause`, both ranks are stopped alternately instead, each for so many
steps once in 20 steps. Systems are interleaved; a round has each once. The result is the samples per second of the
second half of the steps; during the first half, shares are still being measured. The program prints a table with
medians over the rounds, and with medians of the ratios within a round to
    even     the same system without a slow rank
    ceiling  what both ranks could do together at their speeds: (2 - (1 - speed)) / 2 of `even`
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
TRAIN = pathlib.Path(os.environ.get("RUNFILES_DIR", "."), "tools/train")
PERIOD = 0.3  # seconds
DEADLINE = 300
BATCH = 256
EPOCHS = 6
SYSTEMS = {
    "all_reduce": {"strategy": "all_reduce", "roles.server": 0, "launch.ranks": 2},
    "all_reduce, shares: measured": {"strategy": "all_reduce", "roles.server": 0, "launch.ranks": 2,
                                     "loader.shares": "measured"},
    "ssp, staleness: 3": {"strategy": "{name: ssp, staleness: 3}"},
    "downpour": {"strategy": "{name: downpour, every: 1}"},
    "downpour, shares: measured": {"strategy": "{name: downpour, every: 1}", "loader.shares": "measured"},
}


def parse_options():
    parser = argparse.ArgumentParser(prog="uneven", description="training where one of two ranks is slow")
    parser.add_argument("--train", default=str(TRAIN), help="the program of //tools:train")
    parser.add_argument("--model", default="lenet", help="model, as in a config")
    parser.add_argument("--speed", default=0.1, type=float, help="speed of the slow rank, relative to the other")
    parser.add_argument("--pause", default=0, type=float, help="steps that a rank pauses once in 20, instead of --speed")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--steps", default=12, type=int, help="steps of each of the six epochs")
    parser.add_argument("--realtime", action="store_true", help="take priority over everything else on this machine")
    parser.add_argument("--systems", default=",".join(SYSTEMS).replace(", ", "; "),
                        help="systems, separated by commas; write a semicolon for a comma inside of a name")
    return parser.parse_args()


def process_of(run, rank, parent):
    """Returns the process that has the rank's log open."""
    log = os.path.realpath(run / f"logs/rank{rank}.log")
    for pid in subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True,
                              check=False).stdout.split():
        with contextlib.suppress(OSError):
            if any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == log for fd in os.listdir(f"/proc/{pid}/fd")):
                return int(pid)
    return 0


def metrics(run):
    file = run / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [line for line in lines if line["split"] == "train"]


class Slowed:
    """Ranks 0 and 1 of a run, one of which is stopped from time to time."""

    def __init__(self, run, parent, options, step_seconds):
        self.run, self.parent, self.options, self.step_seconds = run, parent, options, step_seconds
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.go)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def stop_for(self, rank, seconds):
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank, signal.SIGSTOP)
            try:
                self.over.wait(seconds)
            finally:
                os.kill(rank, signal.SIGCONT)

    def go(self):
        ranks = []
        while not self.over.wait(0.02):
            ranks = ranks if len(ranks) == 2 and all(ranks) else [process_of(self.run, rank, self.parent) for rank in (0, 1)]
            if not all(ranks) or not metrics(self.run):
                continue  # training has not begun
            if self.options.pause == 0:
                self.stop_for(ranks[1], (1 - self.options.speed) * PERIOD)
                self.over.wait(max(0, self.options.speed * PERIOD - 0.02))
                continue
            for rank in ranks:
                self.stop_for(rank, self.options.pause * self.step_seconds)
                self.over.wait(max(0, (10 - self.options.pause) * self.step_seconds))


def measure(options, system, slow, step_seconds=0.0):
    """Returns the samples per second of one run."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uneven"))
    run = folder / "run"
    settings = {"model": options.model, "dataset": f"{{name: digits, train_samples: {BATCH * options.steps}, test_samples: 100}}",
                "launch.ranks": 3, "roles.server": 1, "launch.threads": 1,
                "optimizer": "{name: sgd, lr: 0.01}", "train.global_batch_size": BATCH, "train.epochs": EPOCHS,
                "evaluate.every_epochs": 0, "watch.every_steps": options.steps, "expect": "{}", **SYSTEMS[system]}
    base = folder / "base.yaml"
    base.write_text("name: uneven\n")
    command = [options.train, "--config", str(base), "--run_dir", str(run),
               *[f"--set={key}={value}" for key, value in settings.items()]]
    try:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            with Slowed(run, process.pid, options, step_seconds) if slow else contextlib.nullcontext():
                try:
                    _, errors = process.communicate(timeout=DEADLINE)
                except subprocess.TimeoutExpired:
                    process.terminate()
                    raise SystemExit(f"uneven: {system} has not finished within {DEADLINE} s") from None
            if process.returncode != 0:
                raise SystemExit(f"uneven: {system} failed:\n{errors}")
        lines = [line for line in metrics(run) if line["step"] >= EPOCHS * options.steps / 2]
        return (lines[-1]["step"] - lines[0]["step"]) * BATCH / (lines[-1]["seconds"] - lines[0]["seconds"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    options = parse_options()
    systems = [name.strip().replace(";", ",") for name in options.systems.split(",")]
    for name in systems:
        if name not in SYSTEMS:
            raise SystemExit(f'uneven: there is no system "{name}"; known: {"; ".join(SYSTEMS)}')
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    ceiling = (1 + options.speed) / 2
    even, slowed = {name: [] for name in systems}, {name: [] for name in systems}
    for done in range(options.rounds):
        for name in systems:
            even[name].append(measure(options, name, False))
            slowed[name].append(measure(options, name, True, BATCH / even[name][-1]))
            print(f"round {done + 1}: {name}: {even[name][-1]:.0f}, slowed {slowed[name][-1]:.0f}", file=sys.stderr)
    print("| system | samples/s, even | with the slow rank | relative to even | of the ceiling |\n|---|---|---|---|---|")
    for name in systems:
        ratios = [slow / whole for slow, whole in zip(slowed[name], even[name])]
        of_ceiling = "-" if options.pause else f"{statistics.median(ratios) / ceiling:.2f}"
        print(f"| {name} | {statistics.median(even[name]):.0f} | {statistics.median(slowed[name]):.0f} | "
              f"{statistics.median(ratios):.2f} | {of_ceiling} |")


if __name__ == "__main__":
    main()
