// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "engine/testing/strategy.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gather;
using testing::gradient_at;
using testing::kElements;
using testing::kRate;
using testing::make_strategy;
using testing::run_ranks;

class Hogwild : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Hogwild, ::testing::Values(1, 2, 3));

// If ranks take turns, no update is lost and each one sees all earlier ones, which is plain SGD on one share after the
// other.
TEST_P(Hogwild, RanksThatTakeTurnsComputeSgdOnOneShareAfterAnother) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const at::Tensor own = at::full({kElements}, 3.0 + group->rank()).requires_grad_();
    const FlatParameters parameters(std::vector<at::Tensor>{own}, *group, 1 << 20);
    const auto strategy = make_strategy("hogwild", group);
    const auto slice = strategy->attach(parameters, Cut::kAnywhere).at(0);
    at::Tensor expected = at::full({kElements}, 3.0);
    for (int step = 0; step < 5; ++step) {
      for (int turn = 0; turn < group->size(); ++turn) {
        if (turn == group->rank()) {
          slice.gradients.copy_(gradient_at(own, turn, step));  // through the parameter, as the model sees it
          strategy->before_update(step);
          slice.values.sub_(slice.gradients, kRate);
          strategy->after_update(step);
        }
        group->barrier().wait();
        expected = expected - kRate * gradient_at(expected, turn, step);
        EXPECT_TRUE(at::allclose(own, expected, 1e-6, 1e-6)) << "step " << step << ", turn " << turn;
        group->barrier().wait();
      }
    }
    strategy->finish();
  });
}

// Without turns, updates still arrive: each rank pulls only its own elements away from their initial values, and all
// ranks see the result. If two updates happen at the same time, one may be lost, so a round has several steps. No rank
// writes between rounds.
TEST_P(Hogwild, ConcurrentUpdatesOfEveryRankReachAllRanks) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 9.0)}, *group, 1 << 20);
    const auto strategy = make_strategy("hogwild", group);
    const auto slice = strategy->attach(parameters, Cut::kAnywhere).at(0);
    const at::Tensor owner = at::arange(slice.values.numel()).remainder(group->size());
    const at::Tensor target = owner.to(at::kFloat) + 1;
    const at::Tensor mine = owner.eq(group->rank()).to(at::kFloat);
    for (int round = 0; round < 20; ++round) {
      for (int step = 0; step < 15; ++step) slice.values.sub_((slice.values - target) * mine * 0.5, kRate);
      group->barrier().wait();
    }
    strategy->finish();
    EXPECT_TRUE(at::allclose(slice.values, target, 1e-3, 1e-3)) << "on rank " << group->rank();
    const at::Tensor all = gather(slice.values, *group);
    for (int rank = 1; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(all[rank], all[0]));
  });
}

}  // namespace
}  // namespace phalanx
