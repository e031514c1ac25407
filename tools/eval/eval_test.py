#!/usr/bin/env python3
"""eval measures what a run has saved, and gets the run's own readings, on any number of ranks."""

import json
import struct
import unittest

from program import ROOT, SHORT, ProgramTest, sets

EVAL = str(ROOT / "tools/eval/eval")


def safetensors(path):
    """Name -> (dtype, shape, bytes)."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


class Eval(ProgramTest):
    def evaluate(self, *arguments, status=0):
        process = self.start(*arguments, command=[EVAL])
        self.assert_status(status, process)
        return process

    def finish(self, name, **settings):
        self.assert_status(0, self.train(*sets(SHORT, settings), run=name))
        return self.folder / name

    def readings(self, process):
        lines = [line.split() for line in process.out.splitlines() if line.startswith("  ")]
        return {name: float(value) for name, value in lines}

    def test_reads_what_the_run_has_read(self):
        run = self.finish("run")
        expected = json.loads((run / "summary.json").read_text())["test"]
        for ranks in (1, 2, 3):
            process = self.evaluate("--run=run", f"--set=launch.ranks={ranks}")
            self.assertTrue(process.out.startswith("test split, 128 samples\n"), process.out)
            readings = self.readings(process)
            self.assertEqual(expected.keys(), readings.keys())
            for name, value in expected.items():
                self.assertAlmostEqual(value, readings[name], 4, f"{name} on {ranks} ranks")
        self.assertEqual([], list((self.folder / "tmp").glob("phalanx*")), "it leaves nothing")
        self.assertFalse((self.folder / "runs").exists())

    def test_takes_weights_and_a_config_from_anywhere(self):
        run = self.finish("run")
        (run / "weights.safetensors").rename(self.folder / "w.safetensors")
        (run / "config.yaml").rename(self.folder / "c.yaml")
        expected = json.loads((run / "summary.json").read_text())["test"]
        process = self.evaluate("--weights=w.safetensors", "--config=c.yaml")
        self.assertAlmostEqual(expected["loss"], self.readings(process)["loss"], 4)

    def test_writes_predictions_in_the_order_of_the_dataset(self):
        self.finish("run")
        written = []
        for ranks in (1, 3):
            self.evaluate("--run=run", "--predictions=p.safetensors", f"--set=launch.ranks={ranks}")
            written.append(safetensors(self.folder / "p.safetensors"))
        for tensors in written:
            self.assertEqual({"scores", "label", "predicted"}, tensors.keys())
            self.assertEqual(("F32", [128, 10]), tensors["scores"][:2])
            self.assertEqual(("I64", [128]), tensors["label"][:2])
        self.assertEqual(written[0]["label"][2], written[1]["label"][2])
        self.assertEqual(written[0]["predicted"][2], written[1]["predicted"][2])

    def test_measures_the_samples_that_were_held_out(self):
        run = self.finish("run", **{"evaluate.validation": 0.25})
        expected = json.loads((run / "summary.json").read_text())["validation"]
        process = self.evaluate("--run=run", "--split=validation")
        self.assertTrue(process.out.startswith("validation split, 128 samples\n"), process.out)
        self.assertAlmostEqual(expected["loss"], self.readings(process)["loss"], 4)

    def test_says_what_is_wrong(self):
        self.finish("run")
        for arguments, status, why in (
                ([], 2, "no weights: eval --run RUN, or --weights FILE --config FILE"),
                (["--run=absent"], 2, "absent/weights.safetensors: no such file"),
                (["--run=run", "--split=train"], 2, '"train" is neither test nor validation'),
                (["--run=run", "--split=validation"], 2, "there is no validation split"),
                (["--run=run", "--set=model={name: mlp, hidden: [7]}"], 1, "does not fit the config's model"),
                (["--run=run", "--predictions=/absent/p"], 1, "/absent/p")):
            with self.subTest(arguments=arguments):
                process = self.evaluate(*arguments, status=status)
                self.assertIn(why, process.err)


if __name__ == "__main__":
    unittest.main()
