#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each regression of plants.py in a worktree, builds it, runs the nightly's cases or the fuzzer about it, and checks
that they find it and nothing else. Takes about an hour on two cores that do nothing else. Fuzzers need clang."""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from plants import FOUND_AT_ONCE, FOUND_BY_FUZZERS, FOUND_IN_HISTORY

SUITE = "configs/suites/nightly.yaml"


class Finder:
    def __init__(self, repository, out, bazelw):
        self.repository, self.out, self.bazelw = repository, out, bazelw
        self.tree = out / "tree"
        out.mkdir(parents=True, exist_ok=True)
        self.log = open(out / "log.txt", "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def call(self, *words, folder=None, check=True):
        """Returns status, output and errors of a command, which the log gets too."""
        done = subprocess.run([str(word) for word in words], cwd=folder or self.tree, capture_output=True, text=True,
                              check=False)
        self.log.write(f"$ {shlex.join(map(str, words))}\n{done.stdout}{done.stderr}[status {done.returncode}]\n")
        self.log.flush()
        if check and done.returncode != 0:
            sys.exit(f"{shlex.join(map(str, words))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done

    def git(self, *words, folder=None):
        who = ["-c", "user.name=plant", "-c", "user.email=plant@localhost"]
        return self.call("git", *who, *words, folder=folder).stdout.strip()

    def begin(self):
        """Makes the worktree, or resets the one that an earlier call has left."""
        self.head = self.git("rev-parse", "HEAD", folder=self.repository)
        if not self.tree.exists():
            self.git("worktree", "prune", folder=self.repository)
            self.git("worktree", "add", "--detach", self.tree, self.head, folder=self.repository)
        self.reset()

    def reset(self):
        self.git("checkout", "--quiet", "--force", "--detach", self.head)

    def commit(self, plant=None, subject="Change nothing"):
        """Commits a plant, or nothing. Returns the commit."""
        if plant:
            plant.apply(self.tree)
        self.git("commit", "--quiet", "--all", "--allow-empty", "--message", plant.name if plant else subject)
        return self.git("rev-parse", "HEAD")

    def build(self):
        self.call(*self.bazelw, "build", "//tools:phalanx", "//tools:train")

    def night(self, name, cases):
        """Runs the cases. Returns what ended how, by name, and the text that a person reads."""
        folder = self.out / name
        done = self.call("bazel-bin/tools/phalanx", "regress", "--suite", SUITE, "--out", folder,
                         *[f"--cases={pattern}" for pattern in cases], check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{name}: regress ended with status {done.returncode}: {done.stderr}")
        return done.stdout

    def find_at_once(self, found):
        self.reset()
        self.commit(found.plant)
        self.build()
        text = self.night(found.plant.name, found.cases)
        problems = []
        reasons = re.split(r"^\[ *\d+/\d+\] ", text, flags=re.MULTILINE)[1:]
        for part in reasons:
            state, case = part.split()[:2]
            must_fail = re.search(found.fail, case) is not None
            if must_fail != (state == "FAILED"):
                problems.append(f"{case}: {state}")
            elif must_fail and not re.search(found.expectation, part):
                problems.append(f"{case}: failed for another reason: {part}")
        failed = [part for part in reasons if part.startswith("FAILED")]
        if not failed:
            problems.append("nothing failed")
        return problems, failed[0].splitlines()[1].strip() if failed else ""

    def find_in_history(self, found):
        self.reset()
        good = self.commit()
        self.build()
        for _ in range(found.before):
            self.night(found.plant.name, found.cases)
        bad = self.commit(found.plant)
        self.build()
        for _ in range(found.after):
            self.night(found.plant.name, found.cases)
        lines = self.call("bazel-bin/tools/phalanx", "history", "change_points", "--database",
                          self.out / found.plant.name, "--nights", found.before + found.after).stdout.splitlines()
        right = [line for line in lines if re.search(found.change, line)]
        problems = [] if right else [f"no change point is {found.change}: {lines}"]
        problems += [f"another change: {line}" for line in lines if line not in right]
        problems += [f"wrong commits: {line}" for line in right if good[:12] not in line or bad[:12] not in line]
        return problems, right[0] if right else ""

    def fuzz(self, found, seconds, out, corpora):
        """Fuzzes the target. Returns whether something was found, and the line about it."""
        done = self.call("tools/dev/fuzz", found.target, "--seconds", seconds, "--out", out, "--corpora", corpora,
                         "--bazelw", shlex.join(self.bazelw), check=False)
        if done.returncode not in (0, 1) or f"{found.target}: " not in done.stdout:
            sys.exit(f"{found.plant.name}: fuzz ended with status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.returncode == 1, done.stdout.strip().splitlines()[-1]

    def find_by_fuzzer(self, found):
        out, inputs = self.out / found.plant.name, self.out / found.plant.name / "inputs"
        self.reset()
        self.commit(found.plant)
        is_found, line = self.fuzz(found, found.seconds, out, out / "corpora")
        if not is_found:
            return [f"not found in {found.seconds} s: {line}"], line
        # Without the plant, the parser must take or refuse the same input.
        shutil.rmtree(inputs, ignore_errors=True)
        shutil.copytree(out / found.target, inputs / found.target, ignore=shutil.ignore_patterns("*.txt", "*.json"))
        self.reset()
        is_found, other = self.fuzz(found, 10, out / "without", inputs)
        return ([f"also found without the plant: {other}"] if is_found else []), line

    def bisect(self, found):
        self.reset()
        good = self.commit(subject="Begin")
        self.commit(subject="Tidy")
        bad = self.commit(found.plant)
        last = self.commit(subject="More")
        done = self.call("bazel-bin/tools/phalanx", "regress", "bisect", *found.bisect, "--good", good, "--bad", last,
                         "--build", shlex.join([*self.bazelw, "build", "//tools:train"]),
                         "--clean", shlex.join([*self.bazelw, "clean", "--expunge"]),
                         "--out", self.out / "bisect", check=False)
        line = f"first bad commit: {bad} {found.plant.name}"
        return ([] if line in done.stdout else [f"expected: {line}: {done.stdout}{done.stderr}"]), line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the worktree and the results")
    parser.add_argument("--only", help="regular expression of the plants to try")
    parser.add_argument("--bazelw", default="./bazelw", help="command that starts Bazel, with its start-up flags")
    options = parser.parse_args()
    repository = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    finder = Finder(repository, options.out.absolute(), shlex.split(options.bazelw))
    finder.begin()
    tasks = [(found.plant.name, finder.find_at_once, found) for found in FOUND_AT_ONCE]
    for found in FOUND_IN_HISTORY:
        tasks.append((found.plant.name, finder.find_in_history, found))
        if found.bisect:
            tasks.append((f"{found.plant.name} (bisect)", finder.bisect, found))
    tasks += [(found.plant.name, finder.find_by_fuzzer, found) for found in FOUND_BY_FUZZERS]
    results = {}
    for name, task, found in tasks:
        if options.only and not re.search(options.only, name):
            continue
        problems, how = task(found)
        results[name] = {"problems": problems, "found": how}
        print(f"{name}: " + (f"found: {how}" if not problems else "NOT found as it should be"), flush=True)
        for problem in problems:
            print(f"    {problem}", flush=True)
    (finder.out / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    sys.exit(any(result["problems"] for result in results.values()))


if __name__ == "__main__":
    main()
