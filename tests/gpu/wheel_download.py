# SPDX-License-Identifier: Apache-2.0
"""Tells why pip has not downloaded wheels."""

import re
import unittest

# Parts of pip's messages about a network that does not work, or a server that is overloaded.
NETWORK = re.compile(r"connection broken by|Max retries exceeded|(NewConnection|ConnectTimeout|ReadTimeout|NameResolution|"
                     r"Protocol|Proxy)Error|IncompleteRead|HTTP error (429|5\d\d)|(429|5\d\d) (Client|Server) Error")
# Parts of pip's messages about problems that remain when the network works.
LASTING = re.compile(r"DO NOT MATCH THE HASHES|CERTIFICATE_VERIFY_FAILED")


def refuse_wheels(output):
    """Skips the test if the network is why pip has failed with this output, and fails otherwise."""
    if LASTING.search(output) or not NETWORK.search(output):
        raise AssertionError("pip could not download the libraries of CUDA:\n" + output)
    lines = [line for line in output.splitlines() if line.startswith("ERROR")]
    raise unittest.SkipTest("the libraries of CUDA could not be downloaded: " + " ".join(lines[-1:] or output.split()))
