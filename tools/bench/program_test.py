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
# An MPI whose operations do nothing, and its launcher.
MPI_H = """#pragma once
#include <cstdlib>
enum { MPI_SUCCESS, MPI_MAX_ERROR_STRING = 64, MPI_COMM_WORLD = 0, MPI_FLOAT = 0, MPI_SUM = 0, MPI_INFO_NULL = 0 };
enum { MPI_THREAD_SINGLE, MPI_REQUEST_NULL = 0 };
using MPI_Request = int;
using MPI_Aint = long;
constexpr int* MPI_STATUS_IGNORE = nullptr;
constexpr void* MPI_IN_PLACE = nullptr;
#define DOES_NOTHING(name) template <class... Arguments> int name(Arguments...) { return MPI_SUCCESS; }
DOES_NOTHING(MPI_Init_thread) DOES_NOTHING(MPI_Finalize) DOES_NOTHING(MPI_Error_string) DOES_NOTHING(MPI_Barrier)
DOES_NOTHING(MPI_Allreduce) DOES_NOTHING(MPI_Bcast) DOES_NOTHING(MPI_Reduce) DOES_NOTHING(MPI_Reduce_scatter_block)
DOES_NOTHING(MPI_Allgather) DOES_NOTHING(MPI_Gather) DOES_NOTHING(MPI_Scatter) DOES_NOTHING(MPI_Alltoall)
DOES_NOTHING(MPI_Send) DOES_NOTHING(MPI_Recv) DOES_NOTHING(MPI_Iallreduce) DOES_NOTHING(MPI_Wait)
inline int number(const char* name) { return std::atoi(std::getenv(name)); }
inline int MPI_Comm_rank(int, int* rank) { return *rank = number("PMI_RANK"), MPI_SUCCESS; }
inline int MPI_Comm_size(int, int* size) { return *size = number("PMI_SIZE"), MPI_SUCCESS; }
inline int MPI_Alloc_mem(long bytes, int, void* data) { return *(void**)data = std::malloc(bytes), MPI_SUCCESS; }
inline int MPI_Free_mem(void* data) { return std::free(data), MPI_SUCCESS; }
"""
MPIEXEC = """#!/bin/sh
ranks=$2 rank=0
shift 2
while [ $rank -lt $ranks ]; do
  PMI_RANK=$rank PMI_SIZE=$ranks "$@" &
  rank=$((rank + 1))
done
wait
"""
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

    def pip(self, script):
        """Returns variables with which bench finds a pip that runs `script`, where $prefix is the folder to install
        in, and has an empty cache."""
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        python = programs / "python3"
        python.write_text(f'#!/bin/sh\nwhile [ "$1" != --prefix ]; do shift; done\nprefix=$2\n{script}\n')
        python.chmod(0o755)
        return {"XDG_CACHE_HOME": str(self.folder / "caches"), "PATH": f"{programs}:{os.environ['PATH']}"}

    def test_installs_an_mpi_once_and_measures_it_in_every_operation(self):
        (self.folder / "mpi.h").write_text(MPI_H)
        (self.folder / "mpiexec").write_text(MPIEXEC)
        variables = self.pip(f"""echo "$@" >> {self.folder}/installed
mkdir -p "$prefix/bin" "$prefix/lib" "$prefix/include"
cp {self.folder}/mpi.h "$prefix/include/mpi.h"
cp {self.folder}/mpiexec "$prefix/bin/mpiexec.hydra"
chmod +x "$prefix/bin/mpiexec.hydra"
echo | c++ -shared -fPIC -x c++ - -o "$prefix/lib/libmpi.so"
""")
        for _ in range(2):
            self.bench(*QUICK, "--op=all", "--backends=shm", "--against=mpich", "--bytes=1000,64KB", "--json=rows.json",
                       **variables)
            result = json.loads((self.folder / "rows.json").read_text())
            self.assertEqual([], result["absent"])
            rows = [row for row in result["rows"] if row["backend"] == "mpich"]
            self.assertEqual(10 * 2 * 2 + 1, len(rows))  # operations, sizes, memories; plus the barrier
            for row in rows:
                self.assertEqual(ROW, set(row))
        installed = (self.folder / "installed").read_text()
        self.assertEqual(1, installed.count("\n"), installed)
        self.assertIn("mpich==5.0.2", installed)

    def test_says_why_an_mpi_cannot_be_measured(self):
        flags = ["--backends=shm", "--against=mpich"]
        done = self.bench(*flags, status=2, **self.pip("exit 1"))
        self.assertIn("--against mpich: python3 -m pip install mpich==5.0.2 failed, as printed above; "
                      "the first measurement needs network access", done.stderr)
        variables = self.pip("exit 0")
        done = self.bench(*flags, status=2, **{**variables, "PATH": str(self.folder / "programs")})
        self.assertIn("--against mpich: needs a C++ compiler, c++", done.stderr)
        done = self.bench(*flags, status=2, **variables)
        self.assertIn("--against mpich: c++ cannot compile the program that calls mpich", done.stderr)

    def test_an_mpi_that_does_not_start_is_an_error(self):
        (self.folder / "mpi.h").write_text(MPI_H)
        variables = self.pip(f"""mkdir -p "$prefix/bin" "$prefix/lib" "$prefix/include"
cp {self.folder}/mpi.h "$prefix/include/mpi.h"
printf '#!/bin/sh\\necho no MPI today; exit 1\\n' > "$prefix/bin/mpiexec.hydra"
chmod +x "$prefix/bin/mpiexec.hydra"
echo | c++ -shared -fPIC -x c++ - -o "$prefix/lib/libmpi.so"
""")
        done = self.bench("--backends=shm", "--against=mpich", status=1, **variables)
        self.assertIn("no MPI today", done.stderr)
        self.assertIn("mpich: its launcher has ended", done.stderr)

    def test_measures_a_bare_exchange_of_flags_as_a_barrier(self):
        for ranks in (2, 4):
            result = self.rows("--op=all_reduce,barrier", "--backends=shm", "--against=flags", "--bytes=1KB",
                               "--memory=private", f"--ranks={ranks}")
            self.assertEqual(["barrier"], [row["op"] for row in result["rows"] if row["backend"] == "flags"])
            self.assertEqual([("all_reduce", "flags", "flags are exchanged only as a barrier")],
                             [(one["op"], one["backend"], one["why"]) for one in result["absent"]])

    def test_an_interpreter_that_ends_is_an_error(self):
        python = self.folder / "python"
        python.write_text('#!/bin/sh\n[ $# -lt 3 ] || { echo "no torch today" >&2; exit 1; }\n')
        python.chmod(0o755)
        done = self.bench("--backends=shm", "--against=torch", f"--python={python}", status=1)
        self.assertIn(f"{python} has ended", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
