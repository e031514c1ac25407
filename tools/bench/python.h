// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::bench {

/// An interpreter that has PyTorch with gloo: `wanted`, or when that is empty one of our own with torch 2.13.0, under
/// $XDG_CACHE_HOME or ~/.cache, which the first call installs with pip (some minutes, a gigabyte, network). Throws
/// ConfigError that begins with the `flag` that asks for it and says what is missing and what to do.
std::string python_with_torch(const std::string& wanted, const std::string& flag);

/// Returns an interpreter that has JAX on the CPU: `wanted`, or when that is empty one of our own with jax 0.10.2, made
/// like the one with PyTorch. Throws ConfigError likewise; it names --jax_python.
std::string python_with_jax(const std::string& wanted, const std::string& flag);

}  // namespace phalanx::bench
