#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what a run displays and leaves, read as the programs do that it is meant for."""

import html.parser
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
import xml.etree.ElementTree

from program import ENDLESS, ROOT, SHORT, TRAIN, ProgramTest, becomes_true, free_port, sets

_SPEC = importlib.util.spec_from_file_location("tfevents", ROOT / "tests/watching/tfevents.py")
tfevents = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tfevents)

PHASES = ["data", "forward", "backward", "communication", "update", "hooks"]


class StepTime(ProgramTest):
    def test_summary_and_console_have_the_breakdown(self):
        process = self.train(*sets(SHORT))
        self.assert_status(0, process)
        time = self.run_folder().summary["step_time"]
        self.assertEqual(16, time["steps"])
        self.assertEqual(PHASES, list(time["phases"]))
        self.assertAlmostEqual(time["whole"]["mean_ms"], sum(phase["mean_ms"] for phase in time["phases"].values()))
        for phase in time["phases"].values():
            self.assertTrue(0 <= phase["least_ms"] <= phase["mean_ms"] <= phase["most_ms"])
            self.assertIn(phase["most_rank"], (0, 1))
        for word in ("Time of a step", "waiting for data", "communication", "rank 0"):
            self.assertIn(word, process.out)

    def test_metrics_have_the_breakdown_during_training(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        lines = [line for line in self.run_folder().metrics if line["split"] == "train"]
        for line in lines:
            self.assertEqual(PHASES, list(line["step_ms"]))
            self.assertGreater(line["step_ms"]["backward"], 0)
        # The quickstart's schedule is half a cosine over the 16 steps of the run, counted from 0.
        self.assertEqual([4, 8, 12, 16], [line["step"] for line in lines])
        for line in lines:
            factor = (1 + math.cos(math.pi * (line["step"] - 1) / 16)) / 2
            self.assertAlmostEqual(0.02 * factor, line["learning_rate"], delta=1e-9)


# Reads a run with TensorBoard's own reader: {tag: [[step, value], ...]}.
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
board.Reload()
print(json.dumps({tag: [[point.step, point.value] for point in board.Scalars(tag)] for tag in board.Tags()["scalars"]}))
"""


class TensorBoard(ProgramTest):
    ON = {"watch.tensorboard": "true"}

    def points(self):
        """Returns the points that TensorBoard shows: {tag: [(step, value), ...]}."""
        files = [path.read_bytes() for path in sorted((self.folder / "run/tensorboard").iterdir())]
        for data in files:
            self.assertEqual("brain.Event:2", tfevents.read(data)[0])
        return tfevents.merge(files)

    def steps_measured(self, split):
        return [line["step"] for line in self.run_folder().metrics if line["split"] == split]

    def test_has_the_same_values_as_the_metrics(self):
        self.assert_status(0, self.train(*sets(SHORT, self.ON)))
        scalars = {tag: dict(points) for tag, points in self.points().items()}
        for line in self.run_folder().metrics:
            for name in ("loss", "accuracy", "samples_per_second"):
                self.assertAlmostEqual(line[name], scalars[f"{line['split']}/{name}"][line["step"]],
                                       delta=1e-6 * max(1, line[name]))
        self.assertEqual({4, 8, 12, 16}, set(scalars["step_ms/forward"]))
        self.assertEqual({4, 8, 12, 16}, set(scalars["train/learning_rate"]))

    def test_has_the_values_of_a_resumed_run_and_no_step_twice(self):
        saved = {**SHORT, **self.ON, "checkpoint.every_steps": 10}
        self.assert_status(0, self.train(*sets(saved, {"watch.every_steps": 2})))
        self.assertEqual([2, 4, 6, 8, 10, 12, 14, 16], [step for step, _ in self.points()["train/loss"]])
        checkpoint = self.folder / "run/checkpoints/step-00000010"
        # The first measurement after the resume comes after two measurements that the abandoned run had made.
        self.assert_status(0, self.train(*sets(saved, {"watch.every_steps": 8}), f"--resume={checkpoint}"))
        points = self.points()
        self.assertEqual([2, 4, 6, 8, 10, 16], [step for step, _ in points["train/loss"]])
        for split in ("train", "test"):
            self.assertEqual(self.steps_measured(split), [step for step, _ in points[f"{split}/loss"]])

    def test_keeps_its_points_if_a_finished_run_is_resumed(self):
        saved = {**SHORT, **self.ON, "checkpoint.every_steps": 16}
        self.assert_status(0, self.train(*sets(saved)))
        before = self.points()
        self.assert_status(0, self.train(*sets(saved), "--resume=auto"))
        after = self.points()
        self.assertEqual(before["train/loss"], after["train/loss"])
        self.assertEqual(2 * before["test/loss"], after["test/loss"])

    def test_the_reader_refuses_a_flipped_bit(self):
        self.assert_status(0, self.train(*sets(SHORT, self.ON)))
        path = next((self.folder / "run/tensorboard").iterdir())
        broken = bytearray(path.read_bytes())
        broken[len(broken) // 2] ^= 1
        with self.assertRaises((ValueError, KeyError)):
            tfevents.read(bytes(broken))

    def test_nothing_is_written_if_it_is_off(self):
        self.assert_status(0, self.train(*sets(SHORT)))
        self.assertFalse((self.folder / "run/tensorboard").exists())

    def test_tensorboard_reads_the_same_values(self):
        """Uses the interpreter that PHALANX_PYTHON names (--test_env), because few machines have TensorBoard for the
        system's."""
        python = os.environ.get("PHALANX_PYTHON", sys.executable)
        if subprocess.run([python, "-c", "import tensorboard"], capture_output=True).returncode != 0:
            self.skipTest(f"{python} has no tensorboard")
        saved = {**SHORT, **self.ON, "checkpoint.every_steps": 10}
        self.assert_status(0, self.train(*sets(saved, {"watch.every_steps": 2})))
        checkpoint = self.folder / "run/checkpoints/step-00000010"
        self.assert_status(0, self.train(*sets(saved, {"watch.every_steps": 8}), f"--resume={checkpoint}"))
        read = subprocess.run([python, "-c", READER, self.folder / "run/tensorboard"], stdout=subprocess.PIPE,
                              check=True)
        self.assertEqual({tag: [list(point) for point in points] for tag, points in self.points().items()},
                         json.loads(read.stdout))


class Prometheus(ProgramTest):
    def metrics(self, port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                self.assertEqual("text/plain; version=0.0.4; charset=utf-8", answer.headers["Content-Type"])
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return ""  # not yet

    def value(self, text, metric):
        found = re.search(rf"^{re.escape(metric)} (\S+)$", text, re.M)
        return float(found[1]) if found else None

    def test_serves_during_training(self):
        port = free_port()
        process = self.train(*sets(ENDLESS, {"watch.prometheus.port": port}))
        becomes_true(lambda: self.value(self.metrics(port), "phalanx_step") or not process.running)
        before = self.metrics(port)
        self.assertTrue(before, process.text())
        self.assertTrue(becomes_true(lambda: self.value(self.metrics(port), "phalanx_step") >
                                     self.value(before, "phalanx_step")))
        self.assertGreater(self.value(before, 'phalanx_metric{split="train",name="loss"}'), 0)
        for rank in (0, 1):
            self.assertGreater(self.value(before, f'phalanx_step_seconds{{phase="forward",rank="{rank}"}}'), 0)
        names = {line.split("{")[0].split()[0] for line in before.splitlines() if not line.startswith("#")}
        for name in names:
            self.assertRegex(name, r"^phalanx_[a-z_]+$")
            self.assertEqual(1, before.count(f"# HELP {name} "), name)
            self.assertEqual(1, before.count(f"# TYPE {name} gauge\n"), name)
        process.interrupt()
        self.assert_status(130, process)
        self.assert_nothing_left()

    def test_a_port_in_use_is_an_error_before_training(self):
        port = free_port()
        first = self.train(*sets(ENDLESS, {"watch.prometheus.port": port}), run="first")
        becomes_true(lambda: self.metrics(port) or not first.running)
        second = self.train(*sets(SHORT, {"watch.prometheus.port": port}), run="second")
        self.assert_status(2, second)
        self.assertIn(f"watch.prometheus: cannot listen at 127.0.0.1:{port}:", second.err.replace("\n│ ", " "))
        first.interrupt()
        self.assert_status(130, first)


class Diverging(ProgramTest):
    def test_ends_all_ranks_and_names_the_first_tensor_that_is_not_finite(self):
        process = self.train(*sets(ENDLESS, {"optimizer.lr": 1e30, "watch.nan_guard.every_steps": 2}))
        self.assert_status(1, process)
        said = process.err.replace("\n│ ", " ")
        first = r"(the loss|the gradient of \S+|parameter \S+)"
        self.assertRegex(said, rf"training has diverged: in step \d+ {first} is not finite, on ")
        self.assertEqual(1, said.count("has diverged"), said)
        for rank in (0, 1):
            self.assertIn("training has diverged", self.run_folder().log(rank).read_text())
        self.assert_nothing_left()


class Trace(ProgramTest):
    def test_has_the_window_of_all_ranks_on_one_clock(self):
        self.assert_status(0, self.train(*sets(SHORT, {"watch.profile": "{from: 6, to: 8}"})))
        trace = json.loads((self.folder / "run/trace.json").read_text())["traceEvents"]
        lanes = {(event["pid"], event["tid"]): event["args"]["name"]
                 for event in trace if event["name"] == "thread_name"}
        steps = {}
        for event in trace:
            if event["ph"] != "X":
                continue
            lane = lanes[event["pid"], event["tid"]]
            self.assertGreaterEqual(event["dur"], 0)
            if lane == "steps":
                steps.setdefault(event["name"], {})[event["pid"]] = event
        self.assertEqual(["step 6", "step 7", "step 8"], sorted(steps))
        # Ranks that reduce gradients in every step are in the same step at the same time.
        for ranks in steps.values():
            begin = max(event["ts"] for event in ranks.values())
            end = min(event["ts"] + event["dur"] for event in ranks.values())
            self.assertLess(begin, end, ranks)
        names = {event["name"] for event in trace if event["ph"] == "X"}
        self.assertTrue({"all_reduce", "forward", "communication"} <= names, names)
        self.assertTrue(any(name.startswith("aten::") for name in names), names)

    def test_a_window_that_ends_before_it_begins_is_refused(self):
        process = self.train(*sets(SHORT, {"watch.profile": "{from: 6, to: 5}"}))
        self.assert_status(2, process)
        self.assertIn("watch.profile", process.err)
        self.assertFalse((self.folder / "run").exists())


class Page(html.parser.HTMLParser):
    """The links and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.open, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href", "data", "srcset")]
        if tag not in ("meta", "line", "path", "circle", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text += data


class Report(ProgramTest):
    def test_is_self_contained(self):
        markup = {"parameter_groups": "[{match: '<b>bold & brave|weight'}]"}  # a page must escape it
        self.assert_status(0, self.train(*sets(SHORT, markup)))
        text = (self.folder / "run/report.html").read_text()
        page = Page(text)
        self.assertEqual([], page.links)
        self.assertEqual([], page.open, "all elements must be closed")
        self.assertNotIn("@import", text)
        self.assertNotIn("url(", text)
        for word in ("<b>bold & brave", "loss", "accuracy", "learning rate", "throughput", "time of a step",
                     "communication", "rank 1", "global_batch_size", "libtorch"):
            self.assertIn(word, page.text)

    def test_a_resumed_run_has_no_report_until_it_has_ended(self):
        saved = {"checkpoint.every_steps": 16}
        self.assert_status(0, self.train(*sets(SHORT, saved)))
        folder = self.folder / "run"
        before = len(self.run_folder().metrics)
        process = self.train(*sets(ENDLESS, saved), "--resume=auto")
        becomes_true(lambda: len(self.run_folder().metrics) > before or not process.running)
        left = [name for name in ("summary.json", "report.html") if (folder / name).exists()]
        process.interrupt()
        self.assert_status(130, process)
        self.assertEqual([], left)
        self.assertTrue(self.run_folder().summary["stopped"])
        self.assertIn("was stopped", (folder / "report.html").read_text())

    def test_can_be_omitted(self):
        self.assert_status(0, self.train(*sets(SHORT, {"watch.report": "false"})))
        self.assertFalse((self.folder / "run/report.html").exists())


class Pictures(ProgramTest):
    """The pictures in docs/watching.md are drawn by a command."""

    def test_the_picture_of_a_terminal(self):
        process = self.start("--only=terminal", f"--out={self.folder}", f"--train={TRAIN}",
                             command=[ROOT / "tools/dev/draw_pictures"])
        self.assert_status(0, process)
        picture = xml.etree.ElementTree.parse(self.folder / "progress.svg").getroot()
        text = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
        for words in ("Run folder  runs/quickstart", "epoch 5/5", "mean loss", "Time of a step", "ETA",
                      "Done after step 625; everything is in runs/quickstart"):
            self.assertTrue(any(words in one for one in text), (words, text))
        self.assertTrue(any("█" in one for one in text), text)

    def test_the_picture_of_all_strategies(self):
        """Draws existing runs, with their config and three metrics each."""
        script = (ROOT / "tools/dev/draw_strategies").read_text()
        configs = sorted(set(re.findall(r'"(mnist_\w+)"', script)))
        self.assertEqual(13, len(configs))
        for number, config in enumerate(configs):
            run = self.folder / "runs" / config
            run.mkdir(parents=True)
            (run / "config.yaml").write_text("train:\n  global_batch_size: 64\n")
            (run / "summary.json").write_text("{}")
            (run / "metrics.jsonl").write_text("".join(
                json.dumps({"step": 10 * i, "split": split, "loss": 2 / i, "seconds": i * (number + 1)}) + "\n"
                for i in (1, 2, 3) for split in ("train", "test")))
        process = self.start(f"--runs={self.folder / 'runs'}", f"--out={self.folder / 'picture.svg'}", f"--train={TRAIN}",
                             command=[ROOT / "tools/dev/draw_strategies"])
        self.assert_status(0, process)
        picture = xml.etree.ElementTree.parse(self.folder / "picture.svg").getroot()
        space = "{http://www.w3.org/2000/svg}"
        curves = [curve.get("points").split() for curve in picture.iter(f"{space}polyline")]
        self.assertEqual({3}, set(map(len, curves)))
        self.assertEqual(2 * 3 * 13, len(curves), "each strategy is drawn in both columns of all three rows")
        text = [element.text for element in picture.iter(f"{space}text")]
        self.assertIn("all_reduce", text)
        # The final mean of all_reduce, whose folder is the first one, is the mean of 2, 1 and 2 / 3.
        self.assertIn("1.222 after 3 s", text)
        self.assertIn("1,800", text)  # tick of an axis of 1920 samples

    def test_the_picture_of_results(self):
        """Draws existing runs with three metrics of each split."""
        names = re.findall(r'^    "(\w+)": "', (ROOT / "tools/dev/draw_results").read_text(), re.M)
        for name in names:
            run = self.folder / "runs" / name
            run.mkdir(parents=True)
            (run / "summary.json").write_text("{}")
            (run / "metrics.jsonl").write_text("".join(
                json.dumps({"step": 10 * i, "split": split, "loss": 2 / i, "accuracy": 0.3 * i, "seconds": 700 * i}) + "\n"
                for i in (1, 2, 3) for split in ("train", "test")))
        process = self.start(f"--runs={self.folder / 'runs'}", f"--out={self.folder / 'picture.svg'}", f"--train={TRAIN}",
                             command=[ROOT / "tools/dev/draw_results"])
        self.assert_status(0, process)
        space = "{http://www.w3.org/2000/svg}"
        picture = xml.etree.ElementTree.parse(self.folder / "picture.svg").getroot()
        self.assertEqual(3 * len(names), len(list(picture.iter(f"{space}polyline"))), "two splits and a goal each")
        text = [element.text for element in picture.iter(f"{space}text")]
        self.assertIn("accuracy 90.00% after 2,100 s", text)
        self.assertIn("loss 0.667 after 2,100 s", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
