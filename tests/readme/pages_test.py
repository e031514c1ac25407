#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that everything the documents mention exists: links, labels, flags, keys, and the code that they show."""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True  # writes no cache next to the sources, where these files really are
import documents

# The real tree rather than the runfiles: links and labels may point anywhere.
ROOT = pathlib.Path("WORKSPACE").resolve().parent
EXAMPLES = ROOT / "tests/readme/examples"

SHELL = [block for page in documents.pages(ROOT) for block in documents.shell_blocks(ROOT, page)]
PROSE = [(page, f"{page}:{number}", line) for page in documents.pages(ROOT)
         for number, line in documents.prose(ROOT, page)]

FOLDERS = "bazel|configs|datasets|docs|engine|examples|framework|launch|models|phalanx|tests|third_party|tools"
FOR_THE_READER_TO_WRITE = re.compile(r"^phalanx/run$|/x(/|\.cc|_test\.cc|\.yaml)$|/tiny(\.cc|_test\.cc|\.yaml)$|/rings\.cc$")

# Bazel's flags that the documents may use. Flags of configs are looked up in .bazelrc.
BAZEL_FLAGS = {"--compilation_mode", "--jobs", "--keep_going", "--nocache_test_results", "--profile",
               "--repo_env", "--runs_per_test", "--test_arg", "--test_env", "--test_filter", "--test_output"}


class Pages(unittest.TestCase):
    def test_all_are_there(self):
        names = documents.pages(ROOT)
        for page in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/benchmarks.md", "docs/clusters.md",
                     "docs/communication.md", "docs/configs.md", "docs/cpp.md", "docs/faults.md", "docs/gpu.md",
                     "docs/first_dataset.md", "docs/first_model.md", "docs/model_parallel.md", "docs/nightly.md",
                     "docs/parameter_server.md", "docs/plugins.md", "docs/program.md", "docs/strategies.md",
                     "docs/checkpoints.md", "docs/training.md", "docs/tutorial.md", "docs/watching.md"):
            self.assertIn(page, names)

    def test_links_lead_somewhere(self):
        for page, where, line in PROSE:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", line):
                with self.subTest(where):
                    self.assertTrue("://" in target or ((ROOT / page).parent / target).exists(), target)

    def test_paths_in_prose_exist(self):
        for _, where, line in PROSE:
            for path in re.findall(rf"`((?:{FOLDERS})/[\w/.-]+)`", line):
                with self.subTest(where):
                    self.assertTrue((ROOT / path).exists() or FOR_THE_READER_TO_WRITE.search(path), path)

    def test_reading_list_is_short(self):
        text = documents.section(ROOT, "ARCHITECTURE.md", "From main() to the wire")
        files = re.findall(r"^\d+\. `([\w/.]+)`", text, re.M)
        lines = sum(len((ROOT / file).read_text().splitlines()) for file in files)
        stated = int(re.search(r"They have ([\d,]+) lines", text)[1].replace(",", ""))
        self.assertTrue(0 < len(files) <= 25, files)
        self.assertAlmostEqual(lines, stated, delta=lines / 10)

    def test_blocks_that_are_not_run_say_why(self):
        for block in SHELL:
            if block.not_run is not None:
                print(f"{block.where}: not run: {block.not_run}")
                with self.subTest(block.where):
                    self.assertGreater(len(block.not_run), 10, "a reason, please")

    def test_bazel_commands_name_what_is_there(self):
        for block in SHELL:
            for words in block.commands():
                if "./bazelw" in words:
                    with self.subTest(block.where):
                        command = words[words.index("./bazelw") + 1:]
                        self.check_bazel(command[0], command[1:])

    def check_bazel(self, command, words):
        self.assertIn(command, ("build", "run", "test"))
        words = words[:words.index("--")] if "--" in words else words
        labels = [word for word in words if not word.startswith("-")]
        self.assertTrue(labels, "no target")
        for label in labels:
            self.assertTrue(self.exists(label), label)
        rc = (ROOT / ".bazelrc").read_text()
        for flag in (word for word in words if word.startswith("-")):
            name, _, value = flag.partition("=")
            known = re.search(rf"^(build|test):{value} ", rc, re.M) if name == "--config" else name in BAZEL_FLAGS
            self.assertTrue(known, flag)

    def exists(self, label):
        package, _, name = label[2:].partition(":")
        if package == "..." or package.endswith("/..."):
            return any((ROOT / package[:-4]).rglob("BUILD.bazel"))
        build = ROOT / package / "BUILD.bazel"
        name = name or package.split("/")[-1]
        if not label.startswith("//") or not build.exists():
            return False
        # Targets of a list comprehension have their names on separate lines.
        return re.search(rf'^ +(name = )?"{re.escape(name)}",$', build.read_text(), re.M) is not None

    def test_keys_set_on_the_command_line_are_in_a_schema(self):
        folders = ("engine", "models", "datasets", "framework/collectives", "tests/readme/examples", "tools/simulate")
        sources = [path.read_text() for folder in folders
                   for path in (ROOT / folder).rglob("*.[ch]*") if path.is_file()]
        metrics = re.findall(r'<NoFields>\(\s*"(\w+)"', "".join(
            path.read_text() for path in (ROOT / "engine/meters").glob("*.cc")))  # keys of `expect`
        keys = {key for text in sources for key in re.findall(r'\bv\("(\w+)"', text)} | {"name", *metrics}
        for block in SHELL:
            bare = [word.split("=")[0] for words in block.commands() if "train" in words
                    for word in words if re.match(r"[\w.]+=", word)]
            for path in re.findall(r"--set[ =]'?([\w.]+)=", block.text) + bare:
                with self.subTest(block.where):
                    self.assertEqual(set(), set(path.split(".")) - keys)


class ExitStatuses(unittest.TestCase):
    """Exit statuses, which scripts rely on."""

    def setUp(self):
        header = (ROOT / "launch/exit_status.h").read_text()
        self.statuses = {int(number) for number in re.findall(r"^  k\w+ = (\d+),", header, re.M)}
        self.assertEqual(8, len(self.statuses))

    def test_readme(self):
        text = re.search(r"\*\*Exit statuses\*\*(.*?)\n\n", (ROOT / "README.md").read_text(), re.S)[1]
        self.assertEqual(self.statuses, {int(number) for number in re.findall(r"\b(\d+) [a-z]", text)})

    def test_faults(self):
        rows = documents.table(ROOT, "docs/faults.md", "status")
        self.assertEqual(self.statuses, {int(number) for number, _ in rows})


class Code(unittest.TestCase):
    """The code in the documents must be code that is compiled."""

    def shown(self, page, language):
        return [block.text for block in documents.blocks(ROOT, page) if block.language == language]

    def test_the_model(self):
        self.assertIn((ROOT / "tools/new/tiny.cc").read_text(), self.shown("docs/first_model.md", "cpp"))

    def test_the_dataset(self):
        self.assertIn((EXAMPLES / "rings.cc").read_text(), self.shown("docs/first_dataset.md", "cpp"))

    def test_a_model_from_python(self):
        self.assertIn((EXAMPLES / "mnist_net.py").read_text(), self.shown("docs/python_models.md", "python"))

    def test_communication(self):
        for name in ("tour.cc", "larger_magnitude.h", "relay.cc"):
            self.assertIn((EXAMPLES / name).read_text(), self.shown("docs/communication.md", "cpp"))

    def test_the_tutorial(self):
        files = [EXAMPLES / "setup.cc", *(ROOT / "examples" / f"{name}.cc" for name in (
            "send_receive", "groups", "synchronous_sgd", "ddp_mnist", "all_reduce_by_hand"))]
        self.assertEqual([path.read_text() for path in files], self.shown("docs/tutorial.md", "cpp"))

    def test_pieces_for_programs_in_cpp(self):
        """They are lines of a file that is compiled. cpp_page_test.py builds the whole programs."""
        def lines(text):
            return "".join(line.strip() + "\n" for line in text.splitlines())

        compiled = lines((EXAMPLES / "cpp_snippets.cc").read_text())
        for page in ("README.md", "docs/cpp.md"):
            pieces = [text for text in self.shown(page, "cpp") if "int main()" not in text]
            self.assertTrue(pieces)
            for piece in pieces:
                self.assertIn(lines(piece), compiled, page)

    def test_every_example_is_on_the_page(self):
        page = (ROOT / "docs/cpp.md").read_text()
        for path in (ROOT / "examples").glob("*.cc"):
            if path.stem != "synchronous_sgd":  # shows what the library makes unnecessary
                self.assertIn(f"(../examples/{path.name})", page)

    def test_parameter_servers(self):
        for example in ("servers.cc", "embeddings.cc"):
            self.assertIn((EXAMPLES / example).read_text(), self.shown("docs/parameter_server.md", "cpp"))

    def test_their_targets(self):
        rule = documents.rule(EXAMPLES / "BUILD.bazel", "relay")
        self.assertTrue(rule)
        self.assertIn(rule, self.shown("docs/communication.md", "python"))

    def test_models_and_datasets_need_no_target(self):
        """The target of the folder must contain every file in it."""
        for page, folder in (("docs/first_model.md", "models/zoo"), ("docs/first_dataset.md", "datasets/sources")):
            self.assertEqual([], self.shown(page, "python"), page)
            build = (ROOT / folder / "BUILD.bazel").read_text()
            self.assertEqual(1, len(re.findall(r"^cc_library\(", build, re.M)), folder)
            self.assertIn("    srcs = sources(),\n", build, folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
