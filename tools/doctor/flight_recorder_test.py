#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that doctor explains hangs from dumps of PyTorch's flight recorder, which this test writes as PyTorch does, and that it
executes nothing of them."""

import json
import os
import pickle
import subprocess
import unittest

from program import DEADLINE, ROOT, ProgramTest

DOCTOR = ROOT / "tools/doctor/doctor"
NOW = 1_800_000_000  # seconds since the epoch
RANKS = range(4)
WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
FRAMES = [{"name": "all_reduce", "filename": "/lib/python3/site-packages/torch/distributed/distributed_c10d.py", "line": 2806},
          {"name": "step", "filename": "/home/me/train.py", "line": 33},
          {"name": "<module>", "filename": "/home/me/train.py", "line": 90}]


def entry(sequence, name="nccl:all_reduce", ago=30, state="completed", **others):
    """Returns an entry of an operation that was called `ago` seconds before the dump."""
    created = int((NOW - ago) * 1e9)
    times = {"scheduled": (None, None), "started": (created, None), "completed": (created, created + 500_000_000)}[state]
    return {"frames": FRAMES, "record_id": sequence, "pg_id": 0, "process_group": ("0", "default_pg"), "thread_id": "1",
            "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence, "profiling_name": name,
            "time_created_ns": created, "input_sizes": [[64, 10]], "input_dtypes": ["Float"], "output_sizes": [[64, 10]],
            "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": times[0],
            "time_discovered_completed_ns": times[1], "retired": state == "completed", "timeout_ms": 600000,
            "is_p2p": False, **others}


def dump(*entries, groups=WORLD, **others):
    """Returns what PyTorch pickles."""
    return {"version": "2.10", "pg_config": groups, "nccl_version": "2.27.3",
            "pg_status": {"0": {"last_enqueued_collective": 1}}, "entries": list(entries), **others}


class Calls:
    """Pickled, it calls a function when Python reads it."""

    def __reduce__(self):
        return os.system, ("touch executed",)


class FlightRecorder(ProgramTest):
    def write(self, dumps, protocol=2):
        """Writes dumps by rank."""
        for rank, content in dumps.items():
            path = self.folder / f"nccl_trace_rank_{rank}"
            path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol))
            os.utime(path, (NOW, NOW))
        return [f"nccl_trace_rank_{rank}" for rank in dumps]

    def run_doctor(self, *words, status=0):
        done = subprocess.run([DOCTOR, *words], cwd=self.folder, env=self.environment(), timeout=DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return " ".join((done.stderr if status else done.stdout).split())

    def explain(self, dumps, **options):
        return self.run_doctor("--flight_recorder", *self.write(dumps, **options))

    def refusal(self, dumps):
        return self.run_doctor("--flight_recorder", *self.write(dumps), status=1)

    def test_names_the_rank_that_has_not_come(self):
        waits = dump(entry(7), entry(8, ago=20, state="started"), entry(9, ago=19, state="scheduled"))
        dumps = {rank: dump(entry(7)) if rank == 2 else waits for rank in RANKS}
        for protocol in (2, 3, 4, 5):
            self.assertEqual(
                "ranks 0, 1, 3 have waited 20 s in all_reduce #8 of world (all_reduce of [64, 10] Float) for rank 2, which has "
                "not come: it has completed all_reduce #7 of world (all_reduce of [64, 10] Float), issued at "
                "/home/me/train.py:33, and called nothing since, for 29 s", self.explain(dumps, protocol=protocol))

    def test_names_a_rank_without_a_dump(self):
        waits = dump(entry(8, ago=20, state="scheduled"))  # without TORCH_NCCL_ENABLE_TIMING, nothing is ever "started"
        self.assertEqual("ranks 0, 1, 3 have waited 20 s in all_reduce #8 of world (all_reduce of [64, 10] Float) for rank 2, "
                         "which has not come: there is no dump of it", self.explain({0: waits, 1: waits, 3: waits}))

    def test_names_the_first_operation_that_differs(self):
        metrics = [{"name": "test", "filename": "/home/me/test.py", "line": 7}]
        waits = dump(entry(7), entry(8, ago=20, state="started"))
        skips = dump(entry(7), entry(8, name="nccl:broadcast", ago=25, state="started", frames=metrics, input_sizes=[[1]],
                                     output_sizes=[[1]]))
        self.assertEqual("all ranks have waited for each other for 25 s, because they differ in operation #8 of world: "
                         "all_reduce of [64, 10] Float (issued at /home/me/train.py:33) on ranks 0, 1, 3, but broadcast of "
                         "[1] Float (issued at /home/me/test.py:7) on rank 2",
                         self.explain({rank: skips if rank == 2 else waits for rank in RANKS}))

    def test_gloo_retires_what_is_completed(self):
        def gloo(sequence, **others):
            return entry(sequence, name="gloo:all_reduce", **{"state": "scheduled", "retired": False, **others})

        unnamed = {"": {"name": "", "desc": "", "ranks": "[0, 1, 2, 3]"}}  # Gloo records its groups before they have names
        waits = dump(gloo(7, retired=True), gloo(8, ago=20), groups=unnamed)
        late = dump(gloo(7, ago=28, retired=True), groups=unnamed)
        because = "have waited 20 s in all_reduce #8 of world (all_reduce of [64, 10] Float) for "
        self.assertIn(f"ranks 0, 1, 3 {because}rank 2, which has not come: it has completed all_reduce #7 of world",
                      self.explain({rank: late if rank == 2 else waits for rank in RANKS}))
        self.assertIn(f"ranks 0, 1 {because}ranks 2, 3, which have not come: rank 2: it has completed all_reduce #7 of world",
                      self.explain({0: waits, 1: waits, 2: late}))

    def test_knows_the_members_of_a_group(self):
        groups = {**WORLD, "5": {"name": "5", "desc": "mesh_tp", "ranks": "[1, 3]"}}
        tensor = {"process_group": ("5", "mesh_tp"), "pg_id": 1}
        waits = dump(entry(1, ago=40), entry(1, ago=20, state="started", name="nccl:_all_gather_base",
                                             output_sizes=[[128, 10]], **tensor), groups=groups)
        done = dump(entry(1, ago=40), groups=groups)
        self.assertIn("rank 1 has waited 20 s in _all_gather_base #1 of mesh_tp group 5 (_all_gather_base of [64, 10] Float to "
                      "[128, 10] Float) for rank 3, which has not come: it has completed all_reduce #1 of world",
                      self.explain({0: dump(entry(1, ago=40)), 1: waits, 2: dump(entry(1, ago=40)), 3: done}))

    def test_knows_the_peers_of_messages(self):
        groups = {**WORLD, "5": {"name": "5", "desc": "undefined", "ranks": "[1, 3]"}}

        def message(name, **others):
            return entry(0, name=name, ago=20, is_p2p=True, p2p_seq_id=1, process_group=("5", "undefined"), **others)

        dumps = {0: dump(), 1: dump(entry(4), message("nccl:recv 0<-1", state="started"), groups=groups), 2: dump(),
                 3: dump(entry(4), groups=groups)}
        self.assertIn("rank 1 has waited 20 s in recv #1 of group 5 (recv(from 3)) for rank 3, which has not come",
                      self.explain(dumps))

    def test_joins_operations_that_were_issued_together(self):
        together = [entry(8, name="nccl:reduce_scatter_tensor_coalesced", ago=20, state="scheduled", record_id=8 + i)
                    for i in range(2)]
        waits = dump(entry(7), *together, entry(8, name="nccl:coalesced", ago=20, state="started", record_id=10))
        done = dump(entry(7), *together, entry(8, name="nccl:coalesced", ago=20, state="completed", record_id=10))
        sentence = self.explain({rank: done if rank == 2 else waits for rank in RANKS})
        self.assertIn("in coalesced #8 of world (reduce_scatter_tensor_coalesced of [64, 10] Float, "
                      "reduce_scatter_tensor_coalesced of [64, 10] Float) for rank 2, which has not come: it has completed "
                      "coalesced #8", sentence)

    def test_says_that_nobody_waits(self):
        self.assertRegex(self.explain({rank: dump(entry(7)) for rank in RANKS}),
                         "^no rank waits for another: rank 0: it has completed all_reduce #7 of world .*; rank 3: it has completed")
        self.assertIn("rank 0: it has called no operation", self.explain({rank: dump() for rank in RANKS}))

    def test_writes_the_picture(self):
        files = self.write({rank: dump(entry(7), *([entry(8, ago=20, state="started")] if rank else [])) for rank in RANKS})
        sentence = self.run_doctor("--flight_recorder", *files, "--json=picture.json")
        picture = json.loads((self.folder / "picture.json").read_text())
        self.assertEqual((sentence, 4, {"world": [0, 1, 2, 3]}, True),
                         (picture["sentence"], picture["size"], picture["groups"], picture["only_operations"]))
        self.assertEqual(["done", "running"], [operation["state"] for operation in picture["ranks"][1]["operations"]])

    def test_keeps_the_last_operations(self):
        files = self.write({0: dump(*(entry(sequence) for sequence in range(1, 1101)))})
        self.run_doctor("--flight_recorder", *files, "--json=picture.json")
        kept = json.loads((self.folder / "picture.json").read_text())["ranks"][0]["operations"]
        self.assertEqual((1000, 101, 1100), (len(kept), kept[0]["sequence"], kept[-1]["sequence"]))

    def test_names_the_line_of_a_program_in_a_folder_called_torch(self):
        frames = [{**FRAMES[0], "filename": "torch/distributed/distributed_c10d.py"}, FRAMES[0],
                  {**FRAMES[1], "filename": "/home/me/torch/train.py"}]
        waits = dump(entry(7), entry(8, ago=20, state="started"))
        self.assertIn("issued at /home/me/torch/train.py:33",
                      self.explain({rank: waits if rank else dump(entry(7, frames=frames)) for rank in RANKS}))

    def test_executes_nothing(self):
        good = pickle.dumps(dump(entry(7)), 2)
        for what, content in (("state", entry(7, state="completed") | {"state": Calls()}), ("frames", entry(7, frames={1})),
                              ("number", entry(2**80))):
            refusal = self.refusal({0: good, 1: dump(content)})
            self.assertRegex(refusal, r"nccl_trace_rank_1, byte \d+: .*plain value", what)
        self.assertFalse((self.folder / "executed").exists())

    def test_refuses_what_is_malformed(self):
        good = dump(entry(7))
        other = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
        for why, content in (
                ("byte 0: the pickle ends too early", b""),
                ("the pickle ends too early", pickle.dumps(good, 2)[:-40]),
                ("nccl_trace_rank_1, byte ", pickle.dumps(good, 0)),
                ("the dump is not a dictionary", [1]),
                ("the dump has no version; is this a dump of PyTorch's flight recorder?", {"epoch": 3}),
                ("the dump: version is 1.4; only 2.x can be read", {**good, "version": "1.4"}),
                ("the dump: entries is not a list", {**good, "entries": {}}),
                ("the dump: entries[0] has no process_group", {**good, "entries": [{}]}),
                ("the dump: entries[1]: state is lost, not scheduled, started or completed",
                 dump(entry(7), {**entry(8), "state": "lost"})),
                ("the dump: entries[0]: input_sizes[0][0] is not an integer", dump(entry(7, input_sizes=[["4"]]))),
                ("the dump: entries[0]: input_sizes[0] is not the shape of a tensor", dump(entry(7, input_sizes=[[-4]]))),
                ("the dump: entries[0]: duration_ms is not finite", dump(entry(7, duration_ms=float("nan")))),
                ("the dump: pg_config[0]: ranks is not a list of ranks",
                 dump(groups={"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 0]"}})),
                ("its job has 2 ranks, but the one of nccl_trace_rank_0 has 4; give the dumps of one job only",
                 dump(groups=other))):
            self.assertIn(why, self.refusal({0: good, 1: content}))
        for ranks, text in (([0, 2], "0, 2"), (list(range(0, 40, 2)), "0, 2, 4, 6, 8, 10, 12, 14 and 12 more")):
            outside = {**WORLD, "5": {"name": "5", "desc": "undefined", "ranks": str(ranks)}}
            self.assertIn(f"the dump: entries[0]: process_group is group 5 of ranks {text}, not of rank 1; does the name of the "
                          "file end with its rank?",
                          self.refusal({0: good, 1: dump(entry(7, process_group=("5", "undefined")), groups=outside)}))

    def test_refuses_wrong_files(self):
        self.write({0: dump(entry(7))})
        (self.folder / "other").mkdir()
        (self.folder / "other/trace_0").write_bytes((self.folder / "nccl_trace_rank_0").read_bytes())
        (self.folder / "trace").touch()
        for words, status, why in ((["nccl_trace_rank_0", "other/trace_0"], 1,
                                    "other/trace_0: is a second dump of rank 0, besides nccl_trace_rank_0"),
                                   (["trace"], 1, "trace: the name of a dump must end with the number of its rank"),
                                   (["trace_99999999999"], 1, "the name of a dump must end with"),
                                   (["trace_1"], 1, "trace_1: "),
                                   ([], 2, "--flight_recorder: name the dumps of all ranks")):
            self.assertIn(why, self.run_doctor("--flight_recorder", *words, status=status))


del ProgramTest  # not a test itself

if __name__ == "__main__":
    unittest.main(verbosity=2)
