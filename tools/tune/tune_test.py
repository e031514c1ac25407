#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that tune measures, that train follows the saved rules, and that it refuses rules for other ranks."""

import json
import unittest

from program import ROOT, SHORT, ProgramTest, free_port, sets, torchrun

TUNE = str(ROOT / "tools/tune/tune")
QUICK = ["--rounds=2", "--budget_ms=0.2", "--bytes=1KB,64KB"]


class Tune(ProgramTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"

    def tune(self, *flags, status=0):
        process = self.start(*flags, command=[TUNE])
        self.assert_status(status, process, 120)
        return process

    def tuned(self, **changes):
        """Tunes two ranks on shm. Returns what the file said before `changes` were written into it."""
        self.tune("--ranks=2", "--backend=shm", "--ops=all_reduce,broadcast", *QUICK, "--output=tuned.json")
        tuned = json.loads((self.folder / "tuned.json").read_text())
        (self.folder / "tuned.json").write_text(json.dumps({**tuned, **changes}))
        return tuned

    def train_with(self, run, status=0, **settings):
        process = self.train(*sets(SHORT, settings), "--set=backend=shm", "--set=launch.ranks=2", run=run,
                             environment={"XDG_CACHE_HOME": str(self.cache)})
        self.assert_status(status, process)
        return process

    def test_measures_every_way_and_saves_it(self):
        process = self.tune("--ranks=2", "--backend=shm", "--ops=all_reduce,broadcast", *QUICK, "--output=tuned.json")
        tuned = json.loads((self.folder / "tuned.json").read_text())
        self.assertEqual(2, tuned["format"])
        self.assertEqual("shm", tuned["topology"]["backend"])
        self.assertEqual([2], [host["ranks"] for host in tuned["topology"]["hosts"]])
        measured = {(row["op"], row["algorithm"], row["bytes"]) for row in tuned["measured"]}
        for op in ("all_reduce", "broadcast"):
            for size in (1024, 65536):
                self.assertIn((op, "native", size), measured)
        self.assertIn(("all_reduce", "ring", 65536), measured)
        self.assertTrue(all(row["p50_us"] > 0 for row in tuned["measured"]))
        self.assertEqual({(2, "host", "cpu")}, {(row["ranks"], row["scope"], row["device"]) for row in tuned["measured"]})
        self.assertIn("2 ranks on 1 host by shm", process.out)
        self.assertRegex(process.out, r"(?m)^operation +up to +ranks +scope +device +backend +algorithm$")
        self.assert_nothing_left()

    def test_measures_mpi(self):
        self.tune("--ranks=2", "--backend=mpi", "--ops=broadcast", *QUICK)
        tuned = json.loads((self.folder / "tuned.json").read_text())
        self.assertIn("Open MPI v5", tuned["topology"]["mpi"])

    def test_measures_groups_inside_hosts_and_between_them(self):
        """Four processes that believe to be on two hosts."""
        port = free_port()
        flags = ["--backend=gloo", "--ops=all_reduce", *QUICK, "--output=tuned.json"]
        processes = [self.start(*flags, command=[TUNE],
                                environment=torchrun(rank, 4, port, PHALANX_HOST_KEY=f"host {rank // 2}"))
                     for rank in range(4)]
        for process in processes:
            self.assert_status(0, process, 120)
        tuned = json.loads((self.folder / "tuned.json").read_text())
        self.assertEqual([2, 2], [host["ranks"] for host in tuned["topology"]["hosts"]])
        self.assertEqual({(4, "hosts"), (2, "host")}, {(row["ranks"], row["scope"]) for row in tuned["measured"]})

    def test_training_follows_the_file(self):
        self.tuned(rules=[{"op": "all_reduce", "up_to": "", "ranks": 2, "backend": "own", "algorithm": "ring"}])
        self.train_with("native")
        self.train_with("ring", **{"framework.selection_file": "tuned.json"})
        self.assertRegex(self.run_folder("ring").log(0).read_text(), r"all_reduce +any +2 +any +any +own +ring")
        # The sum of two numbers has no order.
        self.assertEqual(self.run_folder("native").weights, self.run_folder("ring").weights)

    def test_training_follows_an_old_file(self):
        """Files of format 1 have no scopes and devices."""
        tuned = self.tuned(format=1, rules=[{"op": "all_reduce", "up_to": "", "ranks": 2, "backend": "own", "algorithm": "ring"}])
        self.assertEqual(2, tuned["format"])
        self.train_with("ring", **{"framework.selection_file": "tuned.json"})
        self.assertRegex(self.run_folder("ring").log(0).read_text(), r"all_reduce +any +2 +any +any +own +ring")

    def test_training_tunes_itself(self):
        """The first run measures; the second takes its rules from the cache, and so does the third from its folder."""
        auto = {"framework.tune": "auto", "checkpoint.every_steps": 8}
        self.train_with("native", **{"checkpoint.every_steps": 8})
        self.train_with("first", **auto)
        folder = self.run_folder("first")
        tuned = json.loads((folder.path / "tuned.json").read_text())
        self.assertIn(("all_reduce", 2, "host"),
                      {(row["op"], row["ranks"], row["scope"]) for row in tuned["measured"]})
        # The sum of two numbers has no order.
        self.assertEqual(self.run_folder("native").weights, folder.weights)
        caches = list(self.cache.glob("phalanx/selection/*.json"))
        self.assertEqual([(folder.path / "tuned.json").read_text()], [file.read_text() for file in caches])

        self.train_with("second", **auto)
        self.assertRegex(self.run_folder("second").log(0).read_text(), r"of which 0 were measured now")
        self.assertEqual((folder.path / "tuned.json").read_text(),
                         (self.run_folder("second").path / "tuned.json").read_text())

        caches[0].unlink()
        self.train_with("first", **auto, **{"train.max_steps": 24, "checkpoint.resume": "auto"})
        self.assertIn("tune: uses ", folder.log(0).read_text())
        self.assertFalse(caches[0].exists(), "nothing was measured")

    def test_tuning_is_refused_where_bits_must_not_depend_on_it(self):
        process = self.train_with("run", status=2, **{"framework.tune": "auto", "determinism": "world_size_invariant",
                                                      "launch.threads": 1})
        self.assertIn("framework.tune: auto chooses by measurement in which order ranks add", process.err)

    def test_training_refuses_a_file_of_another_machine(self):
        tuned = self.tuned()
        tuned["topology"]["hosts"][0]["cores"] += 7
        tuned["topology"]["phalanx"] = "0.0.0"
        (self.folder / "tuned.json").write_text(json.dumps(tuned))
        process = self.train_with("run", status=2, **{"framework.selection_file": "tuned.json"})
        cores = tuned["topology"]["hosts"][0]["cores"]
        report = process.err.replace("\n│ ", " ")
        self.assertIn(f"tuned.json: was measured elsewhere: cores {cores}, here {cores - 7}; Phalanx 0.0.0, here ", report)
        self.assertIn("bazel run //tools:tune -- --ranks 2 --backend shm --output tuned.json", report)

    def test_training_refuses_an_old_file_before_ranks_start(self):
        (self.folder / "old.json").write_text('{"format": 0}')
        process = self.train_with("run", status=2, **{"framework.selection_file": "old.json"})
        self.assertIn("--set framework.selection_file=old.json: framework.selection_file: old.json: has format 0, "
                      "but this program reads 1 to 2", process.err)
        self.assertFalse((self.folder / "run").exists())

    def test_training_may_check_its_collectives(self):
        self.train_with("plain")
        self.train_with("checked", **{"framework.check_collectives": "true", "framework.progress_thread": "on",
                                      "framework.selection": "[{op: all_reduce, up_to: 1KB, algorithm: ring}]"})
        self.assertEqual(self.run_folder("plain").weights, self.run_folder("checked").weights)

    def test_says_what_is_wrong(self):
        for flags, why in ((["--ops=allreduce"], '--ops: "allreduce" is not one of'), (["--backend=inproc"], "are threads"),
                           (["--backend=shmm"], 'did you mean "shm"?'), (["--ranks=1"], "at least 2"),
                           (["--bytes=much"], "much"), (["stray"], 'unexpected argument "stray"')):
            self.assertIn(why, self.tune(*flags, status=2).err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
