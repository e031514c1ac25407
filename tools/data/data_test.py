#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that data inspects datasets, packs images and tokenizes texts, and that train can read the results."""

import json
import shutil
import struct
import unittest
import zlib

from program import ROOT, ProgramTest

DATA = str(ROOT / "tools/data/data")


def png(width, height, pixel):
    """Returns an RGB PNG; pixel(x, y) returns (red, green, blue)."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(value for x in range(width) for value in pixel(x, y)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Data(ProgramTest):
    def data(self, *arguments, status=0):
        process = self.start(*arguments, command=[DATA])
        self.assert_status(status, process)
        return process

    def make_images(self):
        """Writes red and blue images of several sizes."""
        for split, count in (("train", 40), ("test", 12)):
            for name, color in (("blue", (0, 40, 250)), ("red", (250, 40, 0))):
                folder = self.folder / "images" / split / name
                folder.mkdir(parents=True)
                for i in range(count // 2):
                    side = 20 + i % 5
                    (folder / f"{i}.png").write_bytes(png(side, 24, lambda x, y: [max(v - x, 0) for v in color]))

    def test_describes_splits(self):
        out = self.data("stats", f"--config={ROOT}/configs/quickstart.yaml", "--samples=500").out
        self.assertIn("of which 500 were read\n", out)
        self.assertRegex(out, r"input +1 x \d+ x \d+: mean -?\d\.\d{4}, deviation [01]\.\d{4}\n")
        self.assertRegex(out, r"label +1, 10 classes: (\d+ ){10}of each\n")
        counts = [int(n) for n in out.split("classes: ")[1].split(" of each")[0].split()]
        self.assertEqual(500, sum(counts))

    def test_shows_samples(self):
        self.data("inspect", f"--config={ROOT}/configs/quickstart.yaml", "--samples=7", "--html=page.html")
        page = (self.folder / "page.html").read_text()
        self.assertEqual(7, page.count("data:image/png;base64,iVBOR"))
        self.assertEqual(7, page.count(": class "))

    def test_measures_the_loader(self):
        for more in ([], ["--set=loader={prefetch: 2, sampler: stratified}"]):
            out = self.data("speed", f"--config={ROOT}/configs/quickstart.yaml", "--samples=1000", *more).out
            self.assertRegex(out, r"^\d+ samples in batches of \d+: [1-9]\d+ samples/s\n$")

    def test_packs_images_that_train_reads(self):
        self.make_images()
        shutil.copytree(self.folder / "images/test", self.folder / "images/val")
        out = self.data("shard", "--from=images", "--to=shards", "--per_shard=15").out
        self.assertIn("train: 40 images in 3 archives\n", out)
        self.assertEqual("blue\nred\n", (self.folder / "shards/classes.txt").read_text())
        self.assertEqual(["test-00000.tar", "train-00000.tar", "train-00001.tar", "train-00002.tar", "val-00000.tar"],
                         sorted(path.name for path in (self.folder / "shards").glob("*.tar")))
        for dataset in ("{name: image_folder, root: images, side: 16}",
                        "{name: image_shards, root: shards, side: 16, classes: 2}"):
            (self.folder / "c.yaml").write_text(
                "model: lenet\n"
                f"dataset: {dataset}\n"
                "launch: {ranks: 2}\n"
                "loader: {prefetch: 2, threads: 2}\n"
                "optimizer: {name: adamw, lr: 0.003}\n"
                "train: {global_batch_size: 8, epochs: 6}\n")
            run = dataset.split("root: ")[1].split(",")[0] + "_run"
            self.assert_status(0, self.train("--config=c.yaml", run=run))
            summary = json.loads((self.folder / run / "summary.json").read_text())
            self.assertEqual(1, summary["test"]["accuracy"], dataset)
            metrics = (self.folder / run / "metrics.jsonl").read_text().splitlines()
            self.assertIn("validation", {json.loads(line).get("split") for line in metrics})

    def test_tokenizes_text_that_train_reads(self):
        (self.folder / "book.txt").write_text("to be or not to be, " * 400)
        out = self.data("tokenize", "--text=book.txt", "--to=tokens", "--train_share=0.75").out
        self.assertIn("train.bin: 6000 tokens\n", out)
        self.assertIn("vocabulary: 256, type: uint16", out)
        (self.folder / "c.yaml").write_text(
            "model: {name: gpt, layers: 1, heads: 2, width: 32}\n"
            "dataset: {name: tokens, root: tokens, vocabulary: 256, type: uint16, context: 20}\n"
            "optimizer: {name: adamw, lr: 0.01}\n"
            "train: {global_batch_size: 10, epochs: 4}\n")
        self.assert_status(0, self.train("--config=c.yaml", run="run"))
        self.assertLess(json.loads((self.folder / "run/summary.json").read_text())["test"]["loss"], 1)

    def test_takes_a_tokenizer_in_a_file(self):
        (self.folder / "book.txt").write_text("the cat sat there")
        self.data("tokenize", "--text=book.txt", f"--tokenizer={ROOT}/datasets/text/testing_tokenizer.json",
                  "--to=tokens", "--train_share=0.5")
        tokens = b"".join((self.folder / "tokens" / name).read_bytes() for name in ("train.bin", "val.bin"))
        self.assertEqual((297, 269, 259, 272, 271), struct.unpack("<5H", tokens))

    def test_takes_a_model_of_sentence_piece(self):
        (self.folder / "book.txt").write_text("the cat sat there.")
        self.data("tokenize", "--text=book.txt", f"--tokenizer={ROOT}/datasets/text/testing_bpe.model", "--to=tokens",
                  "--train_share=0.5")
        tokens = b"".join((self.folder / "tokens" / name).read_bytes() for name in ("train.bin", "val.bin"))
        self.assertEqual((262, 290, 314, 281, 50), struct.unpack("<5H", tokens))

    def test_refuses_what_it_cannot_do(self):
        for status, arguments, why in (
                (2, [], "name one command: stats, inspect, speed, shard or tokenize"),
                (2, ["stats", "one.yaml", "two.yaml"], 'unexpected "two.yaml"'),
                (2, ["paint"], 'unexpected "paint"'),
                (2, ["stats"], "--config is missing"),
                (1, ["shard", "--from=nowhere", "--to=x"], "nowhere: No such file"),
                (1, ["tokenize", "--text=none.txt", "--to=x"], "none.txt"),
                (2, ["tokenize", "--text=x", "--to=y", "--train_share=1"], "--train_share: must be between")):
            self.assertIn(why, self.data(*arguments, status=status).err)
        self.assertIn("are not images", self.data("inspect", f"--config={ROOT}/configs/clicks_dlrm.yaml",
                                                  status=2).err)


if __name__ == "__main__":
    unittest.main()
