// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The tensors of a module, each of them once, under its first name.
struct ModuleTensors {
  NamedTensors trained;              // the parameters that require a gradient
  std::vector<at::Tensor> constant;  // the other parameters
  std::vector<at::Tensor> buffers;
};

ModuleTensors tensors_of(const torch::nn::Module& module);

/// Gives all ranks the values of `root`. Tensors of one dtype and device travel together. Collective, with tensors of
/// the same shapes in the same order.
void broadcast_values(const std::vector<at::Tensor>& tensors, int root, Communicator& group);

/// Throws a ConfigError that names the first difference, on all ranks, unless the lines are the same on all of them.
/// Collective.
void require_same_lines(const std::vector<std::string>& lines, Communicator& group);

/// Returns a line for each parameter and buffer, with name, shape and dtype.
std::vector<std::string> describe(const torch::nn::Module& module);

}  // namespace phalanx
