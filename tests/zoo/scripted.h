// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::testing {

/// Writes to `path`, without Python, the program that torch.jit.script would make of the model "mlp" with these widths,
/// from the first input to the last output, with the same names of parameters. Initial values are drawn from LibTorch's
/// generator.
void save_scripted_mlp(const std::string& path, const std::vector<std::int64_t>& widths,
                       at::ScalarType dtype = at::kFloat);

/// One tensor of a program.
struct ScriptedTensor {
  std::string name;
  std::vector<std::int64_t> sizes;  // all elements are 0.1
  bool is_parameter = true;
  bool requires_grad = true;
};

/// Writes a program with these tensors, an attribute `training`, an integer `steps` and these functions, in
/// TorchScript.
void save_scripted(const std::string& path, const std::vector<ScriptedTensor>& tensors, const std::string& source);

}  // namespace phalanx::testing
