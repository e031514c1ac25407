# SPDX-License-Identifier: Apache-2.0
"""The options that our code needs, whatever .bazelrc the workspace has that builds it."""

COPTS = [
    "-std=c++20",
    "-DNDEBUG",  # LibTorch was built with it; without it, its headers declare other classes
    "-fPIC",  # one compilation of each file serves programs and shared libraries; a precompiled header needs the same
    "-Wvla",  # a warning that defines a macro, so a precompiled header needs the same
]
