# SPDX-License-Identifier: Apache-2.0
"""The CUDA toolkit's basic headers and runtime: from CUDA_HOME, else from the nvcc on PATH, else from wheels.

It must be of the major version for which LibTorch was built: libraries of two major versions do not work in one process.
Fetched by --config=cuda alone.
"""

_BUILD = """\
cc_library(
    name = "cuda",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-L{lib}", "-lcudart"],
    visibility = ["//visibility:public"],
)
"""

_NEEDED = ["include/cuda_runtime_api.h", "include/crt/host_config.h", "include/nv/target"]
_LIBRARIES = ["libcudart.so", "libcupti.so"]  # the first one is linked, LibTorch for CUDA loads both

def _version(repository_ctx, folder):
    """Returns the version of a toolkit, such as "13.0"."""
    header = repository_ctx.read(folder + "/include/cuda_runtime_api.h")
    number = int(header.partition("#define CUDART_VERSION")[2].split("\n")[0].strip())
    return "%d.%d" % (number // 1000, number % 1000 // 10)

def _toolkit(repository_ctx):
    """Returns the folder of an installed toolkit, or None if no installed one fits."""
    given = repository_ctx.os.environ.get("CUDA_HOME")
    nvcc = repository_ctx.which("nvcc")
    folder = given or (str(nvcc.realpath.dirname.dirname) if nvcc else None)
    if not folder:
        return None
    if not all([repository_ctx.path(folder + "/" + path).exists for path in _NEEDED]):
        if given:
            fail("\nCUDA_HOME=%s is not a CUDA toolkit: it must have %s.\nCorrect CUDA_HOME, or unset it." %
                 (given, ", ".join(_NEEDED)))
        return None
    version = _version(repository_ctx, folder)
    if version.split(".")[0] == repository_ctx.attr.major:
        return folder
    problem = "is a toolkit of CUDA %s, but LibTorch was built for CUDA %s" % (version, repository_ctx.attr.major)
    if given:
        fail("\nCUDA_HOME=%s %s.\nName one of that version in CUDA_HOME, or unset it." % (given, problem))
    repository_ctx.report_progress("%s %s; using wheels" % (folder, problem))
    return None

def _symlink_libraries(repository_ctx, folder):
    for library in repository_ctx.path(folder).readdir():
        if any([library.basename.startswith(name) for name in _LIBRARIES]):
            repository_ctx.symlink(library, "lib/" + library.basename)
            unversioned = library.basename.split(".so")[0] + ".so"
            if not repository_ctx.path(folder + "/" + unversioned).exists:
                repository_ctx.symlink(library, "lib/" + unversioned)

def _cuda(repository_ctx):
    toolkit = _toolkit(repository_ctx)
    if toolkit:
        repository_ctx.symlink(toolkit + "/include", "include")
        lib = toolkit + "/lib64"
        if not repository_ctx.path(lib).exists:
            lib = toolkit + "/lib"
        _symlink_libraries(repository_ctx, lib)
    else:
        # Each wheel has some of the headers. Several wheels have folders of the same name, so their contents are linked
        # one by one.
        for wheel in ["cuda_runtime_wheel", "cuda_crt_wheel", "cuda_cccl_wheel", "cuda_cupti_wheel"]:
            root = str(repository_ctx.path(Label("@%s//:BUILD.bazel" % wheel)).dirname)
            for header in repository_ctx.path(root + "/include").readdir():
                if header.basename == "cccl":
                    continue  # thousands of headers for kernels, which nobody here includes
                if not repository_ctx.path("include/" + header.basename).exists:
                    repository_ctx.symlink(header, "include/" + header.basename)
            if repository_ctx.path(root + "/lib").exists:
                _symlink_libraries(repository_ctx, root + "/lib")
    repository_ctx.file("BUILD.bazel", _BUILD.format(lib = repository_ctx.path("lib")))

cuda = repository_rule(
    implementation = _cuda,
    attrs = {"major": attr.string(mandatory = True, doc = "major version of CUDA, such as 13")},
    environ = ["CUDA_HOME", "PATH"],
)
