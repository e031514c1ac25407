# SPDX-License-Identifier: Apache-2.0
"""NCCL: the folder in NCCL_HOME, else one under a system prefix, else the wheel that LibTorch for CUDA uses.

Fetched by --config=cuda alone.
"""

_BUILD = """\
cc_library(
    name = "nccl",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    # By its version's name: wheels have no other, and LibTorch loads it by that.
    linkopts = ["-L{lib}", "-l:libnccl.so.2"],
    visibility = ["//visibility:public"],
)
"""

def _folders(repository_ctx):
    """Include folder and library folder."""
    given = repository_ctx.os.environ.get("NCCL_HOME")
    if given:
        if not repository_ctx.path(given + "/include/nccl.h").exists:
            fail("\nNCCL_HOME=%s is not an NCCL folder: it has no include/nccl.h.\nCorrect NCCL_HOME, or unset it." % given)
        return given + "/include", given + "/lib"
    for prefix in ["/usr/local", "/usr"]:
        for lib in ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"]:
            folder = prefix + "/" + lib
            if repository_ctx.path(prefix + "/include/nccl.h").exists and repository_ctx.path(folder + "/libnccl.so.2").exists:
                return prefix + "/include", folder
    wheel = str(repository_ctx.path(Label("@nccl_wheel//:BUILD.bazel")).dirname)
    return wheel + "/include", wheel + "/lib"

def _nccl(repository_ctx):
    include, lib = _folders(repository_ctx)

    # Not the folder itself, which may be the whole system's.
    for header in repository_ctx.path(include).readdir():
        if header.basename.startswith("nccl"):
            repository_ctx.symlink(header, "include/" + header.basename)
    repository_ctx.symlink(lib + "/libnccl.so.2", "lib/libnccl.so.2")
    repository_ctx.file("BUILD.bazel", _BUILD.format(lib = repository_ctx.path("lib")))

nccl = repository_rule(
    implementation = _nccl,
    environ = ["NCCL_HOME"],
)
