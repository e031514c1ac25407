# SPDX-License-Identifier: Apache-2.0
"""Finds the programs for scripts that run them on a device: in a checkout that has built them, or in a bundle."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IN_BUNDLE = (ROOT / "manifest.json").exists()
QUICKSTART = ROOT / "configs/quickstart.yaml"
TRAIN = "tools/train"
LONGEST_START = 90  # seconds until two steps have been made, if no file is in the page cache yet


def command(program):
    """Returns the first words of the command that starts a program, which is named by its path below bazel-bin."""
    return [str(ROOT / "run"), pathlib.Path(program).name] if IN_BUNDLE else [str(ROOT / "bazel-bin" / program)]


def folder_of(program):
    """Returns the folder in which a test expects to be started."""
    run_files = ROOT / "bazel-bin" / f"{program}.runfiles/phalanx"
    return run_files if not IN_BUNDLE and run_files.exists() else ROOT


def require(programs):
    """Ends this script with status 2 if one of the programs has not been built."""
    missing = [] if IN_BUNDLE else [program for program in programs if not (ROOT / "bazel-bin" / program).exists()]
    if missing:
        labels = " ".join("//{}:{}".format(*program.rsplit("/", 1)) for program in missing)
        refuse(f"{', '.join(missing)} not built; run ./bazelw build --config=cuda {labels}")


def require_device(device):
    """Ends this script if the device cannot train: with status 2 and the error of `train` if the device does not exist,
    and with status 1 if training fails."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*command(TRAIN), f"--config={QUICKSTART}", f"--run_dir={folder}/run"]
        words += [f"--set={setting}" for setting in (f"device={device}", "launch.ranks=1", "train.max_steps=2",
                                                     "evaluate.every_epochs=0", "expect={}")]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=LONGEST_START, check=False)
        except subprocess.TimeoutExpired:
            refuse(f"train has not finished two steps on {device} within {LONGEST_START} s", 1)
        except OSError as error:
            refuse(str(error))
    if done.returncode == 2:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        refuse(next((line for line in lines if "device:" in line), lines[-1] if lines else done.stdout).strip())
    if done.returncode != 0:
        refuse(f"train ended on {device} with status {done.returncode}:\n{done.stdout}{done.stderr}", 1)


def refuse(why, status=2):
    print(f"{pathlib.Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    sys.exit(status)
