#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests on the real tree that the installed headers are those that the public ones include, and that versions agree."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/install"))
import headers
import install


class Headers(unittest.TestCase):
    def test_the_list_is_what_public_headers_include(self):
        found, _ = headers.closure(ROOT)
        self.assertEqual(headers.listed(ROOT), found, f"tools/install/headers.py --write writes {headers.LIST}")

    def test_they_need_only_libtorch_and_the_standard_library(self):
        """A header of another library would have to be installed on the machines of all users."""
        _, others = headers.closure(ROOT)
        for name, users in others.items():
            if name == "mpi.h":
                self.assertEqual(["phalanx/mpi.h"], users)
            elif "/" in name:
                self.assertIn(name.split("/")[0], ("ATen", "c10", "sys", "torch"), users)
            else:
                self.assertRegex(name, r"^([a-z_]+|[a-z]+\.h)$", users)

    def test_includes_are_rewritten(self):
        text = '#include <string>\n#include "framework/base/error.h"\n # include "phalanx/world.h"\n#include "mpi.h"\n'
        self.assertEqual(text.replace("framework", "phalanx/framework"), headers.rewrite(ROOT, text))


class Versions(unittest.TestCase):
    def test_are_the_same_everywhere(self):
        version = install.version_of(ROOT)
        self.assertIn(f'version = "{version}"', (ROOT / "MODULE.bazel").read_text())
        interface = re.search(r'_INTERFACE = "([\d.]+)"', (ROOT / "tools/install/BUILD.bazel").read_text())[1]
        self.assertEqual(version.rpartition(".")[0], interface)

    def test_the_module_names_every_repository(self):
        text = (ROOT / "third_party/repositories.bzl").read_text()
        declared = set(re.findall(r'\bname = "(\w+)"', text))
        declared |= {f"cuda_{part}_wheel" for part in re.findall(r'"(\w+)": _CUDA_', text)}
        listed = re.findall(r'^    "(\w+)",$', (ROOT / "MODULE.bazel").read_text(), re.M)
        self.assertEqual(sorted(declared), listed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
