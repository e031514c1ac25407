// SPDX-License-Identifier: Apache-2.0
// Compares each optimizer that LibTorch also has with LibTorch's, and clipping with torch::nn::utils. All of this is in
// one file, since these headers take longer to parse than everything else takes to compile.
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/clip.h"
#include "engine/optim/optimizer.h"
#include "engine/testing/decorator.h"
#include "engine/testing/optimizer.h"

namespace phalanx::testing {
namespace {

using torch::optim::Adagrad;
using torch::optim::AdagradOptions;
using torch::optim::Adam;
using torch::optim::AdamOptions;
using torch::optim::AdamW;
using torch::optim::AdamWOptions;
using torch::optim::RMSprop;
using torch::optim::RMSpropOptions;
using torch::optim::SGD;
using torch::optim::SGDOptions;

// Expects the optimizer of this YAML to compute the same values as LibTorch's in 100 updates. The tolerance is 1e-6 in
// float and 1e-10 in double, where rounding cannot hide a mistake.
template <class Reference, class Options>
void expect_follows(const std::string& yaml, const Options& options) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kFloat, 1e-6}, std::pair{at::kDouble, 1e-10}}) {
    SCOPED_TRACE(yaml + (dtype == at::kFloat ? " in float" : " in double"));
    Twins twins(yaml, dtype);
    // LibTorch replaces a group's field by the optimizer's if it has the default of its type, such as no weight decay.
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

TEST(AdagradReference, Plain) { expect_follows<Adagrad>("{name: adagrad, lr: 0.1}", AdagradOptions(0.1)); }

TEST(AdagradReference, DecayOfLearningRateAndWeights) {
  expect_follows<Adagrad>("{name: adagrad, lr: 0.1, lr_decay: 0.02, weight_decay: 0.1, eps: 1e-6}",
                          AdagradOptions(0.1).lr_decay(0.02).weight_decay(0.1).eps(1e-6));
}

TEST(AdagradReference, InitialSum) {
  expect_follows<Adagrad>("{name: adagrad, lr: 0.1, initial_sum: 0.5}",
                          AdagradOptions(0.1).initial_accumulator_value(0.5));
}

TEST(AdamReference, Plain) { expect_follows<Adam>("{name: adam, lr: 0.01}", AdamOptions(0.01)); }

TEST(AdamReference, WeightDecayAndOtherBetas) {
  expect_follows<Adam>("{name: adam, lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.1}",
                       AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.1));
}

TEST(AdamReference, Amsgrad) {
  expect_follows<Adam>("{name: adam, lr: 0.01, beta2: 0.9, amsgrad: true}",
                       AdamOptions(0.01).betas({0.9, 0.9}).amsgrad(true));
}

TEST(AdamWReference, Plain) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, weight_decay: 0.02}", AdamWOptions(0.01).weight_decay(0.02));
}

TEST(AdamWReference, WeightDecayAndOtherBetas) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.3}",
                        AdamWOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.3));
}

TEST(AdamWReference, Amsgrad) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, beta2: 0.9, weight_decay: 0.02, amsgrad: true}",
                        AdamWOptions(0.01).betas({0.9, 0.9}).weight_decay(0.02).amsgrad(true));
}

TEST(RmspropReference, Plain) { expect_follows<RMSprop>("{name: rmsprop, lr: 0.01}", RMSpropOptions(0.01)); }

TEST(RmspropReference, Momentum) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, momentum: 0.8, weight_decay: 0.1}",
                          RMSpropOptions(0.01).alpha(0.9).momentum(0.8).weight_decay(0.1));
}

TEST(RmspropReference, Centered) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, centered: true, eps: 1e-6}",
                          RMSpropOptions(0.01).alpha(0.9).centered(true).eps(1e-6));
}

TEST(RmspropReference, CenteredWithMomentum) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, centered: true, momentum: 0.5}",
                          RMSpropOptions(0.01).alpha(0.9).centered(true).momentum(0.5));
}

TEST(SgdReference, Plain) { expect_follows<SGD>("{name: sgd, lr: 0.05}", SGDOptions(0.05)); }

TEST(SgdReference, WeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, weight_decay: 0.01}", SGDOptions(0.05).weight_decay(0.01));
}

TEST(SgdReference, Momentum) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.9}", SGDOptions(0.05).momentum(0.9));
}

TEST(SgdReference, NesterovWithWeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
                      SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.01));
}

TEST(SgdReference, DampeningWithWeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.8, dampening: 0.1, weight_decay: 0.05}",
                      SGDOptions(0.05).momentum(0.8).dampening(0.1).weight_decay(0.05));
}

TEST(ClipReference, LimitsTheNormLikeTorch) {
  const std::vector<at::Tensor> gradients{at::randn({40000}), at::randn({37})};
  std::vector<at::Tensor> theirs;
  std::vector<Slice> ours;
  for (const auto& gradient : gradients) {
    theirs.push_back(at::zeros(gradient.sizes()).requires_grad_());
    theirs.back().mutable_grad() = gradient.clone();
    ours.push_back({at::zeros(gradient.sizes()), gradient.clone()});
  }
  const double norm = torch::nn::utils::clip_grad_norm_(theirs, 3.0);
  auto recorder = std::make_unique<Recorder>();
  const auto& seen = recorder->seen;
  Clip clip(std::move(recorder), {.norm = 3}, no_other_slices);
  clip.attach(ours);
  clip.update();
  EXPECT_NEAR(clip.norm(), norm, 1e-5 * norm);
  EXPECT_TRUE(clip.finite());
  ASSERT_EQ(seen.size(), theirs.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(at::allclose(seen[i], theirs[i].grad(), 1e-6, 1e-9));
}

}  // namespace
}  // namespace phalanx::testing
