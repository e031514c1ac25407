// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>

namespace phalanx {

/// Return the bytes that torch::save() would write to a file.
std::string to_bytes(const torch::nn::Module& module);
std::string to_bytes(const torch::optim::Optimizer& optimizer);

/// Reads the values of a module's parameters and buffers into the memory that they have, and converts them to the
/// dtypes that they have. torch::load() would give them other memory, outside of their buckets. Throws Error if names
/// or shapes differ, and c10::Error for malformed bytes; the module then has the values that it had.
void from_bytes(torch::nn::Module& module, const std::string& bytes);

/// Replaces the state and the settings of an optimizer. Throws c10::Error if it has other groups of parameters.
void from_bytes(torch::optim::Optimizer& optimizer, const std::string& bytes);

}  // namespace phalanx
