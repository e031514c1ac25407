#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the pages of nightly runs in headless Chromium: from disk, and as the dashboard serves them. Skipped where no
Chromium is installed."""

import fcntl
import json
import re
import sqlite3
import sys
import unittest

from program import ROOT, ProgramTest, becomes_true

sys.path[:0] = [str(ROOT / "tests/nightly_page"), str(ROOT / "tools/regress/site")]
import example_nights  # noqa: E402
from browser import BROWSERS, Browser, find_browser  # noqa: E402

DASHBOARD = str(ROOT / "tools/dashboard/dashboard")
NEEDED = f"this test needs one of {', '.join(BROWSERS)}"
CELLS = "document.querySelectorAll('.matrix-of-nights .cell')"
ROWS = "[...document.querySelectorAll('.matrix-of-nights tbody tr')]"

# A run of two ranks in its 500th step of 1000, as live.prom.
LIVE = """phalanx_run_info{name="digits",ranks="2",version="0"} 1
phalanx_planned_steps 1000
phalanx_step %d
phalanx_metric{split="train",name="loss"} 0.25
phalanx_samples_per_second{split="train"} 4321
phalanx_step_seconds{phase="forward",rank="0"} 0.001
phalanx_step_seconds{phase="forward",rank="1"} 0.003
phalanx_measured_timestamp_seconds 1
"""


@unittest.skipUnless(find_browser(), NEEDED)
class PageTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.nightly = self.folder / "nightly"

    def browse(self, **options):
        browser = Browser(**options)
        self.addCleanup(browser.close)
        return browser

    def serve(self):
        """Starts the dashboard, which writes the pages. Returns the process and its address."""
        process = self.start(self.nightly, "--port=0", command=[DASHBOARD])
        found = becomes_true(lambda: re.search(r"http://\S+/", process.out) or not process.running)
        self.assertTrue(process.running, process.text())
        return process, found[0]

    def write_pages(self):
        process, _ = self.serve()
        process.kill(15)
        self.assert_status(0, process)
        return (self.nightly / "report/index.html").as_uri()

    def query(self, text):
        with sqlite3.connect(self.nightly / "results.sqlite") as database:
            return database.execute(text).fetchall()


class FromDisk(PageTest):
    def setUp(self):
        super().setUp()
        example_nights.fill(self.nightly, nights=30, cases=18)
        self.address = self.write_pages()
        [(self.night,)] = self.query("SELECT MAX(id) FROM sessions WHERE suite = 'nightly'")
        self.failed = [name for name, in self.query(
            f"SELECT name FROM cases WHERE session_id = {self.night} AND state IN ('failed', 'error')")]
        self.runs = [run for run, in self.query(
            f"SELECT runs.id FROM runs JOIN cases ON cases.id = case_id WHERE session_id IN (1, {self.night}) "
            "AND name = 'shakespeare_gpt_tp2@r2'")]

    def pages(self):
        yield from ("#/", f"#/night/{self.night}", "#/case/7", f"#/run/{self.runs[1]}",
                    f"#/compare/{self.runs[1]}/{self.runs[0]}")

    def test_no_page_has_errors_or_is_wider_than_a_phone_or_loads_from_the_network(self):
        for width, dark in ((1280, True), (390, False)):
            browser = self.browse(width=width, dark=dark)
            browser.open(self.address)
            for page in self.pages():
                with self.subTest(page, width=width):
                    browser.go(page) if page != "#/" else None
                    self.assertNotEqual("Not found", browser.evaluate("document.title"))
                    self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)
            self.assertEqual([], browser.problems)
            loaded = browser.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
            self.assertEqual([], [name for name in loaded if not name.startswith("file:")])
            ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            self.assertEqual(dark, int(re.search(r"\d+", ground)[0]) < 128, ground)

    def test_filters_choose_cases_and_stay_in_the_address(self):
        browser = self.browse()
        browser.open(self.address)
        self.assertEqual(18, browser.evaluate(f"{ROWS}.length"))
        browser.choose("show", "failing")
        shown = browser.evaluate(f"{ROWS}.map(row => row.cells[0].innerText)")
        self.assertEqual(sorted(self.failed), sorted(shown))
        browser.choose("show", "")
        browser.choose("find", "gpt tp2")
        self.assertEqual(2, browser.evaluate(f"{ROWS}.length"))
        self.assertIn("find=gpt+tp2", browser.evaluate("location.hash"))
        browser.reload()
        self.assertEqual(2, browser.evaluate(f"{ROWS}.length"))
        self.assertEqual("gpt tp2", browser.evaluate("document.querySelector('[name=find]').value"))

    def test_cases_are_sorted_by_failures(self):
        browser = self.browse()
        browser.open(self.address)
        browser.choose("sort", "failures")
        counts = browser.evaluate(f"{ROWS}.map(row => Number(row.cells[1].innerText))")
        self.assertEqual(sorted(counts, reverse=True), counts)
        self.assertGreater(counts[0], 0)

    def test_a_red_cell_leads_to_the_failure_and_its_log(self):
        browser = self.browse()
        browser.open(self.address)
        browser.click(f".matrix-of-nights tr:nth-child({1 + self.row_of(browser, self.failed[0])}) td:nth-child(3) .cell")
        browser.wait_until("location.hash.startsWith('#/night/') && document.querySelector('.failure')")
        failure = browser.text(".failure")
        self.assertIn(self.failed[0], failure)
        self.assertIn("rank 0 has waited 20 s in all_reduce #419 of world for rank 1", failure)
        self.assertIn(r"\x1b[31m<b>bold</b>\x1b[0m", failure)
        self.assertEqual(0, browser.evaluate("document.querySelectorAll('.failure b').length"), "a log is only text")
        end = "(pre => pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 2)(document.querySelector('pre.tail'))"
        self.assertTrue(browser.evaluate(end), "the end of the log is visible")
        browser.click(".failure h3 a")
        browser.wait_until(f"document.title === {json.dumps(self.failed[0])}")
        self.assertEqual([], browser.problems)

    def row_of(self, browser, name):
        return browser.evaluate(f"{ROWS}.findIndex(row => row.cells[0].innerText === {json.dumps(name)})")

    def test_tables_are_sorted_by_a_click_on_their_head(self):
        browser = self.browse()
        browser.open(self.address + f"#/night/{self.night}")
        column = "[...document.querySelectorAll('tbody tr')].map(row => row.cells[2].innerText)"
        head = ".wide:last-of-type thead th:nth-child(3)"
        for order in ("ascending", "descending"):
            browser.click(f"#main section:last-of-type {head} button")
            values = browser.evaluate(column.replace("'tbody", "'#main section:last-of-type tbody"))
            self.assertEqual(sorted(values, key=int, reverse=order == "descending"), values)
            self.assertEqual(order, browser.evaluate(f"document.querySelector('#main section:last-of-type {head}').ariaSort"))

    def test_the_keyboard_reaches_everything(self):
        browser = self.browse()
        browser.open(self.address)
        for _ in range(80):
            browser.press("Tab")
            if browser.evaluate("document.activeElement.classList.contains('cell')"):
                break
        place = "(cell => [cell.closest('tr').rowIndex, cell.closest('td').cellIndex])(document.activeElement)"
        self.assertEqual([1, 2], browser.evaluate(place), "the first cell of the matrix")
        browser.press("ArrowDown")
        browser.press("ArrowRight")
        self.assertEqual([2, 3], browser.evaluate(place))
        browser.press("Enter")
        browser.wait_until("location.hash.startsWith('#/night/')")
        browser.go("#/case/7")
        browser.wait_until("document.querySelector('.plot svg')")
        browser.evaluate("document.querySelector('.plot svg').focus()")
        browser.press("ArrowLeft")
        self.assertIn("commit", browser.text(".tip"))
        browser.press("Enter")
        browser.wait_until("location.hash.startsWith('#/run/')")

    def test_the_trend_of_a_case_has_its_change(self):
        browser = self.browse()
        browser.open(self.address + "#/case/7")
        self.assertGreaterEqual(browser.evaluate("document.querySelectorAll('.chart').length"), 6)
        self.assertIn("throughput of shakespeare_gpt_tp2@r1 fell ", browser.text())
        self.assertGreaterEqual(browser.evaluate("document.querySelectorAll('.mark').length"), 1)
        self.assertGreaterEqual(browser.evaluate("document.querySelectorAll('.band').length"), 1)

    def test_a_run_has_curves_and_is_compared_with_another(self):
        browser = self.browse()
        browser.open(self.address + f"#/run/{self.runs[1]}")
        page = browser.text()
        for words in ("Where the time of a step goes", "is the straggler", "test.accuracy.min", "AMD EPYC", "metrics.jsonl"):
            self.assertIn(words, page)
        self.assertGreaterEqual(browser.evaluate("document.querySelectorAll('.chart').length"), 5)
        # The run has lost a rank after step 400 of 1000: its curves are shaded from there on.
        stretches = browser.evaluate("[...document.querySelectorAll('.stretch')].map(one => one.textContent)")
        self.assertEqual({"1 rank from step 400 on1 rank"}, set(stretches))
        self.assertGreaterEqual(len(stretches), 5)
        browser.evaluate(f"void (document.querySelector('form select').value = '{self.runs[0]}')")
        browser.click("form button")
        browser.wait_until("document.title.startsWith('Runs ')")
        page = browser.text()
        for words in ("Config differences", "optimizer.lr", "Time of a step", "throughput"):
            self.assertIn(words, page)
        self.assertEqual([], browser.problems)

    def test_a_link_to_something_that_is_not_there_says_so(self):
        browser = self.browse()
        browser.open(self.address + "#/case/12345")
        self.assertIn("This report has no case 12345.", browser.text())
        browser.go("#/nonsense")
        self.assertIn('This report has no page "nonsense".', browser.text())
        self.assertEqual([], browser.problems)

    def test_links_survive_another_night(self):
        browser = self.browse()
        link = f"#/night/{self.night}?case={self.failed[0]}"
        browser.open(self.address + link)
        before = browser.text(".failure h3")
        with sqlite3.connect(self.nightly / "results.sqlite") as database:
            database.execute("INSERT INTO sessions(suite, started_at, finished_at, git_commit, git_dirty) "
                             f"VALUES('nightly', {example_nights.FIRST_NIGHT + 99 * example_nights.DAY}, 1, 'c', 0)")
        self.write_pages()
        browser.reload()
        self.assertEqual(before, browser.text(".failure h3"))


class Large(PageTest):
    def test_ten_thousand_runs_open_in_a_second(self):
        example_nights.fill(self.nightly, nights=40, cases=280, light=True)
        [(runs,)] = self.query("SELECT COUNT(*) FROM runs")
        self.assertGreaterEqual(runs, 9900)
        address = self.write_pages()
        browser = self.browse()
        times = []
        for _ in range(4):  # the machine may be busy for a moment
            browser.open(address)
            times.append(browser.evaluate("shownAfter"))
            if times[-1] < 1000:
                break
        print("milliseconds:", times)
        self.assertLess(min(times), 1000)
        self.assertGreater(browser.evaluate(f"{CELLS}.length"), 8000)


class Served(PageTest):
    def setUp(self):
        super().setUp()
        example_nights.fill(self.nightly, nights=3, cases=4, light=True)
        self.run = self.folder / "runs/digits"
        (self.run / "logs").mkdir(parents=True)
        self.lock = open(self.run / ".lock", "w")
        self.addCleanup(self.lock.close)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.report(500)

    def report(self, step):
        (self.run / "live.prom.new").write_text(LIVE % step)
        (self.run / "live.prom.new").rename(self.run / "live.prom")

    def test_running_jobs_are_followed(self):
        _, address = self.serve()
        browser = self.browse()
        browser.open(address)
        browser.wait_until("document.querySelector('.job')?.innerText.includes('step 500 of 1000')")
        job = browser.text(".job")
        for words in ("digits", "4,321 samples/s", "rank 1 is the straggler"):
            self.assertIn(words, job)
        self.report(750)
        browser.wait_until("document.querySelector('.job')?.innerText.includes('step 750 of 1000')")
        (self.run / "live.prom").unlink()
        browser.wait_until("document.getElementById('running').innerText.includes('No job is running.')")
        self.assertEqual([], browser.problems)

    def test_a_new_night_appears(self):
        _, address = self.serve()
        browser = self.browse()
        browser.open(address)
        before = browser.evaluate(f"{CELLS}.length")
        with sqlite3.connect(self.nightly / "results.sqlite") as database:
            started = example_nights.FIRST_NIGHT + 50 * example_nights.DAY
            night = database.execute("INSERT INTO sessions(suite, started_at, finished_at, git_commit, git_dirty) "
                                     f"VALUES('nightly', {started}, 1, 'c', 0)").lastrowid
            database.execute("INSERT INTO cases(session_id, name, config, overrides, ranks, hosts, state) "
                             f"VALUES({night}, 'brand_new', 'c.yaml', '[]', 1, 1, 'passed')")
        browser.wait_until("document.body.innerText.includes('brand_new')")
        self.assertGreater(browser.evaluate(f"{CELLS}.length"), before)
        self.assertEqual([], browser.problems)


if __name__ == "__main__":
    unittest.main(verbosity=2)
