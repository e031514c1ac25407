# SPDX-License-Identifier: Apache-2.0
"""Compiles several files of a target as one translation unit."""

def _path_in_repository(file):
    """Returns the path of a file as code of its repository includes it."""
    path = file.short_path  # of another repository: ../REPOSITORY/PATH
    return "/".join(path.split("/")[2:]) if path.startswith("../") else path

def _unity_impl(ctx):
    files = ctx.files.srcs
    units = []
    for first in range(0, len(files), ctx.attr.files_per_unit):
        unit = ctx.actions.declare_file("%s_%d.cc" % (ctx.label.name, len(units)))
        included = files[first:first + ctx.attr.files_per_unit]
        ctx.actions.write(unit, "".join(["#include \"%s\"\n" % _path_in_repository(file) for file in included]))
        units.append(unit)
    context = cc_common.create_compilation_context(headers = depset(files))
    return [
        DefaultInfo(files = depset(units)),
        CcInfo(compilation_context = context),
    ]

unity = rule(
    doc = "NAME_0.cc, NAME_1.cc, ..., which include the files; both what is compiled and, as a dep, the files themselves.",
    implementation = _unity_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True, doc = "the files to compile together"),
        "files_per_unit": attr.int(mandatory = True, doc = "the most files that one unit includes"),
    },
    provides = [CcInfo],
)
