#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests list as users and other programs call it."""

import json
import subprocess
import unittest

from program import ROOT, ProgramTest

LIST = str(ROOT / "tools/list/list")
KINDS = ["models", "datasets", "transforms", "samplers", "tasks", "losses", "meters", "optimizers", "schedules",
         "strategies", "compressions", "backends", "embeddings", "update_rules", "row_rules"]


class List(ProgramTest):
    def list(self, *words, status=0):
        done = subprocess.run([LIST, *words], cwd=self.folder, env=self.environment(), capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_says_how_many_there_are_of_each_kind(self):
        rows = [line.split(maxsplit=2) for line in self.list().splitlines()]
        self.assertEqual(KINDS, [row[0] for row in rows])
        for kind, count, _ in rows:
            with self.subTest(kind):
                self.assertEqual(len(self.list(kind).splitlines()), int(count.rstrip(":")))
                self.assertGreater(int(count.rstrip(":")), 0)

    def test_kernels_of_each_choice_come_with_their_reason(self):
        both = json.loads(self.list("kernels", "--json", "-"))
        self.assertEqual(["auto", "libtorch"], list(both))
        self.assertEqual({"LibTorch"}, {row["code"] for row in both["libtorch"]})
        self.assertIn("Highway", {row["code"] for row in both["auto"]})
        self.assertTrue(all(row["reason"] for rows in both.values() for row in rows))
        self.assertIn("kernels: auto", self.list("kernels"))
        self.list("kernels", "mm", status=2)

    def test_names_come_with_help(self):
        names = dict(line.split(maxsplit=1) for line in self.list("models").splitlines())
        self.assertIn("resnet18", names)
        self.assertTrue(all(names.values()))

    def test_fields_of_one(self):
        text = self.list("optimizers", "sgd")
        self.assertRegex(text, r"(?m)^momentum\s+number\s+0\s")
        self.assertIn("It has no fields.", self.list("losses", "mse"))

    def test_models_say_what_they_support(self):
        self.assertIn("It supports activation_checkpointing, block_chain, context_parallel, ",
                      self.list("models", "gpt"))
        self.assertNotIn("It supports", self.list("models", "unet"))
        models = {model["name"]: model["supports"] for model in json.loads(self.list("models", "--json", "-"))}
        self.assertEqual(["generative"], models["vae"])
        self.assertEqual([], models["unet"])

    def test_json_has_each_field_with_its_type_default_and_limits(self):
        everything = json.loads(self.list("--json", "-"))
        self.assertEqual(KINDS, list(everything))
        for kind, entries in everything.items():
            for entry in entries:
                with self.subTest(f"{kind} {entry['name']}"):
                    self.assertTrue(entry["help"])
                    for field in entry["fields"]:
                        self.assertTrue({"key", "type", "help"} <= set(field), field)
        fields = {kind: {entry["name"]: {field["key"]: field for field in entry["fields"]} for entry in entries}
                  for kind, entries in everything.items()}
        momentum = fields["optimizers"]["sgd"]["momentum"]
        self.assertEqual(("number", 0, 0), (momentum["type"], momentum["default"], momentum["minimum"]))
        self.assertEqual("list", fields["models"]["mlp"]["hidden"]["type"])
        self.assertEqual("integer", fields["models"]["mlp"]["hidden"]["items"])
        compression = fields["strategies"]["all_reduce"]["compression"]
        self.assertEqual(("selection", "none", "compressions"),
                         (compression["type"], compression["default"], compression["kind"]))
        served = fields["strategies"]["downpour"]["server_optimizer"]
        self.assertEqual("none", served["default"])
        self.assertTrue({"none", "adam"} <= set(served["names"]))
        parts = fields["schedules"]["chained"]["parts"]
        self.assertEqual(("list of sections", "schedules"), (parts["type"], parts["fields"][0]["kind"]))

    def test_json_of_a_kind_or_a_single_thing_goes_to_a_file(self):
        self.list("models", "--json", "models.json")
        models = json.loads((self.folder / "models.json").read_text())
        one = json.loads(self.list("models", "lenet", "--json", "-"))
        self.assertIn(one, models)

    def test_mistakes(self):
        self.assertIn('did you mean "models"?', self.list("model", status=2))
        self.assertIn('there is no "resnet19" among the models (did you mean "resnet18"?)',
                      self.list("models", "resnet19", status=2))
        self.assertIn("unexpected", self.list("models", "lenet", "mlp", status=2).lower())
        self.assertIn("none.so: No such file or directory", self.list("--plugins", "none.so", status=2))


if __name__ == "__main__":
    unittest.main()
