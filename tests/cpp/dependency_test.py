#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds another Bazel workspace that depends on this repository, and trains its model. Nothing is downloaded.

`Workspace` analyses the whole program train of that workspace, but compiles only the model, as a plug-in for the train
of this build. `Program` compiles and links that program, which takes as long as building Phalanx, unless the disk cache
has it.
"""

import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import unittest

from program import DEADLINE, ROOT, TRAIN, ProgramTest, mpirun

TREE = (ROOT / "WORKSPACE").resolve().parent
HOUR = 3600
sys.dont_write_bytecode = True
sys.path.insert(0, str(TREE / "tools/dev/bundle"))
import bundle


def find_bazel():
    """Returns the command of Bazel with its startup options, as ./bazelw chooses them."""
    bazel = shutil.which("bazel") or shutil.which("bazelisk")
    version = subprocess.run([bazel, "--version"], capture_output=True, text=True, cwd=TREE, check=False).stdout
    if not version.startswith("bazel 7."):
        return [bazel]
    debian = pathlib.Path("/usr/share/bazel/tools/skylib").exists()
    names = ["bazel7.bazelrc"] + (["debian.bazelrc"] if debian else [])
    return [bazel, *(f"--bazelrc={TREE}/bazel/{name}" for name in names)]


class Dependent(ProgramTest):
    def setUp(self):
        super().setUp()
        self.mine = self.folder / "mine"
        self.mine.mkdir()
        for source in (TREE / "tests/cpp/workspace").iterdir():
            name = {"mine.WORKSPACE.in": "WORKSPACE", "mine.BUILD.in": "BUILD.bazel"}[source.name]
            (self.mine / name).write_text(source.read_text().replace("@PHALANX@", str(TREE)))
        for name in ("tiny.cc", "tiny.yaml"):
            shutil.copy(TREE / "tools/new" / name, self.mine / name)
        (self.mine / "tools").mkdir()
        for name in (".bazelversion", "tools/bazel"):
            shutil.copy(TREE / name, self.mine / name)
        self.addCleanup(self.bazel, "shutdown")

    def bazel(self, command, *words, seconds=5 * DEADLINE):
        """Runs Bazel with a separate output folder, and with the compilations that earlier tests have stored."""
        home = pwd.getpwuid(os.getuid()).pw_dir  # tests have another HOME
        libtorch, _ = bundle.libtorch_of(pathlib.Path(TRAIN))
        environment = self.environment(
            LIBTORCH=str(libtorch), MPI_HOME=str(pathlib.Path(mpirun(1)[0]).parent.parent), HOME=str(self.folder),
            PIP_NO_INDEX="1", http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
        options = [] if command == "shutdown" else [
            "--compilation_mode=opt", "--force_pic", "--strategy=CppCompile=local",
            f"--disk_cache={home}/.cache/phalanx-bazel", "--noshow_progress", "--color=no"]
        startup = ["--nohome_rc", f"--output_user_root={self.folder}/bazel"]
        done = subprocess.run([*find_bazel(), *startup, command, *options, *words], cwd=self.mine, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def train_tiny(self, train, *settings):
        process = self.start("--config", self.mine / "tiny.yaml", f"--run_dir={self.folder}/run", *settings,
                             command=(str(train),))
        self.assert_status(0, process)  # the config expects an accuracy
        self.assertIn("test", self.run_folder().summary)


@unittest.skipUnless(shutil.which("bazel") or shutil.which("bazelisk"), "there is no Bazel")
class Workspace(Dependent):
    def test_has_everything_that_train_needs_and_builds_a_model(self):
        self.bazel("build", "--nobuild", "//:train")
        output = self.bazel("build", "//:libtiny.so")
        self.assertEqual([], re.findall(r".*warning: .*", output))
        self.train_tiny(TRAIN, f"--set=plugins=[{self.mine}/bazel-bin/libtiny.so]")


@unittest.skipUnless(shutil.which("bazel") or shutil.which("bazelisk"), "there is no Bazel")
class Program(Dependent):
    def test_with_a_model_of_the_workspace_trains_it(self):
        self.bazel("build", "//:train", seconds=HOUR)
        self.train_tiny(self.mine / "bazel-bin/train")


if __name__ == "__main__":
    unittest.main(verbosity=2)
