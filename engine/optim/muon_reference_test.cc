// SPDX-License-Identifier: Apache-2.0
// Compares Muon with the code in Jordan et al. 2024, and with torch.optim.Muon 2.13 without its rounding to bfloat16.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/testing/paper.h"
#include "framework/base/error.h"

namespace phalanx::testing {
namespace {

at::Tensor newton_schulz(at::Tensor x) {
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();
  x = x / x.norm();
  for (int i = 0; i < 5; ++i) {
    const at::Tensor a = x.matmul(x.t()), b = -4.7750 * a + 2.0315 * a.matmul(a);
    x = 3.4445 * x + b.matmul(x);
  }
  return tall ? x.t() : x;
}

void muon(Twin& twin, TwinState& state, bool nesterov, double decay) {
  const at::Tensor g = twin.gradients.view({twin.values.size(0), -1});
  auto& b = remembered(state, "b", g);
  b = 0.9 * b + 0.1 * g;
  const at::Tensor u = newton_schulz(nesterov ? 0.1 * g + 0.9 * b : b);
  const double shape = std::max(1.0, static_cast<double>(g.size(0)) / static_cast<double>(g.size(1)));
  twin.values *= 1 - 0.01 * twin.lr_factor * decay * twin.weight_decay_factor;
  twin.values -= 0.01 * twin.lr_factor * std::sqrt(shape) * u.view(twin.values.sizes());
}

void adamw(Twin& twin, TwinState& state, double decay, int t) {
  const double lr = 0.002 * twin.lr_factor;
  auto &m = remembered(state, "m", twin.values), &v = remembered(state, "v", twin.values);
  m = 0.9 * m + 0.1 * twin.gradients;
  v = 0.95 * v + 0.05 * twin.gradients * twin.gradients;
  const at::Tensor m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.95, t));
  twin.values *= 1 - lr * decay * twin.weight_decay_factor;
  twin.values -= lr * m_hat / (v_hat.sqrt() + 1e-8);
}

void expect_follows_muon(bool nesterov, double decay, const std::string& match) {
  const auto yaml = "{name: muon, lr: 0.01, momentum: 0.9, weight_decay: " + std::to_string(decay) +
                    ", nesterov: " + (nesterov ? "true" : "false") + ", adamw: {lr: 0.002, match: \"" + match + "\"}}";
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int t) {
    const bool hidden = twin.values.dim() > 1 && (match.empty() || !twin.name.starts_with("head"));
    if (hidden) {
      muon(twin, state, nesterov, decay);
    } else {
      adamw(twin, state, decay, t);
    }
  });
}

TEST(MuonReference, HiddenWeightsByMuonTheRestByAdamW) { expect_follows_muon(true, 0.1, "^head"); }

TEST(MuonReference, WithoutNesterov) { expect_follows_muon(false, 0, "^head"); }

TEST(MuonReference, AllWeightsHidden) { expect_follows_muon(true, 0, ""); }

TEST(Muon, StepsAreNearlyOrthogonal) {
  const auto optimizer = make_optimizer("{name: muon, lr: 1}");
  auto network = small_network();
  const at::Tensor before = network.values.clone();
  optimizer->attach({whole(network)});
  train(*optimizer, {whole(network)}, 0, 1);
  for (const auto* name : {"conv.weight", "layer.weight"}) {
    for (const auto& segment : network.segments) {
      if (segment.name != name) continue;
      const at::Tensor step = parameter_of(before - network.values, segment).view({segment.shape[0], -1});
      const at::Tensor singular = at::linalg_svdvals(step);
      EXPECT_GT(singular.min().item<double>(), 0.5) << name;
      EXPECT_LT(singular.max().item<double>(), 1.3) << name;
    }
  }
}

// In a weight [experts, n, m], each expert is a separate matrix with its own scale.
TEST(Muon, OrthogonalizesEachExpertSeparately) {
  const auto step_of = [](std::vector<std::int64_t> shape, const at::Tensor& gradients) {
    Bucket bucket;
    bucket.values = at::zeros({gradients.numel()});
    bucket.gradients = gradients.flatten().clone();
    bucket.segments.push_back({.name = "weight", .shape = std::move(shape), .count = gradients.numel()});
    const auto optimizer = make_optimizer("{name: muon, lr: 1}");
    optimizer->attach({whole(bucket)});
    optimizer->update();
    return bucket.values.view(gradients.sizes());
  };
  at::Tensor gradients = gradients_of(1, 3 * 6 * 4).view({3, 6, 4});
  gradients[1] *= 100;
  const at::Tensor all = step_of({3, 6, 4}, gradients);
  for (std::int64_t expert = 0; expert < 3; ++expert) {
    EXPECT_TRUE(at::allclose(all[expert], step_of({6, 4}, gradients[expert]), 1e-5, 1e-6)) << expert;
  }
}

TEST(Muon, RefusesAnInvalidExpression) {
  EXPECT_THAT(
      [] { make_optimizer("{name: muon, adamw: {match: \"(\"}}"); },
      ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("adamw.match: \"(\" is not a regular expression")));
}

// torch.optim.Muon([p], lr=0.02, weight_decay=0.1, momentum=0.95) with Tensor.bfloat16 = lambda self: self
TEST(MuonReference, MatchesTorchForATallMatrix) {
  expect_near(after_ten_updates("{name: muon, weight_decay: 0.1}", {4, 3}),
              {1.014081816, 0.8374789029, 0.4835408917, 0.06893676771, -0.3634723024, -0.7610979652, -1.003694313,
               -0.9596867775, -0.6297217493, -0.1578367312, 0.2942893072, 0.6545358535},
              1e-9);
}

TEST(MuonReference, MatchesTorchForAWideMatrix) {
  expect_near(after_ten_updates("{name: muon, weight_decay: 0.1}", {3, 4}),
              {1.00836215, 0.839487199, 0.4903349916, 0.0690330186, -0.3679987185, -0.7623284052, -0.9979990007,
               -0.9556125024, -0.6314835458, -0.1644251998, 0.291408345, 0.6595830141},
              1e-9);
}

}  // namespace
}  // namespace phalanx::testing
