// SPDX-License-Identifier: Apache-2.0
// Compares LAMB with algorithm 2 of You et al. 2020 as printed.
#include <ATen/TensorOperators.h>

#include <cmath>

#include "engine/testing/paper.h"

namespace phalanx::testing {
namespace {

void expect_follows_lamb(bool adapt_vectors, double decay) {
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.95, eps = 1e-6;
  const auto yaml = "{name: lamb, lr: 0.01, beta2: 0.95, weight_decay: " + std::to_string(decay) +
                    ", adapt_vectors: " + (adapt_vectors ? "true}" : "false}");
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int t) {
    auto &m = remembered(state, "m", twin.values), &v = remembered(state, "v", twin.values);
    m = beta1 * m + (1 - beta1) * twin.gradients;
    v = beta2 * v + (1 - beta2) * twin.gradients * twin.gradients;
    const at::Tensor m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    at::Tensor r = m_hat / (v_hat.sqrt() + eps);
    double ratio = 1;
    if (adapt_vectors || twin.values.dim() > 1) {
      r += decay * twin.weight_decay_factor * twin.values;
      ratio = twin.values.norm().item<double>() / r.norm().item<double>();
    }
    twin.values -= lr * twin.lr_factor * ratio * r;
  });
}

TEST(LambReference, AdaptsWeightsAlone) { expect_follows_lamb(false, 0.1); }

TEST(LambReference, AdaptsAllWhenAsked) { expect_follows_lamb(true, 0.1); }

TEST(LambReference, WithoutWeightDecay) { expect_follows_lamb(false, 0); }

// If all values are zero, the ratio of norms counts as 1, because otherwise they would stay zero.
TEST(Lamb, MovesParametersThatAreZero) {
  const auto optimizer = make_optimizer("{name: lamb, lr: 0.5, weight_decay: 0}");
  auto network = small_network();
  network.values.zero_();
  optimizer->attach({whole(network)});
  train(*optimizer, {whole(network)}, 0, 1);
  EXPECT_NEAR(network.values.abs().min().item<double>(), 0.5, 0.01) << "as far as Adam goes first";
}

}  // namespace
}  // namespace phalanx::testing
