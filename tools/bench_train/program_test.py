#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the bench_train program: its measurements, its output, and its messages when something is wrong."""

import json
import os
import subprocess
import unittest

from program import DEADLINE, ROOT, ProgramTest

BENCH = str(ROOT / "tools/bench_train/bench_train")
QUICK = ["--rounds=2", "--seconds=0.05"]
ROW = {"workload", "system", "ranks", "kernels", "samples_per_second", "p10", "p90", "step_ms", "backward_ms", "busy_ms",
       "ratio", "ratio_to_no_communication", "operations", "of_peak", "hidden", "hidden_of_waiting", "seconds_to_loss", "steps_to_loss"}


# Answers "run N" with N losses.
PEER = """[ $# -gt 2 ] || exit 0
echo ready
while read -r word steps; do
  echo "{\\"seconds\\": 2, \\"backward\\": 1, \\"losses\\": [$(yes 0.5 | head -n "$steps" | paste -sd,)]}"
done
"""


class BenchTrain(ProgramTest):
    def bench(self, *flags, status=0):
        done = subprocess.run([BENCH, *flags], cwd=self.folder, env=self.environment(), timeout=2 * DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return done

    def interpreter(self, script):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\n" + script)
        python.chmod(0o755)
        return f"--python={python}"

    def test_systems_take_turns(self):
        done = self.bench(*QUICK, "--workload=mlp", "--systems=phalanx,phalanx_sharded,barrier_alone,no_communication",
                          "--against=phalanx", "--json=rows.json")
        result = json.loads((self.folder / "rows.json").read_text())
        self.assertEqual(["phalanx", "phalanx_sharded", "barrier_alone", "no_communication"],
                         [row["system"] for row in result["rows"]])
        for row in result["rows"]:
            self.assertEqual(ROW, set(row))
            self.assertEqual(("mlp", 2), (row["workload"], row["ranks"]))
            self.assertGreater(row["samples_per_second"], 0)
            self.assertGreater(row["backward_ms"], 0)
            self.assertGreater(row["step_ms"], row["backward_ms"])
            self.assertGreater(row["busy_ms"], 0)
            self.assertIn(row["system"], done.stdout)
            self.assertGreater(row["of_peak"], 0)
            # 2 operations for each weight and sample: forward, gradients of weights, and gradients of inputs except in
            # the first layer.
            self.assertEqual(2 * 64 * 2 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 10), row["operations"])
        self.assertEqual(1, result["rows"][0]["ratio"])
        self.assertEqual(1, result["rows"][3]["ratio_to_no_communication"])
        self.assert_nothing_left()

    def test_trains_until_a_loss(self):
        self.bench("--rounds=100", "--seconds=0.05", "--workload=mlp",
                   "--systems=phalanx,phalanx_checkpoints,no_communication", "--until_loss=2", "--json=rows.json")
        *ours, limit = json.loads((self.folder / "rows.json").read_text())["rows"]
        for row in ours:
            self.assertGreater(row["seconds_to_loss"], 0)
            self.assertGreaterEqual(row["steps_to_loss"], 20)
            self.assertGreaterEqual(len(row["losses"]), row["steps_to_loss"])
        self.assertIsNone(limit["steps_to_loss"])  # it trains no model together

    def test_a_peer_reports_its_own_times(self):
        """Uses an interpreter that answers like a rank of PyTorch, always with the same time."""
        python = self.interpreter(PEER)
        self.bench(*QUICK, "--workload=mlp", "--systems=phalanx", "--against=ddp", python, "--json=rows.json")
        ours, peer = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertEqual(2 * 64 / 2, peer["samples_per_second"])
        self.assertEqual(2000, peer["step_ms"])
        self.assertEqual(1, peer["ratio"])
        self.assertIsNone(peer["kernels"])
        self.assertAlmostEqual(ours["samples_per_second"] / peer["samples_per_second"], ours["ratio"], delta=0.01)

    def test_one_process_trains_the_batches_of_all_ranks(self):
        """Uses batches of all ranks in one process, with a thread for each rank; JAX reports no time of backward."""
        job = self.folder / "job.json"
        for system, flag in (("torch_process", "--python"), ("jax", "--jax_python")):
            note = f"""[ $# -gt 2 ] || exit 0\nprintf '%s\\n' "$3" >> {job}\n"""
            python = self.interpreter(note + PEER.replace('\\"backward\\": 1', '\\"backward\\": null'))
            self.bench(*QUICK, "--workload=mlp", "--systems=", f"--against={system}", flag + python[len("--python"):],
                       "--json=rows.json")
            (peer,) = json.loads((self.folder / "rows.json").read_text())["rows"]
            self.assertEqual((system, 2, 2 * 64 / 2), (peer["system"], peer["ranks"], peer["samples_per_second"]))
            self.assertIsNone(peer["backward_ms"])
            (said,) = map(json.loads, job.read_text().splitlines())
            self.assertEqual((1, 2, 2 * 64), (said["size"], said["threads"], said["batch"]))
            job.unlink()

    def test_trains_in_a_loop_in_cpp(self):
        """Trains the same network with Phalanx as a library and with what C++ programs have without it."""
        together = ["cpp_phalanx", "cpp_phalanx_fused", "cpp_mpi"] + (["cpp_reducer", "cpp_reducer_views"] if os.environ["GLOO"] else [])
        self.bench("--rounds=2", "--seconds=0.05", "--until_loss=2", "--workload=lenet",
                   f"--systems={','.join(together)},cpp_no_communication", "--json=rows.json")
        rows = {row["system"]: row for row in json.loads((self.folder / "rows.json").read_text())["rows"]}
        self.assertEqual({*together, "cpp_no_communication"}, set(rows))
        for row in rows.values():
            self.assertGreater(row["samples_per_second"], 0)
            self.assertGreater(row["step_ms"], row["backward_ms"])
            self.assertIsNone(row["kernels"])
            self.assertGreater(row["ratio_to_no_communication"], 0)
        # All systems compute the same, up to the order in which they add.
        for one in together:
            for mine, expected in zip(rows[one]["losses"][:4], rows["cpp_phalanx"]["losses"]):
                self.assertAlmostEqual(expected, mine, delta=1e-4, msg=one)
        self.assert_nothing_left()

    def test_trains_a_model_of_the_zoo(self):
        self.bench(*QUICK, "--workload=zoo_unet", "--systems=phalanx,phalanx_libtorch_kernels", "--json=rows.json")
        rows = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertEqual([("zoo_unet", "phalanx"), ("zoo_unet", "phalanx_libtorch_kernels")],
                         [(row["workload"], row["system"]) for row in rows])
        self.assertGreater(rows[0]["of_peak"], 0)
        self.assertIn("vectors", rows[0]["kernels"], "the ranks compute with the kernels that the config asks for")
        self.assertEqual("libtorch", rows[1]["kernels"])

    def test_says_what_is_wrong(self):
        for flag, message in (("--workload=mpl", 'did you mean "mlp"'), ("--systems=ddq", 'did you mean "ddp"'),
                              ("--rounds=0", "--rounds")):
            done = self.bench(flag, status=2)
            self.assertIn(message, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_says_what_an_interpreter_lacks(self):
        done = self.bench("--workload=mlp", "--against=ddp", self.interpreter("exit 1\n"), status=2)
        self.assertIn("--against ddp", done.stderr)
        self.assertIn("has no PyTorch with gloo", done.stderr)
        jax = "--jax_python" + self.interpreter("exit 1\n")[len("--python"):]
        done = self.bench("--workload=mlp", "--against=jax", jax, status=2)
        self.assertIn("has no JAX; name an interpreter that has it with --jax_python", done.stderr)

    def test_a_peer_that_ends_is_an_error(self):
        python = self.interpreter('[ $# -gt 2 ] || exit 0\necho "no torch today" >&2\nexit 1\n')
        done = self.bench("--workload=mlp", "--systems=ddp", python, status=1)
        self.assertIn("ddp, rank 0: ", done.stderr)
        self.assertIn("no torch today", done.stderr)
        self.assert_nothing_left()

    def test_a_peer_that_fails_later_is_omitted(self):
        python = self.interpreter(PEER.replace("; do\n", "; do\n  [ $((turns += 1)) -lt 3 ] || exit 1\n"))
        done = self.bench("--rounds=4", "--seconds=0.05", "--workload=mlp", "--systems=phalanx", "--against=ddp",
                          python, "--json=rows.json", status=1)
        (ours,) = json.loads((self.folder / "rows.json").read_text())["rows"]
        self.assertEqual(("phalanx", None), (ours["system"], ours["ratio"]))
        self.assertIn("phalanx", done.stdout)
        self.assertEqual(1, done.stderr.count("; leaving it out\n"), done.stderr)
        self.assertIn("bench_train: mlp: ddp, rank ", done.stderr)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(verbosity=2)
