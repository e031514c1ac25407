# SPDX-License-Identifier: Apache-2.0
"""Of a library what programs link, without what its users are compiled with."""

def _link_only(ctx):
    return [CcInfo(linking_context = ctx.attr.dep[CcInfo].linking_context)]

# A dependency of it changes no command but those that link: a choice between two costs no compilation of its own.
link_only = rule(
    implementation = _link_only,
    attrs = {"dep": attr.label(mandatory = True, providers = [CcInfo])},
    provides = [CcInfo],
)
