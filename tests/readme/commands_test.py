#!/usr/bin/env python3
"""Runs every command that the documents show, in a folder that looks like the root of a clone after a build.

Each `sh` block is a script for bash that must end with status 0; the blocks of a page share a folder. A block after
the comment <!-- not run: REASON --> is left out. Real are the tools and mpirun. Stand-ins, found in the
clone or first on PATH, take the place of:

    ./bazelw run //A:X -- ...      runs the targets/A/X or bazel-bin/A/X that was built for this test as bazel does: from
                                   another folder, the caller's in BUILD_WORKING_DIRECTORY
    ./bazelw build, test           do nothing: pages_test.py looks whether their targets and flags exist
    bazel-bin/tools/train          the real train, with fewer steps and no expectation of what they reach
    .../fuzz/replay                the real replay
    //tools:bench                  the real bench, with one short round of small tensors
    //tools:bench_train            the real bench_train, with one short round
    //tools:doctor                 the real doctor
    //tools:tune                   the real tune, with one short round
    //tools:report                 the real report
    mpirun                         Open MPI's, with what root and few cores need
    torchrun                       if there is none: sets torchrun's variables and starts a process for each rank

The last of //tools are aliases: in bazel-bin there are folders of their names, and no programs.
"""

import os
import pathlib
import shutil
import subprocess
import time
import unittest

import documents
from program import ProgramTest, free_port

ROOT = pathlib.Path.cwd()

# Commands that name one of tests/readme/examples are for a train that has it.
TRAIN = """
case " $* " in
  *=tiny* | *=rings*) train=%(root)s/tests/readme/examples/train ;;
  *) train=%(root)s/tools/train ;;
esac
exec "$train" "$@" --set train.max_steps=20 --set "expect={}"
"""
BENCH = 'exec %(root)s/tools/bench/bench "$@" --rounds=1 --budget_ms=0.2 --bytes=4KB'
BENCH_TRAIN = 'exec %(root)s/tools/bench_train/bench_train "$@" --rounds=1 --seconds=0.02'
DOCTOR = 'exec %(root)s/tools/doctor/doctor "$@"'
TUNE = 'exec %(root)s/tools/tune/tune "$@" --rounds=1 --budget_ms=0.2'
REPORT = 'exec %(root)s/tools/report/report "$@"'
REPLAY = 'exec %(root)s/framework/testing/fuzz/replay "$@"'
# What train calls has these options.
MPIRUN = """
[[ " $* " == *" --bind-to "* ]] || set -- --allow-run-as-root --oversubscribe --bind-to none "$@"
exec %(mpirun)s "$@"
"""
BAZELW = """
[[ $1 == run ]] || exit 0
[[ $2 == //*:* && ( $# == 2 || $3 == -- ) ]] || { echo "bazelw: only run //PACKAGE:X -- ARGUMENTS"; exit 1; }
label=${2#//}
program=%(clone)s/targets/${label/://}
[[ -e $program ]] || program=%(clone)s/bazel-bin/${label/://}
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


def idx(shape, values):
    """An IDX file of bytes."""
    return bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + bytes(values)


class Commands(ProgramTest):
    def make_clone(self):
        """The folder in which commands run; it has what they need of the tree, and a small MNIST."""
        clone = self.folder / "clone"
        shutil.copytree(ROOT / "configs", clone / "configs")
        (clone / "data/mnist").mkdir(parents=True)
        for split, count in (("train", 256), ("t10k", 64)):
            (clone / f"data/mnist/{split}-images-idx3-ubyte").write_bytes(idx([count, 28, 28], bytes(count * 784)))
            (clone / f"data/mnist/{split}-labels-idx1-ubyte").write_bytes(idx([count], [i % 10 for i in range(count)]))
        mpirun = os.path.realpath(ROOT / os.environ["MPIRUN"])
        values = {"root": ROOT, "clone": clone, "mpirun": mpirun, "port": free_port()}
        scripts = {"bazelw": BAZELW, "bin/mpirun": MPIRUN,
                   "bazel-bin/tools/train": TRAIN, "bazel-bin/framework/testing/fuzz/replay": REPLAY,
                   "targets/tools/bench": BENCH, "targets/tools/bench_train": BENCH_TRAIN,
                   "targets/tools/doctor": DOCTOR, "targets/tools/tune": TUNE, "targets/tools/report": REPORT}
        if not shutil.which("torchrun"):
            scripts["bin/torchrun"] = TORCHRUN
        for name, text in scripts.items():
            path = clone / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#!/usr/bin/env bash\n" + text % values)
            path.chmod(0o755)
        return clone

    def run_page(self, page):
        clone = self.make_clone()
        path = f"{clone}/bin:{os.environ['PATH']}"
        for block in documents.shell_blocks(ROOT, page):
            if block.not_run is None:
                self.run_block(block, clone, self.environment(PATH=path))
        self.assert_nothing_left()

    def run_block(self, block, clone, environment):
        started = time.monotonic()
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=clone, env=environment, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"{block.where}: {time.monotonic() - started:.1f} s")
        self.assertEqual(0, done.returncode, f"{block.where}\n{block.text}\n{done.stdout}")


for page in documents.pages(ROOT):
    setattr(Commands, "test_" + page, lambda self, page=page: self.run_page(page))


class Coverage(unittest.TestCase):
    def test_there_are_commands(self):
        self.assertTrue(documents.shell_blocks(ROOT, "README.md"))
        self.assertTrue(documents.shell_blocks(ROOT, "docs/clusters.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
