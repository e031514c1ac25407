#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/security.md lists every place that opens a port, every fuzz target, and no test that does not exist."""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True  # writes no cache next to the sources, where these files really are
import documents

# The real tree rather than the runfiles.
ROOT = pathlib.Path("WORKSPACE").resolve().parent
PAGE = (ROOT / "docs/security.md").read_text()
PORTS = documents.section(ROOT, "docs/security.md", "Ports")
FILES = documents.section(ROOT, "docs/security.md", "Files")
FOLDERS = ("datasets", "engine", "examples", "framework", "launch", "models", "phalanx", "tools")

# Calls that open a port or a socket to which others may connect.
OPENS = {".cc": re.compile(r"\b(listen_at|listen_for_store|listen_at_all_addresses|MHD_start_daemon|CreateDeviceAttr|"
                           r"ncclGetUniqueId|MPI_Open_port)\(|::listen\(|<c10d::TCPStore>\("),
         ".py": re.compile(r"\.listen\(|create_server\(|socketserver|http\.server")}
# Defines some of these functions.
DEFINES = {"framework/base/sockets.cc"}
TARGET = re.compile(r'add_target\(\{"(\w+)"')


def sources(*suffixes):
    """Returns the files of programs, by path."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in suffixes and not re.search(r"_(test|benchmark)\.\w+$|/testing/", name):
                yield name, path.read_text()


def opening(text, suffix):
    """Returns the line that opens a port, or nothing."""
    return next((line for line in text.splitlines() if OPENS[suffix].search(line.split("//")[0])), None)


def targets():
    """Returns the names of all fuzz targets."""
    return {name for path in (ROOT / "tests/fuzz").glob("*.cc") for name in TARGET.findall(path.read_text())}


class Security(unittest.TestCase):
    def test_every_place_that_opens_a_port_is_listed(self):
        for name, text in sources(".cc", ".py"):
            line = opening(text, pathlib.Path(name).suffix)
            if line is not None and name not in DEFINES:
                with self.subTest(name):
                    self.assertIn(f"`{name}`", PORTS, f"docs/security.md, Ports, has no row for {line.strip()}")

    def test_every_place_that_is_listed_opens_a_port(self):
        listed = re.findall(r"^\|[^|]*\|([^|]*)\|", PORTS, re.M)
        names = {name for cell in listed for name in re.findall(r"`([\w/]+\.(?:cc|py))`", cell)}
        self.assertGreater(len(names), 5)
        for name in names:
            with self.subTest(name):
                self.assertIsNotNone(opening((ROOT / name).read_text(), pathlib.Path(name).suffix))

    def test_every_fuzz_target_is_listed_and_has_inputs(self):
        self.assertGreater(len(targets()), 20)
        for name in targets():
            with self.subTest(name):
                self.assertIn(f"`{name}`", PORTS + FILES)
                self.assertTrue(list((ROOT / "tests/fuzz/testdata" / name).glob("good*")))

    def test_every_target_is_fuzzed_at_night(self):
        suite = (ROOT / "configs/suites/fuzz.yaml").read_text()
        self.assertEqual(targets(), set(re.findall(r"tools/dev/fuzz --seconds \d+ (\w+)", suite)))

    def test_every_folder_of_inputs_has_a_target(self):
        self.assertEqual(targets(), {folder.name for folder in (ROOT / "tests/fuzz/testdata").iterdir()})

    def test_every_format_has_a_target(self):
        rows = re.findall(r"^\| (?!file \||-)([^|]*)\|[^|]*\|([^|]*)\|$", FILES, re.M)
        self.assertGreater(len(rows), 10)
        for formats, names in rows:
            with self.subTest(formats):
                listed = set(re.findall(r"`(\w+)`", names))
                self.assertTrue(listed and listed <= targets(), names)

    def test_every_test_that_is_named_exists(self):
        names = set(re.findall(r"`(?:[\w/]+/)?(\w+_test\.(?:cc|py))`", PAGE))
        self.assertGreater(len(names), 5)
        for name in names:
            with self.subTest(name):
                found = [path for folder in (*FOLDERS, "tests") for path in (ROOT / folder).rglob(name)]
                self.assertTrue(found, name)

    def test_the_policy_points_to_the_page(self):
        self.assertIn("(docs/security.md)", (ROOT / "SECURITY.md").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
