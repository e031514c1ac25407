#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the tree follows the architecture, and that the check notices violations."""

import ast
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # writes no cache next to the sources, where these files really are
import layering

# The real sources rather than the runfiles, which have only the files that a target names.
ROOT = pathlib.Path("WORKSPACE").resolve().parent


class Repository(unittest.TestCase):
    def test_keeps_to_the_layers(self):
        self.assertEqual("", "\n".join(layering.check(ROOT)))

    def test_picture_says_the_same(self):
        picture = re.search(r"```mermaid\nflowchart TD\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.S)[1]
        label_of = dict(re.findall(r'(\w+)\["([^"]+)"\]', picture))
        drawn = {layer: [] for layer in layering.BELOW}
        for line in re.sub(r'\["[^"]+"\]', "", picture).splitlines():
            above, arrow, below = line.strip().partition(" --> ")
            if arrow:
                drawn[label_of.get(above, above)] += [label_of.get(name, name) for name in below.split(" & ")]
        self.assertEqual(layering.BELOW, drawn)

    def test_package_groups_say_the_same(self):
        groups = {}
        for node in ast.walk(ast.parse((ROOT / "BUILD.bazel").read_text())):
            if isinstance(node, ast.Call) and node.func.id == "package_group":
                arguments = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
                groups[arguments["name"]] = arguments

        def seen_by(group):
            packages = {package[2:].replace("/...", "") for package in groups[group].get("packages", [])}
            return packages.union(*(seen_by(include[1:]) for include in groups[group].get("includes", [])))

        for layer in layering.BELOW:
            if layer not in ("tests", "third_party"):
                users = {user for user in layering.BELOW if layer in layering.allowed(user, layer == layering.FOR_TESTS)}
                self.assertEqual(users - {"third_party"}, seen_by(layer.split("/")[-1]), layer)


class Check(unittest.TestCase):
    def errors(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return layering.check(pathlib.Path(folder))

    def assert_reports(self, files, *parts):
        errors = self.errors(files)
        self.assertEqual(1, len(errors), errors)
        for part in parts:
            self.assertIn(part, errors[0])

    def test_reports_an_include_upward(self):
        self.assert_reports({"framework/comm/work.h": '#pragma once\n#include "engine/engine.h"\n'},
                            "framework/comm/work.h:2: framework/comm includes engine/engine.h, which belongs to engine",
                            "allowed: framework/base, framework/comm, third_party")

    def test_reports_an_include_of_a_sibling(self):
        self.assert_reports({"models/mlp.cc": "#  include <datasets/mnist.h>\n"}, "models/mlp.cc:1:", "datasets")

    def test_reports_an_include_by_a_relative_path(self):
        self.assert_reports({"framework/base/log.cc": '#include "../comm/work.h"\n', "framework/comm/work.h": ""},
                            "framework/base/log.cc:1:", "framework/comm")

    def test_reports_a_dependency_upward(self):
        build = 'cc_library(\n    name = "work",\n    deps = [\n        "//models:mlp",\n    ] + select({}),\n)\n'
        self.assert_reports({"framework/comm/BUILD.bazel": build},
                            "framework/comm/BUILD.bazel:4: framework/comm depends on //models:mlp, which belongs to")

    def test_reports_a_repository_named_directly(self):
        build = 'cc_library(name = "log", deps = ["@glog"])'
        self.assert_reports({"framework/base/BUILD.bazel": build}, "framework/base/BUILD.bazel:1:", "//third_party")

    def test_reports_a_backend_named_by_the_engine(self):
        self.assert_reports({"engine/engine_test.cc": '#include "framework/backends/shm/shm.h"\n'}, "framework/backends")

    def test_reports_test_code_in_a_program(self):
        self.assert_reports({"engine/engine.cc": '#include "framework/testing/ranks.h"\n'}, "framework/testing")

    def test_reports_a_folder_without_a_layer(self):
        self.assert_reports({"framework/new/new.h": '#include "framework/base/log.h"\n'}, "not in any layer")

    def test_accepts_what_is_below(self):
        build = 'cc_library(name = "ranks", testonly = True, hdrs = ["ranks.h"], deps = ["//framework/testing"])'
        self.assertEqual([], self.errors({
            "tools/train.cc": '#include <vector>\n#include "engine/engine.h"\n#include "framework/backends/all.h"\n',
            "framework/comm/mesh_test.cc": '#include "framework/testing/ranks.h"\n#include "framework/comm/mesh.h"\n',
            "framework/observe/ranks.h": '#include "framework/testing/ranks.h"\n',
            "framework/observe/BUILD.bazel": build,
        }))


if __name__ == "__main__":
    unittest.main()
