#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the suites are valid, and that the nightly covers what it promises."""

import re

import program
from program import ROOT, ProgramTest

REGRESS = str(ROOT / "tools/regress/regress")
STRATEGIES = {"auto", "single", "all_reduce", "overlapped", "sharded", "local_sgd", "diloco", "gossip", "hogwild",
              "sync_ps", "downpour", "ssp", "dc_asgd", "easgd", "levels"}
# Folders with tests: all packages are below them.
SANITIZED = {"datasets", "engine", "examples", "launch", "models", "phalanx", "tests", "tools",
             *(f"framework/{part}" for part in ("backends", "base", "collectives", "comm", "kernels", "observe", "parallel",
                                                "partition", "ps", "testing"))}
BACKENDS = {"inproc", "shm", "gloo", "hybrid", "mpi"}


class Suites(ProgramTest):
    def cases(self, name):
        """Returns the names of the cases, without those that a config refuses."""
        process = self.start("--suite", ROOT / f"configs/suites/{name}.yaml", "--dry_run", command=(REGRESS,))
        self.assert_status(0, process)
        return [line.split("  ")[0] for line in process.out.splitlines()[:-1] if "  skipped: " not in line]

    def test_smoke_is_small(self):
        self.assertLess(len(self.cases("smoke")), 30)

    def test_nightly_has_every_strategy_on_every_backend(self):
        cases = self.cases("nightly")
        for strategy in STRATEGIES:
            for backend in BACKENDS:
                ranks = {rank for rank in (1, 2, 4) for case in cases
                         if case.startswith(f"quickstart-ranks={rank}-backend={backend}-strategy={strategy}")}
                wanted = {"single": {1}}.get(strategy, {1, 2, 4})
                if strategy == "hogwild" and backend in ("gloo", "mpi", "hybrid"):
                    continue  # its ranks share memory
                with self.subTest(strategy=strategy, backend=backend):
                    self.assertTrue(ranks and ranks <= wanted, ranks)

    def test_nightly_has_every_axis_and_fault(self):
        cases = self.cases("nightly")
        for part in ("mesh=data2", "mesh=pipe2", "mesh=tensor2", "mesh=context2", "mesh=expert2", "hosts=2", "hosts=4",
                     "-killed-", "-speed", "-scaling"):
            self.assertTrue(any(part in case for case in cases), part)

    def test_nightly_has_five_hundred_faults_over_the_ways_to_recover(self):
        text = (ROOT / "configs/suites/nightly.yaml").read_text()
        injected, = re.findall(r"expect: {faults: {injected: (\d+), survived: \1}}", text)
        cases = [case for case in self.cases("nightly") if "-faults" in case]
        self.assertGreaterEqual(int(injected) * len(cases), 500)
        for way in ("stop", "shrink", "replace"):
            self.assertEqual(len(cases) // 3, sum(f"on_lost_rank={way}" in case for case in cases), cases)

    def test_sanitizers_have_every_folder_with_tests(self):
        text = (ROOT / "configs/suites/sanitizers.yaml").read_text()
        names = self.cases("sanitizers")
        for label, flags in (("asan_ubsan", "--config=asan --config=ubsan"), ("tsan", "--config=tsan")):
            with self.subTest(label):
                targets = {target for line in re.findall(rf"test {flags} ([^\"]*)", text) for target in line.split()}
                self.assertEqual({f"//{folder}/..." for folder in SANITIZED}, targets)
                self.assertEqual(8, sum(name.endswith(f"-{label}") for name in names), names)

    def test_cuda_has_the_tests_that_only_its_builds_can_run(self):
        text = (ROOT / "configs/suites/cuda.yaml").read_text()
        self.assertIn("test --config=cuda --config=nightly //tests/gpu:plugin_test //tests/gpu:real_libraries_test ", text)
        self.assertEqual(2, len(self.cases("cuda")))

    def test_weekly_has_every_config(self):
        configs = {path.stem for path in (ROOT / "configs").glob("*.yaml")}
        self.assertLessEqual(configs, set(self.cases("weekly")))


if __name__ == "__main__":
    program.main()
