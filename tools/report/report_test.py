#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that report compares runs, and that it names the problem with a folder that does not belong to a run."""

import json
import shutil
import unittest

from program import ROOT, SHORT, ProgramTest, sets

REPORT = str(ROOT / "tools/report/report")


class Report(ProgramTest):
    def report(self, *arguments, status=0):
        process = self.start(*arguments, command=[REPORT])
        self.assert_status(status, process)
        return process

    def finish(self, name, **settings):
        self.assert_status(0, self.train(*sets(SHORT, settings), run=name))
        return self.folder / name

    def test_compares_runs(self):
        self.finish("small")
        self.finish("large", **{"optimizer.lr": 0.05, "launch.ranks": 1})
        process = self.report("small", "large/", "--output=compare.html")
        for line in (r"result +small +large", r"test accuracy +\S+ % +\S+ %", r"steps +16 +16", r"ranks +2 +1",
                     r"time of a step +small +large", r"backward +\S+ .s +\S+ .s", r"launch\.ranks +2 +1",
                     r"optimizer\.lr +0\.02 +0\.05"):
            self.assertRegex(process.out, rf"(?m)^{line}$")
        self.assertNotIn("optimizer.momentum", process.out, "it has the same value in both runs")
        page = (self.folder / "compare.html").read_text()
        for word in ("small", "large", "train loss", "throughput", "optimizer.lr"):
            self.assertIn(word, page)

    def test_writes_the_page_of_a_run_again(self):
        run = self.finish("run")
        before = (run / "report.html").read_text()
        (run / "report.html").unlink()
        self.report(run)
        self.assertEqual(before, (run / "report.html").read_text())

    def test_reads_a_run_that_has_not_ended(self):
        run = self.finish("run")
        (run / "summary.json").unlink()
        with open(run / "metrics.jsonl", "a") as metrics:
            metrics.write('{"step": 20, "spl')
        self.assertIn("train loss", self.report("run").out)
        self.assertIn("has not finished", (run / "report.html").read_text())

    def test_draws_why_a_run_stands_still(self):
        rank = {"rank": 0, "host": "vm", "process": 7, "state": "runs", "taken": 100.0, "activity": "update", "activity_since": 80.0,
                "step": 3, "dataset": "digits", "blocked_in": "", "waiting_since": 80.0, "operations": [
                    {"number": 8, "sequence": 8, "group": "world", "op": "barrier", "call": "barrier", "state": "running",
                     "launched": 80.0, "started": 80.0, "finished": 0.0}]}
        picture = json.dumps({"format": 1, "sentence": "", "taken": 100.0, "folder": "", "size": 2, "ranks": [rank]})
        (self.folder / "hung/logs").mkdir(parents=True)
        (self.folder / "hung/logs/hang.json").write_text(picture)
        (self.folder / "picture.json").write_text(picture)
        sentence = "rank 0 has waited 20 s in barrier #8 of world for rank 1, which has not come: nothing is known of it"
        for argument, page in (("hung", "hung/report.html"), ("picture.json", "picture.html")):
            self.assertIn(sentence, self.report(argument).out)
            self.assertIn(sentence, (self.folder / page).read_text())
        (self.folder / "picture.json").write_text("[]")
        self.assertIn("picture.json: ", self.report("picture.json", status=1).err)

    def test_says_what_is_wrong(self):
        run = self.finish("run")
        (self.folder / "other").mkdir()
        shutil.copytree(run, self.folder / "broken")
        lines = (run / "metrics.jsonl").read_text().splitlines()
        (self.folder / "broken/metrics.jsonl").write_text("\n".join(["no metrics", *lines]) + "\n")
        for arguments, status, why in (([], 2, "no run: report RUN..."),
                                       (["absent"], 1, "absent: there is no such folder"),
                                       (["run", "other"], 1, "other: is not a run folder: it has no metrics.jsonl"),
                                       (["broken"], 1, "broken/metrics.jsonl:1: is not a line of metrics"),
                                       (["run"] * 9, 2, "at most 8 runs"),
                                       (["run", "--output=absent/page.html"], 1, "absent/page.html")):
            self.assertIn(why, self.report(*arguments, status=status).err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
