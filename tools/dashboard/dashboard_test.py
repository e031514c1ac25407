#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the server of the dashboard as a program that speaks HTTP; tests/nightly_page tests its pages in a browser."""

import json
import re
import signal
import sys
import unittest
import urllib.error
import urllib.request

from program import ENDLESS, ROOT, ProgramTest, becomes_true, sets

sys.path.insert(0, str(ROOT / "tools/regress/site"))
import example_nights  # noqa: E402

DASHBOARD = str(ROOT / "tools/dashboard/dashboard")


class Dashboard(ProgramTest):
    def setUp(self):
        super().setUp()
        self.nightly = self.folder / "nightly"
        example_nights.fill(self.nightly, nights=2, cases=4)

    def serve(self, *arguments):
        """Starts the dashboard. Returns the process and its address."""
        process = self.start(self.nightly, "--port=0", *arguments, command=[DASHBOARD])
        found = becomes_true(lambda: re.search(r"Dashboard at (http://\S+/) ", process.out) or not process.running)
        self.assertTrue(process.running, process.text())
        return process, found[1]

    def get(self, address):
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.read().decode(), answer.headers.get_content_type()

    def test_serves_the_pages_and_the_run_folders(self):
        _, address = self.serve()
        page, kind = self.get(address)
        self.assertIn('data-events="/events"', page)
        self.assertEqual("text/html", kind)
        overview, kind = self.get(address + "report/data/overview.js")
        self.assertTrue(overview.startswith('receive("overview",{'))
        self.assertEqual("text/javascript", kind)
        self.assertIn("train", self.get(address + "runs/1/mnist_single@r1/1/metrics.jsonl")[0])

    def test_serves_nothing_else(self):
        _, address = self.serve()
        for path in ("results.sqlite", "report/../results.sqlite", "report/%2e%2e/results.sqlite", "../../etc/passwd", "absent"):
            with self.subTest(path), self.assertRaises(urllib.error.HTTPError) as refusal:
                self.get(address + path)
            self.assertEqual(404, refusal.exception.code)

    def test_sends_the_jobs_that_are_running(self):
        self.train(*sets(ENDLESS), run="runs/job")
        _, address = self.serve()
        with urllib.request.urlopen(address + "events", timeout=60) as events:
            self.assertEqual("text/event-stream", events.headers.get_content_type())
            for line in events:
                if line.startswith(b"data: [{"):
                    break
        job, = json.loads(line[len("data: "):])
        self.assertEqual(("quickstart", 2), (job["name"], len(job["ranks"])))
        self.assertGreater(job["throughput"], 0)

    def test_ends_by_a_signal_while_browsers_wait_for_events(self):
        process, address = self.serve()
        with urllib.request.urlopen(address + "events", timeout=60) as events:
            self.assertTrue(events.readline())
            process.interrupt(signal.SIGINT)
            self.assert_status(0, process)

    def test_says_what_is_wrong(self):
        _, address = self.serve()
        port = re.search(r":(\d+)/", address)[1]
        (self.folder / "empty").mkdir()
        for words, status, why in (([], 2, "name one folder of a nightly: dashboard FOLDER"),
                                   (["empty"], 2, "empty/results.sqlite"),
                                   (["nightly", "--port=70000"], 2, "--port: must be from 0 to 65535"),
                                   (["nightly", f"--port={port}"], 2,
                                    f"cannot listen at 127.0.0.1:{port}: Address already in use; choose another port")):
            with self.subTest(words):
                process = self.start(*words, command=[DASHBOARD])
                self.assert_status(status, process)
                self.assertIn(why, process.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
