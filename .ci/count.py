#!/usr/bin/env python3
"""Counts the tests of a Bazel build event file (JSON lines). Exit status 0 when some passed and none failed."""

import json
import sys


def count(lines):
    tests, not_built, results = set(), set(), {}
    for line in lines:
        event = json.loads(line)
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


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as events:
        passed, failed = count(events)
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if passed and not failed else 1)
