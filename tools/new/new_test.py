#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests new as users call it, and builds a model that it creates outside of the repository: a plug-in."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from program import DEADLINE, ROOT, TRAIN, ProgramTest

NEW, LIST, EVAL = (str(ROOT / f"tools/{tool}/{tool}") for tool in ("new", "list", "eval"))
# The real tree, because plug-ins are compiled with its headers.
TREE = pathlib.Path("WORKSPACE").resolve().parent


class New(ProgramTest):
    def run_in(self, folder, *command, status=0):
        done = subprocess.run(command, cwd=folder, env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=DEADLINE)
        self.assertEqual(status, done.returncode, done.stdout)
        return done.stdout


class InTheZoo(New):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        for folder in ("models/zoo", "configs"):
            (self.tree / folder).mkdir(parents=True)
        (self.tree / "WORKSPACE").touch()

    def new(self, *words, status=0):
        return self.run_in(self.tree / "configs", NEW, *words, status=status)

    def written(self):
        return sorted(path.relative_to(self.tree).as_posix() for path in self.tree.rglob("*.*"))

    def test_a_model_comes_with_a_test_and_a_config(self):
        output = self.new("model", "tiny")
        for path, template in (("models/zoo/tiny.cc", "tiny.cc"), ("models/zoo/tiny_test.cc", "tiny_test.cc"),
                               ("configs/tiny.yaml", "tiny.yaml")):
            self.assertEqual((ROOT / "tools/new" / template).read_text(), (self.tree / path).read_text(), path)
            self.assertIn(path, output)

    def test_it_has_the_given_name(self):
        self.new("model", "my_net2")
        text = (self.tree / "models/zoo/my_net2.cc").read_text()
        self.assertIn("class MyNet2 final : public Network", text)
        self.assertIn('add<MyNet2Config>("my_net2"', text)
        self.assertNotIn("iny", text + (self.tree / "models/zoo/my_net2_test.cc").read_text())
        self.assertIn("name: my_net2\n", (self.tree / "configs/my_net2.yaml").read_text())

    def test_nothing_is_overwritten(self):
        (self.tree / "configs/tiny.yaml").write_text("mine")
        self.assertIn("configs/tiny.yaml exists; nothing was written", self.new("model", "tiny", status=2))
        self.assertEqual(["configs/tiny.yaml"], self.written())

    def test_mistakes(self):
        self.assertIn('a model "lenet" exists already', self.new("model", "lenet", status=2))
        self.assertIn('"class" is a keyword of C++', self.new("model", "class", status=2))
        self.assertIn("lower-case letters", self.new("model", "../Net", status=2))
        self.assertIn("new model NAME", self.new("modell", "net", status=2))
        self.assertIn("is not in a checkout of Phalanx", self.run_in(self.folder, NEW, "model", "tiny", status=2))
        self.assertEqual([], self.written())


class Plugin(New):
    @classmethod
    def setUpClass(cls):
        """Builds the plug-in tiny once for all tests."""
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="phalanx-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.mine = pathlib.Path(folder.name)
        subprocess.run([NEW, "model", "tiny", "--plugin", str(cls.mine)], cwd=TREE, check=True, timeout=DEADLINE)
        subprocess.run(["./build.sh"], cwd=cls.mine, check=True, timeout=DEADLINE)

    def compile(self, name, code, stamp=True):
        """Builds a plug-in of a few lines."""
        (self.folder / f"{name}.cc").write_text(code)
        sources = [f"{name}.cc"] + ([str(TREE / "framework/base/plugin_stamp.cc")] if stamp else [])
        script = (self.mine / "build.sh").read_text()
        flags = [line.strip(" \\") for line in script.splitlines() if line.lstrip().startswith("-I")][0]
        libtorch = [line for line in script.splitlines() if line.startswith("LIBTORCH=")][0]
        self.run_in(self.folder, "bash", "-c", f"PHALANX={TREE}; {libtorch}; g++ -std=c++20 -fPIC -shared {flags} "
                    f"{' '.join(sources)} -o {name}.so")
        return str(self.folder / f"{name}.so")

    def test_trains_on_two_ranks_of_each_kind_and_is_evaluated(self):
        for backend in ("inproc", "shm"):
            self.run_in(self.mine, TRAIN, "--config", "tiny.yaml", "--run_dir", f"runs/{backend}",
                        "--set", f"backend={backend}")  # the config expects an accuracy
        refused = self.run_in(self.mine, EVAL, "--run", "runs/shm", status=2)
        self.assertRegex(refused, r"runs/shm/config.yaml:\d+:1: plugins: plug-ins are code")
        self.assertIn("add --set 'plugins=[libtiny.so]'", refused)
        result = self.run_in(self.mine, EVAL, "--run", "runs/shm", "--set", "plugins=[libtiny.so]")
        accuracy = float([line.split()[1] for line in result.splitlines() if "accuracy" in line][0])
        self.assertGreaterEqual(accuracy, 0.9)

    def test_its_fields_are_checked_and_listed_like_others(self):
        refused = self.run_in(self.mine, TRAIN, "--config", "tiny.yaml", "--set", "model.hiden=3", status=2)
        self.assertIn('model.hiden: unknown key (did you mean "hidden"?)', refused)
        self.assertIn("width of the hidden layer",
                      self.run_in(self.mine, LIST, "models", "tiny", "--plugins", "libtiny.so"))

    def test_a_missing_or_invalid_plugin_is_refused_with_its_line(self):
        shutil.copy(self.mine / "tiny.yaml", self.folder / "tiny.yaml")
        self.assertIn("tiny.yaml:3:1: plugins: libtiny.so: No such file or directory; "
                      "relative paths start at the current folder",
                      self.run_in(self.folder, TRAIN, "--config", "tiny.yaml", status=2))
        (self.folder / "libtiny.so").write_text("text")
        self.assertIn(f"tiny.yaml:3:1: plugins: {self.folder.resolve()}/libtiny.so: is not a plug-in",
                      self.run_in(self.folder, TRAIN, "--config", "tiny.yaml", status=2))

    def test_a_library_without_a_stamp_or_with_another_is_refused(self):
        self.assertIn("is not a plug-in: it lacks framework/base/plugin_stamp.cc",
                      self.run_in(self.folder, LIST, "--plugins", self.compile("plain", "", stamp=False), status=2))
        old = """
            #include <cstdio>
            extern "C" [[gnu::section(".phalanx_plugin_stamp")]] const char stamp[] = "Phalanx 0.0.1";
            static const int executed = std::puts("executed");
        """
        output = self.run_in(self.folder, LIST, "--plugins", self.compile("old", old, stamp=False), status=2)
        self.assertIn("was built for Phalanx 0.0.1, but this program is Phalanx ", output)
        self.assertNotIn("executed", output)

    def test_an_undefined_symbol_is_named(self):
        code = "void gone_from_phalanx(); static const bool called = (gone_from_phalanx(), true);"
        output = self.run_in(self.folder, LIST, "--plugins", self.compile("newer", code), status=2)
        self.assertRegex(output, "undefined symbol.*gone_from_phalanx.*; build it again")

    def test_a_name_that_is_taken_is_an_error(self):
        code = """
            #include "engine/loss/loss.h"
            #include "framework/base/config/no_fields.h"
            static const bool registered = phalanx::Losses::global().add<phalanx::NoFields>(
                "mse", "another", [](const phalanx::NoFields&) { return nullptr; });
        """
        library = self.compile("taken", code)
        self.assertEqual(f"plugins: {library}: registered twice: mse\n",
                         self.run_in(self.folder, LIST, "--plugins", library, status=2))


if __name__ == "__main__":
    unittest.main()
