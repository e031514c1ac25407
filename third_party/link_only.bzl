# SPDX-License-Identifier: Apache-2.0
"""Provides the link inputs of a library without its headers and compiler options."""

def _link_only(ctx):
    return [CcInfo(linking_context = ctx.attr.dep[CcInfo].linking_context)]

# Its dependency affects only linking, so a choice between two libraries does not compile anything twice.
link_only = rule(
    implementation = _link_only,
    attrs = {"dep": attr.label(mandatory = True, providers = [CcInfo])},
    provides = [CcInfo],
)
