# SPDX-License-Identifier: Apache-2.0
"""Apache Arrow and Parquet: the C++ libraries that the wheel pyarrow has, fetched when something is built with them."""

_BUILD = """\
cc_library(
    name = "arrow",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    # By their versions' names: wheels have no others.
    linkopts = [
        "-L{lib}",
        "-Wl,-rpath,{lib}",
        "-l:libparquet.so.{version}",
        "-l:libarrow.so.{version}",
    ],
    visibility = ["//visibility:public"],
)
"""

def _arrow(repository_ctx):
    wheel = repository_ctx.path(Label("@arrow_wheel//:BUILD.bazel")).dirname
    repository_ctx.symlink(str(wheel) + "/include", "include")
    repository_ctx.file("BUILD.bazel", _BUILD.format(lib = wheel.realpath, version = repository_ctx.attr.so_version))

arrow = repository_rule(
    implementation = _arrow,
    attrs = {"so_version": attr.string(mandatory = True, doc = "of libarrow.so")},
)
