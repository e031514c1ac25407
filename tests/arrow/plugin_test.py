#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on tables that Arrow's own libraries have written, with the plug-in that the config names."""

import json
import struct
import subprocess
import unittest

from program import ROOT, ProgramTest, sets

COMMON = {"plugins": f"[{ROOT / 'datasets/arrow/libphalanx_arrow.so'}]", "model": "{name: mlp, hidden: [16]}", "expect": "{}",
          "evaluate.every_epochs": 0, "optimizer": "{name: adamw, lr: 0.02}", "schedule": "constant",
          "train.global_batch_size": 12}
EVAL = str(ROOT / "tools/eval/eval")
NUMBERS = "name: parquet, root: ., train: ['train-*.parquet']"


class Tables(ProgramTest):
    def setUp(self):
        super().setUp()
        subprocess.run([ROOT / "tests/arrow/write_tables", self.folder], check=True)
        self.runs = 0

    def train_on(self, dataset, status=0, **more):
        self.runs += 1
        run = f"run{self.runs}"
        process = self.train(*sets(COMMON, {"dataset": "{" + dataset + "}", "launch.ranks": 1, **more}), run=run)
        self.assert_status(status, process)
        if status != 0:
            return process.text()
        return json.loads((self.folder / run / "summary.json").read_text())["test"]

    def test_learns_from_columns_in_parquet_and_arrow(self):
        results = [self.train_on(f"{NUMBERS}, test: [{test}], inputs: [x, y], target: label, classes: 2, groups: {groups}",
                                 **{"train.epochs": 25})
                   for test, groups in (("test-0.arrow", 16), ("test.stream", 1))]
        self.assertGreater(results[0]["accuracy"], 0.9)
        self.assertEqual(results[0], results[1], "one row group in memory must give the same rows as all")

    def test_learns_on_two_ranks_from_a_column_of_lists(self):
        result = self.train_on(f"{NUMBERS}, test: [test.stream], inputs: [list], target: sum",
                               **{"train.epochs": 25, "launch.ranks": 2, "strategy": "all_reduce"})
        self.assertLess(result["mse"], 0.01)

    def test_learns_from_images(self):
        result = self.train_on("name: parquet_images, root: ., train: [images-0.parquet], test: [images-0.parquet], "
                               "side: 8, color: false, classes: 2, groups: 1, mean: [0.5], deviation: [0.5], "
                               "transforms: [{transform: {name: flip}}]",
                               **{"train.epochs": 10})
        self.assertEqual(1, result["accuracy"])

    def test_learns_from_documents(self):
        text = "name: parquet_text, root: ., train: ['train-*.parquet'], test: [test-0.arrow], context: 8"
        for packing in ("pack", "pad"):
            result = self.train_on(f"{text}, packing: {packing}",
                                   **{"train.epochs": 20, "model": "{name: gpt, layers: 1, heads: 2, width: 16}"})
            self.assertLess(result["loss"], 2.3, "a model that ignores the order of letters and digits reaches 2.6")

    def test_learns_from_a_table_and_evaluates_it_with_its_categories(self):
        table = "name: parquet_table, root: ., file: ['train-*.parquet'], drop: [list, text, sum], standardize: true"
        result = self.train_on(f"{table}, target: label, classes: 2", **{"train.epochs": 25})
        self.assertGreater(result["accuracy"], 0.9)
        run = self.folder / f"run{self.runs}"
        self.assertEqual(["x", "y"], json.loads((run / "dataset.json").read_text())["features"])
        process = self.start("--run", run, f"--set=plugins={COMMON['plugins']}", command=(EVAL,))
        self.assert_status(0, process)
        self.assertIn("accuracy", process.text())

    def test_names_what_does_not_fit(self):
        test = f"{NUMBERS}, test: [test.stream]"
        (self.folder / "text.parquet").write_text("x,y\n1,2\n")
        cut = (self.folder / "train-0.parquet").read_bytes()[:900]
        (self.folder / "cut.parquet").write_bytes(cut)
        offsets = struct.pack("<17i", *range(0, 68, 4))  # offsets of the lists of a batch
        table = (self.folder / "test-0.arrow").read_bytes()
        self.assertIn(offsets, table)
        (self.folder / "offsets.arrow").write_bytes(table.replace(offsets, offsets[:-4] + struct.pack("<i", 1 << 30)))
        for dataset, error in (
                (f"{test}, target: label", "dataset.inputs: names no column"),
                (f"{test}, inputs: [x]", "dataset.target: names no column"),
                (f"{test}, inputs: [z], target: sum",
                 'train-0.parquet: has no column "z"; its columns are x, y, sum, label, list, text'),
                (f"{test}, inputs: [text], target: sum", "column text: has the type string, expected numbers, or lists"),
                (f"{test}, inputs: [x, list], target: sum", "column list: has lists; it must be the only column"),
                (f"{test}, inputs: [x], target: sum, classes: 2", "column sum: has the type float, expected whole numbers"),
                (f"{test}, inputs: [x], target: label, classes: 1", "classes 0 to 1, expected 0 to 0 (dataset.classes)"),
                ("name: parquet, root: ., train: [nulls.parquet], test: [test.stream], inputs: [x], target: sum",
                 "nulls.parquet, group 0, column x: the value is missing (null) in row 3 of the group"),
                ("name: parquet, root: ., train: [uneven.parquet], test: [test.stream], inputs: [list], target: sum",
                 "lists of 1 numbers, but the list in row 1 of the group has 2"),
                ("name: parquet, root: ., train: [text.parquet], test: [test.stream], inputs: [x], target: y",
                 "text.parquet: is neither a Parquet file nor an Arrow file"),
                ("name: parquet, root: ., train: [cut.parquet], test: [test.stream], inputs: [x], target: y",
                 "cut.parquet: Invalid"),
                ("name: parquet, root: ., train: [offsets.arrow], test: [test.stream], inputs: [list], target: sum",
                 "offsets.arrow: column list: Invalid: Offset invariant failure"),
                ("name: parquet, root: ., train: [none.parquet], test: [test.stream], inputs: [x], target: y",
                 "none.parquet"),
                ("name: parquet_text, root: ., train: [train-0.parquet], test: [test.stream], column: x",
                 "column x: has the type float, expected text"),
                ("name: parquet_text, root: ., train: [train-0.parquet], test: [test.stream], tokenizer: none.model",
                 "none.model"),
                ("name: parquet_images, root: ., train: [train-0.parquet], test: [train-0.parquet], image: text, classes: 2",
                 "column text: has the type string, expected images as bytes")):
            text = self.train_on(dataset, status=2 if "names no column" in error else 1)
            self.assertIn(error, " ".join(text.replace("│", " ").split()))

    def test_is_not_part_of_any_program(self):
        text = self.train_on("name: parquet", status=2, plugins="[]")
        self.assertIn('"parquet"', text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
