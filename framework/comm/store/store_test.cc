// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/testing/store.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::expect_timeout;
using testing::keep_notes;
using testing::kLong;
using testing::kShort;

TEST(HashStore, StoresValues) {
  const auto store = make_hash_store(kLong);
  keep_notes(*store, *store);
  expect_timeout(*make_hash_store(kShort));
}

TEST(PrefixStore, SeparatesUsers) {
  const auto store = make_hash_store(kLong);
  make_prefix_store("a", store)->set("key", "1");
  make_prefix_store("b", store)->set("key", "2");
  EXPECT_EQ(make_prefix_store("a", store)->get("key"), "1");
  EXPECT_EQ(store->get("b/key"), "2");
}

TEST(StoreBarrier, NoRankPassesBeforeAllHaveArrived) {
  constexpr int kRanks = 4;
  const auto store = make_hash_store(kLong);
  std::atomic<int> arrived{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&] {
      ++arrived;
      store_barrier(*store, "start", kRanks);
      EXPECT_EQ(arrived, kRanks);
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(comm_error_of([] { store_barrier(*make_hash_store(kShort), "alone", 2); }).kind(),
            CommError::Kind::kTimeout);
}

}  // namespace
}  // namespace phalanx
