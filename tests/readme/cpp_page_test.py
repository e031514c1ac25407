#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/cpp.md says, from the installed library to a running program, in a folder that knows nothing of Bazel.

Each `cpp` or `cmake` block below a line "`NAME`:" is written to that file. Each `sh` block is run by bash and must end
with status 0, except those after <!-- not run: REASON -->. `./bazelw run //tools:install` is the installer that was
built for this test, LIBTORCH is the folder of the LibTorch that it was built with, and torchrun and mpirun are those
of commands_test.py.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import documents
from commands_test import MPIRUN, TORCHRUN
from program import ROOT, ProgramTest, free_port

PAGE = "docs/cpp.md"
BAZELW = """
[[ "$1 $2 $3" == "run //tools:install --" ]] || { echo "bazelw: only run //tools:install -- ARGUMENTS"; exit 1; }
shift 3
export BUILD_WORKING_DIRECTORY=$PWD
cd %(root)s
exec %(install)s "$@"
"""
TIMEOUT = 600  # compiling a program with all of LibTorch takes a minute on a slow core


def file_of(block):
    """Returns the name of the file that a block shows, or None."""
    above = (ROOT / PAGE).read_text().splitlines()[:block.line - 2]
    named = re.fullmatch(r"`([\w.]+)`:", next(line for line in reversed(above) if line))
    return named and named[1]


@unittest.skipUnless(shutil.which("cmake") and shutil.which("pkg-config"),
                     "cmake or pkg-config is missing; PHALANX_WITH=cmake installs them")
class CppPage(ProgramTest):
    def setUp(self):
        super().setUp()
        self.variables = {"HOME": str(self.folder), "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                          "CC": None, "CXX": None, "LD_LIBRARY_PATH": None}
        values = {"root": ROOT, "install": os.environ["INSTALL"], "port": free_port(),
                  "mpirun": os.path.realpath(ROOT / os.environ["MPIRUN"])}
        scripts = {"bazelw": BAZELW, "bin/mpirun": MPIRUN, "bin/torchrun": TORCHRUN}
        for name, text in scripts.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("#!/usr/bin/env bash\n" + text % values)
            path.chmod(0o755)

    def run_block(self, block):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=self.folder, timeout=TIMEOUT,
                              env=self.environment(**self.variables), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, f"{block.where}\n{block.text}\n{done.stdout}")
        if "//tools:install" in block.text:
            manifest = json.loads((self.folder / "phalanx/lib/phalanx/manifest.json").read_text())
            self.variables["LIBTORCH"] = manifest["libtorch_folder"]
        return done.stdout

    def for_this_machine(self, text):
        """Removes the line that fails with a LibTorch for CUDA where there is no CUDA toolkit (docs/install.md)."""
        for_cuda = pathlib.Path(self.variables["LIBTORCH"], "lib/libtorch_cuda.so").exists()
        return text.replace("find_package(Torch REQUIRED)\n", "") if for_cuda and not shutil.which("nvcc") else text

    def test_a_reader_gets_a_running_program(self):
        outputs = {}
        for block in documents.blocks(ROOT, PAGE):
            if block.language in ("cpp", "cmake") and (name := file_of(block)):
                (self.folder / name).write_text(self.for_this_machine(block.text))
            elif block.language == "sh" and block.not_run is None:
                outputs[block.text.splitlines()[-1]] = self.run_block(block)
        for command, sizes in (("build/train", [1]), ("mpirun -np 2 build/train", [2, 2]), ("./train", [1])):
            steps = re.findall(r"step (\d+) on (\d+) ranks: loss ([\d.e-]+)", outputs[command])
            self.assertEqual([(str(step), str(size)) for size in sizes for step in (100, 200, 300)],
                             [(step, size) for step, size, _ in steps], outputs[command])
            self.assertLess(float(steps[-1][2]), 0.1)
        self.assertEqual(["CMakeLists.txt", "train.cc"],
                         sorted(path.name for path in self.folder.glob("*.*") if path.suffix in (".txt", ".cc")))
        self.assert_nothing_left()

    def test_the_examples_have_targets(self):
        """Only configures: //tests/examples runs them, and this page compiles a program with CMake."""
        blocks = documents.shell_blocks(ROOT, PAGE)
        self.run_block(next(block for block in blocks if "//tools:install" in block.text))
        shutil.copytree(ROOT / "examples", self.folder / "examples")
        path = self.folder / "examples/CMakeLists.txt"
        path.write_text(self.for_this_machine(path.read_text()))
        configure = next(block for block in blocks if "cmake -S" in block.text).text.splitlines()[0]
        self.run_block(documents.Block(PAGE, 0, "sh", configure.replace("-S .", "-S examples")))
        targets = self.run_block(documents.Block(PAGE, 0, "sh", "cmake --build build --target help"))
        for source in (self.folder / "examples").glob("*.cc"):
            if source.stem != "mpi_simulation":  # needs an MPI that CMake finds
                self.assertRegex(targets, rf"\b{source.stem}\b")

    def test_the_page_says_how_many_lines_cmake_needs(self):
        (cmake,) = [block for block in documents.blocks(ROOT, PAGE) if block.language == "cmake"]
        self.assertEqual(6, len(cmake.text.splitlines()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
