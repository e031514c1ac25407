# SPDX-License-Identifier: Apache-2.0
"""GoogleTest and GoogleMock, built from the sources that Debian ships, so with our flags and sanitizers."""

load("//third_party:system_library.bzl", "find_prefix")

def _googletest(repository_ctx):
    prefix = find_prefix(repository_ctx, ["src/googletest/" + part for part in ["googletest", "googlemock"]])
    for part in ["googletest", "googlemock"]:
        repository_ctx.symlink("%s/src/googletest/%s" % (prefix, part), part)
    repository_ctx.symlink(Label("//third_party/googletest:googletest.BUILD"), "BUILD.bazel")

googletest = repository_rule(
    implementation = _googletest,
    attrs = {
        "debian": attr.string(default = "googletest"),
        "library": attr.string(default = "googletest"),
    },
    environ = ["PHALANX_PREFIX_PATH"],
    local = True,
)
