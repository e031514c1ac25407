# SPDX-License-Identifier: Apache-2.0
"""The targets of the wheel of an MPI under which tests run."""

# The mpiexec of an MPI or, if its wheel is absent, the reason; and its declarations of the standard ABI.
MPI_OF_TESTS = """
filegroup(
    name = "mpiexec",
    srcs = glob(["bin/mpiexec.hydra"], allow_empty = True) or ["absent.txt"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "abi_header",
    hdrs = glob(["include/mpi_abi.h"], allow_empty = True),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""
