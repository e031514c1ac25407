// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using enum testing::SparseRule;
using testing::SparseRule;

constexpr std::int64_t kCachedDim = 4, kKeys = 60;

// Two servers, and two clients that each have a table with the same rows.
class SparseCache : public ::testing::TestWithParam<const char*> {
 protected:
  SparseCache() {
    for (int number = 0; number < 2; ++number) clients_.push_back(service_.client(number));
  }

  SparseTable table(int client, const std::string& name = "t") {
    return {*clients_[client],
            {.name = name, .rules = {"add", "sgd", "adagrad"}, .dim = kCachedDim, .sparse = {.initial = "normal"}}};
  }

  at::Tensor some_keys(std::int64_t most = kKeys) {
    auto keys = at::zeros({static_cast<std::int64_t>(random_() % 12)}, at::kLong);
    for (std::int64_t i = 0; i < keys.numel(); ++i) keys[i].fill_(static_cast<std::int64_t>(random_() % most));
    return keys;
  }

  at::Tensor some_updates(const at::Tensor& keys) {
    auto updates = at::zeros({keys.numel(), kCachedDim});
    for (std::int64_t i = 0; i < keys.numel(); ++i) updates[i].fill_(static_cast<double>(random_() % 19) - 9);
    return updates;
  }

  std::mt19937 random_{3};

 private:
  testing::Service service_{2, GetParam()};
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_P(SparseCache, WithoutStalenessGivesTheResultsOfNoCache) {
  SparseTable plain = table(0, "plain"), behind = table(0, "cached"), others = table(1, "cached"),
              plains = table(1, "plain");
  CachedSparseTable cached(behind, {.capacity = 10});
  for (int step = 0; step < 100; ++step) {
    const auto keys = some_keys(), pushed = some_keys(), updates = some_updates(pushed), elsewhere = some_keys();
    cached.prefetch(keys);
    others.push(elsewhere, some_updates(elsewhere) * 0 + 1, {.rule = kAdagradRows, .scale = 0.1}).wait();
    plains.push(elsewhere, at::ones({elsewhere.numel(), kCachedDim}), {.rule = kAdagradRows, .scale = 0.1}).wait();
    EXPECT_TRUE(cached.pull(keys).equal(plain.pull(keys)));
    cached.push(pushed, updates, {.rule = kAdagradRows, .scale = 0.1, .tick = step % 3 == 0});
    plain.push(pushed, updates, {.rule = kAdagradRows, .scale = 0.1, .tick = step % 3 == 0}).wait();
  }
}

// Uses sums of integers, which are exact. Own updates are visible at once, no matter when rows are pushed, pulled and
// evicted.
TEST_P(SparseCache, AClientAloneReadsItsOwnUpdates) {
  for (const std::int64_t staleness : {1, 3, 100}) {
    for (const std::int64_t capacity : {1, 5, 30, 1000}) {
      const std::string name = std::to_string(staleness) + "/" + std::to_string(capacity);
      SparseTable plain(table(0, name)), behind(table(0, name));
      SparseTable cleared = table(0, name);
      // Clearing the rows makes them integers.
      cleared.push(at::arange(kKeys, at::kLong), -cleared.pull(at::arange(kKeys, at::kLong)), {}).wait();
      CachedSparseTable cached(behind, {.capacity = capacity, .staleness = staleness, .own_updates = -1});
      auto expected = at::zeros({kKeys, kCachedDim});
      for (int step = 0; step < 200; ++step) {
        const auto keys = some_keys(), pushed = some_keys(), updates = some_updates(pushed);
        if (random_() % 2 == 0) cached.prefetch(some_keys());
        ASSERT_TRUE(cached.pull(keys).equal(expected.index_select(0, keys))) << name << " step " << step;
        const double scale = step < 100 ? 1 : 2;
        if (random_() % 2 == 0) cached.prefetch(some_keys());
        cached.push(pushed, updates, {.rule = kSgdRows, .scale = scale, .tick = random_() % 2 == 0});
        expected.index_add_(0, pushed, updates, -scale);
      }
      cached.flush();
      EXPECT_TRUE(plain.pull(at::arange(kKeys, at::kLong)).equal(expected)) << name << ": an update was lost";
      if (capacity == 1) {
        EXPECT_GT(cached.counts().evicted, 0);
      }
    }
  }
}

// One client adds 1 to all rows at each clock, so the value of a row shows the clock up to which it has updates.
TEST_P(SparseCache, KeepsTheBoundAndUsesIt) {
  for (const std::int64_t staleness : {1, 2, 5}) {
    const std::string name = "bound" + std::to_string(staleness);
    SparseTable writing = table(0, name), reading = table(1, name);
    const auto all = at::arange(kKeys, at::kLong);
    writing.push(all, -writing.pull(all), {}).wait();
    CachedSparseTable writer(writing, {.capacity = 40, .staleness = staleness, .own_updates = 1});
    CachedSparseTable reader(reading, {.capacity = 40, .staleness = staleness});
    std::int64_t oldest = 0;
    for (std::int64_t clock = 0; clock < 50; ++clock) {
      // Both clients are at this clock. The writer's updates of clocks before clock - s have been pushed. The reader's
      // rows are at most s clocks old, and the same was true when they were read.
      for (int time = 0; time < 3; ++time) {
        const auto keys = some_keys();
        if (keys.numel() == 0) continue;
        const auto seen = reader.pull(keys);
        EXPECT_GE(seen.min().item<float>(), static_cast<float>(clock - 2 * staleness)) << "clock " << clock;
        oldest = std::max(oldest, clock - static_cast<std::int64_t>(seen.min().item<float>()));
      }
      if (clock % 3 == 0) reader.prefetch(some_keys());
      writer.pull(all.narrow(0, 0, 30));
      writer.push(all, at::ones({kKeys, kCachedDim}), {.rule = kAddRows, .tick = true});
      reader.push(at::zeros({0}, at::kLong), at::zeros({0, kCachedDim}), {.tick = true});
      // A pull ordered after the writer's pushes makes sure that they are complete before the reader continues.
      EXPECT_GE(writing.pull(all).min().item<float>(), static_cast<float>(clock + 1 - staleness));
    }
    EXPECT_GT(oldest, 0) << "the cache was used";
    EXPECT_GT(reader.counts().hits, 0);
    writer.flush();
    EXPECT_TRUE(writing.pull(all).equal(at::full({kKeys, kCachedDim}, 50, at::kFloat)));
  }
}

TEST_P(SparseCache, PrefetchedRowsAreHits) {
  SparseTable behind = table(0);
  CachedSparseTable cached(behind, {.capacity = 100, .staleness = 2});
  const auto keys = at::arange(20, at::kLong);
  cached.prefetch(keys);
  cached.prefetch(keys);
  EXPECT_EQ(cached.counts().pulled, 20);
  cached.pull(keys);
  EXPECT_EQ(cached.counts().pulled, 20);
  EXPECT_EQ(cached.counts().hits, 20);
  cached.push(keys, at::ones({20, kCachedDim}), {.rule = kAddRows});
  cached.push(keys, at::ones({20, kCachedDim}), {.rule = kAddRows});
  EXPECT_EQ(cached.counts().pushed, 0);
  cached.flush();
  EXPECT_EQ(cached.counts().pushed, 20) << "one sum is pushed for each row";
}

TEST_P(SparseCache, SaysWhatIsWrong) {
  SparseTable behind = table(0);
  EXPECT_THROW(CachedSparseTable(behind, {.capacity = 0}), std::invalid_argument);
  EXPECT_THROW(CachedSparseTable(behind, {.staleness = -1}), std::invalid_argument);
  CachedSparseTable cached(behind, {.staleness = 1});
  EXPECT_THROW(cached.pull(at::zeros({2}, at::kInt)), std::invalid_argument);
  EXPECT_THROW(cached.pull(at::full({1}, -1, at::kLong)), std::invalid_argument);
  cached.push(at::zeros({1}, at::kLong), at::zeros({1, kCachedDim}), {.rule = 9});
  EXPECT_THROW(cached.flush(), Error);
}

INSTANTIATE_TEST_SUITE_P(Addresses, SparseCache, ::testing::Values("unix", "tcp"));

}  // namespace
}  // namespace phalanx::ps
