#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the library and builds programs with it as users do, in folders that know nothing of Bazel."""

import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from program import DEADLINE, ROOT, ProgramTest, free_port, mpirun, torchrun

INSTALL = str(ROOT / "tools/install/install")
SOURCES = ROOT / "tests/cpp"
START_COST = ROOT / "tools/dev/start_cost"
LIMIT = 50  # ms of the processor that an idle library may cost

# Libraries that the library must not be linked with, since programs may bring other versions of them.
FOREIGN = re.compile(r"lib(glog|gflags|yaml-cpp|gloo|crypto|ssl|mpi)\b")
EXPORTED = re.compile(r"_Z(T[VTCISHW]|GV|Th[n0-9]*_|Tv[n0-9_]*|Tch[n0-9_]*)?Z?N[KRO]*7phalanx")


def install(*flags):
    done = subprocess.run([INSTALL, *map(str, flags)], capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(*command, status=0, **options):
    """Returns what a command prints."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=2 * DEADLINE, **options)
    assert done.returncode == status, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def setUpModule():
    """Installs, moves the result, and builds the programs in it."""
    global FOLDER, PREFIX, LIBTORCH, MANIFEST
    folder = tempfile.TemporaryDirectory(prefix="phalanx-cpp-")
    unittest.addModuleCleanup(folder.cleanup)
    FOLDER = pathlib.Path(folder.name)
    install("--prefix", FOLDER / "installed")
    PREFIX = (FOLDER / "installed").rename(FOLDER / "moved")
    MANIFEST = json.loads((PREFIX / "lib/phalanx/manifest.json").read_text())
    LIBTORCH = pathlib.Path(MANIFEST["libtorch_folder"])


def flags(*libraries):
    """Returns what pkg-config says, and the options for further libraries."""
    said = run("pkg-config", f"--define-variable=libtorch={LIBTORCH}", "--cflags", "--libs", "phalanx",
               env={**os.environ, "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig")})
    return said.split() + [f"-l{library}" for library in libraries]


def compile(name, *libraries):
    """Compiles a program of this folder and returns its path."""
    program = FOLDER / name
    if not program.exists():
        run("g++", "-O1", SOURCES / f"{name}.cc", "-o", program, *flags(*libraries))
    return program


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def without_cuda_toolkit():
    """Returns true if find_package(Torch) would fail."""
    return (LIBTORCH / "lib/libtorch_cuda.so").exists() and not shutil.which("nvcc")


class InstallTest(ProgramTest):
    def run_ranks(self, *command, **variables):
        return run(*command, cwd=self.folder, env=self.environment(OMP_NUM_THREADS="1", **variables))

    def assert_trained(self, output):
        """The gradients of the ranks are 1 and 2."""
        self.assertEqual(["rank 0 of 2: gradient 1.50", "rank 1 of 2: gradient 1.50"], sorted(output.split("\n"))[-2:])


@unittest.skipUnless(shutil.which("cmake"), "there is no cmake; PHALANX_WITH=cmake installs it")
class WithCMake(InstallTest):
    def configure(self, *definitions, status=0):
        for name in ("CMakeLists.txt", "ranks.cc"):
            shutil.copy(SOURCES / name, self.folder)
        return run("cmake", "-S", self.folder, "-B", self.folder / "build", *definitions, status=status)

    def test_a_program_is_built_and_trains_over_every_backend(self):
        torch = f"-DLIBTORCH={LIBTORCH}" if without_cuda_toolkit() else f"-DTorch_ROOT={LIBTORCH}"
        self.configure(torch, f"-DPhalanx_ROOT={PREFIX}", "-DCMAKE_BUILD_TYPE=Release",
                       "-DCMAKE_POLICY_DEFAULT_CMP0074=NEW")
        run("cmake", "--build", self.folder / "build")
        program = self.folder / "build/ranks"
        for backend in ("auto", "shm", "gloo", "hybrid"):
            with self.subTest(backend):
                self.assert_trained(self.run_ranks(program, backend))
        with self.subTest("mpi, whose plug-in is loaded"):
            self.assertNotIn("libmpi", run("ldd", program))
            home = pathlib.Path(mpirun(2)[0]).parent.parent
            self.assert_trained(self.run_ranks(*mpirun(2), program, "mpi", LD_LIBRARY_PATH=str(home / "lib")))
        with self.subTest("an MPI that is not found is named"):
            alone = self.environment(LD_LIBRARY_PATH=None, RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                                     MASTER_PORT="1")
            done = subprocess.run([program, "mpi"], env=alone, capture_output=True, text=True, timeout=DEADLINE)
            if done.returncode != 0:  # unless this system has an MPI
                self.assertRegex(done.stderr, r"backend plug-in openmpi cannot be loaded: .*libmpi\S* .*LD_LIBRARY_PATH")

    def test_the_folder_of_libtorch_is_enough(self):
        self.configure(f"-DLIBTORCH={LIBTORCH}", f"-DCMAKE_PREFIX_PATH={PREFIX}")

    def test_another_libtorch_is_refused_with_both_versions(self):
        torch = self.folder / "other/share/cmake/Torch"
        torch.mkdir(parents=True)
        (torch / "TorchConfig.cmake").write_text('add_library(torch INTERFACE IMPORTED)\n'
                                                 f'set(TORCH_INSTALL_PREFIX "{self.folder}/other")\n')
        (torch / "TorchConfigVersion.cmake").write_text('set(PACKAGE_VERSION "1.2.3")\n'
                                                        'set(PACKAGE_VERSION_COMPATIBLE TRUE)\n')
        text = self.configure(f"-DCMAKE_PREFIX_PATH={self.folder}/other;{PREFIX}", status=1)
        self.assertIn(f"built with LibTorch {MANIFEST['libtorch']}, but LibTorch in {self.folder}/other is 1.2.3",
                      " ".join(text.split()))

    def test_a_missing_libtorch_is_named(self):
        text = self.configure("-DLIBTORCH=/nowhere", f"-DCMAKE_PREFIX_PATH={PREFIX}", status=1)
        self.assertIn("Call find_package(Torch REQUIRED) before find_package(Phalanx)", " ".join(text.split()))


@unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config; PHALANX_WITH=cmake installs it")
class WithPkgConfig(InstallTest):
    def test_an_idle_library_changes_nothing_in_the_process(self):
        lines = run(compile("idle")).splitlines()
        self.assertEqual(f"version {MANIFEST['version']}", lines.pop())
        state = dict(line.split(":\t") for line in lines)
        self.assertEqual("1", state["Threads"])
        for signals in ("SigBlk", "SigCgt"):
            self.assertEqual("0" * 16, state[signals], signals)

    def test_a_program_keeps_its_own_flags_log_yaml_and_openssl(self):
        program, port = compile("clash", "gflags", "glog", "yaml-cpp"), free_port()
        secret = {"PHALANX_JOB_SECRET": "a secret of many letters"}
        ranks = [self.start("--backend=gloo", command=[program], environment=torchrun(rank, 2, port, **secret))
                 for rank in range(2)]
        for rank, process in enumerate(ranks):
            self.assert_status(0, process)
            self.assertEqual(f"rank {rank}: 3, {{dtype: float, size: [2, 3]}}\n", process.out)

    def test_another_version_of_libtorch_is_refused_by_the_compiler(self):
        header = self.folder / "torch/headeronly/version.h"
        header.parent.mkdir(parents=True)
        header.write_text("".join(f"#define TORCH_VERSION_{part} 1\n" for part in ("MAJOR", "MINOR", "PATCH")))
        text = run("g++", "-fsyntax-only", f"-I{self.folder}", SOURCES / "idle.cc", *flags(), status=1)
        self.assertIn(f"this libphalanx.so was built with LibTorch {MANIFEST['libtorch']}", text)

    def test_an_idle_library_costs_little(self):
        text = run(START_COST, PREFIX, "--rounds=10", f"--json={self.folder}/cost.json")
        self.assertLess(json.loads((self.folder / "cost.json").read_text())["processor"], LIMIT, text)


class Installed(InstallTest):
    def test_only_our_namespace_is_exported(self):
        symbols = run("nm", "-D", "--defined-only", PREFIX / "lib/libphalanx.so")
        names = [line.split()[-1] for line in symbols.splitlines()]
        self.assertGreater(len(names), 100)
        self.assertEqual([], [name for name in names if not EXPORTED.match(name)])

    def test_the_library_needs_nothing_that_programs_bring(self):
        for name in needed(PREFIX / "lib/libphalanx.so"):
            self.assertIsNone(FOREIGN.match(name), name)
        for path in (PREFIX / "lib").rglob("*.so*"):
            for run_path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-d", path)):
                for folder in run_path.split(":"):
                    self.assertTrue(folder.startswith("$ORIGIN"), f"{path}: {run_path}")

    def test_headers_include_only_each_other_libtorch_and_the_system(self):
        include = PREFIX / "include"
        for header in include.rglob("*.h"):
            for name in re.findall(r'#include "([^"]+)"', header.read_text()):
                self.assertTrue((include / name).exists(), f"{header} includes {name}")
            for name in re.findall(r"#include <(\S+\.h)>", header.read_text()):
                allowed = name in ("fcntl.h", "unistd.h") or (name == "mpi.h" and header.name == "mpi.h")
                self.assertTrue(allowed or name.split("/")[0] in ("ATen", "c10", "torch"), f"{header} includes {name}")

    def test_tools_run_with_the_libtorch_of_the_environment(self):
        phalanx = PREFIX / "bin/phalanx"
        self.assertIn("train", run(phalanx, "--help", env=self.environment(LIBTORCH=str(LIBTORCH))))
        output = run(phalanx, "train", PREFIX / "share/phalanx/configs/quickstart.yaml", f"--run_dir={self.folder}/run",
                     "--set=train.max_steps=2", "--set=expect={}", env=self.environment())
        self.assertIn("Done after step 2", output)
        text = run(phalanx, "--help", status=2, env=self.environment(LIBTORCH=str(self.folder)))
        self.assertIn(f"phalanx: {self.folder} is not LibTorch", text)

    def test_the_doctor_runs_even_without_libtorch(self):
        for libtorch in (str(LIBTORCH), "/nowhere"):
            output = subprocess.run([PREFIX / "bin/phalanx", "doctor"], env=self.environment(LIBTORCH=libtorch),
                                    capture_output=True, text=True, timeout=DEADLINE).stdout
            self.assertIn("Machine", output)
            self.assertEqual(libtorch == "/nowhere", "do not start here" in output, output)

    def test_a_second_installation_replaces_the_first_and_leaves_other_files(self):
        prefix = self.folder / "prefix"
        manifest = prefix / "lib/phalanx/manifest.json"
        manifest.parent.mkdir(parents=True)
        (prefix / "include/phalanx").mkdir(parents=True)
        for name in ("old.h", "others.h"):
            (prefix / "include/phalanx" / name).touch()
        manifest.write_text(json.dumps({"files": ["include/phalanx/old.h"]}))
        install("--prefix", prefix)
        self.assertFalse((prefix / "include/phalanx/old.h").exists())
        self.assertTrue((prefix / "include/phalanx/others.h").exists())
        self.assertTrue((prefix / "lib/libphalanx.so").exists())


class Packages(InstallTest):
    def test_the_tarball_has_what_is_installed_and_the_libraries_of_this_machine(self):
        self.assertRegex(install("--format=tar", f"--out={self.folder}"), r"phalanx-[\d.]+-linux-\w+\.tar\.gz: ")
        path, = self.folder.glob("*.tar.gz")
        with tarfile.open(path) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
            def read(name):
                return archive.extractfile(f"phalanx-{MANIFEST['version']}/{name}").read().decode()

            manifest = json.loads(read("lib/phalanx/manifest.json"))
            # Machines without these libraries cannot link a program otherwise.
            for name in ("lib/cmake/Phalanx/PhalanxConfig.cmake", "lib/pkgconfig/phalanx.pc"):
                self.assertRegex(read(name), r"-rpath-link,\S+/phalanx")
        self.assertLessEqual(set(MANIFEST["files"]), names)
        self.assertIsNone(manifest["libtorch_folder"], "a folder of this machine is of no use on others")
        self.assertLess(len(MANIFEST["files"]), len(manifest["files"]))

    def test_the_debian_package_is_complete(self):
        install("--format=deb", f"--out={self.folder}/phalanx.deb")
        members = self.read_ar((self.folder / "phalanx.deb").read_bytes())
        self.assertEqual(["debian-binary", "control.tar.gz", "data.tar.gz"], list(members))
        with tarfile.open(fileobj=io.BytesIO(members["data.tar.gz"])) as data:
            names = {name.removeprefix("./usr/") for name in data.getnames()}
        self.assertLessEqual(set(MANIFEST["files"]), names)
        with tarfile.open(fileobj=io.BytesIO(members["control.tar.gz"])) as archive:
            control = archive.extractfile("./control").read().decode()
        self.assertIn(f"\nVersion: {MANIFEST['version']}\n", control)
        self.assertRegex(control, r"\nDepends: libc6 \(>= 2\.\d+\), ")
        if shutil.which("dpkg-deb"):
            self.assertIn("Package: phalanx", run("dpkg-deb", "--info", self.folder / "phalanx.deb"))
            run("dpkg-deb", "--extract", self.folder / "phalanx.deb", self.folder / "root")
            self.assertTrue((self.folder / "root/usr/lib/libphalanx.so").exists())

    @staticmethod
    def read_ar(data):
        """Returns {name: content} of an archive."""
        assert data.startswith(b"!<arch>\n")
        members, at = {}, 8
        while at < len(data):
            name, size = data[at:at + 16].decode().strip(), int(data[at + 48:at + 58])
            members[name] = data[at + 60:at + 60 + size]
            at += 60 + size + size % 2
        return members


if __name__ == "__main__":
    unittest.main(verbosity=2)
