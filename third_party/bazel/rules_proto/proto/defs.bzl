# SPDX-License-Identifier: Apache-2.0
"""The rules that Bazel's own tools load from rules_proto; all of them are built into Bazel 4.2."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
