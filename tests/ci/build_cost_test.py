#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tools/dev/build_cost adds up Bazel's profile, and starts with empty caches if it measures a build itself."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent


def action(name, seconds, target, thread=1, at=0.0):
    return {"cat": "action processing", "name": name, "ts": at * 1e6, "dur": seconds * 1e6, "tid": thread,
            "args": {"target": target}}


PROFILE = [
    {"cat": "general information", "name": "not an action", "ts": 0, "dur": 9e9, "tid": 1},
    action("Compiling engine/engine.cc", 4, "//engine:engine"),
    action("Compiling engine/event.cc", 2, "//engine:event"),
    action("Precompiling the headers of //bazel:tensor", 8, "//bazel:tensor"),
    action("Linking engine/engine_test", 0.5, "//engine:engine_test"),
    action("Linking engine/libevent.a", 0.25, "//engine:event"),
    # It waited for a core for three of its ten seconds.
    action("Testing //datasets:datasets_test", 10, "//datasets:datasets_test", thread=2, at=50),
    {"cat": "action lock", "name": "acquiring resources", "ts": 51e6, "dur": 3e6, "tid": 2},
    {"cat": "action resource lock", "name": "Linking engine/x", "ts": 51e6, "dur": 1e6, "tid": 3},
]


class BuildCost(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, events):
        path = self.folder / "profile.gz"
        with gzip.open(path, "wt") as file:
            json.dump({"traceEvents": events}, file)
        return path

    def run_script(self, *arguments, script=ROOT / "tools/dev/build_cost"):
        return subprocess.run(["python3", script, *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "TMPDIR": str(self.folder)})

    def rows(self, *arguments, **more):
        """Returns the contents of the tables: {what: (actions, seconds)}."""
        done = self.run_script(*arguments, **more)
        self.assertEqual(0, done.returncode, done.stderr)
        found = {}
        for line in done.stdout.splitlines():
            words = line.rsplit(maxsplit=2)
            if len(words) == 3 and words[1].isdigit():
                found[words[0].strip()] = (int(words[1]), float(words[2]))
        return found

    def test_adds_up_seconds_by_kind_by_package_and_in_total(self):
        rows = self.rows(self.write(PROFILE))
        self.assertEqual((2, 6.0), rows["compile"])
        self.assertEqual((1, 8.0), rows["precompile headers"])
        self.assertEqual((1, 0.5), rows["link"])
        self.assertEqual((1, 0.2), rows["archive"])
        self.assertEqual((4, 6.8), rows["//engine"])
        self.assertEqual((1, 8.0), rows["//bazel"])
        self.assertEqual((6, 21.8), rows["all"])

    def test_waiting_for_a_core_is_not_counted(self):
        self.assertEqual((1, 7.0), self.rows(self.write(PROFILE))["test"])

    def test_shows_the_slowest_actions(self):
        rows = self.rows(self.write(PROFILE), "--slowest", 2)
        self.assertIn("precompile headers //bazel:tensor", rows)
        self.assertIn("test //datasets:datasets_test", rows)
        self.assertNotIn("compile engine/engine.cc", rows)

    def test_says_what_is_wrong_with_a_profile(self):
        path = self.folder / "text.gz"
        path.write_text("no profile")
        for profile, words in ((path, "not a complete Bazel profile"), (self.folder / "none.gz", "none.gz"),
                               (self.write([]), "no actions")):
            done = self.run_script(profile)
            self.assertEqual(1, done.returncode)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_requires_a_profile_or_a_command(self):
        self.assertEqual(2, self.run_script().returncode)
        self.assertEqual(2, self.run_script("--measure").returncode)

    def test_measures_with_empty_caches_and_removes_them(self):
        tree = self.folder / "tree"
        (tree / "tools/dev").mkdir(parents=True)
        shutil.copy(ROOT / "tools/dev/build_cost", tree / "tools/dev/build_cost")
        (tree / "bazelw").write_text(f"""#!/usr/bin/env bash
            echo "$@" >> {self.folder}/calls
            for word in "$@"; do [[ $word == --profile=* ]] && cp {self.write(PROFILE)} "${{word#*=}}"; done
            [[ $1 == --output_user_root=* ]] && mkdir -p "${{1#*=}}/outputs" && chmod -w "${{1#*=}}/outputs"
            exit 0""")
        (tree / "bazelw").chmod(0o755)
        rows = self.rows("--measure", "test", "--keep_going", "//engine/...", script=tree / "tools/dev/build_cost")
        self.assertEqual((6, 21.8), rows["all"])
        fetch, test, shutdown = (self.folder / "calls").read_text().splitlines()
        self.assertIn("fetch //engine/...", fetch)
        self.assertIn(" test --disk_cache= ", test)
        self.assertTrue(test.endswith("--keep_going //engine/..."), test)
        self.assertTrue(shutdown.endswith(" shutdown"))
        self.assertEqual([], list(self.folder.glob("phalanx-build-cost*")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
