#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that Grafana's dashboard asks for metrics and labels that a run exports, and that the documents list them."""

import json
import re
import unittest
import urllib.request

from program import ENDLESS, ROOT, ProgramTest, becomes_true, free_port, sets

METRIC = re.compile(r"\b(phalanx_\w+)(?:\{([^}]*)\})?")
BY_PROMETHEUS = {"instance", "job"}  # labels that Prometheus adds when it reads a run


class Grafana(ProgramTest):
    def exported(self):
        """Returns the labels of each metric of a run of two ranks, which has trained and tested."""
        port = free_port()
        self.train(*sets(ENDLESS, {"watch.prometheus.port": port, "evaluate.every_epochs": 1}))

        def scrape():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except OSError:
                return None
            return text if 'split="test"' in text and "phalanx_step_seconds" in text else None

        text = becomes_true(scrape)
        self.assertTrue(text, "the run serves no metrics")
        found = {}
        for name, labels in re.findall(r"^(phalanx_\w+)(\{.*\})? ", text, re.M):
            found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
        return found

    def test_every_metric_and_label_is_exported(self):
        exported = self.exported()
        dashboard = json.loads((ROOT / "tools/dashboard/grafana.json").read_text())
        used = set()
        for panel in dashboard["panels"]:
            self.assertTrue(panel["targets"], panel["title"])
            for target in panel["targets"]:
                names = METRIC.findall(target["expr"])
                self.assertTrue(names, target["expr"])
                for name, labels in names:
                    with self.subTest(panel["title"], metric=name):
                        self.assertIn(name, exported)
                        known = exported[name] | BY_PROMETHEUS
                        self.assertLessEqual(set(re.findall(r'(\w+)(?:=|!=|=~|!~)"', labels)), known)
                        used.add(name)
        self.assertEqual(set(exported), used, "every metric has its place on the dashboard")
        self.assertIn("label_values(phalanx_run_info, instance)", json.dumps(dashboard["templating"]))

    def test_panels_do_not_overlap(self):
        dashboard = json.loads((ROOT / "tools/dashboard/grafana.json").read_text())
        cells = [(x, y) for place in (panel["gridPos"] for panel in dashboard["panels"])
                 for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
        self.assertEqual(len(cells), len(set(cells)))
        self.assertLess(max(x for x, _ in cells), 24)

    def test_the_documents_list_every_metric(self):
        page = (ROOT / "docs/watching.md").read_text()
        dashboard = (ROOT / "tools/dashboard/grafana.json").read_text()
        for name in {name for name, _ in METRIC.findall(dashboard)}:
            self.assertIn(f"`{name}`", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
