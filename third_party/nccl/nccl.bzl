# SPDX-License-Identifier: Apache-2.0
"""NCCL: the folder in NCCL_HOME, else one under a system prefix, else the wheel that LibTorch for CUDA uses.

It must have been built for the major version of CUDA for which LibTorch was built. Fetched by --config=cuda alone.
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

def _cuda_version(repository_ctx, library):
    """Returns the version of CUDA for which a library was built, such as "12.9", or "" if it does not say so."""
    found = repository_ctx.execute(["grep", "-aoE", "NCCL version [0-9.]+[+]cuda[0-9.]+", library]).stdout
    return found.split("\n")[0].partition("+cuda")[2]

def _fits(repository_ctx, library):
    version = _cuda_version(repository_ctx, library)
    return version == "" or version.split(".")[0] == repository_ctx.attr.cuda_major

def _folders(repository_ctx):
    """Returns the include folder and the library folder."""
    given = repository_ctx.os.environ.get("NCCL_HOME")
    if given:
        if not repository_ctx.path(given + "/include/nccl.h").exists:
            fail("\nNCCL_HOME=%s is not an NCCL folder: it has no include/nccl.h.\nCorrect NCCL_HOME, or unset it." % given)
        library = given + "/lib/libnccl.so.2"
        if not _fits(repository_ctx, library):
            fail("\nNCCL_HOME=%s has an NCCL for CUDA %s, but LibTorch was built for CUDA %s.\nName one for that version, or unset it." %
                 (given, _cuda_version(repository_ctx, library), repository_ctx.attr.cuda_major))
        return given + "/include", given + "/lib"
    for prefix in ["/usr/local", "/usr"]:
        for lib in ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"]:
            folder = prefix + "/" + lib
            library = folder + "/libnccl.so.2"
            if not repository_ctx.path(prefix + "/include/nccl.h").exists or not repository_ctx.path(library).exists:
                continue
            if _fits(repository_ctx, library):
                return prefix + "/include", folder
            repository_ctx.report_progress("%s is for CUDA %s; using the wheel" % (library, _cuda_version(repository_ctx, library)))
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
    attrs = {"cuda_major": attr.string(mandatory = True, doc = "major version of CUDA, such as 13")},
    environ = ["NCCL_HOME"],
)
