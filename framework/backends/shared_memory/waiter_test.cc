// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/waiter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "framework/backends/shared_memory/cores_of_ranks.h"
#include "framework/base/cores.h"
#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {
namespace {

// Returns the number of polls before the waiter yields the core.
int spins_of(const Waiter& waiter) {
  int asked = 0, spins = 0;
  waiter.wait([&] { return spins > 0 || ++asked < 0; }, [](auto) {}, [&] { spins = asked; });
  return spins;
}

TEST(Waiter, HardlySpinsWhereRanksShareACore) {
  EXPECT_LT(spins_of(Waiter(3, 2)), 100);
  EXPECT_GT(spins_of(Waiter(2, 2)), 1000);
}

TEST(Waiter, CountsTheCoresThatItsThreadMayUse) {
  std::thread([] {
    ASSERT_TRUE(stay_on_cores({allowed_cores().front()}));
    EXPECT_LT(spins_of(Waiter(2)), 100) << "the thread may use only one core";
    EXPECT_GT(spins_of(Waiter(1)), 1000);
  }).join();
}

// Returns the number of cores that each rank counts, where each rank is a thread bound to some cores of this process.
std::vector<int> counted(const std::vector<std::vector<int>>& cores_of_rank) {
  const auto store = make_hash_store(Seconds(60));
  const auto size = static_cast<int>(cores_of_rank.size());
  std::vector<int> counts(cores_of_rank.size());
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      EXPECT_TRUE(stay_on_cores(cores_of_rank[rank]));
      counts[rank] = cores_of_ranks(*store, "cores", rank, size);
    });
  }
  ranks.clear();
  return counts;
}

TEST(CoresOfRanks, IncludeAllThatAnyRankMayUse) {
  const auto all = allowed_cores();
  const std::vector<int> first{all.front()}, last{all.back()};
  const auto both = first == last ? 1 : 2;
  EXPECT_EQ(counted({first, first, first}), (std::vector{1, 1, 1})) << "as under taskset";
  EXPECT_EQ(counted({first, last}), (std::vector{both, both})) << "as ranks that were bound";
  EXPECT_EQ(counted({all, first}), std::vector<int>(2, static_cast<int>(all.size())));
}

}  // namespace
}  // namespace phalanx::shared_memory
