# SPDX-License-Identifier: Apache-2.0
"""The libraries of repositories.bzl, for workspaces that depend on this one by MODULE.bazel."""

load("//third_party:repositories.bzl", "libraries")

def _third_party(_):
    libraries()

third_party = module_extension(implementation = _third_party)
