// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "engine/loss/loss.h"
#include "framework/base/config/config.h"

namespace phalanx::testing {

/// Returns the loss of a config with this section `loss`.
inline std::shared_ptr<const Loss> make_loss(const std::string& yaml) {
  return config::load_as<Losses::Choice>("loss", yaml, "test.yaml").make();
}

/// Returns the mean of a loss for these outputs of a model.
inline double mean_loss(const std::string& yaml, const at::Tensor& output, const at::Tensor& target) {
  return make_loss(yaml)->mean(output, target).item<double>();
}

}  // namespace phalanx::testing
