#!/usr/bin/env python3
"""bazelw installs nothing where nothing is missing and says what is where it cannot; .ci/run's count is honest."""

import json
import os
import pathlib
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
    def count(self, *events):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("".join(json.dumps(event) + "\n" for event in events))
            file.flush()
            done = subprocess.run(["python3", ROOT / ".ci/count.py", file.name], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_all_pass(self):
        self.assertEqual((0, "2 passed, 0 failed\n"), self.count(summary("//a", "PASSED"), summary("//b", "PASSED")))

    def test_one_fails(self):
        self.assertEqual((1, "1 passed, 1 failed\n"), self.count(summary("//a", "PASSED"), summary("//b", "FAILED")))

    def test_one_is_not_built(self):
        events = [configured("//a"), completed("//a", False), summary("//b", "PASSED")]
        self.assertEqual((1, "1 passed, 1 failed\n"), self.count(*events))

    def test_none_ran(self):
        self.assertEqual((1, "0 passed, 0 failed\n"), self.count())


class Bazelw(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        for tool in ("bash", "cat", "dirname", "env", "g++", "pip3", "python3", "readlink"):
            self.provide(tool, f'PATH={os.environ["PATH"]} exec {tool} "$@"')

    def provide(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def bazelw(self, *arguments):
        return subprocess.run(["/bin/bash", ROOT / "bazelw", *arguments], capture_output=True, text=True, env={"PATH": str(self.bin)})

    def test_calls_bazel_with_its_arguments_when_all_is_there(self):
        self.provide("bazel", 'if [[ $1 == --version ]]; then echo "bazel 4.2.3"; else echo "called: $*"; fi')
        self.provide("apt-get", "echo apt-get was called >&2; exit 1")
        done = self.bazelw("test", "//...", "--jobs=2")
        self.assertEqual((0, "called: test //... --jobs=2\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_another_bazel_is_not_taken(self):
        self.provide("bazel", "echo bazel 7.1.0")
        done = self.bazelw("build", "//...")
        self.assertEqual(2, done.returncode)
        self.assertIn("apt-get install bazel-bootstrap", done.stderr)

    def test_says_what_to_install_where_it_cannot(self):
        done = self.bazelw("build", "//...")
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn("this is neither Debian nor Ubuntu: nothing was installed", done.stderr)
        self.assertIn("bazel-bootstrap", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
