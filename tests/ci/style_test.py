#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every source file has a license and is formatted as .clang-format requires."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent
CLANG_FORMAT = pathlib.Path(sys.argv.pop(1)).resolve()

FOLDERS = ["bazel", "datasets", "engine", "examples", "framework", "launch", "models", "phalanx", "tests", "third_party",
           "tools"]
CPP = {".h", ".cc", ".cu", ".cuh"}
WITH_LICENSE = CPP | {".py", ".bzl", ".sh"}
# Shown in docs/ as code of a user.
OF_USERS = ("tests/readme/examples/", "tools/new/tiny", "tools/new/build.sh")


def sources(suffixes):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and not path.is_symlink():
                yield path


def violations(*arguments, text=None):
    """Returns the complaints of clang-format, which are empty for formatted code."""
    return subprocess.run([CLANG_FORMAT, "--dry-run", *arguments], input=text, cwd=ROOT, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


class Style(unittest.TestCase):
    def test_every_file_has_a_license(self):
        files = [path for path in sources(WITH_LICENSE)
                 if not path.relative_to(ROOT).as_posix().startswith(OF_USERS)]
        self.assertGreater(len(files), 1000)
        without = [str(path.relative_to(ROOT)) for path in files
                   if "SPDX-License-Identifier: Apache-2.0" not in path.read_text(errors="replace")[:200]]
        self.assertEqual([], without, "line 1, or the line after #!, must be SPDX-License-Identifier: Apache-2.0")

    def test_cpp_is_formatted(self):
        said = violations(*sources(CPP))
        files = sorted({line.split(":")[0] for line in said.splitlines() if "clang-format-violations" in line})
        self.assertEqual([], files, "format them: pip install clang-format==19.1.7; clang-format -i FILE...")

    def test_the_check_notices_a_file_that_is_not_formatted(self):
        said = violations(f"--assume-filename={ROOT / 'engine/engine.cc'}", text="int  x ;\n")
        self.assertIn("clang-format-violations", said)


if __name__ == "__main__":
    unittest.main()
