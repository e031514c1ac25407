#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a program and the plug-in with the real libraries of LibTorch for CUDA and NCCL without a GPU, until CUDA says
that there is no device.

LibTorch is the one of the build. The libraries that it requires come from the wheels in cuda_wheels.txt, 2 GB, which
are downloaded into a folder that is removed afterwards. The driver is no_device.cc.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

import program
from program import ROOT, SHORT, TRAIN, ProgramTest, sets
from wheel_download import refuse_wheels

sys.path.insert(0, str((ROOT / "tools/dev/bundle/bundle.py").resolve().parent))
import bundle

HERE = ROOT / "tests/gpu"
PLUGIN = ROOT / "framework/backends/nccl/libphalanx_cuda.so"
DRIVER = HERE / "libcuda_without_devices.so"
OLD_NCCL = HERE / "libold_nccl.so"
FREE = 6_000_000_000  # bytes, for the wheels and what is in them
NO_DEVICE = "there is no usable device (no CUDA-capable device is detected)"

# The library from which a symbol of the plug-in must come, by the beginning of its name.
OWNERS = {"nccl": "libnccl.so.2", "cuda": "libcudart.so.13"}


def download(folder):
    """Downloads the wheels and unpacks their libraries into `folder`."""
    if shutil.disk_usage(folder).free < FREE:
        raise unittest.SkipTest(f"{folder} has less than {FREE / 1e9:.0f} GB for the libraries of CUDA")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet",
               "--require-hashes", f"--requirement={HERE / 'cuda_wheels.txt'}", f"--dest={folder / 'wheels'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        refuse_wheels(done.stdout + done.stderr)
    for wheel in (folder / "wheels").iterdir():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"nvidia/\w+/lib/[^/]+\.so[.\d]*", name):
                    archive.extract(name, folder)
        wheel.unlink()


def setUpModule():
    """Lays the libraries out as pip installs them: LibTorch looks for the others next to its own folder."""
    global LIBTORCH, LOADED_FROM
    folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-cuda-", dir=os.environ.get("TEST_TMPDIR")))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    libtorch, _ = bundle.libtorch_of(pathlib.Path(TRAIN))
    LOADED_FROM, LIBTORCH = folder, folder / "torch/lib"
    LIBTORCH.mkdir(parents=True)
    for library in (libtorch / "lib").glob("*.so*"):
        (LIBTORCH / library.name).symlink_to(library)
    installed = libtorch.parent / "nvidia"
    if (installed / "cudnn").exists():
        shutil.copytree(installed, folder / "nvidia", symlinks=True, copy_function=os.symlink)
    else:
        download(folder)


def symbols(which, library):
    """Returns the names of the symbols of this kind, without symbols of libraries that every machine has."""
    lines = subprocess.run(["nm", "--dynamic", which, library], check=True, capture_output=True, text=True).stdout
    found = [line.split()[-2:] for line in lines.splitlines()]
    system = re.compile(r".*@+(GLIBC|GLIBCXX|CXXABI|GCC)_")
    return {name.split("@")[0] for kind, name in found if kind not in ("w", "v") and not system.match(name)}


class RealLibraries(ProgramTest):
    def train_with_libraries(self, device, **variables):
        environment = {"LD_LIBRARY_PATH": str(LIBTORCH), "PHALANX_CUDA_DRIVER": str(DRIVER), **variables}
        return self.train(*sets(SHORT, {"launch.ranks": 1, "train.max_steps": 2, "device": device}),
                          environment=environment)

    def assert_refused(self, text, **variables):
        process = self.train_with_libraries("cuda", **variables)
        self.assert_status(2, process)
        self.assertIn(text, process.words)

    def loaded(self):
        """Returns the paths of the libraries that a process with the driver loads, in the order in which they are
        initialized."""
        said = self.folder / "linker"
        self.assert_status(2, self.train_with_libraries("cuda", LD_DEBUG="files", LD_DEBUG_OUTPUT=str(said)))
        for file in self.folder.glob("linker.*"):
            found = re.findall(r"calling init: (\S+)", file.read_text(errors="replace"))
            paths = [pathlib.Path(os.path.normpath(path)) for path in found]
            if DRIVER in paths:
                return paths
        return self.fail("no process has loaded the driver")

    def test_the_driver_says_that_there_is_no_device(self):
        self.assert_refused(NO_DEVICE + "; check nvidia-smi and CUDA_VISIBLE_DEVICES; or use device: cpu")

    def test_a_run_goes_on_on_the_cpu(self):
        self.assert_status(0, self.train_with_libraries("auto"))
        self.assertIn(NO_DEVICE, self.run_folder().log(0).read_text())

    def test_libraries_are_loaded_in_order_and_once_and_from_one_place(self):
        paths = self.loaded()
        names = [path.name for path in paths]
        order = ["libtorch_cpu.so", DRIVER.name, "libnccl.so.2", "libtorch_cuda.so", PLUGIN.name]
        self.assertEqual(order, [name for name in names if name in order])
        self.assertEqual(len(names), len(set(names)), names)
        own = {library.name for library in LOADED_FROM.rglob("*.so*")}
        elsewhere = [str(path) for path in paths if path.name in own and LOADED_FROM not in path.parents]
        self.assertEqual([], elsewhere)

    def test_every_symbol_of_the_plugin_is_in_the_library_that_should_have_it(self):
        exported = {path.name: symbols("--defined-only", path) for path in self.loaded()}
        needed = symbols("--undefined-only", PLUGIN)
        self.assertEqual([], sorted(needed.difference(*exported.values())))
        for prefix, owner in OWNERS.items():
            some = {name for name in needed if name.startswith(prefix)}
            self.assertGreater(len(some), 10)
            self.assertEqual([], sorted(some - exported[owner]))
            for library in exported.keys() - {owner}:
                self.assertEqual([], sorted(some & exported[library]), library)

    def test_an_older_driver_is_refused_with_the_version_that_libtorch_needs(self):
        self.assert_refused("the NVIDIA driver is too old: it supports CUDA 12.8, but this LibTorch needs CUDA 13.0; "
                            "update the driver; or use device: cpu", PHALANX_TEST_DRIVER="12080")

    def test_an_older_nccl_is_refused_with_the_version_that_the_plugin_needs(self):
        version = re.search(r"nvidia-nccl-cu13==([\d.]+)", (HERE / "cuda_wheels.txt").read_text())[1]
        self.assert_refused(f"NCCL 2.22.3 was loaded, but the plug-in {PLUGIN.name} needs NCCL {version} or later",
                            LD_PRELOAD=str(OLD_NCCL))

    def test_the_build_reads_from_nccl_for_which_cuda_it_was_built(self):
        names = {"attr": types.SimpleNamespace(string=lambda **_: None), "repository_rule": lambda **_: None}
        exec((ROOT / "third_party/nccl/nccl.bzl").read_text(), names)  # pylint: disable=exec-used
        context = types.SimpleNamespace(execute=lambda command: subprocess.run(command, capture_output=True, text=True))
        library = LOADED_FROM / "nvidia/nccl/lib/libnccl.so.2"
        self.assertRegex(names["_cuda_version"](context, str(library)), r"^13\.\d+$")


if __name__ == "__main__":
    program.main()
