// SPDX-License-Identifier: Apache-2.0
// Compares FTRL-Proximal with algorithm 1 of McMahan et al. 2013 as printed.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "engine/testing/paper.h"

namespace phalanx::testing {
namespace {

void expect_follows_ftrl(double beta, double l1, double l2) {
  const auto yaml = "{name: ftrl, lr: 0.05, beta: " + std::to_string(beta) + ", l1: " + std::to_string(l1) +
                    ", weight_decay: " + std::to_string(l2) + "}";
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int) {
    const double alpha = 0.05 * twin.lr_factor, lambda2 = l2 * twin.weight_decay_factor;
    const bool first = state.empty();
    const at::Tensor p = twin.values.to(at::kDouble), g = twin.gradients.to(at::kDouble);
    auto& n = remembered(state, "n", p);
    auto& z = remembered(state, "z", p);
    if (first) z = -((beta / alpha + lambda2) * p + l1 * p.sign());
    z = z + g - ((n + g * g).sqrt() - n.sqrt()) / alpha * p;
    n = n + g * g;
    const at::Tensor w = -(z - z.sign() * l1) / ((beta + n.sqrt()) / alpha + lambda2);
    twin.values.copy_(at::where(z.abs() <= l1, at::zeros_like(w), w));
  });
}

TEST(FtrlReference, WithoutPenalties) { expect_follows_ftrl(1, 0, 0); }

TEST(FtrlReference, BothPenalties) { expect_follows_ftrl(0.5, 0.3, 0.1); }

TEST(FtrlReference, ZerosStayZeroWhenOnlyTheRateChanges) {
  const auto bucket = small_network();
  const auto optimizer = make_optimizer("{name: ftrl, lr: 0.05, beta: 0.5, l1: 5}");
  optimizer->attach({whole(bucket)});
  train(*optimizer, {whole(bucket)}, 0, 20);
  const at::Tensor values = bucket.values.clone();
  std::int64_t zeros = 0;
  for (const auto& segment : bucket.segments) zeros += parameter_of(values, segment).eq(0).sum().item<std::int64_t>();
  EXPECT_GT(zeros, 0);
  for (const double rate : {0.02, 0.0005, 0.0, 0.05}) {
    optimizer->set_learning_rate(rate);
    optimizer->update();  // without gradients
    EXPECT_TRUE(at::equal(bucket.values.eq(0), values.eq(0))) << rate;
    EXPECT_TRUE(at::allclose(bucket.values, values, 1e-5, 1e-7)) << rate;
  }
}

}  // namespace
}  // namespace phalanx::testing
