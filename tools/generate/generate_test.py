#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that generate continues a text with the model of a run."""

import shutil
import unittest

from program import ROOT, SHORT, ProgramTest, as_if_on_a_device, sets

GENERATE = str(ROOT / "tools/generate/generate")
MODEL = {"model": "{name: llama, layers: 1, heads: 2, width: 32}", "launch.ranks": 1, "evaluate.every_epochs": 0,
         "schedule": "constant", "expect": "{}", "optimizer": "{name: adamw, lr: 0.01}"}


class Generate(ProgramTest):
    def generate(self, *arguments, status=0):
        process = self.start(*arguments, command=[GENERATE])
        self.assert_status(status, process)
        return process

    def train_on(self, dataset, steps, run="run", **more):
        self.assert_status(0, self.train(*sets(MODEL, {"dataset": dataset, "train.max_steps": steps, **more}), run=run))

    def setUp(self):
        super().setUp()
        (self.folder / "letters.txt").write_text("abcdefghij" * 300)
        self.text = "{name: text, file: letters.txt, context: 16}"

    def test_continues_a_text_as_learned(self):
        self.train_on(self.text, 60)
        process = self.generate("--run=run", "--prompt=fgh", "--tokens=30", "--temperature=0")
        self.assertEqual(("abcdefghij" * 4)[5:38] + "\n", process.out)
        self.assertRegex(process.err, r"30 tokens, \d+ per second")
        self.assertEqual(process.out, self.generate("--run=run", "--prompt=fgh", "--tokens=30", "--temperature=0",
                                                    "--cache=false").out)
        (self.folder / "run/weights.safetensors").rename(self.folder / "w.safetensors")
        (self.folder / "run/config.yaml").rename(self.folder / "c.yaml")
        self.assertEqual(process.out, self.generate("--weights=w.safetensors", "--config=c.yaml", "--prompt=fgh",
                                                    "--tokens=30", "--top_k=1").out)

    def test_computes_on_the_cpu_wherever_the_run_did(self):
        self.train_on(self.text, 1)
        as_if_on_a_device(self.folder / "run/config.yaml")
        self.assertEqual(5, len(self.generate("--run=run", "--prompt=a", "--tokens=3").out))

    def test_draws_depend_on_the_seed(self):
        self.train_on(self.text, 1)
        texts = [self.generate("--run=run", "--prompt=a", "--tokens=40", f"--seed={seed}").out for seed in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_shows_numbers_if_tokens_are_not_text(self):
        self.train_on("{name: copy_task, symbols: 4, length: 3}", 1)
        process = self.generate("--run=run", "--prompt=3 1 2 4", "--tokens=2")
        self.assertRegex(process.out, r"^ 3 1 2 4 [0-4] [0-4]\n$")
        self.assertIn('"5" is not a token: the dataset\'s tokens are not text, but the numbers 0 to 4',
                      self.generate("--run=run", "--prompt=1 5", status=2).err)

    def test_keeps_the_spaces_between_words_of_sentence_piece(self):
        shutil.copy(ROOT / "datasets/text/testing_bpe.model", self.folder / "letters.model")
        words = "the cat sat in a house with small words "
        (self.folder / "documents.txt").write_text("\n\n".join([(words * 30).strip()] * 2))
        self.train_on("{name: documents, root: ., context: 16, tokenizer: letters.model, train_share: 0.5}", 60)
        text = self.generate("--run=run", "--prompt=the cat", "--tokens=12", "--temperature=0").out.rstrip("\n")
        self.assertTrue((words * 3).startswith(text), text)
        self.assertGreater(len(text.split()), 6)

    def test_shows_whole_characters(self):
        (self.folder / "letters.txt").write_text("猫é" * 300)
        for unit in ("characters", "bytes"):
            self.train_on("{name: text, file: letters.txt, context: 16, unit: %s}" % unit, 60, run=unit)
            text = self.generate("--run=" + unit, "--prompt=猫é", "--tokens=10", "--temperature=0").out
            self.assertTrue(("猫é" * 8).startswith(text.rstrip("\n")), text)

    def test_refuses_models_of_masked_tokens(self):
        self.train_on("{name: masked_tokens, of: %s}" % self.text, 1, model="{name: bert, layers: 1, width: 32}")
        self.assertIn("its models do not continue a text", self.generate("--run=run", "--prompt=a", status=2).err)

    def test_refuses_what_it_cannot_continue(self):
        self.train_on(self.text, 1)
        for arguments, error in (
                (["--prompt=a?"], 'the text has "?", which does not occur in the text of the dataset'),
                (["--prompt="], "--prompt: is empty"),
                (["--prompt=a", "--tokens=0"], "--tokens: must be at least 1"),
                (["--prompt=a", "--temperature=-1"], "temperature: must be a number of at least 0"),
                (["--prompt=a", "--top_p=2"], "top_p: must be above 0 and at most 1"),
                (["--prompt=a", "--set=model.width=64"], "does not fit the config's model"),
                (["--prompt=a", "--set=model.widht=64"], 'did you mean "width"?'),
                (["--weights=none.safetensors"], "none.safetensors: no such file")):
            process = self.start("--run=run", *arguments, command=[GENERATE])
            self.assertNotEqual(0, process.wait(), error)
            self.assertIn(error, process.err)
        self.assertIn("no config: generate --run RUN", self.generate("--weights=letters.txt", status=2).err)

    def test_refuses_models_that_are_not_of_text(self):
        self.assert_status(0, self.train(*sets(SHORT, {"launch.ranks": 1}), run="digits"))
        self.assertIn("dataset: is not text", self.generate("--run=digits", status=2).err)


if __name__ == "__main__":
    unittest.main()
