// SPDX-License-Identifier: Apache-2.0
#include "engine/step/lending_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// Adds 1 to a gradient, and records the values that it was computed with.
class AddsOne final : public Step {
 public:
  explicit AddsOne(const at::Tensor& parameter) : parameter_(parameter) {}

  Result run(const Batch&, const Watch& watch) override {
    seen = parameter_.detach().clone();
    const at::NoGradGuard no_grad;
    parameter_.mutable_grad().add_(1);
    watch(Stage::kBackward, {});
    return {};
  }
  Result evaluate(const Batch&, const Watch&) override { return {}; }

  at::Tensor seen;

 private:
  at::Tensor parameter_;
};

TEST(LendingStep, TheFirstRankUpdatesForAllWithItsOwnGradients) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    at::Tensor parameter = at::full({2, 3}, static_cast<double>(world->rank())).requires_grad_();
    if (world->rank() == 0) parameter.mutable_grad() = at::full({2, 3}, 0.0);
    AddsOne inner(parameter);
    LendingStep step(inner, SharedParameters({{world, {parameter}}}, SharedParameters::Updates::kOnceAsOne));
    for (int i = 0; i < 2; ++i) {
      step.run({}, [](Stage, const Step::Result&) {});
      EXPECT_TRUE(at::equal(inner.seen, at::full({2, 3}, 10.0 * i))) << "not the first rank's values";
      EXPECT_TRUE(at::equal(parameter.grad(), at::full({2, 3}, world->rank() == 0 ? i + 1.0 : 0.0)));
      if (world->rank() > 0) continue;
      const at::NoGradGuard no_grad;
      parameter.add_(10);
    }
    step.shared().lend();
    EXPECT_TRUE(at::equal(parameter.detach(), at::full({2, 3}, 20.0)));
  });
}

}  // namespace
}  // namespace phalanx
