// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::bench {

/// Returns an interpreter that has PyTorch with gloo: `wanted`, or if that is empty an environment with torch 2.13.0
/// under $XDG_CACHE_HOME or ~/.cache. The first call installs it with pip, which takes some minutes, a gigabyte of disk
/// and network access. Throws a ConfigError that begins with `flag`, the flag that requires the interpreter, and
/// names the missing package and a remedy.
std::string python_with_torch(const std::string& wanted, const std::string& flag);

/// Returns an interpreter that has JAX on the CPU: `wanted`, or if that is empty an environment with jax 0.10.2 that is
/// installed in the same way. Throws the same ConfigError, which names --jax_python.
std::string python_with_jax(const std::string& wanted, const std::string& flag);

}  // namespace phalanx::bench
