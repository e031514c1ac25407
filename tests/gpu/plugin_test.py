#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the plug-in for CUDA is complete, to the extent that is possible without a GPU."""

import pathlib
import subprocess
import unittest

PLUGIN = pathlib.Path("framework/backends/nccl/libphalanx_cuda.so")
FUNCTIONS = {"phalanx_cuda_device_count", "phalanx_cuda_make_graph", "phalanx_cuda_pass_log_to",
             "phalanx_cuda_peer_memory", "phalanx_cuda_versions", "phalanx_nccl_connect", "phalanx_nccl_messages",
             "phalanx_plugin_stamp"}


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


if __name__ == "__main__":
    unittest.main()
