# SPDX-License-Identifier: Apache-2.0
"""Compares how soon two ranks take their first step: Phalanx's train against torchrun with a DDP-wrapped Linear.

    bazel run //tools/bench:startup -- --rounds 5 [--python PYTHON] [--json FILE]

PYTHON is an interpreter that has PyTorch; without one, a virtual environment is made (pip, torch 2.13.0). Rounds take
turns, and each side's time runs from the start of its command to the end of its first step on rank 0: forward,
backward, exchange of gradients and update.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TORCH = "torch==2.13.0"

# Script that torchrun starts on each rank. It writes the time at which rank 0 has taken its first step.
SCRIPT = """
import os, sys, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 784)), torch.randint(0, 10, (32,)))
loss.backward()
optimizer.step()
if dist.get_rank() == 0:
    open(sys.argv[1], "w").write(str(time.time()))
dist.barrier()
os._exit(0)  # the end is not measured, and tearing Gloo down aborts now and then
"""

CONFIG = """
launch: {ranks: 2}
model: {name: mlp, hidden: []}
dataset: {name: digits, train_samples: 512, test_samples: 64}
train: {global_batch_size: 64, max_steps: 1}
watch: {progress: false}
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default=os.environ.get("PHALANX_TRAIN"), help="the train program")
    parser.add_argument("--python", help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="JSON file for the results")
    return parser.parse_args()


def python_with_torch(folder):
    print(f"installing {TORCH} ...", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, TORCH, "numpy"], check=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    return sys.executable


def time_train(train, folder, round_number):
    config = os.path.join(folder, "startup.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    run = os.path.join(folder, f"run{round_number}")
    subprocess.run([train, "--config", config, "--run_dir", run], check=True)
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        return json.load(file)["seconds_to_first_step"]


def time_torchrun(python, folder, round_number):
    script = os.path.join(folder, "first_step.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    stamp = os.path.join(folder, f"stamp{round_number}")
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, stamp]
    start = time.time()
    done = subprocess.run(command, check=False, env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"torchrun failed:\n{done.stderr}")
    with open(stamp, encoding="utf-8") as file:
        return float(file.read()) - start


def main():
    options = parse()
    if caller := os.environ.get("BUILD_WORKING_DIRECTORY"):
        options.train = os.path.abspath(options.train)
        os.chdir(caller)
    with tempfile.TemporaryDirectory(prefix="phalanx-startup-") as folder:
        python = options.python or python_with_torch(os.path.join(folder, "python"))
        times = {"phalanx": [], "torchrun": []}
        for number in range(-1, options.rounds):  # the first round warms the page cache
            for name, measure, program in [("phalanx", time_train, options.train), ("torchrun", time_torchrun, python)]:
                seconds = measure(program, folder, number)
                if number >= 0:
                    times[name].append(seconds)
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:9} {median[name]:6.3f} s to the first step, median of {len(values)} ({min(values):.3f} to {max(values):.3f})")
    print(f"ratio     {median['torchrun'] / median['phalanx']:6.1f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"median_seconds": median, "seconds": times}, file, indent=2)


if __name__ == "__main__":
    main()
