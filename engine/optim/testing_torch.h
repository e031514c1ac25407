#pragma once

#include <gtest/gtest.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "engine/optim/testing_optimizer.h"

namespace phalanx::testing {

/// The optimizer of this YAML gives the values that LibTorch's own has after 100 updates: to 1e-6 in float, and to
/// 1e-10 in double, where rounding hides nothing.
template <class Reference, class Options>
void expect_follows(const std::string& yaml, const Options& options) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kFloat, 1e-6}, std::pair{at::kDouble, 1e-10}}) {
    SCOPED_TRACE(yaml + (dtype == at::kFloat ? " in float" : " in double"));
    Twins twins(yaml, dtype);
    // LibTorch takes a group's field for the optimizer's where it has the default of its type: so for no weight decay.
    Options without_decay = options, of_biases = options;
    without_decay.weight_decay(0);
    of_biases.lr(options.lr() * 0.5).weight_decay(0);
    Reference reference({torch::optim::OptimizerParamGroup(twins.leaves(false), std::make_unique<Options>(options)),
                         torch::optim::OptimizerParamGroup(twins.leaves(true), std::make_unique<Options>(of_biases))},
                        without_decay);
    for (int i = 0; i < 100; ++i) twins.update([&] { reference.step(); });
    twins.expect_same(tolerance);
  }
}

}  // namespace phalanx::testing
