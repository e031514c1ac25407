// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_shard.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {
namespace {

constexpr std::int64_t kDim = 3;

TableSpec sparse(std::int64_t capacity, const std::string& initial = "zeros") {
  return {.name = "t",
          .rules = {"add", "adagrad"},
          .dim = kDim,
          .sparse = {.capacity = capacity, .initial = initial, .scale = 0.5, .seed = 7}};
}

at::Tensor block(const std::vector<std::int64_t>& keys, std::optional<float> update = {}) {
  const std::size_t bytes = keys.size() * (8 + (update ? 4 * kDim : 0));
  at::Tensor made = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
  auto* const to = static_cast<char*>(made.mutable_data_ptr());
  std::memcpy(to, keys.data(), keys.size() * 8);
  if (update) std::fill_n(reinterpret_cast<float*>(to + keys.size() * 8), keys.size() * kDim, *update);
  return made;
}

void push(Shard& shard, const std::vector<std::int64_t>& keys, float update, std::size_t rule = 0) {
  shard.push({.rule = rule, .rows = static_cast<std::int64_t>(keys.size())}, block(keys, update));
}

std::vector<float> pull(Shard& shard, const std::vector<std::int64_t>& keys, bool read_only = false) {
  std::vector<float> all;
  shard.pull({.read_only = read_only, .rows = static_cast<std::int64_t>(keys.size()), .payload = block(keys)},
             [&](std::int64_t, const at::Tensor& values) {
               const auto* const data = static_cast<const float*>(values.const_data_ptr());
               all.assign(data, data + values.numel() / 4);
             });
  return all;
}

// Compares the index with std::map, with keys that collide and are added and removed.
TEST(SparseIndex, BehavesLikeAMap) {
  SparseIndex index;
  std::map<std::int64_t, SparseIndex::Slot> expected;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto key = static_cast<std::int64_t>(random() % 500) << (random() % 2 * 40);
    const auto found = expected.find(key);
    ASSERT_EQ(index.find(key), found == expected.end() ? SparseIndex::kNone : found->second);
    if (found != expected.end()) {
      ASSERT_EQ(index.erase(key), found->second);
      expected.erase(found);
    } else {
      index.insert(key, i);
      expected.emplace(key, i);
    }
    if (i % 7 == 0 && !expected.empty()) {
      const auto evicted = index.evict();
      ASSERT_EQ(expected.at(evicted.key), evicted.slot);
      expected.erase(evicted.key);
    }
    ASSERT_EQ(index.size(), expected.size());
  }
  for (const auto& [key, slot] : expected) EXPECT_EQ(index.find(key), slot);
}

TEST(SparseKeys, RangesAreTheSameAsOfDenseTables) {
  for (const std::int64_t keys : {1, 7, 100}) {
    TableSpec spec = sparse(1000), dense{.elements = keys};
    spec.sparse.partition = "range", spec.sparse.keys = keys;
    const SparseKeys layout(spec, 3);
    for (std::int64_t key = 0; key < keys; ++key) {
      const int server = layout.server_of(key);
      EXPECT_GE(key, begin_of_shard(dense, server, 3));
      EXPECT_LT(key, begin_of_shard(dense, server + 1, 3));
    }
    EXPECT_FALSE(layout.has(keys));
    EXPECT_FALSE(layout.has(-1));
  }
}

TEST(SparseKeys, HashesSpreadEvenly) {
  const SparseKeys layout(sparse(1000), 5);
  std::vector<int> counts(5);
  for (std::int64_t key = 0; key < 100'000; ++key) ++counts[layout.server_of(key)];
  for (const int count : counts) EXPECT_NEAR(count, 20'000, 600);
}

TEST(SparseShard, RowsAreCreatedWhenTheyAreUsed) {
  SparseShard shard(sparse(100), 0, 1);
  push(shard, {1'000'000'007, 5, 1'000'000'007}, 2);
  EXPECT_EQ(pull(shard, {5, 1'000'000'007, 9}), (std::vector<float>{2, 2, 2, 4, 4, 4, 0, 0, 0}));
  EXPECT_EQ(shard.counts().at("rows"), 3);
}

TEST(SparseShard, EvaluationCreatesNothingAndReadsTheSame) {
  SparseShard shard(sparse(100, "normal"), 0, 1);
  const auto read = pull(shard, {3, 4}, true);
  EXPECT_EQ(shard.counts().at("rows"), 0);
  EXPECT_NE(read[0], 0);
  EXPECT_EQ(pull(shard, {3, 4}), read);
  EXPECT_EQ(shard.counts().at("rows"), 2);
}

TEST(SparseShard, NewValuesDependOnlyOnSeedKeyAndColumn) {
  for (const std::string initial : {"normal", "uniform"}) {
    SparseShard forwards(sparse(10'000, initial), 0, 1), backwards(sparse(10'000, initial), 0, 1);
    std::vector<std::int64_t> keys(5000);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int64_t>(i) * 1'000'003;
    const auto values = pull(forwards, keys);
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) pull(backwards, {*key});
    EXPECT_EQ(pull(backwards, keys), values);
    double mean = 0, square = 0;
    for (const float value : values) mean += value, square += value * value;
    mean /= static_cast<double>(values.size());
    square /= static_cast<double>(values.size());
    EXPECT_NEAR(mean, 0, 0.02);
    EXPECT_NEAR(std::sqrt(square), initial == "normal" ? 0.5 : 0.5 / std::sqrt(3.0), 0.02);
    if (initial == "uniform") {
      EXPECT_LE(*std::ranges::max_element(values), 0.5F);
    }
  }
}

TEST(SparseShard, NeverHoldsMoreThanItsCapacity) {
  SparseShard shard(sparse(100), 0, 1);
  for (std::int64_t key = 0; key < 10'000; key += 10) {
    std::vector<std::int64_t> keys;
    for (std::int64_t i = 0; i < 10; ++i) keys.push_back(key + i);
    keys.push_back(3);  // always in use
    push(shard, keys, 1);
    EXPECT_LE(shard.counts().at("rows"), 100);
  }
  EXPECT_EQ(pull(shard, {3}, true), std::vector<float>(kDim, 1001)) << "rows in use are kept";
  EXPECT_EQ(pull(shard, {7}), std::vector<float>(kDim, 0))
      << "rows that were dropped start again from their initial values";
  const auto counts = shard.counts();
  EXPECT_EQ(counts.at("rows_created") - counts.at("rows_evicted"), 100);
}

// A row that was found first may have been evicted when it is used.
TEST(SparseShard, ABatchMayBeLargerThanTheCapacity) {
  SparseShard shard(sparse(4), 0, 1);
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i < 1000; ++i) keys.push_back(i % 10);
  for (int round = 0; round < 3; ++round) {
    push(shard, keys, 1);
    const auto values = pull(shard, keys, true);
    for (std::size_t i = 0; i < values.size(); i += kDim) {
      EXPECT_TRUE(values[i] == values[i + 1] && values[i] == values[i + 2]) << "a part of another row";
    }
    EXPECT_EQ(shard.counts().at("rows"), 4);
  }
}

TEST(SparseShard, TheStateOfARuleIsDroppedWithItsRow) {
  SparseShard shard(sparse(1), 0, 1);
  push(shard, {1}, 2, 1);
  const auto first = pull(shard, {1});
  push(shard, {1}, 2, 1);
  EXPECT_NE(pull(shard, {1})[0] - first[0], first[0]) << "the second step is shorter";
  push(shard, {2}, 2, 1);  // evicts
  push(shard, {1}, 2, 1);
  EXPECT_EQ(pull(shard, {1}), first);
}

TEST(SparseShard, ResumesFromItsStateOnAnyNumberOfServers) {
  SparseShard shard(sparse(1000, "normal"), 0, 1);
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i < 500; ++i) keys.push_back(i * 77);
  push(shard, keys, 2, 1);
  NamedTensors state;
  for (const auto& entry : shard.state()) state.emplace_back(entry.name, entry.values);
  push(shard, keys, 1, 1);
  std::int64_t rows = 0;
  for (int server = 0; server < 3; ++server) {
    SparseShard part(sparse(3000, "normal"), server, 3);
    part.load_state(state);
    rows += part.counts().at("rows");
    const SparseKeys layout(sparse(3000), 3);
    for (const auto key : keys) {
      if (layout.server_of(key) != server) continue;
      push(part, {key}, 1, 1);
      EXPECT_EQ(pull(part, {key}), pull(shard, {key})) << "with what the rule remembers";
    }
  }
  EXPECT_EQ(rows, 500);
  NamedTensors broken = state;
  broken[1].second = broken[1].second.narrow(0, 0, 10);
  EXPECT_THROW(shard.load_state(broken), DataError);
  EXPECT_EQ(shard.counts().at("rows"), 500);
}

TEST(SparseShard, RefusesInvalidRequests) {
  TableSpec spec = sparse(100);
  spec.sparse.keys = 50;
  SparseShard shard(spec, 0, 1);
  push(shard, {1}, 1);
  EXPECT_THROW(push(shard, {1, -1}, 1), Error);
  EXPECT_THROW(push(shard, {1, 50}, 1), Error);
  EXPECT_THROW(push(shard, {1, std::numeric_limits<std::int64_t>::min()}, 1), Error);
  EXPECT_THROW(push(shard, {1}, 1, 9), Error);
  EXPECT_THROW(pull(shard, {50}), Error);
  EXPECT_THROW(shard.push({.rows = 2}, block({1}, 1)), Error);
  EXPECT_THROW(shard.push({.rows = -1}, block({1}, 1)), Error);
  EXPECT_THROW(shard.push({.rows = std::numeric_limits<std::int64_t>::max()}, block({1}, 1)), Error);
  EXPECT_THROW(shard.push({.rows = 1}, at::Tensor()), Error);
  EXPECT_THROW(shard.pull({.rows = 3, .payload = block({1})}, [](auto, const auto&) {}), Error);
  EXPECT_THROW(shard.transfer({.verb = Verb::kPush, .rows = 0xffffffff}), Error);
  EXPECT_EQ(pull(shard, {1}), std::vector<float>(kDim, 1)) << "nothing has changed";
  SparseShard second(sparse(100), 1, 2);
  std::int64_t key = 0;
  while (SparseKeys(sparse(100), 2).server_of(key) != 0) ++key;
  EXPECT_THROW(pull(second, {key}), Error) << "the key belongs to another server";
}

TEST(SparseShard, RefusesInvalidTables) {
  const auto refused = [](const std::function<void(TableSpec&)>& change) {
    TableSpec spec = sparse(100);
    change(spec);
    EXPECT_THROW(SparseShard(spec, 0, 2), ConfigError);
  };
  refused([](TableSpec& spec) { spec.dim = kMaxDim + 1; });
  refused([](TableSpec& spec) { spec.dtype = "int64"; });
  refused([](TableSpec& spec) { spec.elements = 3; });
  refused([](TableSpec& spec) { spec.sparse.partition = "range"; });
  refused([](TableSpec& spec) { spec.sparse.capacity = 1; });
  refused([](TableSpec& spec) { spec.sparse.capacity = std::numeric_limits<std::int64_t>::max(); });
  refused([](TableSpec& spec) { spec.rules = {"lerp"}; });
  EXPECT_EQ(max_bytes_of_shard(sparse(std::numeric_limits<std::int64_t>::max()), 0, 2),
            std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace phalanx::ps
