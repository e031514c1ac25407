#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the doctor program on this machine, and on one that lacks things."""

import json
import shutil
import subprocess
import unittest

from program import DEADLINE, ROOT, ProgramTest

DOCTOR = ROOT / "tools/doctor/doctor"
OPERATIONS = ["broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "gather", "scatter", "all_to_all",
              "send, recv", "barrier", "run", "split", "allocate"]


class Doctor(ProgramTest):
    def run_doctor(self, *flags, program=DOCTOR, status=0, **variables):
        done = subprocess.run([program, *flags], cwd=self.folder, env=self.environment(**variables), timeout=4 * DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return done

    def diagnose(self, **options):
        text = self.run_doctor("--json=found.json", **options).stdout
        return text, json.loads((self.folder / "found.json").read_text())

    def statuses(self, found, backend):
        cells = {cell["operation"]: cell["status"] for cell in found["operations"] if cell["backend"] == backend}
        self.assertEqual(OPERATIONS, list(cells), "a cell of the table is missing")
        return cells

    def test_finds_everything_here(self):
        text, found = self.diagnose()
        for backend in ("inproc", "shm", "mpi", "gloo"):
            self.assertEqual({"ok"}, set(self.statuses(found, backend).values()), (backend, text))
        for status in self.statuses(found, "nccl").values():
            self.assertRegex(status, "^cuda: there is no NVIDIA driver .*; or use device: cpu$")
        self.assertNotIn("nccl", text.partition("\nNotes")[2], "no device, so nothing to mend")
        self.assertEqual({"cpu", "cuda"}, {cell["device"] for cell in found["operations"]})
        self.assertEqual({"cuda": False, "nccl": False, "gloo": True, "mpi": True},
                         {name: found["capabilities"][name] for name in ("cuda", "nccl", "gloo", "mpi")})
        self.assertEqual({"LibTorch", "Open MPI", "Gloo", "SentencePiece", "SQLite", "glibc"},
                         {library["name"] for library in found["libraries"]} - {"MPI 5.0 ABI"})  # if this system has one
        self.assertGreater(found["kernels"]["matrix_peak"], 1e8)
        self.assertRegex(text, r"matrix products +[0-9.]+ GFLOP/s of float32 with one core")
        self.assertIn("Highway", {row["code"] for row in found["kernels"]["table"]})
        for library in found["libraries"]:
            self.assertTrue(library["path"].startswith("/"), library)
            if library["name"] in ("LibTorch", "Open MPI"):
                self.assertEqual(library["linked"], library["loaded"])
        self.assertLessEqual({"inproc", "shm", "mpi", "gloo"}, {link["backend"] for link in found["links"]["backends"]})
        self.assertIn("all_reduce", found["algorithms"])
        self.assertEqual({"one rank": "inproc", "ranks of one host": "shm", "ranks of several hosts": "hybrid"},
                         {row["ranks"]: row["backend"] for row in found["automatic"]})
        self.assertRegex(" ".join(text.split()), r"hybrid ranks of several hosts: shm \([0-9.]+ GB/s here\) inside each "
                                                 r"host, .* between hosts mpi .* otherwise gloo \([0-9.]+ GB/s here\)")
        self.assertRegex(found["capabilities"]["address"], "^[0-9a-f.:]+ of |^none: ")
        self.assertNotIn("\033", text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)

    def test_names_its_launcher(self):
        launched = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        text, found = self.diagnose(**launched)
        self.assertIn("rank 1 of 4, local rank 1 of 2", found["capabilities"]["launched"])
        self.assertEqual("several", found["capabilities"]["nodes"])
        self.assertIn("the ranks meet at env://", found["capabilities"]["launched"])
        self.assertEqual(["ranks of several hosts"], [row["ranks"] for row in found["automatic"] if row["here"]])
        self.assertEqual({"ok"}, set(self.statuses(found, "shm").values()), "doctor starts separate ranks")

    def test_without_mpirun_only_mpi_fails(self):
        text, found = self.diagnose(MPI_HOME=str(self.folder))
        for status in self.statuses(found, "mpi").values():
            self.assertIn("mpirun", status)
        self.assertEqual({"ok"}, set(self.statuses(found, "shm").values()))
        self.assertFalse(found["capabilities"]["mpi"])
        self.assertIn("backend mpi fails in 13 of 13 operations", " ".join(text.split()))

    def test_needs_no_library_of_training(self):
        needed = subprocess.run(["ldd", DOCTOR], check=True, capture_output=True, text=True).stdout
        self.assertIn("libc.so", needed)
        for library in ("libtorch", "libc10", "libmpi", "libGloo", "libsentencepiece"):
            self.assertNotIn(library, needed)

    def test_says_why_programs_do_not_start(self):
        alone = self.folder / "doctor"
        shutil.copy(DOCTOR, alone)
        (self.folder / "probe").write_text("#!/bin/sh\necho 'error while loading libmpi.so.40' >&2\nexit 127\n")
        (self.folder / "probe").chmod(0o755)
        text, found = self.diagnose(program=alone)
        self.assertIn("Phalanx's programs do not start here: error while loading libmpi.so.40", " ".join(text.split()))
        for backend in ("inproc", "shm", "mpi", "gloo", "nccl"):
            self.assertEqual({"error while loading libmpi.so.40"}, set(self.statuses(found, backend).values()))
        self.assertTrue(found["machine"]["cores"] > 0)

    def test_wrong_command_line(self):
        self.assertIn('"stray"', self.run_doctor("stray", status=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
