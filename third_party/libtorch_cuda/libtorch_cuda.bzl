# SPDX-License-Identifier: Apache-2.0
"""LibTorch for CUDA: the folder in LIBTORCH_CUDA, else an installed PyTorch for CUDA, else its wheel.

It has the same version as //third_party/libtorch, whose headers all code is compiled with. It adds CUDA's headers, and
replaces the libraries that programs run with. Fetched by --config=cuda alone.
"""

_BUILD = """\
package(default_visibility = ["//visibility:public"])

# What a CPU program links in place of the CPU's LibTorch.
cc_library(
    name = "programs",
    linkopts = [
        "-L{lib}",
        "-Wl,-rpath,{lib}",
        "-ltorch_cpu",
        "-lc10",
        "-Wl,--allow-shlib-undefined",  # CUDA's own libraries may be absent
    ],
)

# What plug-ins are compiled and linked with.
cc_library(
    name = "libtorch_cuda",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = [
        "-L{lib}",
        "-Wl,--no-as-needed",
        "-ltorch_cuda",
        "-lc10_cuda",
        "-Wl,--as-needed",
        "-Wl,--allow-shlib-undefined",
    ],
    deps = [":programs"],
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

_NEEDED = ["include/c10/cuda/CUDAStream.h", "lib/libtorch_cuda.so", "lib/libtorch_cpu.so"]

def _is_libtorch_cuda(repository_ctx, folder):
    return all([repository_ctx.path(folder + "/" + path).exists for path in _NEEDED])

def _find(repository_ctx):
    """Returns the folder of an installed one, or None."""
    given = repository_ctx.os.environ.get("LIBTORCH_CUDA")
    if given:
        if not _is_libtorch_cuda(repository_ctx, given):
            fail("\nLIBTORCH_CUDA=%s is not a LibTorch for CUDA: it must have %s.\nCorrect LIBTORCH_CUDA, or unset it." %
                 (given, ", ".join(_NEEDED)))
        return given
    found = repository_ctx.execute(["python3", "-c", _FIND_INSTALLED]).stdout.strip()
    version, _, folder = found.partition(" ")
    return folder if version == repository_ctx.attr.version and _is_libtorch_cuda(repository_ctx, folder) else None

def _libtorch_cuda(repository_ctx):
    folder = _find(repository_ctx)
    lib = folder and str(repository_ctx.path(folder + "/lib").realpath)
    if not folder:
        # The wheel lies next to CUDA's libraries, where it looks for them, as pip would have installed them. Its folder
        # is not a link: the folder above a link is the one above the link's target.
        folder = str(repository_ctx.path(Label("@libtorch_cuda_wheel//:BUILD.bazel")).dirname)
        cuda = str(repository_ctx.path(Label("@cuda//:BUILD.bazel")).dirname)
        nccl = str(repository_ctx.path(Label("@nccl//:BUILD.bazel")).dirname)
        for library in repository_ctx.path(folder + "/lib").readdir():
            repository_ctx.symlink(library, "torch/lib/" + library.basename)
        repository_ctx.symlink(cuda + "/lib", "nvidia/cu13/lib")
        repository_ctx.symlink(nccl + "/lib", "nvidia/nccl/lib")
        lib = str(repository_ctx.path("torch/lib"))
    for headers in ["ATen/cuda", "c10/cuda", "torch/csrc/cuda"]:
        repository_ctx.symlink(folder + "/include/" + headers, "include/" + headers)
    repository_ctx.file("BUILD.bazel", _BUILD.format(lib = lib))

libtorch_cuda = repository_rule(
    implementation = _libtorch_cuda,
    attrs = {"version": attr.string(mandatory = True)},
    environ = ["LIBTORCH_CUDA", "PATH"],
)
