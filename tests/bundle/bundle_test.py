#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the bundle of tools:bundle runs on another machine, or says in one line what is missing or differs
there."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from program import DEADLINE, ROOT, SHORT, ProgramTest, sets

PACKER = ROOT / "tools/dev/bundle/bundle.py"
sys.path.insert(0, str(PACKER.resolve().parent))
import bundle
from elf import Elf

TRAIN, SMALL = "tools/dev/bundle/train", "framework/backends/nccl/nccl_test"
SCRIPTS = ("tools/dev/device_bench", "tools/dev/device_checks", "tools/dev/device_peer.py",
           "tools/dev/device_programs.py", "tools/bench_train/ddp_models.py")
CUDA = {"PHALANX_CUDA_DRIVER": "/nowhere/libcuda.so.1"}  # even if there is a driver

# An interpreter that answers like device_peer.py, always with the same time for a step, or says that it has torch.
PEER = """#!/bin/sh
[ "$1" != -c ] || exit 0
case "$2" in *'"compile": true'*) echo "no compiler" >&2; exit 1;; esac
echo '{"torch": "2.13.0", "device": "a fake"}'
while read -r word steps; do echo "{\\"seconds\\": $steps, \\"loss\\": 1}"; done
"""


def pack(out, *programs, files=(), more=()):
    return subprocess.run([PACKER, *(f"--program={program}" for program in programs),
                           *(["--files", *map(str, files)] if files else []), f"--out={out}", *more],
                          capture_output=True, text=True, timeout=DEADLINE)


def setUpModule():
    global FOLDER, HERE, PACKED
    FOLDER = tempfile.TemporaryDirectory(prefix="phalanx-bundle-")
    unittest.addModuleCleanup(FOLDER.cleanup)
    packed = pathlib.Path(FOLDER.name, "bundle.tar.gz")
    PACKED = pack(packed, TRAIN, SMALL, files=["configs/quickstart.yaml", *SCRIPTS])
    assert PACKED.returncode == 0, PACKED.stderr
    with tarfile.open(packed) as archive:
        archive.extractall(FOLDER.name)
    HERE = pathlib.Path(FOLDER.name, "phalanx")


class BundleTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.libtorch, self.version = bundle.libtorch_of(pathlib.Path(TRAIN))

    def run_bundle(self, *words, python=(), **variables):
        """Runs the bundle without anything of this machine except PATH."""
        kept = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.temporary)}
        variables = {"LIBTORCH": str(self.libtorch), **variables}
        environment = {**kept, **{name: value for name, value in variables.items() if value is not None}}
        return subprocess.run([*python, HERE / "run", *map(str, words)], cwd=self.folder, env=environment,
                              capture_output=True, text=True, timeout=2 * DEADLINE)

    def assert_refused(self, done, *parts):
        self.assertEqual(2, done.returncode, done.stdout + done.stderr)
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Packing(BundleTest):
    def test_prints_its_size(self):
        self.assertRegex(PACKED.stdout, r"bundle\.tar\.gz: \d+\.\d MB, \d+ files\n")

    def test_has_all_libraries_except_libtorch_and_those_of_every_machine(self):
        self.assertLess({"train", "nccl_test"}, {path.name for path in (HERE / "bin").iterdir()})
        environment = {"LD_LIBRARY_PATH": str(self.libtorch / "lib")}
        for path in (HERE / "bin/train", HERE / "bin/nccl_test"):
            shown = subprocess.run(["ldd", path], env=environment, check=True, capture_output=True, text=True).stdout
            self.assertNotIn("not found", shown, path.name)
            for name, library in re.findall(r"^\s*(\S+) => (/\S+)", shown, re.M):
                within = pathlib.Path(library).resolve().parent
                self.assertTrue(within in (HERE.resolve() / "bin", (self.libtorch / "lib").resolve())
                                or bundle.ELSEWHERE.match(name), f"{path.name} takes {name} from {library}")

    def test_has_the_program_once_for_all_its_commands(self):
        self.assertEqual("phalanx", os.readlink(HERE / "bin/train"))

    def test_searches_libraries_only_in_its_own_folder(self):
        for path in (HERE / "bin").iterdir():
            for _, run_path in Elf(path.read_bytes()).run_paths():
                self.assertEqual("$ORIGIN", run_path, path.name)
        self.assertEqual([(True, "$ORIGIN")], Elf((HERE / "bin/train").read_bytes()).run_paths())

    def test_the_same_build_gives_the_same_bytes(self):
        both = [self.folder / name for name in ("a.tar.gz", "b.tar.gz")]
        for out in both:
            self.assertEqual("", pack(out, SMALL).stderr)
        self.assertEqual(both[0].read_bytes(), both[1].read_bytes())

    def test_too_large_a_bundle_is_not_written_and_its_largest_members_are_named(self):
        done = pack(self.folder / "out", SMALL, more=["--limit=0.01"])
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, r"^bundle: \d+\.\d MB exceed the limit of 0\.01")
        self.assertRegex(done.stderr, r"\n +\d+\.\d MB  bin/nccl_test\n")
        self.assertFalse((self.folder / "out").exists())

    def test_a_library_that_this_machine_lacks_is_named(self):
        program = self.folder / "program"
        program.write_bytes(pathlib.Path(SMALL).read_bytes().replace(b"libc10.so\0", b"libx10.so\0"))
        program.chmod(0o755)
        done = pack(self.folder / "out", program)
        self.assertEqual((1, f"bundle: {program} needs libx10.so, which is not found on this machine\n"),
                         (done.returncode, done.stderr))

    def test_two_programs_with_the_same_name_are_refused(self):
        (self.folder / "train").write_bytes(b"")
        done = pack(self.folder / "out", TRAIN, self.folder / "train")
        self.assertEqual(1, done.returncode)
        self.assertIn("have the same name", done.stderr)


class Running(BundleTest):
    def test_trains(self):
        done = self.run_bundle("train", f"--config={HERE}/configs/quickstart.yaml", f"--run_dir={self.folder}/run",
                               *sets(SHORT, {"train.max_steps": 2}))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(2, self.run_folder().summary["steps"])

    def test_runs_with_the_libtorch_named_in_the_environment(self):
        """Uses a LibTorch of this version in another folder, next to one that cannot be loaded."""
        elsewhere = self.folder / "libtorch"
        elsewhere.mkdir()
        (elsewhere / "build-version").write_text(f"{self.version}+cu130\n")
        (elsewhere / "lib").symlink_to(self.libtorch / "lib")
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "libtorch_cpu.so").write_text("no library")
        done = self.run_bundle("nccl_test", LIBTORCH=str(elsewhere), LD_LIBRARY_PATH=str(broken))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_lists_its_programs(self):
        done = self.run_bundle()
        self.assertEqual(f"built with LibTorch {self.version}, without the plug-in for CUDA\n"
                         "nccl_test\ntrain\ndevice_bench\ndevice_checks\n", done.stdout)

    def test_says_that_there_is_no_libtorch(self):
        without_packages = (sys.executable, "-I", "-S")
        self.assert_refused(self.run_bundle("train", LIBTORCH=None, python=without_packages),
                            "there is no LibTorch: LIBTORCH is not set", f"torch=={self.version}")

    def test_says_that_a_folder_is_not_libtorch(self):
        self.assert_refused(self.run_bundle("train", LIBTORCH=str(self.folder)), f"{self.folder} is not LibTorch",
                            "lib/libtorch_cpu.so")

    def test_says_that_libtorch_has_another_version(self):
        other = self.folder / "other"
        (other / "lib").mkdir(parents=True)
        (other / "lib/libtorch_cpu.so").touch()
        (other / "version.py").write_text("__version__ = '1.2.3+cu130'\n")
        self.assert_refused(self.run_bundle("train", LIBTORCH=str(other)),
                            f"built with LibTorch {self.version}, but {other} has 1.2.3")

    def test_says_that_the_machine_has_another_processor(self):
        manifest = HERE / "manifest.json"
        text = manifest.read_text()
        self.addCleanup(manifest.write_text, text)
        for key, value, words in (("machine", "abacus", "processors of kind abacus"), ("glibc", "9.9", "glibc 9.9"),
                                  ("glibcxx", "9.9.9", "this build needs GLIBCXX_9.9.9, but /")):
            manifest.write_text(json.dumps({**json.loads(text), key: value}))
            self.assert_refused(self.run_bundle("train"), words)

    def test_an_unknown_program_is_refused_with_the_known_ones(self):
        self.assert_refused(self.run_bundle("trian"), "no trian; it has nccl_test, train, device_bench, device_checks")


class OnDevices(BundleTest):
    def test_the_checks_say_that_there_is_no_driver(self):
        done = self.run_bundle("device_checks", "--only=nccl", **CUDA)
        self.assert_refused(done, "device_checks: ", "device: cuda: there is no NVIDIA driver (/nowhere/libcuda.so.1")

    def test_the_checks_run_suites_on_a_device(self):
        """Uses the CPU as the device, which always exists."""
        done = self.run_bundle("device_checks", "--device=cpu", "--only=nccl", f"--json={self.folder}/checks.json")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("1 of 1 suites passed on cpu", done.stdout)
        suite, = json.loads((self.folder / "checks.json").read_text())["suites"]
        self.assertEqual(("nccl", "passed"), (suite["suite"], suite["result"]))
        self.assertGreater(suite["passed"], 0)

    def bench(self, *flags, script=PEER, **variables):
        python = self.folder / "python"
        python.write_text(script)
        python.chmod(0o755)
        return self.run_bundle("device_bench", f"--python={python}", f"--json={self.folder}/rows.json", *flags, **variables)

    def test_measures_in_turns_and_omits_a_peer_that_fails(self):
        done = self.bench("--device=cpu", "--quick", "--only=lenet")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn("device_bench: lenet: torch.compile: ended with status 1: no compiler; omitted\n", done.stderr)
        row, = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertEqual([64], row["per_second"]["eager"])
        self.assertGreater(row["per_second"]["Phalanx"][0], 0)
        self.assertAlmostEqual(row["per_second"]["Phalanx"][0] / 64, row["ratio"]["eager"], places=6)
        self.assertIsNone(row["ratio"]["torch.compile"])
        self.assertIn("| LeNet, MNIST, 64, samples | ", done.stdout)
        self.assert_nothing_left()

    def test_trains_every_case(self):
        """Trains all cases that the CPU supports; there is no peer."""
        done = self.bench("--device=cpu", "--quick", script="#!/bin/sh\n[ $1 = -c ]\n")
        rows = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertEqual(["lenet", "mlp", "resnet18", "gpt"], [row["case"] for row in rows])
        for row in rows:
            self.assertEqual(["Phalanx"], list(row["per_second"]), done.stderr)
        self.assertEqual(4, done.stdout.count("not measured"), done.stdout)

    def test_the_benchmark_says_that_there_is_no_driver(self):
        self.assert_refused(self.bench(**CUDA), "device_bench: ", "device: cuda: there is no NVIDIA driver")

    def test_the_benchmark_says_that_an_interpreter_has_no_torch(self):
        self.assert_refused(self.bench("--device=cpu", script="#!/bin/sh\nexit 1\n"), "python has no PyTorch")


if __name__ == "__main__":
    unittest.main(verbosity=2)
