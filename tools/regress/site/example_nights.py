#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills a folder with a database and run folders of nights that could have been, for tests and pictures of their page.

  example_nights.py FOLDER [--nights 40] [--cases 24] [--light]

--light leaves out the run folders, which makes ten thousand runs a matter of seconds.
"""

import argparse
import json
import math
import pathlib
import random
import sqlite3

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA user_version = 1;
CREATE TABLE sessions(id INTEGER PRIMARY KEY, suite TEXT NOT NULL, started_at INTEGER NOT NULL, finished_at INTEGER,
  git_commit TEXT NOT NULL, git_dirty INTEGER NOT NULL, shard TEXT NOT NULL DEFAULT '1/1');
CREATE TABLE cases(id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL REFERENCES sessions, name TEXT NOT NULL,
  config TEXT NOT NULL, overrides TEXT NOT NULL, ranks INTEGER NOT NULL, hosts INTEGER NOT NULL, state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '', UNIQUE(session_id, name));
CREATE TABLE environments(id INTEGER PRIMARY KEY, hardware TEXT NOT NULL, cores INTEGER NOT NULL, hosts TEXT NOT NULL,
  versions TEXT NOT NULL, UNIQUE(hardware, cores, hosts, versions));
CREATE TABLE runs(id INTEGER PRIMARY KEY, case_id INTEGER NOT NULL REFERENCES cases, attempt INTEGER NOT NULL,
  role TEXT NOT NULL DEFAULT 'main', environment_id INTEGER REFERENCES environments, started_at INTEGER NOT NULL,
  seconds REAL, exit_status INTEGER, error TEXT NOT NULL DEFAULT '', folder TEXT NOT NULL,
  UNIQUE(case_id, attempt, role));
CREATE TABLE metrics(run_id INTEGER NOT NULL REFERENCES runs, split TEXT NOT NULL, epoch INTEGER NOT NULL,
  name TEXT NOT NULL, value REAL, PRIMARY KEY(run_id, split, epoch, name)) WITHOUT ROWID;
CREATE TABLE expectations(run_id INTEGER NOT NULL REFERENCES runs, key TEXT NOT NULL, wanted TEXT NOT NULL,
  got TEXT NOT NULL, value REAL, met INTEGER NOT NULL, PRIMARY KEY(run_id, key)) WITHOUT ROWID;
CREATE TABLE artefacts(run_id INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, path TEXT NOT NULL,
  PRIMARY KEY(run_id, name)) WITHOUT ROWID;
"""

MODELS = ["mnist_single", "mnist_ddp", "mnist_local_sgd", "mnist_sharded", "cifar10_easgd", "cifar10_servers",
          "shakespeare_gpt_tp2", "shakespeare_gpt_pp2", "criteo_tables"]
PHASES = ["data", "forward", "backward", "communication", "update", "hooks"]
FIRST_NIGHT = 1_790_000_000
DAY = 24 * 3600


class Nights:
    def __init__(self, folder, seed=1):
        self.folder, self.random = pathlib.Path(folder), random.Random(seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = sqlite3.connect(self.folder / "results.sqlite", isolation_level=None)
        self.database.executescript(SCHEMA)
        self.database.execute("BEGIN")
        self.database.execute("INSERT INTO environments VALUES(1, 'AMD EPYC 7543', 64, '[\"node0\", \"node1\"]', ?)",
                              [json.dumps({"phalanx": "0.2.0", "libtorch": "2.13.0", "mpi": "Open MPI 5.0.11",
                                           "compiler": "GCC 12.2.0", "kernel": "6.1.0"})])

    def insert(self, table, **columns):
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        return self.database.execute(f"INSERT INTO {table}({names}) VALUES({marks})", list(columns.values())).lastrowid

    def close(self):
        self.database.execute("COMMIT")
        self.database.close()

    def night(self, number, suite="nightly", finished=True):
        started = FIRST_NIGHT + number * DAY
        commit = "".join(self.random.choices("0123456789abcdef", k=40))
        ended = started + 4000 if finished else None
        return self.insert("sessions", suite=suite, started_at=started, finished_at=ended, git_commit=commit, git_dirty=0)

    def case(self, session, name, state="passed", reason="", ranks=2, hosts=1):
        config = name.split("@")[0]
        return self.insert("cases", session_id=session, name=name, config=f"configs/{config}.yaml",
                           overrides=json.dumps([f"launch.ranks={ranks}"]), ranks=ranks, hosts=hosts, state=state,
                           reason=reason)

    def run(self, case, folder, exit_status=0, error="", seconds=30.0, metrics={}, expectations=(), attempt=1):
        run = self.insert("runs", case_id=case, attempt=attempt, environment_id=1, started_at=FIRST_NIGHT, seconds=seconds,
                          exit_status=exit_status, error=error, folder=folder)
        for name, value in metrics.items():
            split, _, metric = name.partition("/")
            self.insert("metrics", run_id=run, split=split, epoch=-1, name=metric, value=value)
        for key, wanted, got, met in expectations:
            self.insert("expectations", run_id=run, key=key, wanted=wanted, got=got, met=met)
        return run

    def run_folder(self, path, name, ranks, loss, throughput, ended=True, stalled=False, learning_rate=0.02,
                   lost_at=None):
        """Writes what a run of `ranks` ranks leaves. It has lost the last one after step `lost_at`."""
        folder = self.folder / path
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(f"name: {name}\nmodel: {{name: lenet}}\ndataset: {{name: digits}}\n"
                                            f"optimizer: {{name: sgd, lr: {learning_rate}}}\nlaunch: {{ranks: {ranks}}}\n")
        lines = []
        for step in range(20, 1001, 20):
            now = loss + 2 * math.exp(-step / 200) + self.random.gauss(0, 0.02)
            times = {phase: mean * (1 + self.random.random() / 5)
                     for phase, mean in zip(PHASES, (0.1, 0.9, 1.6, 0.5, 0.2, 0.05))}
            lines.append({"step": step, "epoch": step // 200, "split": "train", "loss": now, "accuracy": 1 - now / 3,
                          "samples_per_second": throughput * (0.95 + self.random.random() / 10),
                          "seconds": step / 100, "learning_rate": learning_rate * (1 - step / 1100), "step_ms": times})
            if step % 200 == 0:
                lines.append({"step": step, "epoch": step // 200 - 1, "split": "test", "loss": now + 0.05,
                              "accuracy": 1 - now / 3, "samples_per_second": 9e4, "seconds": step / 100})
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        spread = lambda mean: {"mean_ms": mean, "least_ms": 0.9 * mean, "least_rank": 0, "most_ms": 1.3 * mean,
                               "most_rank": ranks - 1}
        if ended:
            lost = [{"rank": ranks - 1, "reason": "it was killed by signal 9 (SIGKILL)", "step": lost_at, "seconds": 0.3}]
            (folder / "summary.json").write_text(json.dumps({
                "name": name, "ranks": ranks - (lost_at is not None), "steps": 1000,
                "lost_ranks": lost if lost_at is not None else [], "train_seconds": 10.5, "samples_per_second": throughput,
                "strategy": {"name": "data_parallel"}, "step_time": {
                    "steps": 1000, "phases": {phase: spread(mean) for phase, mean in
                                              zip(PHASES, (0.1, 0.9, 1.6, 0.5, 0.2, 0.05))},
                    "own_work": spread(2.8), "whole": spread(3.35), "straggler": f"rank {ranks - 1} is the straggler: its "
                    "own work takes 44 % longer than that of rank 0"}}))
        (folder / "stdout.log").write_text("".join(f"epoch {e}/5  step {200 * e}  test  loss {loss:.4f}\n"
                                                   for e in range(1, 6)))
        if stalled:
            (folder / "stderr.log").write_text(
                "".join(f"[phalanx] line {i} of a long log\n" for i in range(60)) +
                "rank 0 has waited 20 s in all_reduce #419 of world for rank 1\n"
                "rank 0 continues after 31 s in all_reduce #419\n"
                "error: the run did not reach what its config expects:\n"
                "  test.accuracy.min: wanted >= 0.97, got 0.953 \x1b[31m<b>bold</b>\x1b[0m\n")


def fill(folder, nights=40, cases=24, light=False):
    example = Nights(folder)
    names = [f"{MODELS[i % len(MODELS)]}@r{2 ** (i // len(MODELS) % 3)}" + (f"_s{i // 27}" if i >= 27 else "")
             for i in range(cases)]
    speed = {name: 5000 * (1 + i % 7) for i, name in enumerate(names)}
    for number in range(nights):
        last = number == nights - 1
        session = example.night(number)
        for i, name in enumerate(names):
            ranks = int(name.split("@r")[1].split("_")[0])
            slow = 0.93 if "gpt_tp2" in name and number > 0.7 * nights else 1
            rate = speed[name] * slow * (1 + example.random.gauss(0, 0.008))
            in_quarantine = i == 5 and number > nights - 8
            state = "skipped" if name.startswith("criteo") else "quarantined" if in_quarantine else "passed"
            if state == "passed" and (example.random.random() < 0.02 or last and i in (1, 6)):
                state = "error" if last and i == 6 or example.random.random() < 0.3 else "failed"
            reason = {"skipped": "the data set is not on this machine", "quarantined": "flaky; until 2026-12-24",
                      "failed": "test.accuracy.min: wanted >= 0.97, got 0.953", "error": "rank 1 was killed by signal 9",
                      "passed": ""}[state]
            row = example.case(session, name, state, reason, ranks)
            if state == "skipped":
                continue
            path = f"runs/{session}/{name}/1"
            status = {"failed": 4, "error": 3}.get(state, 0)
            accuracy = 0.953 if state == "failed" else 0.985 + example.random.gauss(0, 0.002)
            metrics = {"run/throughput": rate, "run/peak_memory": 4e8 * ranks, "run/seconds": 30 / slow,
                       "run/bytes_per_step": 1.7e6, "test/accuracy": accuracy, "test/loss": 1.1 - accuracy,
                       "train/loss": 1.05 - accuracy}
            expectations = [("test.accuracy.min", ">= 0.97", f"{accuracy:.3f}", state != "failed"),
                            ("throughput.of_median", ">= 0.95", f"{slow:.2f}", True)]
            error = reason if state == "error" else ""
            if status == 3:
                metrics, expectations = {}, []
            run = example.run(row, path, status, error, 30.0 / slow, metrics, expectations)
            if not light and (last or number % 10 == 0):
                example.run_folder(path, name, ranks, 0.2, rate, ended=status != 3, stalled=status != 0,
                                   learning_rate=0.05 if last else 0.02,
                                   lost_at=400 if name == "shakespeare_gpt_tp2@r2" else None)
                example.insert("artefacts", run_id=run, name="metrics.jsonl", path=path + "/metrics.jsonl")
                example.insert("artefacts", run_id=run, name="trace.json", path=path + "/trace.json")
    smoke = example.night(nights, "smoke", finished=False)
    example.case(smoke, "quickstart", "running")
    example.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--nights", type=int, default=40)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--light", action="store_true")
    arguments = parser.parse_args()
    fill(arguments.folder, arguments.nights, arguments.cases, arguments.light)
