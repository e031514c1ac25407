// SPDX-License-Identifier: Apache-2.0
// Compares sharded logits with one process that has all of them.
#include "framework/parallel/sharded_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "framework/partition/placement.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

constexpr std::int64_t kRows = 6, kLength = 3, kClasses = 11, kIgnoredClass = -100;

VocabularyShard parts_of(const CommunicatorPtr& world) {
  VocabularyShard parts{.group = world, .sizes = {}};
  for (int rank = 0; rank < world->size(); ++rank) {
    parts.sizes.push_back(nearly_equal_part(kClasses, rank, world->size()).count);
  }
  return parts;
}

at::Tensor own_of(const at::Tensor& scores, const VocabularyShard& parts) {
  return scores.narrow(-1, parts.begin(), parts.sizes[static_cast<std::size_t>(parts.group->rank())]);
}

at::Tensor scores() {
  return ((at::arange(kRows * kLength * kClasses, at::kDouble) * 1.7).sin() * 4).view({kRows, kLength, kClasses});
}

// Returns targets with all classes, and two that are ignored.
at::Tensor targets() {
  at::Tensor target = (at::arange(kRows * kLength, at::kLong) * 7).remainder(kClasses).view({kRows, kLength});
  target[1][2] = target[5][0] = kIgnoredClass;
  return target;
}

void check(int ranks, double smoothing, c10::ScalarType dtype, double tolerance, double offset = 0) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const auto parts = parts_of(world);
    const at::Tensor whole = (scores() + offset).to(dtype).to(at::kDouble).requires_grad_();
    const at::Tensor expected = at::cross_entropy_loss(whole.flatten(0, 1), targets().flatten(), {},
                                                       at::Reduction::Mean, kIgnoredClass, smoothing) *
                                3;
    expected.backward();

    const at::Tensor part = own_of(whole.detach(), parts).to(dtype).requires_grad_();
    const at::Tensor loss = sharded_cross_entropy(part, parts, targets(), kIgnoredClass, smoothing) * 3;
    loss.backward();
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), tolerance) << ranks << " " << smoothing;
    EXPECT_EQ(part.grad().scalar_type(), dtype);
    EXPECT_LT((part.grad() - own_of(whole.grad(), parts)).abs().max().item<double>(), tolerance);
  });
}

TEST(VocabularyShard, CrossEntropyIsThatOfAllLogits) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const double smoothing : {0.0, 0.2}) {
      check(ranks, smoothing, at::kDouble, 1e-12);
      check(ranks, smoothing, at::kFloat, 1e-6);
      check(ranks, smoothing, at::kBFloat16, 2e-3);
    }
  }
}

TEST(VocabularyShard, LargeLogitsDoNotOverflow) {
  check(3, 0, at::kDouble, 1e-10, /*offset=*/1e5);
  check(3, 0.1, at::kDouble, 1e-10, /*offset=*/-1e5);
}

TEST(VocabularyShard, ANanOnOneRankIsANanOnAll) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const auto parts = parts_of(world);
    at::Tensor all = scores();
    all[2][1][10] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(sharded_cross_entropy(own_of(all, parts), parts, targets(), kIgnoredClass, 0).isnan().item<bool>());
  });
}

TEST(VocabularyShard, GatheringReturnsAllScores) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const auto parts = parts_of(world);
    EXPECT_TRUE(at::equal(gather_logits(own_of(scores(), parts), parts), scores()));
  });
}

TEST(VocabularyShard, TheBestClassIsTheLowestOfEqualOnes) {
  for (const int ranks : {1, 2, 4}) {
    run_ranks("inproc", ranks, [](const CommunicatorPtr& world) {
      const auto parts = parts_of(world);
      const at::Tensor coarse = scores().round();  // many scores are equal
      EXPECT_TRUE(at::equal(sharded_argmax(own_of(coarse, parts), parts), coarse.argmax(-1)));
      EXPECT_TRUE(at::equal(sharded_argmax(own_of(coarse[0][0], parts), parts), coarse[0][0].argmax(-1)));
    });
  }
}

}  // namespace
}  // namespace phalanx
