# SPDX-License-Identifier: Apache-2.0
"""cc_library, cc_test and cc_binary of this repository: with precompiled headers, linked statically.

A target is a unit that a person would name, usually a folder; sources(), headers() and tests() are its files. Parsing
headers takes two thirds of the compile time of a file. A precompiled header avoids parsing headers of other projects,
and compiling several files of a target as one translation unit avoids parsing our own headers again. Every file still
includes what it uses and compiles alone: --config=no-pch and --config=separate build without precompiled headers and
without units.
"""

load("//bazel:options.bzl", "COPTS")
load("//bazel:unity.bzl", "unity")

# The number of files that are compiled together. A larger number saves CPU time in a whole build, a smaller one after a
# change of a single file.
_FILES_PER_UNIT = 6

# Labels of this repository, also where these macros are used in another one. As text, since keys of select() in Bazel
# 4.2 must be text.
_GOOGLETEST_MAIN = str(Label("//third_party/googletest:main"))
_OPT = str(Label("//bazel:opt"))
_NO_PCH = str(Label("//bazel:no_pch"))
_SEPARATE = str(Label("//bazel:separate"))
_PRECOMPILED = {
    name: str(Label("//bazel:" + name))
    for name in ["module", "standard", "tensor", "tensor_test", "test", "torch"]
}

# False positives of GCC 12 in std::string: it does not treat code from a precompiled header as code of a system header.
# --config=no-pch enables these warnings.
_QUIET = ["-Wno-array-bounds", "-Wno-restrict", "-Wno-stringop-overflow", "-Wno-stringop-overread"]

# Compiling test code with -O1 takes two thirds of the time of -O2. From GCC 14 on, a precompiled header and the files
# that use it need the same -O, so the headers of test code ("test", "tensor_test") are compiled with -O1 too.
TEST_COPTS = select({_OPT: ["-O1"], "//conditions:default": []})

def _files(pattern, folders):
    return [pattern] + [folder + "/" + pattern for folder in folders]

def sources(exclude = [], folders = []):
    """Returns the .cc files of this folder, except tests and benchmarks.

    Args:
      exclude: files to omit.
      folders: folders in this one that belong to the same package, and whose files are returned too.
    """
    return native.glob(_files("*.cc", folders), exclude = ["**/*_test.cc", "**/*_benchmark.cc"] + exclude)

def headers(exclude = [], folders = []):
    """Returns the .h files of this folder. Arguments as of sources()."""
    return native.glob(_files("*.h", folders), exclude = exclude)

def tests(exclude = [], folders = []):
    """Returns the *_test.cc files of this folder. Arguments as of sources()."""
    return native.glob(_files("*_test.cc", folders), exclude = exclude)

def _depends_on(deps, folder):
    """Returns true if `deps` name a target of a folder of this repository."""
    names = [folder, "@phalanx" + folder]
    return any([dep in names or dep.split(":")[0] in names for dep in deps])

def _is_test_code(deps):
    return _depends_on(deps, "//third_party/googletest")

def _compiled(srcs, deps, copts, precompiled, is_test_code):
    """Returns deps and copts of a target whose files begin with the precompiled header that matches its deps."""
    if precompiled in ["module", "torch"]:
        is_test_code = False  # these have only one header, which is compiled like those of programs
    copts = COPTS + copts
    if _depends_on(deps, "//phalanx"):
        copts = copts + ["-idirafter."]  # <phalanx/phalanx.h> here too; other workspaces get it by include_prefix
    if is_test_code:
        copts = TEST_COPTS + copts
    if precompiled == "auto":
        precompiled = "tensor" if _depends_on(deps, "//third_party/libtorch") else "standard"
    if precompiled and is_test_code:
        precompiled = {"standard": "test", "tensor": "tensor_test"}[precompiled]
    if not precompiled or not srcs:
        return {"copts": copts, "deps": deps}
    header = _QUIET + ["-include", "bazel/%s.pch.h" % precompiled, "-fpch-deps", "-Winvalid-pch"]
    return {
        "copts": copts + select({_NO_PCH: [], "//conditions:default": header}),
        "deps": deps + select({_NO_PCH: [], "//conditions:default": [_PRECOMPILED[precompiled]]}),
    }

def _in_units(name, srcs, deps, files_per_unit, testonly):
    """Returns srcs and deps of a target whose .cc files are compiled `files_per_unit` at a time."""
    files = [src for src in srcs if src.endswith(".cc")]
    if files_per_unit == 1 or len(files) < 2:
        return srcs, deps
    unity(
        name = name + "_unity",
        srcs = files,
        files_per_unit = files_per_unit,
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    units = [":%s_unity" % name]
    others = [src for src in srcs if not src.endswith(".cc")]
    return (
        others + select({_SEPARATE: files, "//conditions:default": units}),
        deps + select({_SEPARATE: [], "//conditions:default": units}),
    )

def cc_library(
        name,
        srcs = [],
        deps = [],
        copts = [],
        precompiled = "auto",
        files_per_unit = _FILES_PER_UNIT,
        **kwargs):
    """A part of a program.

    Args:
      name: of the target.
      srcs: files to compile.
      deps: as of native.cc_library.
      copts: as of native.cc_library.
      precompiled: which header of //bazel its files begin with: "standard", "tensor", "module", "torch" or None.
        "auto": by whether `deps` has LibTorch. Targets whose `deps` have GoogleTest get the one with GoogleTest, and
        -O1.
      files_per_unit: how many of its .cc files form one translation unit; 1 where files must not share one.
      **kwargs: as of native.cc_library.
    """
    compiled = _compiled(srcs, deps, copts, precompiled, _is_test_code(deps))
    srcs, compiled["deps"] = _in_units(name, srcs, compiled["deps"], files_per_unit, kwargs.get("testonly"))
    native.cc_library(
        name = name,
        srcs = srcs,
        linkstatic = True,  # otherwise Bazel also links a shared library, which is never used
        **dict(kwargs, **compiled)
    )

def cc_binary(name, srcs = [], deps = [], copts = [], precompiled = "auto", **kwargs):
    """A program. Arguments as of cc_library."""
    native.cc_binary(
        name = name,
        srcs = srcs,
        **dict(kwargs, **_compiled(srcs, deps, copts, precompiled, _is_test_code(deps)))
    )

def cc_test(
        name,
        srcs = [],
        deps = [],
        copts = [],
        env = {},
        main = _GOOGLETEST_MAIN,
        precompiled = "tensor",
        files_per_unit = _FILES_PER_UNIT,
        **kwargs):
    """A test program.

    Its ranks have one thread each unless `env` says otherwise.

    Args:
      name: of the target.
      srcs: files to compile.
      deps: the tested code and other libraries that the test needs; with them come their dependencies.
      copts: as of native.cc_test.
      env: as of native.cc_test.
      main: the library with its main(); None if `srcs` have one.
      precompiled: as of cc_library; "standard" where nothing in `deps` has LibTorch.
      files_per_unit: as of cc_library.
      **kwargs: as of native.cc_test.
    """
    if main:
        deps = deps + [main]
    compiled = _compiled(srcs, deps, copts, precompiled, True)
    srcs, compiled["deps"] = _in_units(name, srcs, compiled["deps"], files_per_unit, True)
    native.cc_test(
        name = name,
        srcs = srcs,
        env = dict({"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, **env),
        **dict(kwargs, **compiled)
    )
