// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/init.h>
#include <torch/nn/module.h>

namespace phalanx {

/// Draws the values of all convolutions below `root`, in the order of registration: normal for ReLU (He et al. 2015,
/// Delving Deep into Rectifiers) with the fan of `mode`, and biases 0.
void initialize_convolutions(torch::nn::Module& root, torch::nn::init::FanModeType mode);

/// The same of linear layers: normal with this deviation, and biases 0.
void initialize_linear(torch::nn::Module& root, double deviation);

/// A normal distribution with mean 0, cut off at -2 and 2, as torch.nn.init.trunc_normal_.
void truncated_normal(at::Tensor values, double deviation);

}  // namespace phalanx
