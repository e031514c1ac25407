#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks our C++ with clang-tidy and .clang-tidy: ./bazelw run //tests/ci:tidy [-- TARGETS], by default //...

Files are checked as they are compiled, several in one unit. Prints the findings; the exit status is 1 if there are any.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

CLANG_TIDY = pathlib.Path("../clang_tidy_wheel/bin/clang-tidy").resolve()
ROOT = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
# Options whose argument is a separate word and that clang does not get, and options that clang does not know.
WITH_ARGUMENT = {"-o", "-c", "-include", "-MF"}
UNKNOWN = re.compile(r"-fpch-deps|-MD|-fno-canonical-system-headers|-frandom-seed=.*|-W.*")


def bazel(*arguments):
    return subprocess.run([str(ROOT / "bazelw"), *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def options(arguments):
    """Returns the arguments for clang, given the arguments for GCC."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument in WITH_ARGUMENT:
            next(rest)
        elif not UNKNOWN.fullmatch(argument):
            kept.append(argument)
    return kept


def commands(graph):
    """Returns the source and the options of each compilation in the JSON output of `bazel aquery`; each source once."""
    found = {}
    for action in graph.get("actions", []):
        compiler, *arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        if source.endswith(".cc") and not source.startswith("external/"):
            found[source] = options(arguments)
    return sorted(found.items())


def findings(text):
    """Returns the warnings and errors in the output of clang-tidy, each with the lines that show its place."""
    parts = re.split(r"^(?=\S[^\n]*:\d+:\d+: (?:warning|error|note): )", text, flags=re.M)
    return [part.rstrip() for part in parts if re.match(r"\S[^\n]*: (?:warning|error): ", part)]


def check(command):
    source, given = command
    done = subprocess.run([str(CLANG_TIDY), "--quiet", source, "--", *given, "-Wno-everything"], cwd=check.folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = findings(done.stdout)
    return found if found or done.returncode == 0 else [f"{source}: clang-tidy failed:\n{done.stderr}"]


def main(targets):
    if not CLANG_TIDY.exists():
        sys.exit(f"tidy: {CLANG_TIDY} does not exist; run ./bazelw run //tests/ci:tidy")
    bazel("build", *targets)  # makes the generated files
    check.folder = bazel("info", "execution_root").strip()
    what = f'mnemonic("CppCompile", set({" ".join(targets)}))'
    all_commands = commands(json.loads(bazel("aquery", "--output=jsonproto", what)))
    if not all_commands:
        sys.exit(f"tidy: {' '.join(targets)} has nothing to check")
    found = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for of_file in pool.map(check, all_commands):
            for one in of_file:
                if one not in found:
                    print(one, flush=True)
                found.add(one)
    print(f"{len(all_commands)} units, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["//..."]))
