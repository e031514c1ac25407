#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that bazelw installs nothing if nothing is missing and reports what it cannot install, and that .ci/run counts
correctly."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent


def configured(label):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": "SMALL"}}


def completed(label, success):
    return {"id": {"targetCompleted": {"label": label}}, "completed": {"success": True} if success else {}}


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def result(self, label, **files):
        """Returns the event of a test or shard that wrote `files`, which are named with _ in place of the dot."""
        outputs = []
        for name, text in files.items():
            path = self.folder / str(len(list(self.folder.iterdir())))
            path.write_text(text)
            outputs.append({"name": name.replace("_", "."), "uri": path.as_uri()})
        return {"id": {"testResult": {"label": label}}, "testResult": {"testActionOutput": outputs}}

    def count(self, *events, log=""):
        """Returns the exit status, and the lines that are printed."""
        path = self.folder / "events"
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        (self.folder / "log").write_text(log)
        done = subprocess.run(["python3", ROOT / ".ci/count.py", path, self.folder / "log"], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    def ends(self, *events):
        status, lines = self.count(*events)
        return status, lines[-1]

    def test_all_pass(self):
        self.assertEqual((0, "2 passed, 0 failed"), self.ends(summary("//a", "PASSED"), summary("//b", "PASSED")))

    def test_one_fails(self):
        self.assertEqual((1, "1 passed, 1 failed"), self.ends(summary("//a", "PASSED"), summary("//b", "FAILED")))

    def test_one_is_not_built(self):
        events = [configured("//a"), completed("//a", False), summary("//b", "PASSED")]
        self.assertEqual((1, "1 passed, 1 failed"), self.ends(*events))

    def test_none_ran(self):
        self.assertEqual((1, "0 passed, 0 failed"), self.ends())

    def test_cases_of_googletest_are_counted_and_skipped_ones_named(self):
        xml = """<testsuites><testsuite name="A">
            <testcase name="Runs" status="run" result="completed" classname="A"/>
            <testcase name="IsOfAnotherShard" status="notrun" result="suppressed" classname="A"/>
            <testcase name="Skips" status="run" result="skipped" classname="A">
              <skipped message="a_test.cc:7&#x0A;needs two cores"/></testcase></testsuite></testsuites>"""
        status, lines = self.count(self.result("//a", test_log="", test_xml=xml), summary("//a", "PASSED"))
        self.assertEqual(["skipped: //a A.Skips: needs two cores", "2 cases, 1 of them skipped", "1 passed, 0 failed"],
                         lines)
        self.assertEqual(0, status)

    def test_cases_of_python_are_counted_and_skipped_ones_named(self):
        xml = '<testsuites><testsuite><testcase name="a" status="run"/></testsuite></testsuites>'
        for name in ("__main__.A", "__main__.A.test_skips"):  # the second form since Python 3.11
            log = (f"test_runs (__main__.A) ... ok\n"
                   f"test_skips ({name})\nWith a first line of its own. ... skipped 'no mount namespaces here'\n"
                   f"\nRan 2 tests in 0.1s\n")
            _, lines = self.count(self.result("//a", test_log=log, test_xml=xml), summary("//a", "PASSED"))
            self.assertEqual("skipped: //a A.test_skips: 'no mount namespaces here'", lines[0])
            self.assertEqual("2 cases, 1 of them skipped", lines[1])

    def test_a_missing_report_is_not_a_failure(self):
        gone = {"name": "test.xml", "uri": (self.folder / "gone").as_uri()}
        event = {"id": {"testResult": {"label": "//a"}}, "testResult": {"testActionOutput": [gone]}}
        self.assertEqual((0, "1 passed, 0 failed"), self.ends(event, summary("//a", "PASSED")))

    def test_a_test_with_a_truncated_report_fails_and_its_cases_are_not_counted(self):
        events = [self.result("//a", test_log="", test_xml="<testsuites><test"), summary("//a", "FAILED")]
        self.assertEqual((1, ["0 cases, 0 of them skipped", "0 passed, 1 failed"]), self.count(*events))

    def test_a_warning_in_our_code_is_a_failure_even_if_all_tests_pass(self):
        for file in ("engine/engine.cc", "./engine/engine.cc"):  # compiled alone, or in a unit with others
            self.check_warning(f"{file}:7:3: warning: unused variable 'x' [-Wunused-variable]")

    def check_warning(self, warning):
        log = f"INFO: From Compiling engine/engine.cc:\n{warning}\n    7 |   int x;\n"
        self.assertEqual((1, ["0 cases, 0 of them skipped", f"not allowed: {warning}", "1 passed, 0 failed"]),
                         self.count(summary("//a", "PASSED"), log=log))

    def test_a_warning_in_other_code_is_not_a_failure(self):
        log = "external/libtorch/include/c10/util/Half.h:7:3: warning: deprecated\nwarning: engine/engine.cc was warned of\n"
        self.assertEqual((0, ["0 cases, 0 of them skipped", "1 passed, 0 failed"]),
                         self.count(summary("//a", "PASSED"), log=log))


class Bazelw(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        for tool in ("bash", "cat", "dirname", "env", "g++", "pip3", "python3", "readlink"):
            self.provide(tool, f'exec {shutil.which(tool, path=os.defpath)} "$@"')

    def provide(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def bazelw(self, *arguments, program=ROOT / "bazelw", **environment):
        return subprocess.run(["/bin/bash", program, *arguments], capture_output=True, text=True,
                              env={"PATH": str(self.bin), "PHALANX_WITHOUT": "gloo:sentencepiece", **environment})

    def test_calls_bazel_with_its_arguments_when_all_is_there(self):
        self.provide("bazel", 'if [[ $1 == --version ]]; then echo "bazel 4.2.3"; else echo "called: $*"; fi')
        self.provide("apt-get", "echo apt-get was called >&2; exit 1")
        done = self.bazelw("test", "//...", "--jobs=2")
        self.assertEqual((0, "called: test //... --jobs=2\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_goes_on_without_what_only_tests_need(self):
        self.provide("bazel", 'if [[ $1 == --version ]]; then echo "bazel 4.2.3"; else echo "called: $*"; fi')
        for tool in ("mktemp", "tail", "rm"):
            self.provide(tool, f'exec {shutil.which(tool, path=os.defpath)} "$@"')
        self.provide("env", 'while [[ $1 == *=* ]]; do shift; done; exec "$@"')  # finds the apt-get below
        self.provide("sudo", 'exec "$@"')
        self.provide("apt-get", f'echo "$*" >>{self.bin}/calls; [[ $1 == update ]]')
        text = (ROOT / "bazelw").read_text()
        self.assertIn("bin/srun", text)
        changed = self.bin / "bazelw"
        changed.write_text(text.replace("bin/srun", "bin/not-there"))  # on every machine
        done = self.bazelw("build", "//...", program=changed)
        self.assertEqual((0, ""), (done.returncode, done.stderr), "nothing is wanted")
        done = self.bazelw("build", "//...", program=changed, PHALANX_WITH="cluster:slurm")
        self.assertEqual((0, "called: build //...\n"), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(done.stderr, "going on without .*slurm-client.*, so the tests that need them are skipped")
        self.assertNotIn("chromium", (self.bin / "calls").read_text())

    def test_bazel_7_is_told_to_read_the_workspace(self):
        self.provide("bazel", 'if [[ $1 == --version ]]; then echo "bazel 7.7.1"; else echo "called: $*"; fi')
        self.provide("apt-get", "echo apt-get was called >&2; exit 1")
        done = self.bazelw("test", "//...")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r"^called: --bazelrc=\S*/bazel/bazel7.bazelrc .*test //...\n$")
        self.assertTrue((ROOT / "bazel/bazel7.bazelrc").is_file())

    def test_an_unsupported_bazel_is_not_used(self):
        self.provide("bazel", "echo bazel 8.1.0")
        done = self.bazelw("build", "//...")
        self.assertEqual(2, done.returncode)
        self.assertIn("apt-get install bazel-bootstrap", done.stderr)

    def test_says_what_to_install_if_it_cannot_install_it(self):
        done = self.bazelw("build", "//...")
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn("this is neither Debian nor Ubuntu: nothing was installed", done.stderr)
        self.assertIn("bazel-bootstrap", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
