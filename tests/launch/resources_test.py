#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a run soon ends with a helpful error if the machine refuses something: ports, memory, disks, MPI, data."""

import os
import pathlib
import resource
import signal
import socket
import subprocess

import program
from program import ENDLESS, SHORT, ProgramTest, becomes_true, free_port, mpirun, sets, torchrun

SOON = 20  # seconds; none of these may wait for a timeout


def namespace(*commands):
    """Returns a shell that runs `commands` in its own mount namespace, then the arguments; None if that is not
    permitted."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    probe = subprocess.run(["unshare", *user, "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True)
    if probe.returncode != 0:
        return None
    return ["unshare", *user, "--mount", "sh", "-c", " && ".join([*commands, 'exec "$@"']), "sh"]


class Ports(ProgramTest):
    def test_port_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            process = self.train(*sets(SHORT), environment=torchrun(0, 2, port))
            self.assert_status(1, process, SOON)
        self.assertIn(f"127.0.0.1:{port}", process.err)
        self.assertIn(f"port {port} is taken", process.err)
        self.assertIn("MASTER_PORT", process.err)
        self.assertEqual(1, process.err.count("\n"), process.err)

    def test_another_program_listens_on_the_port_of_rank_0(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            process = self.train(*sets(SHORT, {"framework.timeout": 2}), environment=torchrun(1, 2, port))
            self.assert_status(1, process, SOON)
        self.assertIn(f"127.0.0.1:{port}", process.err)

    def test_the_other_rank_never_joins(self):
        process = self.train(*sets(SHORT, {"framework.timeout": 1}), environment=torchrun(0, 2, free_port()))
        self.assert_status(1, process, SOON)
        self.assertIn("1 of 2 ranks have joined", process.err)

    def test_rank_0_is_not_reachable(self):
        port = free_port()
        process = self.train(*sets(SHORT, {"framework.timeout": 1}), environment=torchrun(1, 2, port))
        self.assert_status(1, process, SOON)
        self.assertIn(f"127.0.0.1:{port}: cannot reach it", process.err)
        self.assertEqual(1, process.err.count("\n"), process.err)

    def test_an_address_that_cannot_be_resolved(self):
        process = self.train(*sets(SHORT, {"framework.timeout": 1}),
                             environment=torchrun(1, 2, 29500, MASTER_ADDR="no.such.host.invalid"))
        self.assert_status(1, process, SOON)
        message = "cannot resolve the address no.such.host.invalid"
        self.assertIn(message, process.err)
        self.assertEqual([message in line for line in process.err.splitlines()], [True, True])  # early, and last


class Memory(ProgramTest):
    def test_size_of_dev_shm_does_not_matter(self):
        small = namespace("mount -t tmpfs -o size=64k tmpfs /dev/shm", "head -c 64k /dev/zero > /dev/shm/full")
        if small is None:
            self.skipTest("no mount namespaces here")
        process = self.train(*sets(SHORT), command=[*small, program.TRAIN])
        self.assert_status(0, process)
        self.assertIn("connects by shm", self.run_folder().log(0).read_text())

    def test_nothing_of_a_run_lies_in_dev_shm(self):
        process = self.train(*sets(ENDLESS))
        run = self.run_folder()
        self.wait_for_training(run, process)
        maps = pathlib.Path(f"/proc/{self.rank_process(run, 1)}/maps").read_text()
        self.assertIn("/memfd:phalanx", maps)
        self.assertNotIn("/dev/shm", maps)

    def assert_too_large(self, key, section, *settings):
        process = self.train(*settings, "--set=expect={}", "--set=launch.ranks=1")
        self.assert_status(1, process, SOON)
        self.assert_framed_once(process, 0, 1, self.run_folder().log(0))
        self.assertIn(f"cannot make the {key}: ", process.words)
        self.assertIn(section, process.words)
        self.assertNotIn("frame #", process.err)
        return self.run_folder().log(0).read_text()

    def test_a_model_too_large_for_memory(self):
        log = self.assert_too_large("model", "hidden: [999999999999]", "--set=model={name: mlp, hidden: [999999999999]}")
        self.assertIn("frame #", log)

    def test_a_dataset_too_large_for_memory(self):
        self.assert_too_large("dataset", "train_samples: 999999999999", "--set=dataset.train_samples=999999999999")

    def test_no_shared_memory(self):
        # Limits files, including memory files, to 64 KB.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        process = self.train(*sets(SHORT), preexec_fn=limit)
        self.assert_status(1, process, SOON)
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assertIn("no shared memory for", process.err)
        self.assert_nothing_left()


class Disk(ProgramTest):
    # At the end, files are not tried again for long.
    at_once = {"checkpoint.retry": 1}

    def test_full(self):
        run = self.folder / "run"
        run.mkdir()
        full = namespace(f"mount -t tmpfs -o size=20k tmpfs {run}")
        if full:
            settings, why = {**ENDLESS, **self.at_once}, "No space left on device"
        else:  # a limit on the size of files replaces a full disk; one rank needs no memory file
            settings, why = {**ENDLESS, **self.at_once, "launch.ranks": 1}, "File too large"
            full = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash"]
        process = self.train(*sets(settings), command=[*full, program.TRAIN])
        message = f"Warning: {run}/metrics.jsonl: cannot be written: {why}"
        self.assertTrue(becomes_true(lambda: message in process.err or not process.running), process.text())
        self.assertTrue(process.running, process.text())
        process.kill(signal.SIGTERM)
        self.assert_status(130, process, 6 * SOON)
        self.assertIn("the run was stopped, but its checkpoint could not be written: ", process.words)
        self.assertIn(why, process.words)
        self.assertNotIn("without giving a reason", process.words)
        self.assertEqual(1, process.err.count(message), "once")
        self.assert_nothing_left()

    def test_full_when_weights_are_written(self):
        run = self.folder / "run"
        run.mkdir()
        full = namespace(f"mount -t tmpfs -o size=64k tmpfs {run}")
        if full is None:
            self.skipTest("no mount namespaces here")
        process = self.train(*sets(SHORT, self.at_once), command=[*full, program.TRAIN])
        self.assert_status(1, process, SOON)
        self.assertIn("weights.safetensors", process.err)
        self.assertIn("No space left on device", process.err)
        self.assert_nothing_left()

    def test_run_folder_that_is_renamed(self):
        run = self.run_folder()
        process = self.train(*sets(ENDLESS, self.at_once))
        self.wait_for_training(run, process)
        run.path.rename(self.folder / "elsewhere")
        message = f"Warning: {run.path}/metrics.jsonl: was removed or renamed during the run"
        self.assertTrue(becomes_true(lambda: message in process.err or not process.running), process.text())
        moved = self.run_folder("elsewhere")
        self.assertIn("was removed or renamed", moved.log(0).read_text())
        done = len(moved.metrics)
        self.assertTrue(becomes_true(lambda: len(moved.metrics) >= done + 2), "a renamed file gets all lines")
        process.kill(signal.SIGTERM)
        self.assert_status(130, process, 6 * SOON)
        self.assertIn("the run was stopped, but its checkpoint could not be written: ", process.words)
        self.assertIn("was removed or renamed during the run", process.words)
        self.assertEqual(1, process.err.count(message), "once")
        self.assertFalse((run.path / "checkpoints").exists(), "no second run folder")
        self.assert_nothing_left()

    def test_read_only(self):
        run = "/proc/phalanx"  # not even root can make a folder here
        process = self.start("--config", program.QUICKSTART, "--run_dir", run, *sets(SHORT))
        self.assert_status(2, process, SOON)
        self.assertIn(f"run folder {run} cannot be created", process.err)
        self.assertEqual(1, process.err.count("\n"), process.err)

    def test_no_place_for_temporary_files(self):
        process = self.train(*sets(SHORT), environment={"TMPDIR": "/no/such/folder"})
        self.assert_status(2, process, SOON)
        self.assertIn("cannot create a folder in /no/such/folder", process.err)

    def test_run_folder_with_a_run(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        before = (self.run_folder().path / "summary.json").read_bytes()
        process = self.train(*sets(SHORT))
        self.assert_status(2, process, SOON)
        self.assertIn(f"run folder {self.run_folder().path} already holds a run", process.err)
        self.assertEqual(before, (self.run_folder().path / "summary.json").read_bytes())


class Data(ProgramTest):
    """A missing dataset is reported once, with the searched files and folders, and how to get it."""

    mnist = sets({"dataset": "mnist", "expect": "{}"})

    def assert_explained(self, process, root):
        self.assert_status(1, process, SOON)
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                     "t10k-labels-idx1-ubyte"):
            self.assertIn(name, process.err)
        self.assertIn(root, process.err)
        self.assertIn("//tools:download -- mnist", process.err)
        self.assertEqual(1, process.err.count("files are missing from"), process.err)

    def test_forks(self):
        self.assert_explained(self.train(*self.mnist, "--set=dataset.root=/no/such/folder"), "/no/such/folder")
        self.assert_nothing_left()

    def test_threads(self):
        process = self.train(*self.mnist, "--set=backend=inproc", "--set=dataset.root=/no/such/folder")
        self.assert_explained(process, "/no/such/folder")

    def test_default_root_is_in_the_folder_of_datasets(self):
        process = self.train(*self.mnist, environment={"PHALANX_DATA": str(self.folder / "datasets")})
        self.assert_explained(process, str(self.folder / "datasets/mnist"))


class DataMpi(Data):
    def test_forks(self):
        process = self.train(*self.mnist, "--set=dataset.root=/no/such/folder", "--set=launch.with=mpi")
        self.assert_explained(process, "/no/such/folder")
        self.assert_nothing_left()

    def test_joined_by_hand(self):
        command = [*mpirun(2), program.TRAIN]
        self.assert_explained(self.train(*self.mnist, "--set=dataset.root=/no/such/folder", command=command), "/no/such")


    def test_a_mistake_of_all_ranks_is_reported_once(self):
        process = self.train("--set=backend=tin_cans", command=[*mpirun(2), program.TRAIN])
        self.assertEqual(2, process.wait(SOON), process.text())
        self.assertEqual(1, process.err.count('got "tin_cans"'), process.err)


class NoMpi(ProgramTest):
    def test_absent(self):
        empty = self.folder / "empty"
        empty.mkdir()
        process = self.train(*sets(SHORT, {"launch.with": "mpi"}), environment={"MPI_HOME": str(empty), "PATH": str(empty)})
        self.assert_status(2, process, SOON)
        self.assertIn(f"{empty}/bin/mpirun", process.err)
        self.assertIn("MPI_HOME", process.err)
        self.assertIn("PATH", process.err)
        self.assertIn("(the MPI this program was built with)", process.err)
        self.assertIn("launch.with=local", process.err)


if __name__ == "__main__":
    program.main()
