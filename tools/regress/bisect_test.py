#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests regress bisect in a small git repository whose "train" is a script."""

import os
import subprocess

import program
from program import ROOT, ProgramTest

REGRESS = str(ROOT / "tools/regress/regress")
USAGE = 2

# Writes the throughput that the file `speed` has.
TRAIN = """#!/bin/sh
for word; do case $word in --run_dir=*) folder=${word#--run_dir=};; esac; done
here=$(dirname "$0")
[ -f "$here/broken" ] && { echo "no such model" >&2; exit 1; }
echo "{\\"throughput\\": $(cat "$here/speed"), \\"expectations\\": []}" > "$folder/summary.json"
"""


class Bisect(ProgramTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        self.git("init", "--quiet")
        self.config = self.folder / "any.yaml"
        self.config.touch()

    def git(self, *words):
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return subprocess.run(["git", *words], cwd=self.repository, env={**os.environ, **names}, check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self, subject, speed, broken=False):
        (self.repository / "train").write_text(TRAIN)
        (self.repository / "train").chmod(0o755)
        (self.repository / "speed").write_text(f"{speed}\n")
        (self.repository / "broken").unlink(missing_ok=True)
        if broken:
            (self.repository / "broken").touch()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def bisect(self, good, *words, status=0):
        process = self.start("bisect", self.config, "--good", good, "--build", "true", "--clean", "true",
                             "--program", "train", "--rounds", "3", "--out", self.folder / "out", *words,
                             command=(REGRESS,), cwd=self.repository)
        self.assert_status(status, process)
        return process

    def test_names_the_first_bad_commit(self):
        good = self.commit("begin", 1000)
        self.commit("tidy", 1004)
        self.commit("copy each bucket twice", 930)
        bad = self.git("rev-parse", "HEAD")
        self.commit("more", 935)
        self.commit("end", 931)
        process = self.bisect(good, "--metric", "throughput")
        self.assertIn(f"first bad commit: {bad} copy each bucket twice\n", process.out)
        self.assertIn("4 commits, about 2 steps", process.out)
        self.assertEqual(1, len(self.git("worktree", "list").splitlines()), "worktrees are removed")

    def test_goes_around_commits_that_cannot_be_measured(self):
        good = self.commit("begin", 1000)
        self.commit("breaks", 1000, broken=True)
        self.commit("slower", 900)
        self.commit("end", 900)
        process = self.bisect(good)
        self.assertIn("unknown", process.out)
        self.assertIn("slower, or one of the 1 before it, which could not be judged", process.out)

    def test_refuses_commits_without_a_difference(self):
        good = self.commit("begin", 1000)
        self.commit("end", 1001)
        self.assertIn("throughput does not differ enough", self.bisect(good, status=1).err)

    def test_refuses_commits_that_are_not_there_or_not_in_order(self):
        good = self.commit("begin", 1000)
        bad = self.commit("end", 900)
        self.assertIn("--good v9: there is no such commit", self.bisect("v9", status=USAGE).err)
        self.assertIn("is not an ancestor", self.bisect(bad, "--bad", good, status=USAGE).err)


if __name__ == "__main__":
    program.main()
