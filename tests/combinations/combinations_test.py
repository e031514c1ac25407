#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains configs drawn at random from everything that a config accepts, and accepts two outcomes.

The first outcome: the config is refused before the first step, with status 2 and one error. The second: the run trains.
Its losses must equal a single process's if the documents promise that, and be finite otherwise. A run that
resumes from a checkpoint in its middle, on the same or on another placement, must end like the uninterrupted one.

    ./bazelw test //tests/combinations:combinations_test --test_arg=--draws=17:1 --test_output=all

repeats draw 17. A failure prints the config and the commands of its runs. With PHALANX_TELL_REFUSALS=1 the test also
prints why configs were refused, and what runs that trained wrote to standard error.
"""

import concurrent.futures
import json
import math
import os
import re
import shutil
import sys
import time
import traceback

import program
from drawn_config import STEPS, draw

# Relative difference of losses that a different order of additions may cause.
ROUNDING = 5e-4
# Seconds that a run of three steps may take on a loaded machine. Waiting for a peer ends after 30 s.
PATIENCE = 90
# Matches text that our own errors never contain: an uncaught exception, or an error of another library.
FOREIGN = re.compile(r"terminate called|Exception raised from|c10::|\[enforce fail|json\.exception|ranks disagree|#0 ")

chosen = (0, 60)  # the first draw, and the number of draws


class Failure(Exception):
    pass


class Runs:
    """The runs of one draw, in their own folder."""

    def __init__(self, test, seed):
        self._test, self._seed = test, seed
        self._drawn = draw(seed)
        self._folder = test.folder / f"draw{seed}"
        self._folder.mkdir()
        self._commands = []

    def check(self):
        """Returns "refused" or "trained". Throws a Failure with everything that is needed to repeat the draw."""
        try:
            return self._check()
        except Failure as failure:
            config = json.dumps(self._drawn.config)
            raise Failure(f"draw {self._seed}: {failure}\n" + "\n".join(self._commands) + f"\n{config}") from None
        finally:
            shutil.rmtree(self._folder)

    def _check(self):
        config = {**self._drawn.config, "checkpoint": {"every_steps": 1, "keep_last": STEPS + 1}}
        whole = self._run("whole", config)
        if whole is None:
            return "refused"
        if reference := self._drawn.reference:
            plain = self._run("plain", reference)
            if plain is None:
                raise Failure("one process is refused, but the distributed run is not")
            self._same_losses(plain, whole)
        checkpoint = whole.path / f"checkpoints/step-{1 + self._seed % (self._drawn.steps - 1):08d}"
        moved = {**self._drawn.resumed_config, "checkpoint": {}}
        resumed = self._run("resumed", moved, f"--resume={checkpoint}")
        if resumed is None:
            if not self._drawn.moved or self._run("fresh", moved) is not None:
                raise Failure("the run cannot be resumed where it could be started")
        elif self._drawn.repeats_bit_for_bit:
            if tensors(whole) != tensors(resumed):
                raise Failure("the resumed run has other weights than the one that was not interrupted")
        elif self._drawn.reference:
            self._same_losses(whole, resumed)
        return "trained"

    def _run(self, name, config, *arguments):
        """Trains; returns None if the config is refused."""
        path = self._folder / f"{name}.yaml"
        path.write_text(json.dumps(config))
        process = self._test.train(*arguments, config=path, run=self._folder / name)
        run = program.RunFolder(self._folder / name)
        self._commands.append(f"{name}: bazel-bin/tools/train " + " ".join(f"--set '{key}={json.dumps(value)}'"
                                                                           for key, value in config.items()))
        try:
            status = process.wait(PATIENCE)
        except AssertionError as hang:
            process.kill()
            raise Failure(f"{name}: {hang}") from None
        message = f"{name} ended with status {status}\n{process.text()}"
        if FOREIGN.search(process.err):
            raise Failure(f"not one of Phalanx's own error messages: {message}")
        if status == 2 and process.err.strip() and not any(line["split"] == "train" for line in run.metrics):
            self._test.refusals.append((self._seed, name, process.err.strip()))
            return None
        if status != 0:
            raise Failure(message)
        if process.err.strip():
            self._test.warnings.append((self._seed, name, process.err.strip()))
        values = [value for _, value in losses(run)]
        if len(values) < 2 or not all(math.isfinite(value) for value in values):
            raise Failure(f"losses {values}: {message}")
        return run

    def _same_losses(self, expected, found):
        others = dict(losses(expected))
        for key, value in losses(found):
            if key in others and abs(value - others[key]) > ROUNDING * max(abs(others[key]), 1e-2):
                raise Failure(f"loss of {key} is {value}, but {others[key]} of {expected.path.name}: "
                              f"{losses(found)} and {losses(expected)}")


def losses(run):
    """Returns the losses by split and step."""
    return [((line["split"], line["step"]), line["loss"]) for line in run.metrics if "loss" in line]


def tensors(run):
    """Returns the data of all weights, without the header."""
    file = run.weights
    return file[8 + int.from_bytes(file[:8], "little"):]


class Combinations(program.ProgramTest):
    def test_drawn_configs_train_and_resume_or_are_refused(self):
        self.refusals, self.warnings = [], []
        shard, shards = int(os.environ.get("TEST_SHARD_INDEX", 0)), int(os.environ.get("TEST_TOTAL_SHARDS", 1))
        seeds = range(chosen[0] + shard, sum(chosen), shards)
        outcomes, failures = {"refused": 0, "trained": 0}, []
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
            for result in [workers.submit(self._try_one, seed) for seed in seeds]:
                outcome = result.result()
                if outcome in outcomes:
                    outcomes[outcome] += 1
                else:
                    failures.append(outcome)
                    print(outcome, "\n", flush=True)
        print(f"{outcomes}, {len(failures)} failed")
        if os.environ.get("PHALANX_TELL_REFUSALS"):
            for seed, name, text in self.refusals + self.warnings:
                print(seed, name, text)
        self.assertEqual([], [failure.splitlines()[0] for failure in failures])
        self.assertLess(0, outcomes["trained"])

    def _try_one(self, seed):
        try:
            return Runs(self, seed).check()
        except Failure as failure:
            return str(failure)
        except Exception:  # an error in this test
            return f"draw {seed}: {traceback.format_exc()}"


def parsed(draws):
    """Parses FIRST:COUNT. FIRST may be "tonight", for draws that no other night has."""
    first, number = draws.split(":")
    return (round(time.time()) // 86400 * 1_000_000 if first == "tonight" else int(first)), int(number)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument.startswith("--draws="):
            chosen = parsed(argument.removeprefix("--draws="))
            sys.argv.remove(argument)
    program.main()
