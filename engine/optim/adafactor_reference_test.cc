// SPDX-License-Identifier: Apache-2.0
// Compares Adafactor with algorithms 4 and 5 of Shazeer and Stern 2018 as printed, and with torch.optim.Adafactor 2.13.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "engine/testing/paper.h"

namespace phalanx::testing {
namespace {

double rms(const at::Tensor& x) { return std::sqrt((x * x).mean().item<double>()); }

void expect_follows_adafactor(bool relative_step, double decay) {
  const double lr = 0.05, clip = 0.9, eps1 = 1e-30, eps2 = 0.001;
  const auto yaml = "{name: adafactor, lr: 0.05, clip: 0.9, weight_decay: " + std::to_string(decay) +
                    ", relative_step: " + (relative_step ? "true}" : "false}");
  expect_follows_paper(yaml, [&](Twin& twin, TwinState& state, int t) {
    const double rate = lr * twin.lr_factor, beta2 = 1 - std::pow(t, -0.8);
    at::Tensor x = twin.values.view({twin.values.size(0), -1}), g = twin.gradients.view_as(x), v;
    if (twin.values.dim() > 1) {
      auto &r = remembered(state, "r", x.sum(1, true)), &c = remembered(state, "c", x.sum(0, true));
      r = beta2 * r + (1 - beta2) * (g * g + eps1).sum(1, true);
      c = beta2 * c + (1 - beta2) * (g * g + eps1).sum(0, true);
      v = r * c / r.sum();
    } else {
      auto& remembered_v = remembered(state, "v", x);
      v = remembered_v = beta2 * remembered_v + (1 - beta2) * (g * g + eps1);
    }
    const at::Tensor u = g / v.sqrt();
    const double alpha = relative_step ? std::max(eps2, rms(x)) * std::min(rate, 1 / std::sqrt(t)) : rate;
    x *= 1 - rate * decay * twin.weight_decay_factor;
    x -= alpha * u / std::max(1.0, rms(u) / clip);
  });
}

TEST(AdafactorReference, RelativeSteps) { expect_follows_adafactor(true, 0); }

TEST(AdafactorReference, RelativeStepsWithWeightDecay) { expect_follows_adafactor(true, 0.1); }

TEST(AdafactorReference, StepsOfTheLearningRate) { expect_follows_adafactor(false, 0.1); }

TEST(Adafactor, RemembersRowsAndColumnsOfMatrices) {
  const auto network = small_network();
  const auto optimizer = make_optimizer("adafactor");
  optimizer->attach({whole(network)});
  std::int64_t numbers = 0;
  for (const auto& state : optimizer->state()) numbers += state.values.numel();
  EXPECT_EQ(numbers, (6 + 27) + 6 + (20 + 33) + 20 + (10 + 20) + 10);
}

// torch.optim.Adafactor([p], lr=0.05, weight_decay=0.1). Its results are only as accurate as float, because it converts
// the size of a step to float.
TEST(AdafactorReference, MatchesTorchForAMatrix) {
  expect_near(after_ten_updates("{name: adafactor, lr: 0.05, weight_decay: 0.1}", {3, 4}),
              {1.025191835, 0.7869341206, 0.4130297016, 0.06229648232, -0.3039039487, -0.702162283, -1.001566977,
               -0.981629129, -0.6095761572, -0.1069580412, 0.3087162146, 0.6009785449},
              1e-6);
}

TEST(AdafactorReference, MatchesTorchForAVector) {
  expect_near(after_ten_updates("{name: adafactor, lr: 0.05, weight_decay: 0.1}", {5}),
              {1.026515563, 0.7929380351, 0.4114522724, 0.07162417017, -0.3219270886}, 1e-6);
}

}  // namespace
}  // namespace phalanx::testing
