# SPDX-License-Identifier: Apache-2.0
"""LibTorch, the C++ part of PyTorch: the folder in LIBTORCH, else an installed PyTorch, else its wheel."""

load("//third_party:labels.bzl", "absolute")

_BUILD = """\
load("{link_only}", "link_only")

cc_library(
    name = "libtorch",
    hdrs = glob(["include/**", "instead/**"]),
    includes = [
        "instead",  # before those of the same name
        "include",
        "include/torch/csrc/api/include",
    ],
    # LibTorch's own headers then name the single operators they use, not all 2,000.
    # LibTorch was built with NDEBUG; without it, its headers declare other classes.
    defines = ["AT_PER_OPERATOR_HEADERS", "NDEBUG"],
    deps = [":linked"],
    visibility = ["//visibility:public"],
)

# They say which operators have kernels for CUDA.
filegroup(
    name = "operator_headers",
    srcs = glob(["include/ATen/ops/*_cuda_dispatch.h", "include/ATen/ops/*_composite*_dispatch.h"]),
    visibility = ["//visibility:public"],
)

# With --config=cuda programs run with LibTorch for CUDA, of the same version.
link_only(
    name = "linked",
    dep = select({{
        "{cuda}": "@libtorch_cuda//:programs",
        "//conditions:default": ":programs",
    }}),
)

cc_library(
    name = "programs",
    # By options and not as srcs: loaded through a symlink, LibTorch would look for its own libraries in vain.
    # Without libtorch.so, which in a CUDA build needs a GPU's libraries; those that libtorch_cpu.so then still
    # names are found through its run path, or are absent and unused.
    linkopts = [
        "-L{lib}",
        "-Wl,-rpath,{lib}",
        "-ltorch_cpu",
        "-lc10",
        "-Wl,--allow-shlib-undefined",
    ],
)
"""

# Finds PyTorch without the seconds that importing it takes.
_FIND_INSTALLED = """
import importlib.metadata, importlib.util, os
try:
    version = importlib.metadata.version("torch").split("+")[0]
    print(version + " " + os.path.dirname(importlib.util.find_spec("torch").origin))
except (ImportError, AttributeError):
    pass
"""

_NEEDED = ["include/ATen/core/Tensor.h", "lib/libtorch_cpu.so", "lib/libc10.so"]

def _is_libtorch(repository_ctx, folder):
    return all([repository_ctx.path(folder + "/" + path).exists for path in _NEEDED])

def _find(repository_ctx):
    given = repository_ctx.os.environ.get("LIBTORCH")
    if given:
        if not _is_libtorch(repository_ctx, given):
            fail("\nLIBTORCH=%s is not a LibTorch folder: it must have %s.\nCorrect LIBTORCH, or unset it." %
                 (given, ", ".join(_NEEDED)))
        return given
    found = repository_ctx.execute(["python3", "-c", _FIND_INSTALLED]).stdout.strip()
    version, _, folder = found.partition(" ")
    if version == repository_ctx.attr.version and _is_libtorch(repository_ctx, folder):
        return folder
    return str(repository_ctx.path(Label("@libtorch_wheel//:BUILD.bazel")).dirname)

def _libtorch(repository_ctx):
    folder = _find(repository_ctx)
    repository_ctx.symlink(folder + "/include", "include")
    repository_ctx.symlink(Label("//third_party/libtorch:device_guard.h"), "instead/ATen/DeviceGuard.h")
    repository_ctx.file("BUILD.bazel", _BUILD.format(
        lib = repository_ctx.path(folder + "/lib").realpath,
        link_only = absolute(Label("//third_party:link_only.bzl")),
        cuda = absolute(Label("//bazel:cuda")),
    ))

libtorch = repository_rule(
    implementation = _libtorch,
    attrs = {"version": attr.string(mandatory = True)},
    environ = ["LIBTORCH", "PATH"],
)
