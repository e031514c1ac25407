#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that history lists nightly runs, names the commits between which a metric changed, and says who made a file."""

import csv
import io
import json
import shutil
import sqlite3
import unittest

from program import ROOT, SHORT, ProgramTest, sets

HISTORY = str(ROOT / "tools/history/history")
PLANT = str(ROOT / "tools/history/testing/plant")


class HistoryTest(ProgramTest):
    def history(self, *arguments, status=0):
        process = self.start(*arguments, command=[HISTORY])
        self.assert_status(status, process)
        return process

    def json(self, *arguments):
        return json.loads(self.history(*arguments, "--format=json").out)

    def plant(self, *arguments):
        """Makes the folder nightly with a database of 30 nights."""
        (self.folder / "nightly").mkdir()
        self.assert_status(0, self.start("nightly/results.sqlite", *arguments, command=[PLANT]))


class Runs(HistoryTest):
    def setUp(self):
        super().setUp()
        self.plant("--cases=3")

    def test_are_listed_as_a_table(self):
        lines = self.history("--database=nightly", "--nights=1").out.splitlines()
        self.assertEqual(4, len(lines))
        self.assertRegex(lines[0], r"^night +commit +suite +case .* throughput +folder$")
        self.assertRegex(lines[1], r"^2026-01-30T02:00:00Z +1000001dcccc +nightly +case_0 +2 +1 +main +1 +passed +0 +60 ")

    def test_are_the_same_in_each_format(self):
        arguments = ["runs", "--database=nightly/results.sqlite", "--nights=2", "--metric=test.accuracy", "--case=case_[01]"]
        records = self.json(*arguments)
        self.assertEqual(["case_0", "case_1"] * 2, [record["case"] for record in records])
        self.assertEqual({0.97}, {record["test.accuracy"] for record in records})
        rows = list(csv.DictReader(io.StringIO(self.history(*arguments, "--format=csv").out)))
        self.assertEqual([record["commit"] for record in records], [row["commit"] for row in rows])
        self.assertEqual("0.97", rows[0]["test.accuracy"])

    def test_are_chosen_by_suite_config_case_state_and_metric(self):
        for arguments, count in ((["--nights=0"], 90), (["--nights=5"], 15), (["--suite=weekly"], 0),
                                 (["--config=mnist_1", "--nights=5"], 5), (["--case=case_2", "--nights=0"], 30),
                                 (["--state=passed", "--nights=5"], 15), (["--state=failed"], 0),
                                 (["--metric=test.perplexity"], 0), (["--metric=throughput", "--metric=none"], 90)):
            with self.subTest(arguments):
                self.assertEqual(count, len(self.json("--database=nightly", *arguments)))
        self.assertEqual("no runs\n", self.history("--database=nightly", "--suite=weekly").out)

    def test_are_read_while_another_program_writes(self):
        with sqlite3.connect(self.folder / "nightly/results.sqlite") as writer:
            writer.execute("UPDATE cases SET state = 'failed' WHERE name = 'case_0'")
            self.assertEqual(90, len(self.json("--database=nightly", "--state=passed")))


class ChangePoints(HistoryTest):
    def test_name_the_commits(self):
        self.plant("--slower_from=20", "--slower_by=0.07")
        lines = self.history("change_points", "--database=nightly").out.splitlines()
        self.assertEqual(1, len(lines), lines)
        self.assertRegex(lines[0], r"^throughput of case_0 fell \d\.\d % between commits 10000013cccc and 10000014cccc "
                                   r"\(\d+(\.\d+)? to \d+(\.\d+)?\), since the night of 2026-01-21T02:00:00Z$")
        (found,) = self.json("change_points", "--database=nightly", "--metric=throughput")
        self.assertEqual("case_0", found["case"])
        self.assertAlmostEqual(-7, found["change_percent"], delta=1.5)
        self.assertTrue(found["before"].startswith("10000013") and found["after"].startswith("10000014"))
        self.assertIn("case,metric,change_percent", self.history("change_points", "--database=nightly", "--format=csv").out)
        for arguments in (["--case=case_1"], ["--metric=test.accuracy"], ["--nights=8"], ["--least=0.1"]):
            self.assertEqual("no change points\n", self.history("change_points", "--database=nightly", *arguments).out)


class Who(HistoryTest):
    def setUp(self):
        super().setUp()
        self.plant("--nights=1")
        self.run_path = "nightly/runs/1/case_0/1"
        (self.folder / self.run_path).parent.mkdir(parents=True)
        self.assert_status(0, self.train(*sets(SHORT, {"checkpoint.every_steps": 8}), run=self.run_path))

    def test_made_a_checkpoint(self):
        checkpoint = f"{self.run_path}/checkpoints/step-00000008"
        about = self.json("who", checkpoint)
        self.assertEqual(("checkpoint", "8", "2"), (about["kind"], about["step"], about["ranks"]))
        self.assertRegex(about["config_sha256"], r"^[0-9a-f]{64}$")
        for key in ("phalanx", "libtorch", "commit", "host", "command", "time"):
            self.assertIn(key, about)
        file = next((self.folder / checkpoint).glob("weights-*"))
        self.assertRegex(self.history("who", file).out, r"(?m)^kind +checkpoint$")
        file.write_bytes(file.read_bytes()[:-1] + b"\0\0")
        self.assertIn(file.name, self.history("who", file, status=1).err)

    def test_made_final_weights(self):
        about = self.json("who", f"{self.run_path}/weights.safetensors", "--database=nightly")
        self.assertEqual(("run", "2", "16"), (about["kind"], about["ranks"], about["steps"]))
        self.assertEqual(("case_0", "nightly", "2026-01-01T02:00:00Z", "passed"),
                         (about["case"], about["suite"], about["night"], about["state"]))

    def test_made_a_copy(self):
        shutil.copy(self.folder / self.run_path / "weights.safetensors", self.folder / "model.safetensors")
        self.assertIn("--database FOLDER compares it", self.history("who", "model.safetensors", status=1).err)
        about = self.json("who", "model.safetensors", "--database=nightly")
        self.assertTrue(about["copy_of"].endswith(f"{self.run_path}/weights.safetensors"))
        self.assertEqual("case_0", about["case"])
        (self.folder / "model.safetensors").write_bytes(b"something else")
        self.assertIn("no file under nightly has the same bytes",
                      self.history("who", "model.safetensors", "--database=nightly", status=1).err)


class Refusals(HistoryTest):
    def test_say_what_is_wrong(self):
        self.plant("--nights=1")
        (self.folder / "text.sqlite").write_text("x" * 5000)
        shutil.copy(self.folder / "nightly/results.sqlite", self.folder / "newer.sqlite")
        with sqlite3.connect(self.folder / "newer.sqlite") as newer:
            newer.execute("PRAGMA user_version = 99")
        for arguments, status, why in (
                ([], 2, "./results.sqlite: there is no such file"),
                (["--database=absent"], 2, "absent: there is no such file"),
                (["--database=text.sqlite"], 2, "text.sqlite: cannot be used as a database of nightly runs"),
                (["--database=newer.sqlite"], 2, "newer.sqlite: has schema version 99, but this program knows versions up"),
                (["what"], 2, 'unexpected "what": the questions are runs (the default), change_points or who FILE'),
                (["who"], 2, "name a file"),
                (["runs", "more"], 2, 'unexpected argument "more"'),
                (["--format=xml", "--database=nightly"], 2, "expected table, csv or json"),
                (["--state=great", "--database=nightly"], 2, '--state: "great" is not the state of a case'),
                (["--nights=-1", "--database=nightly"], 2, "--nights: must not be negative"),
                (["change_points", "--false_alarms=0", "--database=nightly"], 2, "--false_alarms: must be above 0"),
                (["change_points", "--metric=a", "--metric=b", "--database=nightly"], 2, "takes one --metric"),
                (["who", "absent"], 1, "absent: No such file or directory")):
            with self.subTest(arguments):
                self.assertIn(why, self.history(*arguments, status=status).err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
