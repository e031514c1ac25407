// SPDX-License-Identifier: Apache-2.0
#include "engine/step/shared_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/step/step_with_listeners.h"
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

TEST(SharedParameters, AreUpdatedByTheirOwnerWithItsOwnGradients) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    at::Tensor parameter = at::full({2, 3}, static_cast<double>(world->rank())).requires_grad_();
    if (world->rank() == 0) parameter.mutable_grad() = at::full({2, 3}, 0.0);
    AddsOne inner(parameter);
    const auto shared = std::make_shared<SharedParameters>(std::vector<SharedParameters::Group>{{world, {parameter}}},
                                                           SharedParameters::Updates::kOwnerWithOwnGradients);
    StepWithListeners step(inner, {shared});
    for (int i = 0; i < 2; ++i) {
      step.run({}, [&](Stage, const Step::Result&) {
        EXPECT_TRUE(at::equal(parameter.grad(), at::full({2, 3}, world->rank() == 0 ? i + 1.0 : 0.0)))
            << "watchers see the gradients of the update";
      });
      EXPECT_TRUE(at::equal(inner.seen, at::full({2, 3}, 10.0 * i))) << "not the owner's values";
      if (world->rank() > 0) continue;
      const at::NoGradGuard no_grad;
      parameter.add_(10);
    }
    shared->broadcast_from_owner();
    EXPECT_TRUE(at::equal(parameter.detach(), at::full({2, 3}, 20.0)));
  });
}

TEST(SharedParameters, AreUpdatedByTheirOwnerWithSummedGradientsAndBroadcast) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const double own = world->rank() + 1;
    at::Tensor row_by_row = at::full({2, 3}, own).requires_grad_();
    at::Tensor by_columns = at::full({3, 2}, own).t().requires_grad_();
    SharedParameters shared({{world, {row_by_row, by_columns}}}, SharedParameters::Updates::kOwnerWithSummedGradients);
    for (auto* parameter : {&row_by_row, &by_columns}) {
      if (world->rank() == 0) parameter->mutable_grad() = at::zeros_like(*parameter);  // in a run, a bucket provides it
      parameter->mutable_grad().add_(own);
    }
    shared.after_backward();
    for (auto* parameter : {&row_by_row, &by_columns}) {
      EXPECT_TRUE(parameter->grad().eq(world->rank() == 0 ? 6 : 0).all().item<bool>()) << "rank " << world->rank();
      EXPECT_TRUE(parameter->eq(own).all().item<bool>());
    }
    shared.broadcast_from_owner();
    for (auto* parameter : {&row_by_row, &by_columns}) EXPECT_TRUE(parameter->eq(1).all().item<bool>());
  });
}

TEST(SharedParameters, ReplicasThatAllRanksUpdateGetTheSumOfTheGradientsAndKeepTheirValues) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const double own = world->rank() + 1;
    at::Tensor parameter = at::full({2}, own).requires_grad_();
    parameter.mutable_grad() = at::full({2}, own);
    SharedParameters shared({{world, {parameter}}}, SharedParameters::Updates::kReplicated);
    shared.before_step({});
    shared.after_backward();
    shared.broadcast_from_owner();
    EXPECT_TRUE(parameter.grad().eq(6).all().item<bool>());
    EXPECT_TRUE(parameter.eq(own).all().item<bool>());
  });
}

TEST(SharedParameters, ReplicasThatDifferByRoundingTakeTheOwnersValuesBeforeAStepOnly) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const double own = world->rank() + 1;
    at::Tensor parameter = at::full({2}, own).requires_grad_();
    parameter.mutable_grad() = at::full({2}, own);
    SharedParameters shared({{world, {parameter}}}, SharedParameters::Updates::kReplicatedWithResync);
    shared.broadcast_from_owner();
    EXPECT_TRUE(parameter.eq(own).all().item<bool>());
    shared.before_step({});
    EXPECT_TRUE(parameter.eq(1).all().item<bool>());
    shared.after_backward();
    EXPECT_TRUE(parameter.grad().eq(6).all().item<bool>());
  });
}

}  // namespace
}  // namespace phalanx
