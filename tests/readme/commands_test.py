#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command that the documents show, in a folder that looks like the root of a clone after a build, and
compares the results that they show.

Each `sh` block is a bash script that must end with status 0; the blocks of a page share a folder. A block after the
comment <!-- not run: REASON --> is not run. A `text` block right below a script is its output: the lines of tests must
be in the real output, with the same steps and nearly the same losses and accuracies. A `text` block that begins with "$
COMMAND" is the exact output of a command that is refused; mine.yaml in it is the `yaml` block above.

The tools and mpirun are real. They are started by replacement scripts, found in the clone or first on PATH:

    ./bazelw run //A:X -- ...      starts the first that exists: targets/A/X, bazel-bin/A/X, or the program X of package
                                   A/X that was built for this test (targets of //tools are aliases of such programs).
                                   Like bazel, it starts programs in another folder, with the caller's folder in
                                   BUILD_WORKING_DIRECTORY
    ./bazelw build, test           do nothing: pages_test.py checks that their targets and flags exist
    bazel-bin/tools/train          is train with fewer steps and without expected results, except on pages whose
                                   results are compared; runs of 100000 epochs are those that the page itself ends
    bazel-bin/tools/phalanx        is phalanx, whose train is like bazel-bin/tools/train
    targets/tools/bench, ...       are programs that measure, with one short round
    targets/tools/plan             is plan, which runs with fewer samples in a step (--check)
    .../fuzz/replay                is replay
    mpirun                         is Open MPI's, with the options that root and few cores need
    pgrep                          if not installed: finds the children of a process
    torchrun                       if not installed: sets torchrun's variables and starts a process for each rank
"""

import dataclasses
import json
import os
import pathlib
import pickle
import re
import shlex
import shutil
import subprocess
import time
import unittest

import documents
import program
from program import ProgramTest, RunFolder, free_port

ROOT = pathlib.Path.cwd()
README = "README.md"
# Commands on these pages run to the end, so that results can be compared.
WITH_RESULTS = {README, "docs/first_dataset.md", "docs/first_model.md"}

# Commands that use code which a page adds to the tree run a train that contains this code.
TRAIN = """
case " $* " in
  *tiny.yaml* | *=rings*) train=%(root)s/tests/readme/examples/train ;;
  *) train=%(root)s/tools/train ;;
esac
[[ " $* " != *" train.epochs=100000 "* ]] || exec "$train" "$@" --set expect={}
exec "$train" "$@" %(limits)s
"""
PHALANX = """
[[ $1 == train ]] || exec %(root)s/tools/phalanx "$@"
exec %(root)s/tools/phalanx "$@" %(limits)s
"""
LIMITS = "--set train.max_steps=20 --set expect={}"
# Programs that measure, with the options that make them fast.
MEASURING = {
    "bench": "--rounds=1 --budget_ms=0.2 --bytes=4KB",
    "bench_kernels": "--rounds=1 --budget_ms=0.2",
    "bench_train": "--rounds=1 --seconds=0.02",
    "tune": "--rounds=1 --budget_ms=0.2",
}
PLAN = """
[[ " $* " != *" --check "* ]] || set -- "$@" --set train.global_batch_size=8
exec %(root)s/tools/plan/plan "$@"
"""
REPLAY = 'exec %(root)s/framework/testing/fuzz/replay "$@"'
# When train calls mpirun, these options are already set.
MPIRUN = """
[[ " $* " == *" --bind-to "* ]] || set -- --allow-run-as-root --oversubscribe --bind-to none "$@"
exec %(mpirun)s "$@"
"""
BAZELW = """
[[ $1 == run ]] || exit 0
[[ $2 == //*:* && ( $# == 2 || $3 == -- ) ]] || { echo "bazelw: only run //PACKAGE:X -- ARGUMENTS"; exit 1; }
label=${2#//}
path=${label/://}
for program in %(clone)s/{targets,bazel-bin}/$path %(root)s/$path/${path##*/} ""; do [[ ! -f $program ]] || break; done
[[ $program ]] || { echo "$2 is not in the data of commands_test (tests/readme/BUILD.bazel)"; exit 1; }
shift $(($# == 2 ? 2 : 3))
export BUILD_WORKING_DIRECTORY=$PWD
cd /
exec "$program" "$@"
"""
TORCHRUN = """
[[ $1 == --nproc-per-node && $3 == --no-python ]] || { echo "torchrun: only --nproc-per-node N --no-python"; exit 1; }
export WORLD_SIZE=$2 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%(port)s TORCHELASTIC_RUN_ID=none
shift 3
for ((rank = 0; rank < WORLD_SIZE; ++rank)); do RANK=$rank LOCAL_RANK=$rank "$@" & processes+=($!); done
for process in "${processes[@]}"; do wait "$process" || status=$?; done
exit "${status:-0}"
"""
PGREP = """
[[ $1 == -P && $# == 2 ]] || { echo "pgrep: only -P PROCESS"; exit 1; }
for status in /proc/[0-9]*/status; do
  grep -qsx "PPid:[[:space:]]*$2" "$status" && basename "$(dirname "$status")"
done | sort -n
"""


def idx(shape, values):
    """Returns an IDX file of bytes."""
    return bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + bytes(values)


# Matches a line that train prints after a test.
TEST = re.compile(r"^epoch (\d+)/(\d+)  step (\d+)  test  loss ([\d.]+)  accuracy ([\d.]+) %", re.M)


@dataclasses.dataclass
class Result:
    """The results of one test that train has printed."""
    position: tuple  # epoch, of how many, step
    loss: float
    percent: float


def flight_recorder_dump(rank):
    """Returns a dump of PyTorch's flight recorder. Rank 2 of 4 has not come to the second operation."""
    def entry(number):
        created = int((time.time() - 30 + 10 * number) * 1e9)
        return {"frames": [{"name": "step", "filename": "train.py", "line": 33}], "record_id": number, "pg_id": 0,
                "process_group": ("0", "default_pg"), "collective_seq_id": number + 1, "p2p_seq_id": 0,
                "profiling_name": "nccl:all_reduce", "time_created_ns": created, "input_sizes": [[64, 10]],
                "input_dtypes": ["Float"], "output_sizes": [[64, 10]], "output_dtypes": ["Float"],
                "state": "started" if number else "completed", "is_p2p": False, "retired": number == 0}

    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    return pickle.dumps({"version": "2.10", "pg_config": groups, "entries": [entry(0)] + ([entry(1)] if rank != 2 else [])}, 2)


def results(text):
    return [Result(found[:3], float(found[3]), float(found[4])) for found in TEST.findall(text)]


def trains(words):
    """Returns true if a command trains: it names a config, with or without a flag."""
    names_config = "--config" in words or "train" in words and any(word.endswith(".yaml") for word in words)
    return names_config and "--print_config" not in words


class Clone(ProgramTest):
    def make_clone(self, limits):
        """Makes the folder in which commands run, with the files of the tree that they need, and a small MNIST."""
        clone = self.folder / "clone"
        shutil.copytree(ROOT / "configs", clone / "configs")
        for path in ("gpt_cluster.yaml", "published/horovod.yaml", "published/megatron.yaml",
                     "published/torchtitan.yaml"):
            (clone / "tools/simulate/published").mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tools/simulate" / path, clone / "tools/simulate" / path)
        shutil.copy(ROOT / "tools/step_profile", clone / "tools/step_profile")
        (clone / "models/zoo").mkdir(parents=True)
        (clone / "WORKSPACE").touch()
        (clone / "data/mnist").mkdir(parents=True)
        for split, count in (("train", 256), ("t10k", 64)):
            (clone / f"data/mnist/{split}-images-idx3-ubyte").write_bytes(idx([count, 28, 28], bytes(count * 784)))
            (clone / f"data/mnist/{split}-labels-idx1-ubyte").write_bytes(idx([count], [i % 10 for i in range(count)]))
        (clone / "dumps").mkdir()
        for rank in range(4):
            (clone / f"dumps/nccl_trace_rank_{rank}").write_bytes(flight_recorder_dump(rank))
        mpirun = os.path.realpath(ROOT / os.environ["MPIRUN"])
        values = {"root": ROOT, "clone": clone, "mpirun": mpirun, "port": free_port(), "limits": limits}
        scripts = {"bazelw": BAZELW, "bin/mpirun": MPIRUN,
                   "bazel-bin/tools/phalanx": PHALANX, "bazel-bin/tools/train": TRAIN,
                   "bazel-bin/framework/testing/fuzz/replay": REPLAY, "targets/tools/plan": PLAN}
        for name, limits in MEASURING.items():
            scripts[f"targets/tools/{name}"] = f'exec %(root)s/tools/{name}/{name} "$@" {limits}'
        if not shutil.which("torchrun"):
            scripts["bin/torchrun"] = TORCHRUN
        if not shutil.which("pgrep"):
            scripts["bin/pgrep"] = PGREP
        for name, text in scripts.items():
            path = clone / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/usr/bin/env bash\n" + text % values)
            path.chmod(0o755)
        return clone

    def run_page(self, page, after_block=lambda block, output: None):
        """Runs everything that a page shows; calls `after_block` with each script and its output."""
        self.clone = self.make_clone("" if page in WITH_RESULTS else LIMITS)
        script, output, config = None, None, None
        for block in documents.blocks(ROOT, page):
            if block.language == "sh" and block.not_run is None:
                script, output = block, self.run_block(block)
                after_block(block, output)
            elif block.language == "yaml":
                config = block.text
            elif block.text.startswith("$ "):
                self.check_refusal(block, config)
            elif block.language == "text" and script and block.right_below(script):
                self.compare_tests(block, output)
        self.assert_nothing_left()

    def bash(self, script):
        path = f"{self.clone}/bin:{os.environ['PATH']}"
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.clone, timeout=120, text=True,
                              env=self.environment(PATH=path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def run_block(self, block):
        started = time.monotonic()
        done = self.bash(block.text)
        print(f"{block.where}: {time.monotonic() - started:.1f} s")
        self.assertEqual(0, done.returncode, f"{block.where}\n{block.text}\n{done.stdout}")
        return done.stdout

    def check_refusal(self, block, config):
        command, _, output = block.text[2:].partition("\n")
        if "mine.yaml" in shlex.split(command):
            (self.clone / "mine.yaml").write_text(config)
        done = self.bash(command)
        self.assertEqual((2, output), (done.returncode, done.stdout), block.where)

    def compare_tests(self, block, output):
        """Compares results. Steps are the same on all machines; losses and accuracies may differ slightly."""
        shown, printed = results(block.text), results(output)
        self.assertTrue(shown, f"{block.where} shows no test")
        self.assertEqual([one.position for one in shown], [one.position for one in printed], block.where)
        for one, other in zip(shown, printed):
            where = f"{block.where}, step {one.position[2]}"
            self.assertAlmostEqual(one.loss, other.loss, delta=0.02 + 0.1 * one.loss, msg=where)
            self.assertAlmostEqual(one.percent, other.percent, delta=1.5, msg=where)


class Commands(Clone):
    """One test for each page, except README.md, below, and docs/cpp.md, which cpp_page_test.py runs."""


for page in documents.pages(ROOT):
    if page not in (README, "docs/cpp.md"):
        setattr(Commands, "test_" + page, lambda self, page=page: self.run_page(page))


class Readme(Clone):
    """Tests the results that README.md promises."""

    def setUp(self):
        super().setUp()
        self.runs = []  # (number of requested ranks, folder), in order
        self.output = {}  # by the first line of the script

    def test_README(self):
        self.run_page(README, self.note)
        self.check_accuracy()
        self.check_first_screen()
        self.check_configs()
        self.assertGreaterEqual(len(self.runs), 6)
        for ranks, run in self.runs:
            with self.subTest(run.path.name):
                self.assertEqual(ranks, run.summary["ranks"])
                self.check_files(run)

    def note(self, block, output):
        """Records the run folder of each command that trains."""
        self.output[block.text.splitlines()[0]] = output
        for words in block.commands():
            if trains(words):
                ranks = re.search(r"(?:launch\.ranks=|-np |--nproc-per-node )(\d+)", " ".join(words))
                self.runs.append((int(ranks[1]) if ranks else 2, None))
        known = {run.path for _, run in self.runs if run}
        left = sorted((self.clone / "runs").iterdir()) if (self.clone / "runs").exists() else []
        new = [RunFolder(path) for path in left if path not in known]
        self.assertEqual(len(self.runs) - len(known), len(new), f"{block.where} leaves {new}")
        self.runs[len(known):] = [(ranks, run) for (ranks, _), run in zip(self.runs[len(known):], new)]

    def check_accuracy(self):
        """The first command's accuracy is on the page; runs of other launchers must reach it too."""
        promised = float(re.search(r"([\d.]+) %", documents.section(ROOT, README, "Two commands"))[1])
        first = results(next(iter(self.output.values())))[-1]
        self.assertAlmostEqual(promised, first.percent, delta=0.5)
        self.assertEqual(("5", "5"), first.position[:2], "configs/quickstart.yaml has 5 epochs")
        quickstarts = [(ranks, run) for ranks, run in self.runs
                       if run.config.read_text() == self.runs[0][1].config.read_text()]
        self.assertEqual([2, 2, 2], [ranks for ranks, _ in quickstarts], "by hand, mpirun and torchrun")
        for _, run in quickstarts:
            self.assertAlmostEqual(promised, 100 * run.summary["test"]["accuracy"], delta=0.5)

    def check_first_screen(self):
        """The two ways to use Phalanx take three lines each."""
        yaml, cpp = documents.blocks(ROOT, README)[:2]
        self.assertEqual(["yaml", "cpp"], [yaml.language, cpp.language])
        self.assertEqual([3, 3], [len(block.text.splitlines()) for block in (yaml, cpp)])
        self.assertLess(cpp.line, 30)
        (self.clone / "three.yaml").write_text(yaml.text)
        self.assertIn("ranks: 2", self.bash("bazel-bin/tools/train three.yaml --print_config").stdout)

    def check_configs(self):
        """Every key must be listed, and filled in."""
        listed = self.bash("bazel-bin/tools/train --help_config").stdout
        printed = next(output for line, output in self.output.items() if "--help_config" in line)
        self.assertTrue(printed.startswith(listed))
        self.assertEqual(["KEY", "TYPE", "DEFAULT", "LIMITS"], listed.split("\n")[0].split())
        keys = re.findall(r"^([a-z]\w*)", listed, re.M)
        self.assertIn("optimizer", keys)
        filled_in = re.findall(r"^(\w+):", (self.clone / "mine.yaml").read_text(), re.M)
        self.assertEqual(sorted(keys), sorted(filled_in))

    def check_files(self, run):
        """The table must have the files of the folder and the keys of the files."""
        ranks = range(run.summary["ranks"])
        always = {".lock"}
        for names, what in documents.table(ROOT, README, "file"):
            for name in re.findall(r"`([^`]+)`", names):
                if "config asks" in what:
                    self.assertFalse((run.path / name).exists(), name)
                else:
                    always |= {name.replace("<r>", str(rank)) for rank in ranks}
            keys = set(re.findall(r"`(\w+)`", what))
            nested = {key: inner.split(", ") for key, inner in re.findall(r"`(\w+): \{([\w, ]+)\}`", what)}
            if names == "`metrics.jsonl`":
                self.assertEqual({"train", "test"}, {line["split"] for line in run.metrics})
                for line in run.metrics:
                    self.assertLessEqual(keys, set(line))
            elif names == "`summary.json`":
                self.assertLessEqual(keys, set(run.summary))
                self.assertEqual(nested, {key: list(run.summary[key]) for key in nested})
                self.assertTrue(keys and nested)
        left = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}
        self.assertEqual(always, left)
        for name in always - {".lock"}:
            self.assertGreater((run.path / name).stat().st_size, 0, name)
        header = run.weights[8:8 + int.from_bytes(run.weights[:8], "little")]
        self.assertTrue(json.loads(header))


class Coverage(unittest.TestCase):
    def test_there_are_commands(self):
        self.assertTrue(documents.shell_blocks(ROOT, README))
        self.assertTrue(documents.shell_blocks(ROOT, "docs/clusters.md"))

    def test_there_are_results(self):
        for page in WITH_RESULTS - {README}:
            blocks = documents.blocks(ROOT, page)
            self.assertTrue(any(results(below.text) for above, below in zip(blocks, blocks[1:])
                                if above.language == "sh" and below.right_below(above)), page)

    def test_there_are_refusals(self):
        refusals = [block for page in documents.pages(ROOT) for block in documents.blocks(ROOT, page)
                    if block.text.startswith("$ ")]
        self.assertGreaterEqual(len(refusals), 4)


if __name__ == "__main__":
    program.main()
