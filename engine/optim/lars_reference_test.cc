// SPDX-License-Identifier: Apache-2.0
// Compares LARS with algorithm 1 of You, Gitman and Ginsburg 2017 as printed.
#include <ATen/TensorOperators.h>

#include "engine/testing/paper.h"

namespace phalanx::testing {
namespace {

void expect_follows_lars(bool adapt_vectors, double momentum) {
  const double lr = 0.2, trust = 0.02, decay = 0.01, eps = 0.001;
  const auto yaml =
      "{name: lars, lr: 0.2, trust: 0.02, weight_decay: 0.01, eps: 0.001, momentum: " + std::to_string(momentum) +
      ", adapt_vectors: " + (adapt_vectors ? "true}" : "false}");
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int) {
    double local = 1, beta = 0;
    if (adapt_vectors || twin.values.dim() > 1) {
      beta = decay * twin.weight_decay_factor;
      const double size = twin.values.norm().item<double>(), slope = twin.gradients.norm().item<double>();
      local = trust * size / (slope + beta * size + eps);
    }
    auto& v = remembered(state, "v", twin.values);
    v = momentum * v + lr * twin.lr_factor * local * (twin.gradients + beta * twin.values);
    twin.values -= v;
  });
}

TEST(LarsReference, AdaptsWeightsAlone) { expect_follows_lars(false, 0.9); }

TEST(LarsReference, AdaptsAllWhenAsked) { expect_follows_lars(true, 0.9); }

TEST(LarsReference, WithoutMomentum) { expect_follows_lars(false, 0); }

// If all values are zero, the ratio of norms counts as 1, because otherwise they would stay zero.
TEST(Lars, MovesParametersThatAreZero) {
  const auto optimizer = make_optimizer("{name: lars, lr: 0.5}");
  auto network = small_network();
  network.values.zero_();
  optimizer->attach({whole(network)});
  network.gradients.fill_(2);
  optimizer->update();
  EXPECT_EQ(network.values.min().item<double>(), -1);
  EXPECT_EQ(network.values.max().item<double>(), -1);
}

}  // namespace
}  // namespace phalanx::testing
