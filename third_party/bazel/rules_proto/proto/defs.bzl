# SPDX-License-Identifier: Apache-2.0
"""What Bazel's own tools load from rules_proto; Bazel 4.2 still has all of it built in."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
