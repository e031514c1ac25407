#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests chaos, and with it that runs survive every fault that it knows."""

import json
import re

import program
from program import ROOT, ProgramTest

CHAOS = str(ROOT / "tools/chaos/chaos")
TINY = str(ROOT / "tools/chaos/tiny.yaml")
SOON = 20
# Settings with which a job that has ended is started again.
RESTART = ("launch.restarts=3", "launch.restart_delay=0.1")
# Settings with which a run gives the same bits on fewer ranks.
INVARIANT = ("determinism=world_size_invariant", "train.virtual_shards=12", "train.global_batch_size=24")
SHRINK = ("faults.on_lost_rank=shrink", *INVARIANT)
REPLACE = ("faults.on_lost_rank=replace", "launch.restart_delay=0.1", *INVARIANT)
LOSSES = {"kill", "crash", "stop", "leave_early", "bad_alloc", "exception_in_hook", "exception_in_loader", "exception_in_model"}
# The faults that need rights on this machine; they are skipped, with the reason, where there are none.
PRIVILEGED = {"disk_full", "shm_full", "network_cut", "network_flapping", "network_slow"}
# The promised fields of a row.
FIELDS = {"fault", "rank", "step", "detected_seconds", "recovered", "lost_steps", "lost_samples", "orphans", "leaked", "verdict"}


class Chaos(ProgramTest):
    def chaos(self, *arguments, config=TINY):
        return self.start(*([config] if config else []), *arguments, command=[CHAOS])

    def findings(self, *arguments, seconds=900, bits=True):
        """Runs chaos, expects that all runs pass, and returns what it has written. `bits`: the weights can be compared bit for
        bit with those of undisturbed runs."""
        process = self.chaos("--timeout=4", "--json=rows.json", *arguments)
        self.assert_status(0, process, seconds)
        found = json.loads((self.folder / "rows.json").read_text())
        for row in found["rows"]:
            self.assertEqual("ok", row["verdict"], row)
            self.assertLessEqual(FIELDS, row.keys())
            self.assertEqual(0, row["orphans"], row)
            self.assertEqual([], row["leaked"], row)
            if row["fault"] != "flip_gradient":  # some models diverge after it
                self.assertTrue(row["recovered"], row)
                self.assertEqual(0 if bits else None, row["lost_samples"], row)
        print(process.out)
        return found

    def lost_ranks(self, settings, how, faults, *arguments, **options):
        """Checks that runs with these settings survive each rank that is lost as `how` says, and that other faults end them."""
        found = self.findings(*settings, f"--faults={','.join(sorted(faults))}", *arguments, **options)
        self.assertTrue(found["bitwise"])
        for row in found["rows"]:
            lost = row["fault"] in LOSSES | {"kill_newcomer"}
            if lost:
                # A rank that ends by itself is not replaced.
                self.assertEqual("shrunk" if row["fault"] == "leave_early" else how, row["how"], row)
            else:
                self.assertNotIn(row["how"], ("shrunk", "replaced"), row)
            self.assertEqual(row["how"] == "replaced", row["returned_seconds"] is not None, row)
            if row["how"] == "replaced":
                self.assertGreater(row["returned_seconds"], 0, row)
            if row["how"] in ("shrunk", "replaced"):
                self.assertLessEqual(row["lost_steps"], 1, row)
        return found

    def shrinks(self, *arguments, **options):
        return self.lost_ranks(SHRINK, "shrunk", LOSSES | {"checkpoint_torn", "sigterm_in_checkpoint"}, *arguments, **options)

    def replaces(self, *arguments, **options):
        faults = LOSSES | {"kill_newcomer", "checkpoint_torn", "sigterm_in_checkpoint", "stop_and_continue"}
        return self.lost_ranks(REPLACE, "replaced", faults, *arguments, **options)


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
    """The tests called test_fifty... have 50 runs over the three ways to recover."""

    def test_fifty_faults_of_which_28_start_jobs_again(self):
        found = self.findings("--runs=28", "--seed=1", "--out=runs", *RESTART)
        self.assertEqual(28, len(found["rows"]))
        self.assertTrue(found["bitwise"])
        self.assertLessEqual({skipped["fault"] for skipped in found["skipped"]}, PRIVILEGED | {"kill_newcomer"})
        self.assertGreaterEqual(len({row["fault"] for row in found["rows"]}), 20)
        for row in found["rows"]:
            if row["fault"] in LOSSES | {"mismatch"}:
                self.assertEqual("relaunched", row["how"], row)
            if row["fault"] == "kill":
                self.assertLess(row["detected_seconds"], 2, row)
            self.assertEqual(self.repeated_steps(row), row["lost_steps"], row)
        self.assert_nothing_left()

    def repeated_steps(self, row):
        """Returns the steps that a run has repeated, from what it has printed."""
        if row["how"] not in ("relaunched", "resumed"):
            return 0
        run = self.folder / f"runs/run{row['run']:03}-{row['fault']}"
        # Each attempt has a file for each of its processes.
        text = "".join(file.read_text() for file in sorted(run.glob("attempt*/stdout*")))
        resumed = re.findall(r"Resumes after step (\d+)", text)
        before = row["step"] - (row["event"] != "on_update")
        return max(0, before - int(resumed[-1] if resumed else 0))

    def test_fifty_faults_of_which_10_cost_a_rank(self):
        found = self.shrinks("--runs=10", "--seed=5", "launch.ranks=3")
        self.assertEqual(10, len({row["fault"] for row in found["rows"]}))
        self.assert_nothing_left()

    def test_fifty_faults_of_which_12_bring_newcomers(self):
        found = self.replaces("--runs=12", "--seed=6")
        self.assertEqual(12, len({row["fault"] for row in found["rows"]}))
        self.assertEqual({"replaced"}, {row["how"] for row in found["rows"] if row["fault"] == "kill_newcomer"})
        self.assert_nothing_left()

    def test_losses_without_the_same_bits(self):
        """Only the loss can be compared, so lost_samples is unknown."""
        found = self.findings("--runs=1", "--seed=7", "--faults=kill", "faults.on_lost_rank=replace", "launch.ranks=3", bits=False)
        self.assertEqual("replaced", found["rows"][0]["how"])

    def test_flipped_bits(self):
        """Bits that ranks flip are found in the step in which they can be found, with the rank. Those of messages and of
        checkpoints are among the fifty faults."""
        found = self.findings("--runs=3", "--seed=3", "launch.ranks=3", "strategy=all_reduce",
                              "--faults=flip_parameter,flip_optimizer,flip_gradient")
        self.assertEqual(3, len({row["fault"] for row in found["rows"]}))

    def test_flipped_bits_of_virtual_shards(self):
        self.findings("--runs=1", "--seed=3", "launch.ranks=3", "strategy=all_reduce", "--faults=flip_gradient", *INVARIANT)

    def test_flipped_bits_of_buffers(self):
        self.findings("--runs=1", "--seed=4", "--faults=flip_buffer", "strategy=all_reduce", "model={name: mobilenet_v2, width_mult: 0.1}",
                      "train.sync_batch_norm=true", "train.max_steps=16")

    def test_threads(self):
        found = self.findings("--runs=6", "--seed=2", "backend=inproc", "--faults=kill,crash,exception_in_hook,mismatch,"
                              "double_ctrl_c,checkpoint_flipped")
        self.assertEqual(6, len({row["fault"] for row in found["rows"]}))

    def test_a_run_that_does_not_survive_is_reported(self):
        # A rank that is stopped for half a second is longer silent than this timeout allows.
        process = self.chaos("--runs=1", "--faults=stop_and_continue", "--timeout=0.2", "--json=rows.json")
        self.assert_status(1, process, 10 * SOON)
        row, = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertIn("it ended with status 1", row["verdict"])
        self.assertIn("1 of 1 runs failed", process.out)


class Nightly(Chaos):
    """Further runs of each mode, on other backends and numbers of ranks. configs/suites/nightly.yaml has 500 of another config."""

    RUNS = "--runs=125"

    def test_shm(self):
        self.findings(self.RUNS, "--seed=11", *RESTART, seconds=7200)

    def test_four_ranks(self):
        self.findings(self.RUNS, "--seed=12", "launch.ranks=4", seconds=7200)

    def test_gloo(self):
        self.findings(self.RUNS, "--seed=13", "backend=gloo", *RESTART, seconds=7200)

    def test_inproc(self):
        self.findings(self.RUNS, "--seed=14", "backend=inproc", seconds=7200)

    def test_lost_ranks(self):
        for backend in ("shm", "gloo"):
            with self.subTest(backend):
                self.shrinks(self.RUNS, "--seed=15", "launch.ranks=4", f"backend={backend}", seconds=7200)

    def test_newcomers(self):
        for backend in ("shm", "gloo"):
            for ranks in (2, 4):
                with self.subTest(backend, ranks=ranks):
                    self.replaces("--runs=60", "--seed=16", f"launch.ranks={ranks}", f"backend={backend}", seconds=7200)

    def test_full_shared_memory_of_mpi(self):
        """Open MPI keeps its segments there."""
        found = self.findings("--runs=2", "--seed=17", "--faults=shm_full", "backend=mpi")
        self.assertEqual({"went on"}, {row["how"] for row in found["rows"]})


if __name__ == "__main__":
    program.main()
