#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a job goes on without ranks that it loses, and that the result is that of a job that loses none."""

import json
import os
import re
import signal
import time
import types

import program
from program import ENDLESS, ProgramTest, QUICKSTART, SHORT, becomes_true, free_port, sets, torchrun

STEPS = 32
# The result is the same on any number of ranks. Evaluations and checkpoints lie between the steps.
SHRINK = {**SHORT, "faults.on_lost_rank": "shrink", "determinism": "world_size_invariant", "train.virtual_shards": 12,
          "launch.threads": 1, "train.max_steps": STEPS, "train.epochs": 100,
          "evaluate.every_steps": 4, "checkpoint.every_steps": 6, "watch.every_steps": 2}


# For losses at moments that nothing determines: trains until it is stopped, so that no machine is too slow or too fast. The
# schedule does not depend on when that is.
LONG = {**SHRINK, "train.max_steps": 0, "train.epochs": 1000000, "schedule": "constant", "evaluate.every_steps": 50,
        "checkpoint.every_steps": 30, "watch.every_steps": 10, "model": "{name: mlp, hidden: [16]}"}


class Shrink(ProgramTest):
    way = {}
    exact = True  # the results are compared bit for bit
    results_without_losses = {}  # by their settings, for all tests

    def train_with(self, settings, *more, run="run", base=SHRINK, **options):
        return self.train(*sets(base, self.way, settings), *more, run=run, **options)

    def fault(self, kind, rank=1, step=14, event="on_backward"):
        """Returns the variable that makes a rank fail once, in a step."""
        return {"PHALANX_FAULT": json.dumps({"kind": kind, "rank": rank, "step": step, "event": event, "seconds": 60,
                                             "note": str(self.folder / f"note{rank}")})}

    def here(self, settings, run):
        """Trains to the end, without a fault, on this host. Returns the run folder."""
        folder = self.run_folder(run)
        self.assert_status(0, ProgramTest.start(self, f"--config={QUICKSTART}", f"--run_dir={folder.path}", *sets(settings)))
        return folder

    def undisturbed(self, ranks):
        """Returns the results of a run that loses no rank. Exact ones depend neither on the number of ranks nor on their
        backend, so two ranks that share memory compute them, once for all tests."""
        settings = {**SHRINK, "launch.ranks": 2} if self.exact else {**SHRINK, **self.way, "launch.ranks": ranks}
        key = str(sorted(settings.items()))
        if key not in self.results_without_losses:
            run = self.here(settings, "undisturbed")
            self.results_without_losses[key] = types.SimpleNamespace(weights=run.weights, summary=run.summary,
                                                                     metrics=run.metrics)
        return self.results_without_losses[key]

    def wait_for(self, process, pattern):
        """Waits for a line of standard error. Returns what has matched."""
        becomes_true(lambda: re.search(pattern, process.err, re.M) or not process.running)
        found = re.search(pattern, process.err, re.M)
        self.assertTrue(found, process.text())
        return found

    def interrupt(self, process):
        process.interrupt()

    @staticmethod
    def last_step(run):
        return max((line["step"] for line in run.metrics), default=0)

    def stop(self, process, run):
        """Stops a job some steps after its last recovery. Returns the step after which it was saved."""
        recovered = re.findall(r"after step (\d+), ", process.err)
        step = max(self.last_step(run), int(recovered[-1]))
        becomes_true(lambda: self.last_step(run) > step + 20 or not process.running)
        self.assertTrue(process.running, process.text())
        self.interrupt(process)
        self.assert_status(130, process)
        self.assertEqual(0, process.err.count("┌─"), process.text())
        return int(re.search(r"^Stopped after step (\d+); ", process.out, re.M)[1])

    def assert_undisturbed_until(self, step, run, process):
        """Checks that a job with the settings LONG was saved after a step as a run that loses no rank."""
        undisturbed = self.here({**LONG, "launch.ranks": 2, "train.max_steps": step, "checkpoint.every_steps": step,
                                 "evaluate.every_steps": 0}, "undisturbed")
        weights = run.weights_after(step)
        self.assertTrue(weights)
        self.assertEqual(undisturbed.weights_after(step), weights, process.text())
        self.assertEqual(step, run.summary["steps"])

    def assert_undisturbed(self, process, run, ranks, lost, left=None):
        """Checks the end of a job of `ranks` ranks that has lost those in `lost`, and has ended with `left` ranks; by default,
        without the lost ones."""
        self.assert_status(0, process)
        undisturbed = self.undisturbed(ranks)
        if self.exact:
            self.assertEqual(undisturbed.weights, run.weights)
        self.assertAlmostEqual(undisturbed.summary["test"]["loss"], run.summary["test"]["loss"],
                               delta=0 if self.exact else 0.01)
        self.assertEqual(0, process.err.count("┌─"), process.text())
        self.assertEqual(sorted(lost), sorted(one["rank"] for one in run.summary["lost_ranks"]))
        self.assertEqual(ranks - len(lost) if left is None else left, run.summary["ranks"])
        self.assertEqual(STEPS, run.summary["steps"])
        self.assertGreater(run.summary["lost_seconds"], 0)
        self.assertLess(run.summary["goodput"], 1)
        self.assertEqual(1, undisturbed.summary["goodput"])
        self.assertEqual([], undisturbed.summary["lost_ranks"])
        tested = [line["step"] for line in run.metrics if line["split"] == "test"]
        self.assertEqual([line["step"] for line in undisturbed.metrics if line["split"] == "test"], tested)
        for rank in lost:
            self.assertEqual(1, process.err.count(f"Rank {rank} of {ranks} is lost, "), process.text())
        self.assertIn("Done after step", process.out)
        self.assert_nothing_left()

    def lose(self, kind, reason, rank=1, ranks=2, event="on_backward"):
        process = self.train_with({"launch.ranks": ranks}, environment=self.fault(kind, rank=rank, event=event))
        run = self.run_folder()
        self.assert_undisturbed(process, run, ranks, [rank])
        left = f"{ranks - 1} {'is' if ranks == 2 else 'are'} left"
        self.assertIn(f"Rank {rank} of {ranks} is lost, {left}: {reason}", process.err)
        step = self.step_after_loss(process, kind, rank, ranks)
        self.assertTrue(8 <= step <= 14, process.err)  # loaders are ahead of the steps
        return process

    def step_after_loss(self, process, kind, rank, ranks):
        """Returns the step after which training has gone on without one of `ranks` ranks."""
        again = re.search(r"^Training goes on after (\S+) s, after step (\d+), on ranks: (\d+)$", process.err, re.M)
        self.assertTrue(again, process.text())
        print(f"{kind} of rank {rank} of {ranks}: training went on after {again[1]} s")
        self.assertEqual(ranks - 1, int(again[3]))
        return int(again[2])


class OneLoss(Shrink):
    def test_killed_rank_0(self):
        """The next rank takes over the metrics, the checkpoints and the console."""
        process = self.lose("kill", "it was killed by signal 9 (SIGKILL)", rank=0)
        self.assertIn("Done after step 32; everything is in ", process.out)
        self.assertTrue(self.run_folder().path.joinpath("checkpoints").is_dir())

    def test_one_of_4(self):
        self.lose("crash", "it was killed by signal 11 (SIGSEGV)", rank=2, ranks=4)

    def test_rank_that_is_stopped(self):
        self.way = {**self.way, "faults.lost_after": 0.5}
        self.lose("stop", "it was stopped for 0.5 s (faults.lost_after), and was killed", ranks=3)

    def kill(self, run, ranks, process):
        """Kills ranks of a job, one after another, at moments that nothing determines."""
        for rank in ranks:
            os.kill(self.rank_process(run, rank), signal.SIGKILL)
            time.sleep(0.2)

    def test_one_after_another(self):
        process, run = self.train_with({"launch.ranks": 4}, base=LONG), self.run_folder()
        self.wait_for_training(run, process)
        self.kill(run, (0, 3, 1), process)
        self.wait_for(process, r"^Training goes on after \S+ s, after step \d+, on ranks: 1$")
        step = self.stop(process, run)
        self.assert_nothing_left()
        self.assert_undisturbed_until(step, run, process)
        self.assertEqual([0, 1, 3], sorted(one["rank"] for one in run.summary["lost_ranks"]), process.text())
        self.assertEqual(1, run.summary["ranks"])


class Shm(OneLoss):
    late = "waited 2 s for rank 1"

    def test_killed_rank(self):
        self.lose("kill", "it was killed by signal 9 (SIGKILL)")

    def test_batch_per_rank(self):
        """After the loss of one of two ranks, the other one takes two steps for the samples of one."""
        process = self.train_with({"launch.ranks": 2, "faults.batch": "per_rank", "determinism": "run", "train.max_steps": 0,
                                   "train.epochs": 2}, environment=self.fault("kill", step=5))
        self.assert_status(0, process)
        summary = self.run_folder().summary
        [lost] = summary["lost_ranks"]
        self.assertTrue(1 <= lost["step"] <= 5, process.err)
        # 16 steps of 64 samples, of which those after the loss are divided.
        self.assertEqual(lost["step"] + 2 * (16 - lost["step"]), summary["steps"])
        self.assert_nothing_left()

    def test_exception(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", ranks=3)

    def test_exception_of_rank_0_after_the_update(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", rank=0, ranks=3, event="on_update")

    def test_rank_that_leaves(self):
        self.lose("leave", "it ended without giving a reason", ranks=3)

    def ends(self, fault, settings, words):
        """Checks that a fault ends the job, since no rank is known to be lost."""
        process = self.train_with({"launch.ranks": 2, **settings}, environment=self.fault(fault))
        self.assert_status(1, process)
        self.assertIn(words, process.words)
        self.assertNotIn("is lost", process.words)
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assert_nothing_left()

    def test_rank_that_hangs(self):
        self.ends("full_pipe", {"framework.timeout": 2}, self.late)

    def test_replicas_that_differ(self):
        """Nobody knows which of two ranks is wrong."""
        self.ends("flip_parameter", {"replica_check.every_steps": 2}, "replicas differ: ")

    def test_below_min_ranks(self):
        process = self.train_with({"launch.ranks": 3, "faults.min_ranks": 3}, environment=self.fault("kill"))
        self.assert_status(5, process)
        saved = re.search(r"2 ranks are left, fewer than faults.min_ranks: 3. The run is saved after step (\d+);", process.words)
        self.assertTrue(saved, process.text())
        self.assertIn("Lost: rank 1 (it was killed by signal 9 (SIGKILL))", process.words)
        self.assert_nothing_left()
        resumed = self.train_with({"launch.ranks": 3}, "--resume=auto")
        self.assert_status(0, resumed)
        self.assertIn(f"Resumes after step {saved[1]}, ", resumed.out)
        self.assertEqual(self.undisturbed(3).weights, self.run_folder().weights)

    def test_interrupt_after_a_loss(self):
        settings = {**ENDLESS, "faults.on_lost_rank": "shrink", "launch.ranks": 3}
        process, run = self.train_with({}, base=settings), self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.rank_process(run, 0), signal.SIGKILL)
        self.assertTrue(becomes_true(lambda: "Training goes on" in process.err), process.text())
        live = run.path / "live.prom"
        self.assertTrue(becomes_true(lambda: live.exists() and "\nphalanx_lost_ranks 1\n" in live.read_text()))
        self.assertNotIn("\nphalanx_lost_seconds 0\n", live.read_text())
        process.interrupt()
        self.assert_status(130, process)
        self.assertIn("To resume, start it again", process.out)
        self.assert_nothing_left()


class Gloo(OneLoss):
    """The ranks agree by messages on who is left."""
    way = {"backend": "gloo"}


class GlooAll(Shm):
    way = Gloo.way


class Mpi(OneLoss):
    """mpirun says nothing of ranks that end, and the ranks learn from it only that they have."""
    way = {"backend": "mpi"}

    def kill(self, run, ranks, process):
        """Open MPI can crash if a rank ends while others create a group."""
        for count, rank in enumerate(ranks, 1):
            os.kill(self.rank_process(run, rank), signal.SIGKILL)
            self.assertTrue(becomes_true(lambda: process.err.count("Training goes on") == count), process.text())

    def test_exception(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", ranks=3)

    def test_lost_launcher(self):
        settings = {**ENDLESS, "faults.on_lost_rank": "shrink", "launch.ranks": 3}
        process, run = self.train_with({}, base=settings), self.run_folder()
        self.wait_for_training(run, process)
        process.kill()
        process.wait()
        self.assert_nothing_left()


class MpiAll(Shm):
    way, kill = Mpi.way, Mpi.kill
    late = "waited 2 s for ranks that did not come"


class Inproc(Shrink):
    """Threads share a random number generator, so bits depend on their number."""
    way = {"backend": "inproc", "determinism": "run"}
    exact = False

    def test_exception(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", ranks=3)

    def test_exception_of_rank_0(self):
        self.lose("exception_in_hook", "planned fault: exception in a hook", rank=0)

    def test_exception_in_the_loader(self):
        self.lose("exception_in_loader", "planned fault: batch 14 cannot be read")

    def test_sharded(self):
        self.way = {**self.way, "strategy": "sharded", "faults.copies_every": 5}
        self.lose("exception_in_hook", "planned fault: exception in a hook", ranks=3)


class Copies(Shrink):
    """A rank has state that no other rank has, except for a copy. The job goes back to the newest one, from where it is a
    job that resumes on fewer ranks."""
    EVERY = 5

    def settings(self, strategy, ranks):
        return {**SHRINK, "determinism": "run", "faults.copies_every": self.EVERY, "checkpoint.every_steps": self.EVERY,
                "checkpoint.keep_last": STEPS, "strategy": strategy, "launch.ranks": ranks}

    def lose_and_compare(self, strategy, rank, ranks, **fault):
        settings = self.settings(strategy, ranks)
        process, run = self.train(*sets(settings), environment=self.fault("kill", rank=rank, **fault)), self.run_folder()
        self.assert_status(0, process)
        back_to = self.step_after_loss(process, "kill", rank, ranks)
        self.assertEqual(10, back_to, process.err)
        self.assertEqual([(rank, back_to)], [(one["rank"], one["step"]) for one in run.summary["lost_ranks"]])
        self.assertEqual(STEPS, run.summary["steps"])
        self.assertEqual(list(range(2, STEPS + 1, 2)), [line["step"] for line in run.metrics if line["split"] == "train"])
        self.assert_nothing_left()
        self.assert_status(0, self.train(*sets(settings), run="undisturbed"))
        checkpoint = self.run_folder("undisturbed").path / f"checkpoints/step-{back_to:08}"
        resumed = self.train(*sets(settings, {"launch.ranks": ranks - 1}), f"--resume={checkpoint}", run="resumed")
        self.assert_status(0, resumed)
        self.assertEqual(self.run_folder("resumed").weights, run.weights, process.text())

    def test_sharded(self):
        """Rank 0 is lost, so the next one takes over the metrics, and cuts them back."""
        self.lose_and_compare("sharded", rank=0, ranks=3)

    def test_sharded_values(self):
        self.lose_and_compare("{sharded: {stage: 3}}", rank=2, ranks=4, event="on_update")

    def test_compressed(self):
        self.lose_and_compare("{all_reduce: {compression: {topk: {fraction: 0.1}}}}", rank=1, ranks=2)

    def lose_neighbours(self, settings):
        """Kills rank 1 of 4 and its neighbour."""
        settings = {**ENDLESS, "faults.on_lost_rank": "shrink", "strategy": "sharded", "launch.ranks": 4, **settings}
        process, run = self.train(*sets(settings)), self.run_folder()
        self.wait_for_training(run, process)
        one, other = self.rank_process(run, 1), self.rank_process(run, 2)
        os.kill(one, signal.SIGKILL)
        os.kill(other, signal.SIGKILL)
        return process

    def test_copies_that_are_lost(self):
        process = self.lose_neighbours({})
        self.assert_status(1, process)
        self.assertIn("ranks were lost together with the copies of their state, ", process.words)
        self.assertIn("set checkpoint.every_steps", process.words)
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assert_nothing_left()

    def test_copies_that_are_lost_with_a_checkpoint(self):
        process = self.lose_neighbours({"checkpoint.every_steps": 3})
        self.assertTrue(becomes_true(lambda: "Training goes on" in process.err), process.text())
        self.assertRegex(process.err, r"Training goes on after \S+ s, after step \d+, on ranks: 2")
        process.interrupt()
        self.assert_status(130, process)
        self.assert_nothing_left()


# Replicas of two ranks that exchange messages.
PIPE = {"mesh.tensor": 1, "mesh.pipe": 2, "pipeline": "{schedule: 1f1b, micro_batches: 4}"}
CONTEXT = {"mesh.tensor": 1, "mesh.context": 2, "model": "{name: char_lm, layers: 1, heads: 2, width: 16}",
           "dataset": "{name: copy_task, train_samples: 512, test_samples: 128}"}


class Replicas(Shrink):
    """A replica of two ranks loses one. The other one leaves, and the replica that is left goes back to a copy."""
    SETTINGS = {**SHRINK, "determinism": "run", "strategy": "all_reduce", "launch.ranks": 4, "mesh.tensor": 2,
                "faults.copies_every": 5, "checkpoint.every_steps": 5, "checkpoint.keep_last": STEPS}

    def lose_replica(self, rank, other, event="on_backward"):
        process = self.train(*sets(self.SETTINGS, self.way), environment=self.fault("kill", rank=rank, event=event))
        run = self.run_folder()
        self.assert_status(0, process)
        self.assertIn(f"Rank {rank} of 4 is lost, 2 are left: it was killed by signal 9 (SIGKILL)", process.err)
        self.assertEqual(1, process.err.count(f"Rank {other} leaves: its replica has lost rank {rank}\n"), process.text())
        self.assertRegex(process.err, r"Training goes on after \S+ s, after step 10, on ranks: 2")
        self.assertEqual(0, process.err.count("┌─"), process.text())
        lost = [(one["rank"], one["step"]) for one in run.summary["lost_ranks"]]
        self.assertEqual(sorted([(rank, 10), (other, 10)]), sorted(lost), process.text())
        self.assertEqual((2, STEPS), (run.summary["ranks"], run.summary["steps"]))
        self.assert_nothing_left()
        self.assert_status(0, self.train(*sets(self.SETTINGS, self.way), run="undisturbed"))
        checkpoint = self.run_folder("undisturbed").path / "checkpoints/step-00000010"
        resumed = self.train(*sets(self.SETTINGS, self.way, {"launch.ranks": 2, "faults.on_lost_rank": "stop"}),
                             f"--resume={checkpoint}", run="resumed")
        self.assert_status(0, resumed)
        self.assertEqual(self.run_folder("resumed").weights, run.weights, process.text())


class Meshes(Replicas):
    def test_shm(self):
        """Rank 0 leaves, so the next replica takes over the metrics and the console."""
        self.lose_replica(rank=1, other=0)

    def test_gloo(self):
        self.way = {"backend": "gloo"}
        self.lose_replica(rank=2, other=3)

    def test_pipe_on_shm(self):
        """The ranks of a pipeline wait for messages of each other, and have operations in flight meanwhile."""
        self.way = PIPE
        self.lose_replica(rank=0, other=1)

    def test_context_on_gloo(self):
        self.way = {**CONTEXT, "backend": "gloo"}
        self.lose_replica(rank=1, other=0)

    def test_last_replica(self):
        """When the only replica that is left loses a rank, the job ends as one that does not go on."""
        settings = {**ENDLESS, "faults.on_lost_rank": "shrink", "launch.ranks": 4, "mesh.tensor": 2}
        process, run = self.train(*sets(settings)), self.run_folder()
        self.wait_for_training(run, process)
        os.kill(self.rank_process(run, 3), signal.SIGKILL)
        self.assertTrue(becomes_true(lambda: "Training goes on" in process.err), process.text())
        os.kill(self.rank_process(run, 0), signal.SIGKILL)
        self.assert_status(3, process)
        self.assertIn("Rank 0 of 4 ", process.words)
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assert_nothing_left()


class MeshesAll(Replicas):
    def test_pipe_on_gloo(self):
        self.way = {**PIPE, "backend": "gloo"}
        self.lose_replica(rank=3, other=2, event="on_sample")

    def test_context_on_shm(self):
        self.way = CONTEXT
        self.lose_replica(rank=2, other=3, event="on_sample")


class MpiMeshes(Replicas):
    way = Mpi.way

    def test_rank_0_leaves(self):
        """The others wait until it has ended."""
        self.lose_replica(rank=1, other=0)


class Refused(ProgramTest):
    def refused(self, settings, key, words, **options):
        process = self.train(*sets(SHORT, {"faults.on_lost_rank": "shrink"}, settings), **options)
        self.assert_status(2, process)
        self.assertRegex(process.words, rf"{re.escape(key)}.*{re.escape(words)}")

    def test_settings(self):
        shrink = "faults.on_lost_rank: shrink "
        self.refused({"strategy": "hogwild"}, shrink, "set strategy: all_reduce, overlapped or sharded")
        self.refused({"strategy": "sharded", "faults.copies_every": 0}, "faults.copies_every: 0, ", "set 10, or ")
        self.refused({"mesh.tensor": 2, "launch.ranks": 2}, shrink, "set launch.ranks: 4")
        self.refused({"backend": "shm", "launch.with": "ssh", "launch.hosts": "[a, b]"}, shrink, "set backend: auto")
        self.refused({"faults.min_ranks": 3}, "faults.min_ranks: 3 ranks are more ", "set it to 2 at most")

    def test_other_launchers(self):
        self.refused({}, "faults.on_lost_rank: shrink ", "needs ranks that our own launcher starts",
                     environment=torchrun(0, 1, free_port()))

    def test_mpi_without_ulfm(self):
        """An mpirun of Open MPI 4."""
        old = self.folder / "mpi/bin/mpirun"
        old.parent.mkdir(parents=True)
        old.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.6'\n")
        old.chmod(0o755)
        self.refused({"backend": "mpi"}, "faults.on_lost_rank: shrink: ", "is that of Open MPI 4, which has no ULFM",
                     environment={"MPI_HOME": str(self.folder / "mpi")})
        self.assertFalse(self.run_folder().path.exists())

    def test_options_that_switch_ulfm_off(self):
        """With this option, Open MPI's mpirun would end with status 213 and no reason."""
        self.refused({"backend": "mpi", "launch.mpirun_options": "[--with-ft, none]"}, "launch.mpirun_options: ",
                     "--with-ft none contradicts faults.on_lost_rank: shrink")
        self.assertFalse(self.run_folder().path.exists())


if __name__ == "__main__":
    program.main()
