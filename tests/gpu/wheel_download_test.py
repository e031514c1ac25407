#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that only a network that does not work is a reason to skip the test of the libraries of CUDA."""

import importlib.util
import socket
import subprocess
import sys
import tempfile
import unittest

from wheel_download import refuse_wheels

BROKEN = "connection broken by 'NewConnectionError('<...>: Failed to establish a new connection: [Errno -3] ...')'"
MISSING = "ERROR: No matching distribution found for nvidia-nccl-cu13==2.28.9\n"


class WheelDownload(unittest.TestCase):
    def assert_skipped(self, output):
        with self.assertRaises(unittest.SkipTest) as skipped:
            refuse_wheels(output)
        return str(skipped.exception)

    def assert_failed(self, output):
        with self.assertRaises(AssertionError) as failed:
            refuse_wheels(output)
        self.assertIn(output, str(failed.exception))

    def test_skips_without_a_network(self):
        said = self.assert_skipped(f"WARNING: Retrying (Retry(total=0)) after {BROKEN}: /simple/\n" + MISSING)
        self.assertEqual("the libraries of CUDA could not be downloaded: " + MISSING.strip(), said)
        for words in ("ERROR: HTTP error 503 while getting https://a/b.whl", "ReadTimeoutError: Read timed out.",
                      "ERROR: 502 Server Error: Bad Gateway for url: https://a/b.whl"):
            self.assert_skipped(words)

    @unittest.skipIf(importlib.util.find_spec("pip") is None, "this Python has no pip")
    def test_skips_for_what_pip_says_of_a_port_that_refuses_connections(self):
        with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryDirectory() as folder:
            port = server.getsockname()[1]
            server.close()
            command = [sys.executable, "-m", "pip", "--isolated", "download", "--retries=1", "--quiet", "--no-cache-dir",
                       f"--index-url=http://127.0.0.1:{port}/simple", f"--dest={folder}", "nvidia-nccl-cu13==2.28.9"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(0, done.returncode)
        self.assert_skipped(done.stdout + done.stderr)

    def test_fails_for_everything_else(self):
        for output in (MISSING, "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
                       f"WARNING: Retrying after {BROKEN}\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
                       f"WARNING: Retrying after {BROKEN.replace('NewConnection', 'CERTIFICATE_VERIFY_FAILED')}\n" + MISSING,
                       "ERROR: Invalid requirement: 'nvidia-nccl=2'", "ERROR: HTTP error 404 while getting https://a/b.whl",
                       "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", ""):
            self.assert_failed(output)


if __name__ == "__main__":
    unittest.main()
