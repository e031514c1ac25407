#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that plan predicts what a step takes and runs confirm it, and that simulate reads the output of plan."""

import json
import unittest

from program import QUICKSTART, ROOT, ProgramTest, sets

PLAN = str(ROOT / "tools/plan/plan")
SIMULATE = str(ROOT / "tools/simulate/simulate")
SMALL = {"dataset.train_samples": 512, "dataset.test_samples": 64, "expect": "{}"}


class Plan(ProgramTest):
    def run_program(self, *arguments, status=0):
        process = self.start(*arguments[1:], command=[arguments[0]])
        self.assert_status(status, process)
        return process

    def plan(self, *arguments, status=0, **settings):
        return self.run_program(PLAN, f"--config={QUICKSTART}", *sets(SMALL, settings), *arguments, status=status)

    def test_predicts_bytes_and_operations_without_launching(self):
        out = self.plan(**{"launch.ranks": 2, "strategy": "all_reduce"}).out
        self.assertIn("rank 0 of 2", out)
        for word in ("parameters", "gradients", "optimizer", "activations", "all_reduce"):
            self.assertIn(word, out)
        self.assertEqual([], list((self.folder / "tmp").glob("phalanx*")))

    def test_plans_configs_of_devices_on_the_cpu(self):
        out = self.plan(**{"launch.ranks": 2, "device": "cuda", "train.cuda_graph": "true", "loader.resident": "true"}).out
        self.assertIn("rank 0 of 2", out)

    def test_plans_more_ranks_than_any_host_has(self):
        out = self.plan("--rank=511", **{"launch.ranks": 512, "train.global_batch_size": 512, "strategy": "sharded"}).out
        self.assertIn("rank 511 of 512", out)
        self.assertIn("reduce_scatter", out)

    def test_compares_the_plan_with_a_run(self):
        out = self.plan("--check", **{"launch.ranks": 2, "backend": "shm"}).out
        self.assertIn("operations: as planned", out)
        self.assertRegex(out, r"step: predicted [\d.]+ ms, measured [\d.]+ ms")

    def test_gives_simulate_a_model(self):
        self.plan("--json=model.json", **{"launch.ranks": 1})
        model = json.loads((self.folder / "model.json").read_text())["model"]
        self.assertGreater(model["seconds_per_sample"], 0)
        out = self.run_program(SIMULATE, "--scenario=model.json", "--set=cluster.hosts=8", "--svg=scaling.svg").out
        self.assertIn("on 8 ranks", out)
        self.assertIn("<svg", (self.folder / "scaling.svg").read_text())

    def test_refuses_in_one_line(self):
        for arguments, words in ((("--rank=5",), "--rank: there is no rank 5"),
                                 (("--set=strategy=gossip",), "strategy: what gossip")):
            error = self.plan(*arguments, status=2, **{"launch.ranks": 2}).err
            self.assertIn(words, error)
        served = ["--set=model={name: dlrm, embeddings: servers}", "--set=dataset={name: clicks}"]
        process = self.run_program(PLAN, f"--config={QUICKSTART}", *served, "--set=expect={}", status=2)
        self.assertIn("this program has no servers that hold the rows", process.words)
        scenario = f"--scenario={ROOT}/tools/simulate/gpt_cluster.yaml"
        self.assertIn("mesh:", self.run_program(SIMULATE, scenario, "--set=mesh.tensor=7", status=2).err)
        self.assertIn("cluster.memory", self.run_program(SIMULATE, scenario, "--search", "--set=cluster.memory=1000",
                                                         status=2).err)


if __name__ == "__main__":
    unittest.main()
