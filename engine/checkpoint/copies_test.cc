// SPDX-License-Identifier: Apache-2.0
// Loses ranks, and restores on the others what they have in memory.
#include "engine/checkpoint/copies.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/testing/checkpoints.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::Rank;
using testing::run_ranks;
using testing::Sharing;

constexpr std::int64_t kNone = -1;

Manifest after(std::int64_t step) { return {.position = {step, 1, 2}, .updates = step}; }

void take(Copies& copies, Rank& rank, std::int64_t step) {
  rank.fill(static_cast<float>(step));
  copies.take(after(step), /*replicas_equal=*/true);
  rank.fill(99);  // training goes on
}

// Returns what each rank has kept after it has copied steps 1 to `steps`.
std::vector<KeptCopies> kept_by(int ranks, std::int64_t steps, Sharing sharing = Sharing::kShards) {
  std::vector<KeptCopies> kept(static_cast<std::size_t>(ranks));
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    Rank rank(*world, sharing);
    Copies copies(world, rank.state, kept[static_cast<std::size_t>(world->rank())]);
    for (std::int64_t step = 1; step <= steps; ++step) take(copies, rank, step);
    copies.arrive();
  });
  return kept;
}

std::vector<KeptCopies> without(std::vector<KeptCopies> kept, const std::vector<int>& lost) {
  for (auto rank = lost.rbegin(); rank != lost.rend(); ++rank) kept.erase(kept.begin() + *rank);
  return kept;
}

std::vector<std::int64_t> steps_of(const KeptCopies& kept) {
  std::vector<std::int64_t> steps;
  for (const auto& copy : kept) steps.push_back(copy.manifest.position.step);
  return steps;
}

void expect_restores(Communicator& world, KeptCopies& kept, std::int64_t step, Sharing sharing) {
  Rank rank(world, sharing), expected(world, sharing);
  const Copy* const copy = restore_copy(kept, rank.state, world);
  ASSERT_EQ(copy == nullptr, step == kNone);
  if (copy == nullptr) return;
  expected.fill(static_cast<float>(step));
  EXPECT_EQ(copy->manifest.position, after(step).position);
  EXPECT_EQ(rank.optimizer->updates(), step);
  EXPECT_TRUE(at::equal(rank.weight, expected.weight));
  EXPECT_TRUE(at::equal(rank.buffer, expected.buffer));
  const auto state = rank.optimizer->state(), wanted = expected.optimizer->state();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(state[i].values, wanted[i].values));
  EXPECT_THAT(steps_of(kept), ElementsAre(step));
}

// Expects that the ranks that are left go back to a step (kNone: to none). Returns what they have then.
std::vector<KeptCopies> expect_restores(std::vector<KeptCopies> left, std::int64_t step,
                                        Sharing sharing = Sharing::kShards) {
  run_ranks("inproc", static_cast<int>(left.size()), [&](const CommunicatorPtr& world) {
    expect_restores(*world, left[static_cast<std::size_t>(world->rank())], step, sharing);
  });
  return left;
}

TEST(Copies, AreKeptOnAnotherHostIfThereIsOne) {
  EXPECT_THAT(neighbours_of({"a", "a", "a"}), ElementsAre(1, 2, 0));
  EXPECT_THAT(neighbours_of({"a", "a", "b", "b"}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(neighbours_of({"a", "b", "a", "b"}), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(neighbours_of({"a", "a", "a", "b"}), ElementsAre(3, 3, 3, 0));
}

TEST(Copies, AreKeptInAnotherReplica) {
  EXPECT_THAT(neighbours_of({"a", "a", "a", "a"}, 2), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(neighbours_of({"a", "a", "a", "a", "a", "a"}, 2), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(neighbours_of({"a", "a", "a", "a", "b", "b", "b", "b"}, 2), ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_THAT(neighbours_of({"a", "b", "a", "b"}, 2), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(neighbours_of({"a", "a", "a", "b", "b", "b"}, 2), ElementsAre(4, 5, 4, 5, 0, 1));
}

TEST(Copies, AnyRankMayBeLost) {
  for (const auto sharing : {Sharing::kReplicas, Sharing::kShards, Sharing::kRows}) {
    for (const int ranks : {2, 3, 4}) {
      const auto kept = kept_by(ranks, 3, sharing);
      for (int lost = 0; lost < ranks; ++lost) expect_restores(without(kept, {lost}), 3, sharing);
    }
  }
}

TEST(Copies, TwoAreKept) {
  for (const auto& kept : kept_by(3, 1)) EXPECT_THAT(steps_of(kept), ElementsAre(1));
  for (const auto& kept : kept_by(3, 5)) EXPECT_THAT(steps_of(kept), ElementsAre(5, 4));
}

TEST(Copies, ACopyCountsOnlyIfItIsComplete) {
  auto left = without(kept_by(3, 4), {0});
  left[0].front().shares.erase(0);  // rank 1 has not received the share of rank 0
  expect_restores(left, 3);
  left[0].erase(left[0].begin());  // nor its own
  expect_restores(left, 3);
  left[1].pop_back();
  expect_restores(left, kNone);
}

TEST(Copies, ARankAndItsNeighbourMustNotBeLostTogether) {
  const auto kept = kept_by(4, 2);
  expect_restores(without(kept, {0, 2}), 2);
  expect_restores(without(kept, {1, 2}), kNone);
  expect_restores(without(kept, {0, 3}), kNone);
}

TEST(Copies, RanksMayBeLostOneAfterTheOther) {
  const auto left = expect_restores(without(kept_by(4, 2), {0}), 2);
  for (const int lost : {0, 1, 2}) expect_restores(without(left, {lost}), 2);
}

TEST(Copies, GoOnAmongTheRanksThatAreLeft) {
  auto left = without(kept_by(4, 2), {1});
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    auto& kept = left[static_cast<std::size_t>(world->rank())];
    expect_restores(*world, kept, 2, Sharing::kShards);
    Rank rank(*world, Sharing::kShards);
    Copies copies(world, rank.state, kept);
    take(copies, rank, 3);
    copies.arrive();
    EXPECT_THAT(steps_of(kept), ElementsAre(3, 2)) << "the old one may still be needed";
    take(copies, rank, 4);
    copies.arrive();
    EXPECT_THAT(steps_of(kept), ElementsAre(4, 3));
  });
  for (const int lost : {0, 1, 2}) expect_restores(without(left, {lost}), 4);
}

TEST(Copies, ALossDuringACopyLeavesTheOneBefore) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& given) {
    CommunicatorPtr world = given;
    KeptCopies kept;
    {
      Rank rank(*world, Sharing::kShards);
      Copies copies(world, rank.state, kept);
      take(copies, rank, 1);
      copies.arrive();
      world->barrier().wait();
      if (world->rank() == 1) return;
      EXPECT_THROW(take(copies, rank, 2), CommError);
      copies.keep_what_arrives();
    }
    world = world->shrink();
    EXPECT_EQ(world->size(), 2);
    expect_restores(*world, kept, 1, Sharing::kShards);
  });
}

}  // namespace
}  // namespace phalanx
