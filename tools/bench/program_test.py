#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the bench program: its output, the files that it writes, and its messages for a wrong command line."""

import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from program import DEADLINE, ROOT, ProgramTest

BENCH = str(ROOT / "tools/bench/bench")
QUICK = ["--rounds=2", "--budget_ms=0.2"]
ROW = {"op", "backend", "algorithm", "ranks", "bytes", "memory", "p50_us", "p90_us", "alg_gb_s", "bus_gb_s"}


class Bench(ProgramTest):
    def bench(self, *flags, status=0, **variables):
        done = subprocess.run([BENCH, *flags], cwd=self.folder, env=self.environment(**variables), timeout=2 * DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return done

    def rows(self, *flags):
        self.bench(*QUICK, "--json=rows.json", *flags)
        result = json.loads((self.folder / "rows.json").read_text())
        for row in result["rows"]:
            self.assertEqual(ROW, set(row))
            self.assertGreater(row["p50_us"], 0)
            self.assertGreaterEqual(row["p90_us"], row["p50_us"])
        return result

    def test_measures_peers_in_every_operation(self):
        result = self.rows("--op=all", "--backends=shm,mpi", "--against=mpi,gloo", "--bytes=1000,64KB", "--plot=plot.svg")
        measured = {(row["op"], row["backend"], row["memory"], row["bytes"]) for row in result["rows"]}
        self.assertEqual(len(measured), len(result["rows"]), "a row was measured twice")
        backends = {"shm": 0, "mpi": 0, "openmpi": 0, "libgloo": 0}
        for row in result["rows"]:
            backends[row["backend"]] += 1
        everything = 10 * 2 * 2 + 1  # operations, sizes, memories; plus the barrier
        gloo_has_not = {(one["op"], one["backend"]) for one in result["absent"]}
        self.assertEqual({("reduce_scatter", "libgloo"), ("launch", "libgloo")}, gloo_has_not)
        self.assertEqual({"shm": everything, "mpi": everything, "openmpi": everything, "libgloo": everything - 8}, backends)
        svg = xml.etree.ElementTree.parse(self.folder / "plot.svg").getroot()
        self.assertTrue(svg.tag.endswith("svg"))

    def test_compares_parameter_servers_with_an_all_reduce(self):
        result = self.rows("--op=all_reduce,barrier", "--backends=shm", "--against=servers", "--bytes=1KB,1MB",
                           "--memory=private")
        self.assertEqual([1024, 1 << 20], sorted(row["bytes"] for row in result["rows"] if row["backend"] == "servers"))
        self.assertEqual([("barrier", "servers")], [(one["op"], one["backend"]) for one in result["absent"]])

    def test_threads(self):
        result = self.rows("--op=all_reduce,barrier", "--backends=inproc", "--ranks=3", "--bytes=4KB")
        self.assertEqual(["all_reduce", "all_reduce", "barrier"], [row["op"] for row in result["rows"]])
        self.assertEqual({3}, {row["ranks"] for row in result["rows"]})

    def test_algorithms(self):
        result = self.rows("--op=all_reduce", "--backends=shm", "--algorithms=all", "--memory=private", "--bytes=64KB")
        names = {row["algorithm"] for row in result["rows"]}
        self.assertLessEqual({"native", "ring"}, names)

    def test_binds_to_cores(self):
        result = self.rows("--backends=shm", "--memory=private", "--bytes=4KB", "--bind=core")
        self.assertEqual(1, len(result["rows"]))

    def test_says_what_is_wrong(self):
        for flag, message in (("--op=all_reduc", 'did you mean "all_reduce"'),
                              ("--backends=smh", 'did you mean "shm"'),
                              ("--plot=plot.png", ".svg"),
                              ("--bytes=many", "many")):
            done = self.bench(flag, status=2)
            self.assertIn(message, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_says_what_an_interpreter_lacks(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)
        done = self.bench("--backends=shm", "--against=torch", f"--python={python}", status=2)
        self.assertIn(f"{python} has no PyTorch with gloo", done.stderr)
        done = self.bench("--backends=shm", "--against=torch", "--python=/no/such/python", status=2)
        self.assertIn("/no/such/python cannot be started", done.stderr)

    def test_installs_pytorch_with_pip_alone(self):
        """Installs PyTorch with Debian's Python, which has no venv. The PyTorch that this pip installs ends when it is
        used."""
        programs = self.folder / "programs"
        programs.mkdir()
        python = programs / "python3"
        python.write_text(f"""#!/bin/sh
case "$*" in
  "-m venv"*) echo "No module named ensurepip" >&2; exit 1 ;;
  "-m pip install"*)
    while [ "$1" != --target ]; do shift; done
    mkdir -p "$2/torch"
    echo 'import sys; len(sys.argv) > 1 and sys.exit("no torch today")' > "$2/torch/__init__.py"
    echo 'def is_gloo_available(): return True' > "$2/torch/distributed.py" ;;
  *) exec {sys.executable} "$@" ;;
esac
""")
        python.chmod(0o755)
        caches = self.folder / "caches"
        done = self.bench("--backends=shm", "--against=torch", status=1, XDG_CACHE_HOME=str(caches),
                          PATH=f"{programs}:{os.environ['PATH']}")
        self.assertIn(f"{caches}/phalanx/torch-2.13.0/bin/python has ended", done.stderr)

    def test_an_interpreter_that_ends_is_an_error(self):
        python = self.folder / "python"
        python.write_text('#!/bin/sh\n[ $# -lt 3 ] || { echo "no torch today" >&2; exit 1; }\n')
        python.chmod(0o755)
        done = self.bench("--backends=shm", "--against=torch", f"--python={python}", status=1)
        self.assertIn(f"{python} has ended", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
