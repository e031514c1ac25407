#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests training under a real Slurm of two nodes: by srun and sbatch, preempted and requeued, and as jobs of a suite."""

import json
import os
import pathlib
import re
import signal
import sys
import unittest

import slurm
from program import ENDLESS, QUICKSTART, ROOT, SHORT, TRAIN, ProgramTest, becomes_true, sets

sys.path.insert(0, str(ROOT / "tests/readme"))
import documents

RUN_JOBS = str(ROOT / "tools/regress/places/testing/run_jobs")
MISSING = slurm.what_is_missing()
# Two nodes share the cores of this machine.
SMALL = {**SHORT, "launch.threads": 1}



def batch_script(with_option):
    """Returns the batch script with this option that docs/clusters.md shows."""
    return next(block.text for block in documents.blocks(ROOT, "docs/clusters.md")
                if "#SBATCH" in block.text and with_option in block.text)


@unittest.skipIf(MISSING, MISSING)
class SlurmTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "slurm").mkdir()
        self.slurm = slurm.Slurm(self.folder / "slurm")
        mpirun = pathlib.Path(os.path.realpath(ROOT / os.environ["MPIRUN"])).parent
        self.slurm.environment = self.environment(SLURM_CONF=self.slurm.environment["SLURM_CONF"],
                                                  PATH=f"{mpirun}:{os.environ['PATH']}")
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)

    def start_there(self, *words):
        """Starts a command on the first node."""
        return self.start(command=self.slurm.command(*words), environment=self.slurm.environment)

    def srun_train(self, srun, settings):
        return self.start_there("srun", *srun, TRAIN, f"--config={QUICKSTART}", f"--run_dir={self.folder}/run",
                                *sets(settings))

    def state(self, job):
        return self.slurm.output("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")

    def await_state(self, job, state):
        self.assertTrue(becomes_true(lambda: self.state(job) == state), f"{self.state(job)}, not {state}")


class Srun(SlurmTest):
    def test_tasks_of_a_node_are_ranks(self):
        process = self.srun_train(["--nodes=1", "--ntasks=2"], SMALL)
        self.assert_status(0, process)
        self.assertEqual(2, self.run_folder().summary["ranks"])
        self.assertIn("started by srun, connects by shm", self.run_folder().log(1).read_text())

    def test_tasks_of_two_nodes_meet_at_the_first_node(self):
        """Without PMIx, the list of nodes says where. MPI would see a world of one in each task."""
        process = self.srun_train(["--nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--mpi=none"], SMALL)
        self.assert_status(0, process)
        self.assertEqual(4, self.run_folder().summary["ranks"])
        for rank in range(4):
            self.assertRegex(self.run_folder().log(rank).read_text(),
                             f"rank {rank} of 4 on node{rank // 2 + 1}, started by srun, connects by hybrid")

    def test_a_task_that_does_not_come_is_named(self):
        """One of the tasks is another program."""
        script = f'[ "$SLURM_PROCID" = 1 ] && sleep 600; exec {TRAIN} --config={QUICKSTART} "$@"'
        process = self.start_there("srun", "--nodes=2", "--ntasks=2", "--mpi=none", "--kill-on-bad-exit=1", "sh", "-c",
                                   script, "sh", f"--run_dir={self.folder}/run",
                                   *sets(SMALL, {"framework.timeout": 5}))
        self.assertNotEqual(0, process.wait())
        self.assertRegex(process.words, "TCP store node1:[0-9]+: waited 5 s, but only 1 of 2 ranks have joined; "
                                        "rank 1 is missing")

    def test_backend_mpi_refuses_tasks_that_mpi_does_not_know_of(self):
        """Each task would train alone."""
        process = self.srun_train(["--nodes=2", "--ntasks=2", "--mpi=none"], {**SMALL, "backend": "mpi"})
        self.assert_status(2, process)
        self.assertIn("MPI, which sees a world of one; start the ranks with mpirun, or under Slurm with "
                      "`srun --mpi=pmix`", process.words)

    def test_tasks_of_two_nodes_meet_through_mpi_if_pmix_started_them(self):
        for backend in ("auto", "gloo"):
            with self.subTest(backend):
                process = self.srun_train(["--nodes=2", "--ntasks=2", "--mpi=pmix"], {**SMALL, "backend": backend})
                if process.wait() != 0 and "can not load PMIx library" in process.err:
                    self.skipTest("Slurm finds no PMIx; install libpmix-dev")
                self.assert_status(0, process)
                self.assertEqual(2, self.run_folder().summary["ranks"])
                self.assertIn("rank 1 of 2 on node2, started by srun", self.run_folder().log(1).read_text())
                self.run_folder().path.rename(self.folder / backend)


class OfBatchScripts(SlurmTest):
    script = ""  # an option of the script

    def submit(self, settings):
        """Submits the script with real paths and more settings."""
        text = batch_script(self.script)
        for shown, real in (("bazel-bin/tools/train", TRAIN), ("configs/quickstart.yaml", QUICKSTART),
                            ("runs/batch", f"{self.folder}/run"), ("train.log", f"{self.folder}/train.log")):
            self.assertEqual(1, text.count(shown), text)
            text = text.replace(shown, real)
        script = self.folder / "job.sh"
        script.write_text(text.rstrip() + "".join(f" '{setting}'" for setting in sets(settings)) + "\n")
        return self.slurm.output("sbatch", "--parsable", str(script))

    def log(self):
        path = self.folder / "train.log"
        return path.read_text() if path.exists() else ""

    def await_log(self, words):
        self.assertTrue(becomes_true(lambda: words in self.log()), self.log())

    def end(self, job):
        """Returns the state in which a job has ended."""
        self.assertTrue(becomes_true(lambda: self.state(job) not in ("PENDING", "RUNNING", "COMPLETING")), self.log())
        return self.state(job)


class Sbatch(OfBatchScripts):
    script = "--set launch.with=mpi"

    def test_ranks_are_spread_over_the_nodes(self):
        job = self.submit(SMALL)
        self.assertEqual("COMPLETED", self.end(job), self.log())
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 on node{rank // 2 + 1}, started by mpirun",
                          self.run_folder().log(rank).read_text())

    def test_a_preempted_job_is_requeued_and_continues(self):
        job = self.submit({**ENDLESS, "launch.threads": 1, "launch.ranks": 2, "checkpoint.every_steps": 8})
        checkpoints = self.folder / "run/checkpoints"
        self.assertTrue(becomes_true(lambda: any(checkpoints.glob("step-*"))), self.state(job))
        other = self.slurm.output("sbatch", "--parsable", "--partition=high", "--nodes=2", "--exclusive",
                                  f"--output={self.folder}/other.log", "--wrap", "echo first")
        self.await_state(other, "COMPLETED")
        self.await_state(job, "RUNNING")
        self.assertTrue(becomes_true(lambda: "Resumed" in self.log() or "resume" in self.log().lower()), self.log())
        self.slurm.output("scancel", job)
        self.await_state(job, "CANCELLED")


class Losses(OfBatchScripts):
    """Jobs whose agents are steps, which go on without ranks and nodes that they lose."""
    script = "--set launch.with=srun"
    LONG = {**SHORT, "launch.threads": 1, "train.max_steps": 1_000_000, "train.epochs": 1_000_000, "watch.every_steps": 10,
            "model": "{name: mlp, hidden: [16]}"}

    def begin(self, settings):
        """Submits a job, and waits until it trains."""
        job = self.submit(settings)
        self.assertTrue(becomes_true(lambda: len(self.run_folder().metrics) >= 2), self.log())
        return job

    def stop(self, job):
        """Stops a job that would train for ever. Slurm gives the script the signal of --signal, before the others get one."""
        self.slurm.output("scancel", "--batch", "--signal=TERM", job)
        self.assertEqual("FAILED", self.end(job), self.log())
        self.assertRegex(self.log(), re.compile(r"^Stopped after step \d+; ", re.M))

    def test_a_job_goes_on_without_a_killed_rank_of_another_node(self):
        job = self.begin(self.LONG)
        os.kill(self.rank_process(self.run_folder(), 3), signal.SIGKILL)
        self.await_log("Training goes on after ")
        self.stop(job)
        self.assertIn("Rank 3 of 4 is lost, 3 are left: it was killed by signal 9 (SIGKILL)\n", self.log())
        self.assertRegex(self.log(), r"Training goes on after \S+ s, after step \d+, on ranks: 3\n")
        self.assertNotIn("┌─", self.log())
        self.assertRegex(self.run_folder().log(3).read_text(), "rank 3 of 4 on node2, started by local")

    def test_a_job_goes_on_without_a_node_that_slurm_takes_for_lost(self):
        job = self.begin(self.LONG)
        self.slurm.output("scontrol", "update", "nodename=node2", "state=down", "reason=test")
        self.await_log("Training goes on after ")
        self.stop(job)
        for rank in (2, 3):
            self.assertRegex(self.log(), rf"Rank {rank} of 4 is lost, 2 are left: it was on node2, which is lost: ")
        self.assertRegex(self.log(), r"Training goes on after \S+ s, after step \d+, on ranks: 2\n")

    def test_a_job_that_slurm_asks_to_stop_saves_and_continues_when_it_is_requeued(self):
        job = self.begin(self.LONG)
        self.stop(job)
        self.assertIn(f"Slurm does so by: scontrol requeue {job}\n", self.log())
        stopped = int(re.search(r"^Stopped after step (\d+); ", self.log(), re.M)[1])
        self.slurm.output("scontrol", "requeue", job)
        self.await_log(f"Resumes after step {stopped}, ")
        self.slurm.output("scancel", job)
        self.await_state(job, "CANCELLED")

    def test_ranks_that_srun_itself_starts_are_refused_with_what_to_set(self):
        process = self.srun_train(["--nodes=1", "--ntasks=2"], {**SMALL, "faults.on_lost_rank": "shrink"})
        self.assert_status(2, process)
        self.assertIn("but srun starts these; start one process in the script of sbatch or the shell of salloc, without srun, "
                      "and set launch.with: srun", process.words)

    def test_more_ranks_than_tasks_are_refused(self):
        job = self.submit({"launch.ranks": 8})
        self.assertEqual("FAILED", self.end(job), self.log())
        self.assertIn("launch.ranks: 8 ranks are more than the 4 tasks of this Slurm job", self.log())


class Suite(SlurmTest):
    """The place where regress runs jobs."""

    def setUp(self):
        super().setUp()
        self.owner = self.folder / "out"
        self.owner.mkdir()

    def job(self, name, *command, **more):
        (self.owner / name).mkdir(exist_ok=True)
        return {"name": name, "command": command, "folder": str(self.owner / name), **more}

    def shell(self, name, script, **more):
        return self.job(name, "/bin/sh", "-c", script, "sh", **more)

    def start_jobs(self, *jobs, on="slurm"):
        return self.start_there(RUN_JOBS, on, str(self.owner), json.dumps(jobs))

    def run_jobs(self, *jobs, on="slurm"):
        """Returns the description of the place, and the ends of the jobs by name."""
        process = self.start_jobs(*jobs, on=on)
        self.assert_status(0, process)
        place, *ends = map(json.loads, process.out.splitlines())
        return place, {end.pop("name"): end for end in ends}

    def read(self, job, name):
        return (self.owner / job / name).read_text()

    def await_text(self, job, text):
        path = self.owner / job / "stdout.log"
        self.assertTrue(becomes_true(lambda: path.exists() and text in path.read_text()), f"{text} in {path}")

    def test_has_the_slots_of_the_partition(self):
        place, _ = self.run_jobs()
        self.assertEqual({"slots": 2 * slurm.CORES, "most_hosts": 2, "description": "slurm partition low"}, place)
        self.assertEqual("slurm partition high", self.run_jobs(on="slurm:high")[0]["description"])
        process = self.start_jobs(on="slurm:debug")
        self.assert_status(1, process)
        self.assertIn("--on slurm:debug: there is no such partition; there are high, low", process.err)

    def test_jobs_of_equal_size_are_one_array(self):
        _, ends = self.run_jobs(self.shell("good", "echo $SLURM_ARRAY_TASK_COUNT"),
                                self.shell("bad", "echo why >&2; exit 4"), self.shell("dead", "kill -9 $$"))
        self.assertEqual({"good": 0, "bad": 4, "dead": 137}, {name: end["exit_status"] for name, end in ends.items()})
        self.assertEqual({""}, {end["infrastructure_error"] for end in ends.values()})
        self.assertEqual("3\n", self.read("good", "stdout.log"))
        self.assertEqual("why\n", self.read("bad", "stderr.log"))

    def test_what_slurm_cannot_run_may_be_retried(self):
        lost = {"name": "lost", "command": ["/bin/true"], "folder": "/does/not/exist"}
        _, ends = self.run_jobs(lost, self.shell("huge", "true", ranks=100))
        self.assertIn("could not start the command; see ", ends["lost"]["infrastructure_error"])
        self.assertIn("cannot start: PartitionConfig", ends["huge"]["infrastructure_error"])

    def test_jobs_end_when_their_time_is_up_or_they_are_stopped(self):
        endless = "echo up; sleep 600"
        process = self.start_jobs(self.shell("slow", endless, time_limit=2), self.shell("stopped", endless),
                                  self.shell("killed", endless))
        for name in ("stopped", "killed"):
            self.await_text(name, "up")
        (self.owner / "stopped.stop").touch()
        (self.owner / "killed.kill").touch()
        self.assert_status(0, process)
        ends = {end["name"]: (end["exit_status"], end["timed_out"])
                for end in map(json.loads, process.out.splitlines()[1:])}
        self.assertEqual({"slow": (143, True), "stopped": (143, False), "killed": (137, False)}, ends)

    def test_a_requeued_job_runs_to_its_end(self):
        script = 'echo "$SLURM_RESTART_COUNT $*"; [ -n "$1" ] || sleep 600; exit 3'
        process = self.start_jobs(self.shell("again", script))
        self.await_text("again", "\n")
        self.slurm.output("scontrol", "requeue", self.slurm.output("squeue", "--noheader", "--array", "--format=%i"))
        self.assert_status(0, process)
        self.assertEqual(3, json.loads(process.out.splitlines()[1])["exit_status"])
        self.assertEqual([" ", "1 --resume=auto"], self.read("again", "stdout.log").splitlines())

    def test_jobs_of_a_killed_regress_are_ended_by_the_next(self):
        process = self.start_jobs(self.shell("orphan", "echo up; sleep 600"))
        self.await_text("orphan", "up")
        self.slurm.output("pkill", "-KILL", "-f", f"^{RUN_JOBS} ")  # sees the processes of this cluster only
        process.wait()
        self.run_jobs(self.shell("next", "true"))
        left = self.slurm.output("squeue", "--noheader", "--array", "--format=%i")
        self.assertEqual("", left)

    def test_a_job_of_two_hosts_trains_on_both(self):
        job = self.job("train", TRAIN, f"--config={QUICKSTART}", f"--run_dir={self.folder}/run",
                       *sets({**SMALL, "launch.ranks": 2}), ranks=2, hosts=2)
        _, ends = self.run_jobs(job)
        self.assertEqual(0, ends["train"]["exit_status"], f"{ends} {self.read('train', 'stderr.log')}")
        self.assertIn("rank 1 of 2 on node2, started by mpirun", self.run_folder().log(1).read_text())

    def test_a_job_that_survives_a_lost_host_trains_on_both_by_srun(self):
        job = self.job("train", TRAIN, f"--config={QUICKSTART}", f"--run_dir={self.folder}/run",
                       *sets({**SMALL, "launch.ranks": 2, "faults.on_lost_rank": "shrink", "strategy": "all_reduce"}),
                       ranks=2, hosts=2, survives_lost_host=True)
        _, ends = self.run_jobs(job)
        self.assertEqual(0, ends["train"]["exit_status"], f"{ends} {self.read('train', 'stderr.log')}")
        self.assertIn("rank 1 of 2 on node2, started by local", self.run_folder().log(1).read_text())


class Library(SlurmTest):
    def test_tasks_are_ranks_of_a_program_that_uses_it(self):
        process = self.start_there("srun", "--nodes=1", "--ntasks=2", str(ROOT / "examples/statistics"))
        self.assert_status(0, process)
        self.assertIn("300000 values of 2 ranks", process.out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
