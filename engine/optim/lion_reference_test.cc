// SPDX-License-Identifier: Apache-2.0
// Compares Lion with algorithm 2 of Chen et al. 2023 as printed.
#include <ATen/TensorOperators.h>

#include "engine/testing/paper.h"

namespace phalanx::testing {
namespace {

void expect_follows_lion(double beta1, double beta2, double decay) {
  const auto yaml = "{name: lion, lr: 0.01, beta1: " + std::to_string(beta1) + ", beta2: " + std::to_string(beta2) +
                    ", weight_decay: " + std::to_string(decay) + "}";
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int) {
    const double lr = 0.01 * twin.lr_factor, lambda = decay * twin.weight_decay_factor;
    auto& m = remembered(state, "m", twin.values);
    const at::Tensor c = beta1 * m + (1 - beta1) * twin.gradients;
    twin.values -= lr * (c.sign() + lambda * twin.values);
    m = beta2 * m + (1 - beta2) * twin.gradients;
  });
}

TEST(LionReference, DefaultBetas) { expect_follows_lion(0.9, 0.99, 0); }

TEST(LionReference, WeightDecayAndOtherBetas) { expect_follows_lion(0.95, 0.98, 0.1); }

}  // namespace
}  // namespace phalanx::testing
