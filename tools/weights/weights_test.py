#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that weights lists, converts, compares and verifies files of weights, and that train starts from them."""

import json
import struct
import unittest

from program import ROOT, ProgramTest

WEIGHTS = str(ROOT / "tools/weights/weights")
GOLDENS = ROOT / "framework/base/storage/goldens"
TINY = ("model: {name: mlp, hidden: [8]}\n"
        "dataset: {name: digits, train_samples: 64, test_samples: 16, side: 16}\n"
        "train: {global_batch_size: 32, epochs: 1}\n")
SERVED = ("model: {name: dlrm, dim: 4, embeddings: servers}\n"
          "dataset: {name: clicks, train_samples: 64, test_samples: 16}\n"
          "train: {global_batch_size: 32, epochs: 1}\n")


class Weights(ProgramTest):
    def weights(self, *arguments, status=0):
        process = self.start(*arguments, command=[WEIGHTS])
        self.assert_status(status, process)
        return process

    def json(self, name="result.json"):
        return json.loads((self.folder / name).read_text())

    def train_tiny(self):
        (self.folder / "tiny.yaml").write_text(TINY)
        self.assert_status(0, self.train("--config=tiny.yaml", run="run"))

    def test_lists_names_shapes_dtypes_and_bytes(self):
        out = self.weights("list", str(GOLDENS / "state_dict.pt"), "--json=result.json").out
        self.assertRegex(out, r"fc\.turned +Float +\[4, 3\] +48 B\n")
        self.assertRegex(out, r"brain +BFloat16 +\[3\] +6 B\n")
        self.assertIn("8 tensors of 36 elements, 148 B, in 1 file\n", out)
        self.assertEqual({"name": "steps", "dtype": "Long", "shape": [], "bytes": 8}, self.json()["tensors"][6])

    def test_escapes_control_sequences_in_names(self):
        name = "w\x1b]0;title\x07\r"
        header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        (self.folder / "odd.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
        out = self.weights("list", "odd.safetensors", "--json=result.json").out
        self.assertIn(r"w\x1b]0;title\x07\x0d", out)
        self.assertEqual(name, self.json()["tensors"][0]["name"])
        error = self.weights("convert", "odd.safetensors\x1b[2J", "to.pt", status=1).err
        self.assertIn(r"odd.safetensors\x1b[2J", error)

    def test_converts_there_and_back(self):
        self.weights("convert", str(GOLDENS / "state_dict.pt"), "model.safetensors", "--shard_size=50")
        self.assertGreater(len(list(self.folder.glob("model-*.safetensors"))), 2)
        self.weights("convert", "model.safetensors.index.json", "back.pt")
        out = self.weights("diff", str(GOLDENS / "state_dict.pt"), "back.pt").out
        self.assertEqual("8 tensors are equal; largest difference of the others: 0\n", out)

    def test_reports_how_files_differ(self):
        self.weights("convert", str(GOLDENS / "state_dict.pt"), "half.pt", "--dtype=bfloat16")
        out = self.weights("diff", str(GOLDENS / "state_dict.pt"), "half.pt", "--json=result.json").out
        self.assertIn("fc.weight: max abs difference 0, dtypes Float and BFloat16\n", out)
        self.assertEqual(8, self.json()["equal"])
        self.weights("diff", str(GOLDENS / "state_dict.pt"), str(GOLDENS / "nested.pt"), "--json=result.json", status=1)
        self.assertEqual(["0.weight", "0.bias"], self.json()["only_in_second"])
        self.assertEqual(8, len(self.json()["only_in_first"]))

    def test_reports_whether_weights_fit_a_model(self):
        self.train_tiny()
        self.weights("convert", "run/weights.safetensors", "tiny.pt")
        out = self.weights("verify", "tiny.pt", "--config=tiny.yaml").out
        self.assertEqual("4 tensors of tiny.pt fit model mlp, and nothing is left over\n", out)
        out = self.weights("verify", "tiny.pt", "--config=tiny.yaml", "--set", "model.hidden=[9]", status=1).out
        self.assertIn("different: fc1.weight: Float [8, 256] in the file, Float [9, 256] in the model\n", out)

    def test_reports_where_a_published_config_contradicts_the_model(self):
        (self.folder / "text.txt").write_text("what is written is read " * 20)
        (self.folder / "tiny.yaml").write_text(
            "model: {name: gpt, layers: 1, heads: 2, width: 8}\n"
            "dataset: {name: text, file: text.txt, context: 4}\n"
            "train: {global_batch_size: 8, max_steps: 1}\n")
        self.assert_status(0, self.train("--config=tiny.yaml", run="run"))
        (self.folder / "hub").mkdir()
        self.weights("convert", "run/weights.safetensors", "hub/model.safetensors")
        verify = ["verify", "hub", "--config=tiny.yaml", "--json=result.json"]
        about = {"model_type": "gpt2", "n_head": 2, "layer_norm_epsilon": 1e-5}
        (self.folder / "hub/config.json").write_text(json.dumps(about))
        self.assertIn("nothing is left over", self.weights(*verify).out)
        (self.folder / "hub/config.json").write_text(json.dumps(about | {"layer_norm_epsilon": 1e-6}))
        said = ("hub/config.json has layer_norm_epsilon: 1e-06, but the model has 1e-05; set model.epsilon: 1e-06")
        self.assertIn("contradicts: " + said, self.weights(*verify, status=1).out)
        self.assertEqual([said], self.json()["contradictions"])
        begin = ["--config=tiny.yaml", "--set", "init.from=hub"]
        refused = self.train(*begin, run="refused")
        self.assert_status(2, refused)
        self.assertIn(said, refused.words)
        self.assert_status(0, self.train(*begin, "--set", "model.epsilon=1e-6", run="tuned"))

    def test_checks_the_rows_of_embeddings_on_servers(self):
        (self.folder / "served.yaml").write_text(SERVED)
        self.assert_status(0, self.train("--config=served.yaml", run="run"))
        self.assertRegex(self.weights("list", "run/embeddings.safetensors").out, r"rows +Float +\[\d+, 4\] ")
        verify = ["verify", "run/weights.safetensors", "--config=served.yaml"]
        self.assertIn("the rows in run/embeddings.safetensors fit too\n", self.weights(*verify).out)
        out = self.weights(*verify, "--set", "model.dim=5", status=1).out
        self.assertIn("its rows have 4 numbers, the rows of the table have 5", out)
        (self.folder / "run/embeddings.safetensors").unlink()
        self.assertIn("run/embeddings.safetensors does not exist: training can start", self.weights(*verify).out)

    def test_writes_weights_that_train_starts_from(self):
        self.train_tiny()
        self.weights("convert", "run/weights.safetensors", "tiny.pt")
        self.assert_status(0, self.train("--config=tiny.yaml", "--set", "init.from=tiny.pt",
                                         "--set", "init.freeze=^fc1", run="tuned"))
        self.weights("diff", "run/weights.safetensors", "tuned/weights.safetensors", "--json=result.json", status=1)
        self.assertEqual(["fc2.bias", "fc2.weight"], sorted(one["name"] for one in self.json()["values"]))

    def test_merges_adapters(self):
        """A model with merged weights has the same metrics as the model with adapters."""
        self.train_tiny()
        lora = ["--config=tiny.yaml", "--set", "init.from=run/weights.safetensors", "--set", "lora.layers=[fc*]"]
        self.assert_status(0, self.train(*lora, "--set", "optimizer.lr=0.5", run="tuned"))
        self.weights("merge", "tuned/weights.safetensors", "merged.pt", "--config=tuned/config.yaml")
        self.weights("verify", "merged.pt", "--config=tiny.yaml")
        self.assert_status(0, self.train("--config=tiny.yaml", "--set", "init.from=merged.pt", "--set",
                                         "optimizer.lr=0", run="merged"))
        loss = [json.loads((self.folder / run / "summary.json").read_text())["test"]["loss"]
                for run in ("run", "tuned", "merged")]
        self.assertAlmostEqual(loss[1], loss[2], places=5)
        self.assertNotAlmostEqual(loss[0], loss[1], places=3)
        self.assertIn("lora.layers is empty",
                      self.weights("merge", "merged.pt", "x.pt", "--config=tiny.yaml", status=2).err)

    def test_refuses_what_it_cannot_do(self):
        shell = str(GOLDENS / "shell.pt")
        for status, arguments, why in (
                (2, [], "name one command: list FILE"),
                (2, ["paint"], 'unexpected "paint"'),
                (2, ["list"], "list takes one file, but got 0"),
                (2, ["diff", "a.pt"], "diff takes two files, but got 1"),
                (1, ["list", "none.pt"], "none.pt: no such file"),
                (1, ["list", shell], "posix.system, which was not executed"),
                (2, ["verify", shell], "--config is missing"),
                (2, ["convert", str(GOLDENS / "nested.pt"), "x.txt"], "use a name that ends in one of these"),
                (2, ["convert", str(GOLDENS / "nested.pt"), "x.pt", "--dtype=int3"], "\"int3\" is not one of")):
            self.assertIn(why, self.weights(*arguments, status=status).err)
        self.assertFalse((self.folder / "executed").exists())


if __name__ == "__main__":
    unittest.main()
