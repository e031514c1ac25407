#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a build with --config=cuda uses the CUDA toolkit and the NCCL of LibTorch's major version of CUDA, and
that LibTorch finds them.

The rules are Starlark, which is close enough to Python to be run as such, with a stand-in for Bazel.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "third_party"


class Failed(Exception):
    """The error that fail() of a rule raises."""


def fail(text):
    raise Failed(text)


def functions_of(path):
    names = {"attr": types.SimpleNamespace(string=lambda **_: None), "repository_rule": lambda **_: None, "fail": fail,
             "Label": str}
    exec((ROOT / path).read_text(), names)  # pylint: disable=exec-used
    return names


class Context:
    """A stand-in for repository_ctx."""

    def __init__(self, environ, nvcc=None, **attributes):
        self.os = types.SimpleNamespace(environ=environ)
        self.attr = types.SimpleNamespace(**attributes)
        self.nvcc = nvcc
        self.reported = []

    def which(self, _):
        if self.nvcc is None:
            return None
        up = types.SimpleNamespace(dirname=str(self.nvcc))
        return types.SimpleNamespace(realpath=types.SimpleNamespace(dirname=up))

    def path(self, path):
        return types.SimpleNamespace(exists=pathlib.Path(path).exists(), dirname="/wheel")

    def read(self, path):
        return pathlib.Path(path).read_text()

    def execute(self, command):
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def report_progress(self, text):
        self.reported.append(text)


class Listed(type(pathlib.Path())):
    """A path with the properties of Bazel's."""
    basename = property(lambda self: self.name)
    dirname = property(lambda self: self.parent)
    readdir = pathlib.Path.iterdir


class Repository(Context):
    """A stand-in for repository_ctx on a machine without PyTorch. The repository is a folder next to others."""

    def __init__(self, folder, **attributes):
        super().__init__({}, **attributes)
        self.folder = folder

    def execute(self, _):
        return types.SimpleNamespace(stdout="")

    def path(self, path):
        label = re.fullmatch("@(.*)//:(.*)", path)
        return Listed(self.folder.parent / label[1] / label[2] if label else self.folder / path)

    def symlink(self, target, link):
        (self.folder / link).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, self.folder / link)

    def file(self, path, text):
        (self.folder / path).write_text(text)


class ToolkitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def toolkit(self, version, **ways):
        for needed in ("include/crt/host_config.h", "include/nv/target"):
            self.write(needed, "")
        self.write("include/cuda_runtime_api.h", f"// CUDA\n#define CUDART_VERSION  {version}\n#define X\n")
        context = Context(major="13", **ways)
        return functions_of("cuda/cuda.bzl")["_toolkit"](context), context

    def test_uses_a_toolkit_of_the_major_version_of_libtorch(self):
        self.assertEqual(str(self.folder), self.toolkit(13010, environ={"CUDA_HOME": str(self.folder)})[0])
        self.assertEqual(str(self.folder), self.toolkit(13000, environ={}, nvcc=self.folder)[0])

    def test_refuses_another_toolkit_that_is_named(self):
        with self.assertRaisesRegex(Failed, r"CUDA_HOME=.* is a toolkit of CUDA 12\.4, but LibTorch was built for CUDA 13"):
            self.toolkit(12040, environ={"CUDA_HOME": str(self.folder)})

    def test_does_without_another_toolkit_that_it_finds(self):
        folder, context = self.toolkit(12040, environ={}, nvcc=self.folder)
        self.assertIsNone(folder)
        self.assertIn("CUDA 12.4", context.reported[0])

    def nccl(self, text):
        self.write("include/nccl.h", "")
        self.write("lib/libnccl.so.2", text)
        return functions_of("nccl/nccl.bzl")["_folders"](Context({"NCCL_HOME": str(self.folder)}, cuda_major="13"))

    def test_uses_an_nccl_for_the_major_version_of_libtorch(self):
        expected = (f"{self.folder}/include", f"{self.folder}/lib")
        self.assertEqual(expected, self.nccl("\0NCCL version 2.29.7+cuda13.2\0"))
        self.assertEqual(expected, self.nccl("an NCCL that says nothing"))

    def test_refuses_an_nccl_for_another_version(self):
        with self.assertRaisesRegex(Failed, r"an NCCL for CUDA 12\.9, but LibTorch was built for CUDA 13"):
            self.nccl("\0NCCL version 2.27.5+cuda12.9\0")

    def test_libtorch_finds_the_libraries_of_cuda_where_it_looks_for_them(self):
        for library in ("libtorch_cuda_wheel/lib/libtorch_cpu.so", "cuda/lib/libcudart.so.13", "nccl/lib/libnccl.so.2"):
            self.write(library, "")
        repository = Repository(self.folder / "libtorch_cuda", version="2.13.0")
        functions_of("libtorch_cuda/libtorch_cuda.bzl")["_libtorch_cuda"](repository)
        for library in ("libtorch_cpu.so", "../../nvidia/cu13/lib/libcudart.so.13", "../../nvidia/nccl/lib/libnccl.so.2"):
            self.assertTrue(os.path.exists(f"{repository.folder}/torch/lib/{library}"), library)


if __name__ == "__main__":
    unittest.main()
