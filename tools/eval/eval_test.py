#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that eval evaluates the weights of a run, and gets the metrics of the run itself, on any number of ranks."""

import json
import struct
import unittest

from program import ROOT, SHORT, ProgramTest, as_if_on_a_device, becomes_true, free_port, sets

EVAL = str(ROOT / "tools/eval/eval")
PS = str(ROOT / "tools/ps/ps")


def safetensors(path):
    """Returns {name: (dtype, shape, bytes)}."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


class EvalTest(ProgramTest):
    def evaluate(self, *arguments, status=0):
        process = self.start(*arguments, command=[EVAL])
        self.assert_status(status, process)
        return process

    def finish(self, name, **settings):
        self.assert_status(0, self.train(*sets(SHORT, settings), run=name))
        return self.folder / name

    def metrics(self, process):
        lines = [line.split() for line in process.out.splitlines() if line.startswith("  ")]
        return {name: float(value) for name, value in lines}

    def assert_measured_again(self, run):
        expected = json.loads((run / "summary.json").read_text())["test"]
        self.assertTrue(expected)
        for ranks in (1, 2):
            metrics = self.metrics(self.evaluate(f"--run={run.name}", f"--set=launch.ranks={ranks}"))
            self.assertEqual(expected.keys(), metrics.keys())
            for name, value in expected.items():
                self.assertAlmostEqual(value, metrics[name], 4, f"{name} on {ranks} ranks")


class Eval(EvalTest):
    def test_gives_the_metrics_of_the_run(self):
        run = self.finish("run")
        expected = json.loads((run / "summary.json").read_text())["test"]
        for ranks in (1, 2, 3):
            process = self.evaluate("--run=run", f"--set=launch.ranks={ranks}")
            self.assertTrue(process.out.startswith("test split, 128 samples\n"), process.out)
            metrics = self.metrics(process)
            self.assertEqual(expected.keys(), metrics.keys())
            for name, value in expected.items():
                self.assertAlmostEqual(value, metrics[name], 4, f"{name} on {ranks} ranks")
        self.assertEqual([], list((self.folder / "tmp").glob("phalanx*")), "it leaves no files behind")
        self.assertFalse((self.folder / "runs").exists())

    def test_takes_weights_and_a_config_from_anywhere(self):
        run = self.finish("run")
        (run / "weights.safetensors").rename(self.folder / "w.safetensors")
        (run / "config.yaml").rename(self.folder / "c.yaml")
        expected = json.loads((run / "summary.json").read_text())["test"]
        process = self.evaluate("--weights=w.safetensors", "--config=c.yaml")
        self.assertAlmostEqual(expected["loss"], self.metrics(process)["loss"], 4)

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
        self.assertAlmostEqual(expected["loss"], self.metrics(process)["loss"], 4)

    def test_takes_categories_and_statistics_of_the_run(self):
        rows = [f"{i % 7},{'red' if i % 2 else 'blue'},{'yes' if i % 2 else 'no'}" for i in range(64)]
        table = self.folder / "train.csv"
        table.write_text("\n".join(["size,colour,kind", *rows]))
        (self.folder / "test.csv").write_text("kind,size,colour\nyes,3,red\nno,100,blue\nyes,,red\n")
        settings = {key: value for key, value in SHORT.items() if not key.startswith("dataset.")}
        self.assert_status(0, self.train(*sets(settings, {
            "model": "mlp", "launch.ranks": 2,
            "dataset": "{name: csv, root: ., standardize: true, missing: mean}"}), run="run"))
        fitted = json.loads((self.folder / "run/dataset.json").read_text())
        self.assertEqual(["size", "colour=blue", "colour=red"], fitted["features"])
        self.assertEqual(["no", "yes"], fitted["targets"][0]["categories"])
        # Other training rows would change the statistics and the order of the categories.
        table.write_text("size,colour,kind\n1000,blue,no\n2000,red,yes\n")
        self.assert_measured_again(self.folder / "run")
        self.evaluate("--run=run", "--predictions=p.safetensors")
        predictions = safetensors(self.folder / "p.safetensors")
        self.assertEqual(struct.pack("<3q", 1, 0, 1), predictions["label"][2])

    def test_needs_no_servers_of_dense_parameters(self):
        self.assert_measured_again(self.finish("run", **{"launch.ranks": 3, "roles.server": 1,
                                                         "strategy": "{ssp: {staleness: 2}}"}))

    def test_measures_on_the_cpu_what_was_trained_on_a_device(self):
        run = self.finish("run")
        as_if_on_a_device(run / "config.yaml")
        expected = json.loads((run / "summary.json").read_text())["test"]
        process = self.evaluate("--run=run", "--set=device=cpu")
        self.assertAlmostEqual(expected["loss"], self.metrics(process)["loss"], 4)

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


class ServedEmbeddings(EvalTest):
    """Evaluates models whose embeddings were on parameter servers that have ended."""

    def settings(self, **more):
        everything = {**SHORT, "launch.ranks": 2, "strategy": "all_reduce",
                      "dataset": "{name: clicks, train_samples: 512, test_samples: 128}",
                      "model": "{name: dlrm, embeddings: {name: servers, scale: 1, cache_staleness: 2}}", **more}
        return {key: value for key, value in everything.items() if not key.startswith("dataset.")}

    def finish(self, name, **settings):
        self.assert_status(0, self.train(*sets(self.settings(**settings)), run=name))
        return self.folder / name

    def test_on_servers_in_every_rank(self):
        self.assert_measured_again(self.finish("run"))

    def test_on_ranks_that_serve(self):
        self.assert_measured_again(self.finish("run", **{"launch.ranks": 4, "roles.server": 2}))

    def test_on_servers_elsewhere(self):
        secret = self.folder / "secret"
        secret.write_text("nobody knows this secret\n")
        secret.chmod(0o600)
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        servers = [self.start(f"--secret_file={secret}", f"--listen={address}", command=[PS]) for address in addresses]
        for server in servers:
            self.assertTrue(becomes_true(lambda: "ready" in server.out or not server.running), server.text())
        run = self.finish("run", **{"roles.servers_at": json.dumps(addresses), "roles.secret_file": secret})
        for server in servers:
            server.kill()
            server.wait()
        secret.unlink()
        self.assert_measured_again(run)

    def test_reports_once_that_rows_are_missing_or_damaged(self):
        run = self.finish("run")
        rows = (run / "embeddings.safetensors").read_bytes()
        (run / "embeddings.safetensors").write_bytes(rows[:-1])
        process = self.evaluate("--run=run", status=1)
        self.assertEqual(1, process.words.count("embeddings.safetensors: the header"), process.err)
        (run / "embeddings.safetensors").unlink()
        process = self.evaluate("--run=run", status=1)
        self.assertEqual(1, process.words.count("embeddings.safetensors: No such file or directory"), process.err)
        self.assertIn("the model has embeddings on parameter servers", process.words)


if __name__ == "__main__":
    unittest.main()
