#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command regress: planted suites, its files, and what it does when it is killed, interrupted or refused."""

import json
import os
import pathlib
import re
import signal
import sqlite3
import xml.etree.ElementTree as xml

import program
from program import ROOT, SHORT, ProgramTest, RunFolder, becomes_true, processes

REGRESS = str(ROOT / "tools/regress/regress")
FAILED, USAGE, INTERRUPTED = 1, 2, 130

SHORT_RUN = {**SHORT, "expect": {}}
UNREACHABLE = {**SHORT_RUN, "expect": {"test": {"accuracy": {"min": 0.999}}}}
ENDLESS_RUN = {**SHORT_RUN, "train.max_steps": 0, "train.epochs": 1000000}


def entry(label, settings=SHORT_RUN, **more):
    """Returns an entry of a suite that runs the quickstart; its case is called quickstart-LABEL."""
    return {"configs": ["quickstart.yaml"], "label": label, "set": settings, **more}


class RegressTest(ProgramTest):
    def write_suite(self, *cases, name="mine", **keys):
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps({"root": str(ROOT / "configs"), "cases": cases, **keys}))
        return path

    def regress(self, suite, *words, out="out"):
        return self.start("--suite", suite, "--out", self.folder / out, *words, command=(REGRESS,))

    def finish(self, suite, *words, status=0, out="out"):
        process = self.regress(suite, *words, out=out)
        self.assert_status(status, process)
        return process

    def query(self, sql, *values, out="out"):
        """Returns the rows of a query; none while there is no database yet."""
        path = self.folder / out / "results.sqlite"
        if not path.exists():
            return []
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError:  # the tables are being made
            return []
        finally:
            connection.close()

    def states(self, out="out"):
        return dict(self.query("SELECT name, state FROM cases ORDER BY id", out=out))

    def reason(self, case):
        return self.query("SELECT reason FROM cases WHERE name = ? ORDER BY id DESC", case)[0][0]

    def runs_of(self, case):
        return self.query("SELECT r.attempt, r.role, r.exit_status, r.folder FROM runs r "
                          "JOIN cases c ON c.id = r.case_id WHERE c.name = ? ORDER BY r.id", case)

    def wait_for_run(self, case, process):
        """Waits until a run of the case trains, and returns its folder."""
        becomes_true(lambda: self.runs_of(case) or not process.running)
        self.assertTrue(self.runs_of(case), process.text())
        run = RunFolder(self.folder / "out" / self.runs_of(case)[-1][3])
        self.wait_for_training(run, process)
        return run

    def check_junit(self, path):
        """Checks a file against the rules of the common schema of JUnit XML. Returns its test cases by name."""
        suites = xml.parse(path).getroot()
        self.assertEqual("testsuites", suites.tag)
        self.assertLessEqual(set(suites.attrib), {"name", "time", "tests", "failures", "disabled", "errors"})
        cases = {}
        for suite in suites:
            self.assertEqual("testsuite", suite.tag)
            self.assertLessEqual({"name", "tests"}, set(suite.attrib))
            self.assertRegex(suite.get("timestamp"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
            self.assertEqual(["properties"], [child.tag for child in suite if child.tag != "testcase"])
            self.assertEqual("properties", suite[0].tag)
            for one in suite.findall("testcase"):
                self.assertLessEqual({"name", "classname"}, set(one.attrib))
                float(one.get("time"))
                tags = [child.tag for child in one]
                order = ["skipped", "error", "failure", "system-out", "system-err"]
                self.assertEqual(sorted(tags, key=order.index), tags)
                self.assertEqual(len(set(tags)), len(tags))
                cases[one.get("name")] = one
            for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                self.assertEqual(len(suite.findall(f"testcase/{tag}")), int(suite.get(attribute)))
            self.assertEqual(len(suite.findall("testcase")), int(suite.get("tests")))
        return cases


class Results(RegressTest):
    def test_a_suite_leaves_its_results(self):
        suite = self.write_suite(entry("a", matrix={"ranks": [1, 2]}))
        process = self.finish(suite, "--notify", f"cat > {self.folder}/note.json")
        self.assertRegex(process.out, r"\[2/2\] passed +quickstart-a-ranks=\d  \d+\.\d s\n")
        self.assertIn("2 cases: 2 passed\n", process.out)
        self.assertEqual({"quickstart-a-ranks=1": "passed", "quickstart-a-ranks=2": "passed"}, self.states())
        for name in ("results.sqlite", "junit.xml", "summary.json", "report/index.html"):
            self.assertTrue((self.folder / "out" / name).is_file(), name)
        note = json.loads((self.folder / "note.json").read_text())
        self.assertEqual(("mine", "passed", 2), (note["suite"], note["status"], note["counts"]["passed"]))
        self.assertEqual(set(self.states()), set(self.check_junit(self.folder / "out/junit.xml")))
        self.assertEqual([(2,)], self.query("SELECT count(*) FROM metrics WHERE split = 'run' AND name = 'throughput'"))
        self.assertFalse(list((self.folder / "out/runs").rglob("weights.safetensors")), "kept only with --keep")
        self.assert_nothing_left()

    def test_a_failed_expectation_is_named_and_not_repeated(self):
        suite = self.write_suite(entry("bad", UNREACHABLE), entry("good"))
        process = self.finish(suite, status=FAILED)
        self.assertEqual({"quickstart-bad": "failed", "quickstart-good": "passed"}, self.states())
        self.assertRegex(self.reason("quickstart-bad"), r"^test\.accuracy\.min: wanted >= 0\.999, got 0\.\d+$")
        self.assertIn("FAILED      quickstart-bad", process.out)
        self.assertEqual([(1, "main", 4)], [run[:3] for run in self.runs_of("quickstart-bad")])
        failure = self.check_junit(self.folder / "out/junit.xml")["quickstart-bad"]
        self.assertIn("wanted >= 0.999", failure.find("failure").get("message"))
        self.assertIn("accuracy", failure.find("system-err").text)
        self.assertEqual("failed", json.loads((self.folder / "out/summary.json").read_text())["status"])

    def test_a_rank_that_is_killed_fails_its_case(self):
        process = self.regress(self.write_suite(entry("a", ENDLESS_RUN)))
        run = self.wait_for_run("quickstart-a", process)
        os.kill(self.rank_process(run, 1), signal.SIGKILL)
        self.assert_status(FAILED, process)
        self.assertIn("status 3: It was killed by signal 9", self.reason("quickstart-a"))
        self.assertEqual(1, len(self.runs_of("quickstart-a")))
        self.assert_nothing_left()

    def test_a_launcher_that_is_killed_from_outside_is_started_again(self):
        long_run = {**SHORT_RUN, "train.max_steps": 3000, "train.epochs": 1000}
        process = self.regress(self.write_suite(entry("a", long_run)))
        self.wait_for_run("quickstart-a", process)
        launcher = next(pid for pid in processes(self.mark) if self.parent(pid) == process.pid and not self.tidies(pid))
        os.kill(launcher, signal.SIGKILL)
        self.assert_status(0, process)
        self.assertEqual([1, 2], [run[0] for run in self.runs_of("quickstart-a")])
        self.assertEqual({"quickstart-a": "passed"}, self.states())

    def parent(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return 0

    def tidies(self, pid):
        """Returns true for the process that removes the temporary folder of another one."""
        return pathlib.Path(f"/proc/{pid}/comm").read_text() == "phalanx-tidy\n"

    def test_a_run_ends_at_its_time_limit(self):
        process = self.finish(self.write_suite(entry("a", ENDLESS_RUN, time_limit=6)), status=FAILED)
        self.assertIn("had not ended after 6 s", self.reason("quickstart-a"), process.text())
        self.assert_nothing_left()

    def test_a_run_is_compared_with_another_and_resumed(self):
        related = {"same_as": {"config": "quickstart.yaml", "tolerance": 1e-3}, "resume_at": 0.5}
        settings = {**SHORT_RUN, "train.max_steps": 40, "train.epochs": 10, "expect": related}
        self.finish(self.write_suite(entry("a", {**settings, "strategy": "sharded"})))
        self.assertEqual(["main", "reference", "first_half", "resumed"],
                         [run[1] for run in self.runs_of("quickstart-a")])
        self.assertEqual([("same_as", 1), ("resume_at", 1)],
                         self.query("SELECT key, met FROM expectations ORDER BY run_id"))

    def test_another_seed_is_not_the_same(self):
        settings = {**SHORT_RUN, "expect": {"same_as": {"config": str(self.other_seed())}}}
        self.finish(self.write_suite(entry("a", settings)), status=FAILED)
        self.assertRegex(self.reason("quickstart-a"), r"^same_as: wanted losses within 1e-05 .* at step \d+: ")

    def other_seed(self):
        path = self.folder / "other.yaml"
        path.write_text((ROOT / "configs/quickstart.yaml").read_text() + "seed: 99\n")
        return path

    def test_quarantine_accepts_failures_until_its_end(self):
        suite = self.write_suite(entry("a", UNREACHABLE))
        flaky = {"cases": "quickstart-*", "reason": "planted"}
        quarantine = self.folder / "quarantine.yaml"
        quarantine.write_text(json.dumps({"quarantine": [{**flaky, "until": "2999-12-31"}]}))
        self.finish(suite)
        self.assertEqual({"quickstart-a": "quarantined"}, self.states())
        quarantine.write_text(json.dumps({"quarantine": [{**flaky, "until": "2020-12-31"}]}))
        process = self.finish(suite, status=USAGE, out="later")
        self.assertIn("the quarantine of quickstart-* ended on 2020-12-31", process.err)
        self.assertFalse((self.folder / "later").exists())


class Ends(RegressTest):
    def test_killed_it_leaves_nothing_running_and_goes_on_without_repeating(self):
        suite = self.write_suite(entry("a", alone=True), entry("b", ENDLESS_RUN, alone=True), entry("c", alone=True))
        process = self.regress(suite)
        self.wait_for_run("quickstart-b", process)
        process.kill(signal.SIGKILL)
        process.wait()
        self.assertTrue(becomes_true(lambda: not processes(self.mark), 10), self._describe_processes())
        self.assertEqual("running", self.states()["quickstart-b"])
        # The same cases, but b now ends.
        self.write_suite(entry("a", alone=True), entry("b", alone=True), entry("c", alone=True))
        process = self.finish(suite)
        self.assertIn("Goes on with session 1, in which 1 of 3 cases have ended", process.out)
        self.assertEqual({"quickstart-a", "quickstart-b", "quickstart-c"}, set(self.states()))
        self.assertEqual({"passed"}, set(self.states().values()))
        self.assertEqual([1], [run[0] for run in self.runs_of("quickstart-a")])
        self.assertEqual([1, 2], [run[0] for run in self.runs_of("quickstart-b")])
        self.assertEqual([(1,)], self.query("SELECT count(*) FROM sessions"))
        self.assert_nothing_left()

    def test_interrupted_it_stops_its_runs_and_can_go_on(self):
        suite = self.write_suite(entry("a", ENDLESS_RUN))
        process = self.regress(suite)
        self.wait_for_run("quickstart-a", process)
        process.kill(signal.SIGINT)
        self.assert_status(INTERRUPTED, process)
        self.assertIn("the same command goes on", process.err)
        self.assertEqual({"quickstart-a": "planned"}, self.states())
        self.assert_nothing_left()
        self.write_suite(entry("a"))
        self.finish(suite)
        self.assertEqual({"quickstart-a": "passed"}, self.states())

    def test_a_second_one_on_the_same_results_is_refused(self):
        suite = self.write_suite(entry("a", ENDLESS_RUN))
        first = self.regress(suite)
        self.wait_for_run("quickstart-a", first)
        second = self.finish(suite, status=USAGE)
        self.assertIn("results.sqlite", second.err)
        self.assertEqual(1, second.err.count("\n"), second.err)
        self.assertTrue(first.running)
        first.kill(signal.SIGTERM)
        self.assert_status(INTERRUPTED, first)

    def test_the_next_night_is_another_session(self):
        suite = self.write_suite(entry("a"))
        self.finish(suite)
        self.finish(suite)
        self.assertEqual([(2,)], self.query("SELECT count(*) FROM sessions WHERE finished_at IS NOT NULL"))


class Planning(RegressTest):
    def dry_run(self, suite, *words):
        process = self.start("--suite", suite, "--dry_run", *words, command=(REGRESS,))
        self.assert_status(0, process)
        return process.out.splitlines()

    def test_dry_run_prints_the_cases(self):
        matrix = {"strategies": ["single", "all_reduce"], "ranks": [1, 2]}
        suite = self.write_suite(entry("a", matrix=matrix, refused="skip"))
        lines = self.dry_run(suite)
        self.assertEqual("quickstart-a-ranks=1-strategy=all_reduce  1 rank", lines[1])
        self.assertTrue(lines[2].startswith("quickstart-a-ranks=2-strategy=single  skipped: "), lines)
        self.assertEqual("4 cases, 1 of them skipped", lines[-1])

    def test_shards_have_each_case_once(self):
        suite = self.write_suite(entry("a", matrix={"seeds": [1, 2, 3, 4, 5]}))
        shards = [self.dry_run(suite, f"--shard={number}/2")[:-1] for number in (1, 2)]
        self.assertEqual([3, 2], [len(shard) for shard in shards])
        self.assertEqual(sorted(self.dry_run(suite)[:-1]), sorted(shards[0] + shards[1]))

    def test_patterns_select_cases(self):
        suite = self.write_suite(entry("a", matrix={"seeds": [1, 2]}), entry("b"))
        lines = self.dry_run(suite, "--cases=*seed=2", "--cases=*-b")
        self.assertEqual(["quickstart-a-seed=2", "quickstart-b"], [line.split("  ")[0] for line in lines[:-1]])
        self.assert_refused(suite, "--cases=*-c", message="--cases *-c: no case has such a name; --dry_run prints all names")

    def assert_refused(self, suite, *words, message):
        process = self.finish(suite, *words, status=USAGE)
        self.assertIn(message, process.err)
        self.assertEqual(1, process.err.count("\n"), process.err)
        self.assertFalse((self.folder / "out/runs").exists())

    def test_a_wrong_suite_is_one_error(self):
        for cases, message in (
                ([{"configs": ["quickstrat.yaml"]}], 'there is no config'),
                ([entry("a", matrix={"optimizer.lrr": [1, 2]})],
                 "cases[0].matrix.optimizer.lrr: no config of this entry has this key"),
                ([entry("a", matrix={"ranks": []})], "expected a list of values"),
                ([entry("a"), entry("a")], "two cases are called quickstart-a")):
            with self.subTest(message):
                suite = self.write_suite(*cases)
                self.assert_refused(suite, message=message)
                self.assertTrue(re.match(re.escape(str(suite)), self._last_error), self._last_error)

    @property
    def _last_error(self):
        return (self.folder / f"process{self._count}/stderr").read_text()

    def test_a_wrong_command_line_is_one_error(self):
        suite = self.write_suite(entry("a"))
        for words, message in ((("--on", "mars"), 'unknown place "mars"'), (("--shard=3/2",), "expected I/N"),
                               (("--on", "hosts:a,a"), "a is named twice")):
            with self.subTest(words):
                self.assert_refused(suite, *words, message=message)
        self.assert_refused(self.folder / "none.yaml", message="none.yaml")

    def test_a_host_that_does_not_answer_is_refused(self):
        agent = self.folder / "agent"
        agent.write_text("#!/bin/sh\necho no route to \"$1\" >&2\nexit 255\n")
        agent.chmod(0o755)
        process = self.start("--suite", self.write_suite(entry("a")), "--out", self.folder / "out",
                             "--on", "hosts:far", command=(REGRESS,),
                             environment={"PRTE_MCA_plm_ssh_agent": str(agent)})
        self.assert_status(USAGE, process)
        self.assertIn("far does not answer: no route to far", process.err)
        self.assertFalse((self.folder / "out/runs").exists())

    def test_a_database_of_a_newer_schema_is_refused(self):
        (self.folder / "out").mkdir()
        connection = sqlite3.connect(self.folder / "out/results.sqlite")
        connection.execute("PRAGMA user_version = 1000")
        connection.commit()
        connection.close()
        self.assert_refused(self.write_suite(entry("a")), message="results.sqlite")


if __name__ == "__main__":
    program.main()
