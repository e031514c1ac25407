"""cc_library, cc_test and cc_binary as this repository uses them: with precompiled headers, linked statically.

Parsing the headers of others is two thirds of what a file takes; a precompiled header spares it. Files include what
they use all the same, which --config=no-pch shows.
"""

_TENSORS = "//third_party/libtorch"
_GOOGLETEST = "//third_party/googletest"

# False positives of GCC 12 in std::string: it no longer takes code from a precompiled header for a system header's.
# --config=no-pch has these warnings.
_QUIET = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

# Compiling test code takes two thirds of the time that -O2 takes. From GCC 14 on, a precompiled header and the files that
# use it need the same -O, so the headers of test code ("test", "tensor_test") are compiled with it, too.
TEST_COPTS = select({"//bazel:opt": ["-O1"], "//conditions:default": []})

def _is_test_code(deps):
    return any([dep == _GOOGLETEST or dep.startswith(_GOOGLETEST + ":") for dep in deps])

def _compiled(srcs, deps, copts, precompiled, is_test_code):
    """Returns deps and copts of a target whose files begin with the precompiled header that suits its deps."""
    if is_test_code:
        copts = TEST_COPTS + copts
    if precompiled == "auto":
        precompiled = "tensor" if _TENSORS in deps else "standard"
    if precompiled and is_test_code:
        precompiled = {"standard": "test", "tensor": "tensor_test"}[precompiled]
    if not precompiled or not srcs:
        return {"copts": copts, "deps": deps}
    header = _QUIET + ["-include", "bazel/%s.pch.h" % precompiled, "-fpch-deps", "-Winvalid-pch"]
    return {
        "copts": copts + select({"//bazel:no_pch": [], "//conditions:default": header}),
        "deps": deps + select({"//bazel:no_pch": [], "//conditions:default": ["//bazel:" + precompiled]}),
    }

def cc_library(name, srcs = [], deps = [], copts = [], precompiled = "auto", **kwargs):
    """A part of a program.

    Args:
      name: of the target.
      srcs: what is compiled.
      deps: as of native.cc_library.
      copts: as of native.cc_library.
      precompiled: which header of //bazel its files begin with: "standard", "tensor", "module" or None. "auto": by
        whether `deps` has LibTorch. Targets whose `deps` have GoogleTest get the one with GoogleTest, and -O1.
      **kwargs: as of native.cc_library.
    """
    native.cc_library(
        name = name,
        srcs = srcs,
        linkstatic = True,  # otherwise Bazel links a shared library, too, which nobody uses
        **dict(kwargs, **_compiled(srcs, deps, copts, precompiled, _is_test_code(deps)))
    )

def cc_binary(name, srcs = [], deps = [], copts = [], precompiled = "auto", **kwargs):
    """A program. Arguments as of cc_library."""
    native.cc_binary(
        name = name,
        srcs = srcs,
        **dict(kwargs, **_compiled(srcs, deps, copts, precompiled, _is_test_code(deps)))
    )

def cc_test(name, srcs = [], deps = [], copts = [], env = {}, precompiled = "auto", **kwargs):
    """A test program. Arguments as of cc_library.

    Ranks have one thread each unless `env` says otherwise, as the tags of tests promise (cpu:2).
    """
    native.cc_test(
        name = name,
        srcs = srcs,
        env = dict({"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, **env),
        **dict(kwargs, **_compiled(srcs, deps, copts, precompiled, True))
    )
