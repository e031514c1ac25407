# SPDX-License-Identifier: Apache-2.0
"""The commands of the program phalanx: libraries that register themselves, and links that are called like them."""

load("//bazel:cc.bzl", "cc_library")

def _program_link_impl(ctx):
    link = ctx.actions.declare_file(ctx.label.name)
    program = ctx.executable.program
    ctx.actions.symlink(output = link, target_file = program, is_executable = True)
    runfiles = ctx.runfiles(files = [link, program]).merge(ctx.attr.program[DefaultInfo].default_runfiles)
    for target in ctx.attr.data:
        runfiles = runfiles.merge(ctx.runfiles(transitive_files = target[DefaultInfo].files))
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = link, files = depset([link]), runfiles = runfiles)]

program_link = rule(
    doc = "A link to a program under another name, which the program can see.",
    implementation = _program_link_impl,
    attrs = {
        "program": attr.label(default = "//tools/command:phalanx", executable = True, cfg = "target"),
        "data": attr.label_list(allow_files = True, doc = "what the program needs when it runs under this name"),
    },
    executable = True,
)

def command(name, data = [], **kwargs):
    """A command of phalanx: the library NAME_command, which registers it, and the link NAME.

    //tools/command:phalanx must name the library in its deps, and tools/BUILD.bazel lists an alias of the link.

    Args:
      name: of the command.
      data: what the command needs when it runs.
      **kwargs: as of cc_library.
    """
    cc_library(
        name = name + "_command",
        alwayslink = True,
        **kwargs
    )
    program_link(
        name = name,
        data = data,
    )
