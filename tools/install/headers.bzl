# SPDX-License-Identifier: Apache-2.0
"""The headers of this repository that a library's users may include."""

def _own_headers_impl(ctx):
    own = []
    for dep in ctx.attr.deps:
        for file in dep[CcInfo].compilation_context.headers.to_list():
            if file.is_source and file.extension == "h" and file.owner.workspace_name == ctx.label.workspace_name:
                own.append(file)
    return [DefaultInfo(files = depset(own), runfiles = ctx.runfiles(files = own))]

own_headers = rule(
    doc = "All headers of this repository in `deps` and in what they depend on.",
    implementation = _own_headers_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo], mandatory = True)},
)
