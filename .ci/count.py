#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of a Bazel build event file (JSON lines), and names the cases that were skipped.

  count.py EVENTS LOG

LOG is the output of Bazel. The exit status is 0 if some tests passed, none failed, and the compiler did not warn about
our code.
"""

import json
import re
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree

# Matches one line of Python's unittest, which may contain the first line of a docstring.
_PYTHON_SKIPPED = re.compile(r"^(\w+) \((\w+\.[\w.]+)\)\n?.*\.\.\. skipped (.*)$", re.MULTILINE)
_PYTHON_RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)

# Matches warnings of GCC and Clang about a file of the folders that .bazelrc compiles with warnings, whether it is
# compiled alone or included in a unit (bazel/unity.bzl), and about a precompiled header that the compiler refuses.
_WARNING = re.compile(r"^(?:cc1plus|(?:\./)?(?:framework|engine|launch|models|datasets|phalanx|examples|tools|tests)/\S+:\d+): warning: .*$",
                      re.MULTILINE)


def count(events):
    """Returns the number of test targets that passed, and the number that failed or were not built."""
    tests, not_built, results = set(), set(), {}
    for event in events:
        for kind, key in event["id"].items():
            label = key.get("label") if isinstance(key, dict) else None
            if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
                tests.add(label)
            elif kind == "targetCompleted" and not event.get("completed", {}).get("success"):
                not_built.add(label)
            elif kind == "testSummary":
                results[label] = event["testSummary"]["overallStatus"] if "testSummary" in event else "ABORTED"
    passed = {label for label, status in results.items() if status in ("PASSED", "FLAKY")}
    failed = (set(results) | tests & not_built) - passed
    return len(passed), len(failed)


def cases(events):
    """Returns the number of cases of all targets, and (target, case, reason) of each that was skipped."""
    total, skipped = 0, []
    for event in events:
        if "testResult" in event:
            files = {file["name"]: file["uri"] for file in event["testResult"].get("testActionOutput", [])}
            found, left_out = _python_cases(_read(files.get("test.log")))
            if not found and not left_out:
                found, left_out = _xml_cases(_read(files.get("test.xml")))
            total += found
            skipped += [(event["id"]["testResult"]["label"], *case) for case in left_out]
    return total, sorted(skipped)


def _read(uri):
    if not uri:
        return ""
    try:
        path = urllib.request.url2pathname(urllib.parse.urlparse(uri).path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # deleted, for example by `bazel clean`
        return ""


def _python_cases(log):
    ran = sum(int(number) for number in _PYTHON_RAN.findall(log))
    # (__main__.Class), or since Python 3.11 (__main__.Class.test)
    return ran, [(f"{owner.split('.')[1]}.{name}", reason) for name, owner, reason in _PYTHON_SKIPPED.findall(log)]


def _xml_cases(text):
    try:
        found = list(xml.etree.ElementTree.fromstring(text).iter("testcase"))
    except xml.etree.ElementTree.ParseError:  # the test ended before it had written the whole file
        return 0, []
    ran = [case for case in found if case.get("status") != "notrun"]  # the others ran in other shards or not at all
    return len(ran), [(f"{case.get('classname')}.{case.get('name')}", (reason.get("message") or "").split("\n")[-1])
                      for case in ran for reason in case.iter("skipped")]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        all_events = [json.loads(line) for line in file]
    total, skipped = cases(all_events)
    for target, case, reason in skipped:
        print(f"skipped: {target} {case}: {reason}")
    print(f"{total} cases, {len(skipped)} of them skipped")
    with open(sys.argv[2], encoding="utf-8", errors="replace") as file:
        warnings = sorted(set(_WARNING.findall(file.read())))
    for warning in warnings:
        print(f"not allowed: {warning}")
    passed, failed = count(all_events)
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed and not warnings else 1)
