// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/init.h>
#include <torch/nn/module.h>

namespace phalanx {

/// Initializes all convolutions below `root`, in the order of registration: weights are normal for ReLU (He et al.
/// 2015, Delving Deep into Rectifiers) with the fan `mode`, biases are 0.
void initialize_convolutions(torch::nn::Module& root, torch::nn::init::FanModeType mode);

/// Does the same for linear layers: weights are normal with this standard deviation, biases are 0.
void initialize_linear(torch::nn::Module& root, double deviation);

/// Fills `values` from a normal distribution with mean 0, truncated at -2 and 2, as torch.nn.init.trunc_normal_ does.
void truncated_normal(at::Tensor values, double deviation);

}  // namespace phalanx
