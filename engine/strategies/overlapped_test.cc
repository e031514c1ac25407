// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/strategies/gradient_hooks.h"
#include "engine/testing/strategy.h"
#include "framework/testing/worlds.h"
#include "models/apply_linear.h"

namespace phalanx {
namespace {

using testing::run_ranks;

std::vector<at::Tensor> make_parameters() {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : {80, 48, 32}) parameters.push_back(at::ones({size}).requires_grad_());
  return parameters;
}

constexpr std::int64_t kEachItsOwnBucket = 1;

TEST(GradientHooks, ReportBucketsInTheOrderOfBackward) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, kEachItsOwnBucket);
    std::vector<std::size_t> ready;
    GradientHooks hooks(flat, 1, [&](std::size_t bucket) { ready.push_back(bucket); });
    at::Tensor x = parameters[0].sum();
    x = (x * parameters[1]).sum();
    (x * parameters[2]).sum().backward();
    EXPECT_EQ(ready, (std::vector<std::size_t>{0, 1, 2})) << "the last layer's bucket is the first";
  });
}

TEST(GradientHooks, WaitForAllBackwardsOfAStepAndForSharedParametersOnce) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, 1 << 20);
    int ready = 0;
    GradientHooks hooks(flat, 2, [&](std::size_t) { ++ready; });
    const auto backward = [&] {
      ((parameters[0].sum() + parameters[0].sum()) * parameters[1].sum() * parameters[2].sum()).backward();
    };
    backward();
    EXPECT_EQ(ready, 0);
    backward();
    EXPECT_EQ(ready, 1);
    hooks.start();
    backward();
    EXPECT_EQ(ready, 1);
  });
}

TEST(GradientHooks, DoNotCountBackwardsThatOnlyAccumulate) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, 1 << 20);
    int ready = 0;
    const auto accumulates = std::make_shared<bool>(true);
    const GradientHooks hooks(flat, 1, [&](std::size_t) { ++ready; }, accumulates);
    const auto backward = [&] { (parameters[0].sum() * parameters[1].sum() * parameters[2].sum()).backward(); };
    backward();
    backward();
    EXPECT_EQ(ready, 0);
    *accumulates = false;
    backward();
    EXPECT_EQ(ready, 1);
  });
}

// Uses a weight in two layers that accumulate its gradient themselves, and in a third that does not.
TEST(GradientHooks, RunOnceAfterLayersAddedTheirOwnGradients) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const at::Tensor weight = at::rand({8, 8}).requires_grad_();
    const FlatParameters flat(std::vector{weight}, *group, 1 << 20);
    int ready = 0;
    at::Tensor at_hook;
    GradientHooks hooks(flat, 1, [&](std::size_t) { ++ready, at_hook = weight.grad().clone(); });
    const at::Tensor x = at::embedding(weight, at::arange(8, at::kLong));
    apply_linear(apply_linear(x, weight, {}), weight, {}).sum().backward();
    EXPECT_EQ(ready, 1);
    EXPECT_TRUE(at::equal(at_hook, weight.grad()));
    EXPECT_GT(weight.grad().abs().sum().item<double>(), 0);

    const at::Tensor input = at::rand({4, 8});  // only in layers that accumulate the gradient themselves
    hooks.start();
    apply_linear(apply_linear(input, weight, {}), weight, {}).sum().backward();
    EXPECT_EQ(ready, 2);
    EXPECT_TRUE(at::equal(at_hook, weight.grad()));
  });
}

TEST(GradientHooks, DoNotWaitForParametersWithoutGradients) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    auto parameters = make_parameters();
    parameters[1].requires_grad_(false);
    const FlatParameters flat(parameters, *group, 1 << 20);
    int ready = 0;
    GradientHooks hooks(flat, 1, [&](std::size_t) { ++ready; });
    (parameters[0].sum() * parameters[1].sum() * parameters[2].sum()).backward();
    EXPECT_EQ(ready, 1);
  });
}

TEST(GradientHooks, AreRemovedWithTheirOwner) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, 1 << 20);
    {
      GradientHooks hooks(flat, 1, [](std::size_t) { FAIL(); });
    }
    (parameters[0].sum() + parameters[1].sum() + parameters[2].sum()).backward();
  });
}

class Overlapped : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Overlapped, ::testing::Range(1, 5));

// Covers losses that depend on only some of the parameters of a rank. Ranks would then launch in different orders if
// the order were not fixed.
TEST_P(Overlapped, GradientsAreTheMeanEvenIfSomeAreMissing) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, kEachItsOwnBucket);
    const auto strategy = testing::make_strategy("overlapped", group);
    const auto slices = strategy->attach(flat, Cut::kAnywhere);
    for (int step = 0; step < 3; ++step) {
      const double own = group->rank() + 1 + step;
      at::Tensor loss = parameters[2].sum() * own;
      if (group->rank() == 0) loss = loss + parameters[0].sum() * own;
      loss.backward();
      strategy->before_update(step);
      const double mean = (group->size() + 1) / 2.0 + step, alone = (1.0 + step) / group->size();
      EXPECT_TRUE(at::allclose(slices[0].gradients, at::full_like(slices[0].gradients, mean)));
      EXPECT_TRUE(at::equal(slices[1].gradients, at::full_like(slices[1].gradients, 0)));
      EXPECT_TRUE(at::allclose(slices[2].gradients, at::full_like(slices[2].gradients, alone)));
      for (const auto& slice : slices) slice.gradients.zero_();
    }
    strategy->finish();
  });
}

TEST_P(Overlapped, LaunchesDuringBackward) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters();
    const FlatParameters flat(parameters, *group, kEachItsOwnBucket);
    const auto strategy = testing::make_strategy("overlapped", group, 2);
    strategy->attach(flat, Cut::kAnywhere);
    const auto launched = [&] {
      std::size_t all_reduces = 0;
      for (const auto& record : group->recorder().records()) all_reduces += record.call.op == Op::kAllReduce;
      return all_reduces;
    };
    const auto before = launched();
    const auto backward = [&] { (parameters[0].sum() + parameters[1].sum() + parameters[2].sum()).backward(); };
    backward();
    EXPECT_EQ(launched(), before) << "the step has another backward";
    backward();
    EXPECT_EQ(launched(), before + 3);
    strategy->before_update(0);
    EXPECT_EQ(launched(), before + 3);
  });
}

}  // namespace
}  // namespace phalanx
