#!/usr/bin/env python3
"""The plug-in for CUDA is complete, and programs of --config=cuda say in one line that there is no driver."""

import os
import pathlib
import subprocess
import tempfile
import unittest

PLUGIN = pathlib.Path("framework/backends/nccl/libphalanx_cuda.so")
FUNCTIONS = {"phalanx_cuda_device_count", "phalanx_cuda_runtime_version", "phalanx_nccl_connect"}


def symbols(which):
    lines = subprocess.run(["nm", "--dynamic", "--demangle", which, PLUGIN], check=True, capture_output=True, text=True)
    return [line.split(maxsplit=2)[-1] for line in lines.stdout.splitlines()]


class PluginTest(unittest.TestCase):
    def test_exports_what_programs_call(self):
        self.assertEqual(FUNCTIONS, {name for name in symbols("--defined-only") if name.startswith("phalanx_")})

    def test_has_all_of_our_code_that_it_uses(self):
        self.assertEqual([], [name for name in symbols("--undefined-only") if "phalanx" in name])

    def test_is_small(self):
        self.assertLess(PLUGIN.stat().st_size, 1 << 20)

    def test_a_program_says_in_one_line_that_there_is_no_driver(self):
        environment = dict(os.environ, PHALANX_CUDA_DRIVER="/nowhere/libcuda.so.1")
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.abspath("configs/quickstart.yaml")
            program = os.path.abspath("tools/train")
            ran = subprocess.run([program, "--config", config, "--set", "device=cuda"], cwd=folder, env=environment,
                                 capture_output=True, text=True, timeout=120)
        self.assertEqual(2, ran.returncode, ran.stderr)
        lines = ran.stderr.strip().splitlines()
        self.assertEqual(1, len(lines), ran.stderr)
        self.assertIn("there is no NVIDIA driver (/nowhere/libcuda.so.1: ", lines[0])


if __name__ == "__main__":
    unittest.main()
