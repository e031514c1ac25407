# SPDX-License-Identifier: Apache-2.0
"""Headers of other projects that GCC parses once, instead of once for each of our files."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//bazel:options.bzl", "COPTS")

# Options that are added to the options of every file. They make the result record its headers for -fpch-deps, so that
# Bazel knows the inputs of a file.
_COPTS = ["-MD", "-MF", "/dev/null", "-x", "c++-header"]

def _precompiled_header_impl(ctx):
    # No source folder has a file of this name, so -include finds the one next to the .gch.
    header = ctx.actions.declare_file(ctx.label.name + ".pch.h")
    precompiled = ctx.actions.declare_file(ctx.label.name + ".pch.h.gch")
    ctx.actions.write(header, "".join(["#include <%s>\n" % name for name in ctx.attr.headers]))

    deps = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = deps.compilation_context
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = precompiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + COPTS + ctx.attr.copts + _COPTS,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling the headers of %s" % ctx.label,
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [precompiled],
        execution_requirements = {"no-sandbox": "1"},  # thousands of headers, as for any file that includes LibTorch
    )
    own = CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([header, precompiled])))
    return [
        DefaultInfo(files = depset([header, precompiled])),
        cc_common.merge_cc_infos(cc_infos = [own, deps]),
    ]

precompiled_header = rule(
    doc = "NAME.pch.h and its compiled form; what depends on it may be compiled with -include.",
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.string_list(mandatory = True, doc = "what it includes"),
        "copts": attr.string_list(doc = "the options of the files that use it, as far as they differ from every file's"),
        "deps": attr.label_list(providers = [CcInfo], doc = "whose headers these are"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    provides = [CcInfo],
)
