# SPDX-License-Identifier: Apache-2.0
"""Repositories that Bazel's own tools load rules from, made of the folders in third_party/bazel."""

def _shim(repository_ctx):
    # The path of this repository, which need not be the main one.
    folder = repository_ctx.path(Label("//third_party:BUILD.bazel")).dirname
    for entry in repository_ctx.path("%s/bazel/%s" % (folder, repository_ctx.name)).readdir():
        repository_ctx.symlink(entry, entry.basename)

shim = repository_rule(
    doc = "The folder third_party/bazel/NAME as the repository NAME.",
    implementation = _shim,
    local = True,
)
