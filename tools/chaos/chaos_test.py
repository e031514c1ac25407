#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests chaos, and with it that runs survive every fault that it knows."""

import collections
import json

import program
from program import ROOT, ProgramTest

CHAOS = str(ROOT / "tools/chaos/chaos")
TINY = str(ROOT / "tools/chaos/tiny.yaml")
SOON = 20
# Settings with which a run goes on without a rank that is lost, and gives the same bits.
SHRINK = ("faults.on_lost_rank=shrink", "determinism=world_size_invariant", "train.virtual_shards=12",
          "train.global_batch_size=24")
LOSSES = {"kill", "crash", "stop", "leave_early", "bad_alloc", "exception_in_hook", "exception_in_loader", "exception_in_model"}
# The faults that need rights on this machine; they are skipped, with the reason, where there are none.
PRIVILEGED = {"disk_full", "shm_full", "network_cut", "network_flapping", "network_slow"}


class Chaos(ProgramTest):
    def chaos(self, *arguments, config=TINY):
        return self.start(*([config] if config else []), *arguments, command=[CHAOS])

    def findings(self, *arguments, seconds=900):
        """Runs chaos, expects that all runs pass, and returns what it has written."""
        process = self.chaos("--timeout=4", "--json=rows.json", *arguments)
        self.assert_status(0, process, seconds)
        found = json.loads((self.folder / "rows.json").read_text())
        for row in found["rows"]:
            self.assertEqual("ok", row["verdict"], row)
            self.assertTrue(row["recovered"], row)
            self.assertEqual(0, row["orphans"], row)
            self.assertEqual([], row["leaked"], row)
            self.assertEqual(0, row["lost_samples"], row)
        print(process.out)
        return found

    def shrinks(self, *arguments, **options):
        """Checks that runs go on without each rank that is lost, and end by other faults as without SHRINK."""
        faults = ",".join(sorted(LOSSES)) + ",checkpoint_torn,sigterm_in_checkpoint"
        found = self.findings(*SHRINK, f"--faults={faults}", *arguments, **options)
        self.assertTrue(found["bitwise"])
        for row in found["rows"]:
            self.assertEqual(row["fault"] in LOSSES, row["how"] == "shrunk", row)
        return found


class BadInput(Chaos):
    def assert_refused(self, message, *arguments, **options):
        process = self.chaos(*arguments, **options)
        self.assert_status(2, process, SOON)
        self.assertIn(message, process.err)

    def test_no_config(self):
        self.assert_refused("no config", config=None)

    def test_no_checkpoints(self):
        self.assert_refused("set checkpoint.every_steps", "checkpoint.every_steps=0")

    def test_unknown_fault(self):
        self.assert_refused('did you mean "kill"?', "--faults=kil")

    def test_faults_that_are_all_impossible(self):
        self.assert_refused("skipped mismatch: there is only one rank", "launch.ranks=1", "--faults=mismatch")

    def test_a_run_that_fails_without_any_fault(self):
        process = self.chaos("dataset=mnist", "dataset.root=/no/such/folder")
        self.assert_status(1, process, 3 * SOON)
        self.assertIn("the run fails without any fault", process.err)
        self.assertIn("files are missing from /no/such/folder", process.words)

    def test_list(self):
        process = self.chaos("--list", config=None)
        self.assert_status(0, process, SOON)
        self.assertIn("kill                   the run ends, and resumes\n", process.out)


class Survives(Chaos):
    def test_fifty_faults(self):
        found = self.findings("--runs=50", "--seed=1")
        self.assertEqual(50, len(found["rows"]))
        self.assertTrue(found["bitwise"])
        self.assertLessEqual({skipped["fault"] for skipped in found["skipped"]}, PRIVILEGED)
        runs = collections.Counter(row["fault"] for row in found["rows"])
        self.assertGreaterEqual(len(runs), 20)
        for row in found["rows"]:
            if row["fault"] == "kill":
                self.assertLess(row["detected_seconds"], 2, row)
        self.assert_nothing_left()

    def test_flipped_bits(self):
        """Bits that ranks flip are found in the step in which they can be found, with the rank."""
        found = self.findings("--runs=5", "--seed=3", "launch.ranks=3", "strategy=all_reduce", "--faults=flip_parameter,flip_optimizer,"
                              "flip_gradient,flip_message,flip_checkpoint")
        self.assertEqual(5, len({row["fault"] for row in found["rows"]}))

    def test_flipped_bits_of_buffers(self):
        self.findings("--runs=1", "--seed=4", "--faults=flip_buffer", "strategy=all_reduce", "model={name: mobilenet_v2, width_mult: 0.1}",
                      "train.sync_batch_norm=true", "train.max_steps=16")

    def test_threads(self):
        found = self.findings("--runs=6", "--seed=2", "backend=inproc", "--faults=kill,crash,exception_in_hook,mismatch,"
                              "double_ctrl_c,checkpoint_flipped")
        self.assertEqual(6, len({row["fault"] for row in found["rows"]}))

    def test_lost_ranks(self):
        found = self.shrinks("--runs=10", "--seed=5", "launch.ranks=3")
        self.assertEqual(10, len({row["fault"] for row in found["rows"]}))

    def test_a_run_that_does_not_survive_is_reported(self):
        # A rank that is stopped for half a second is longer silent than this timeout allows.
        process = self.chaos("--runs=1", "--faults=stop_and_continue", "--timeout=0.2", "--json=rows.json")
        self.assert_status(1, process, 10 * SOON)
        row, = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertIn("it ended with status 1", row["verdict"])
        self.assertIn("1 of 1 runs failed", process.out)


class Nightly(Chaos):
    """500 runs of several kinds."""

    RUNS = "--runs=125"

    def test_shm(self):
        self.findings(self.RUNS, "--seed=11", seconds=7200)

    def test_four_ranks(self):
        self.findings(self.RUNS, "--seed=12", "launch.ranks=4", seconds=7200)

    def test_gloo(self):
        self.findings(self.RUNS, "--seed=13", "backend=gloo", seconds=7200)

    def test_inproc(self):
        self.findings(self.RUNS, "--seed=14", "backend=inproc", seconds=7200)

    def test_lost_ranks(self):
        for backend in ("shm", "gloo"):
            with self.subTest(backend):
                self.shrinks(self.RUNS, "--seed=15", "launch.ranks=4", f"backend={backend}", seconds=7200)


if __name__ == "__main__":
    program.main()
